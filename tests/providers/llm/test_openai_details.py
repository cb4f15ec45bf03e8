"""What chat completions hold besides their text: thoughts counted, log-probabilities, citations, errors within."""

from __future__ import annotations

import json
from typing import Any

import pytest
from chat_shapes import DONE, ROLE, choice, chunk, event, fault_of, message, ok, reply_of, streamed, whole
from hypothesis import given, settings
from hypothesis import strategies as st
from torture import times

from millstream.engine.call import Citation, TokenLogprob, Usage
from millstream.engine.endpoint import Fault, Response
from millstream.providers.llm.openai.chat import decode

# --- usage ---


def counts(read: Any, written: Any, **more: Any) -> dict[str, Any]:
    return {"prompt_tokens": read, "completion_tokens": written, **more}


THOUGHT = {"completion_tokens_details": {"reasoning_tokens": 64}}
KEPT = {"prompt_tokens_details": {"cached_tokens": 12}}
USAGES: dict[str, tuple[dict[str, Any], Usage]] = {
    "OpenAI, where thoughts are part of the output": (
        counts(36, 87, total_tokens=123, **THOUGHT, **KEPT),
        Usage(36, 87, 64, 12),
    ),
    "xAI, where they are not": (counts(36, 23, total_tokens=123, **THOUGHT, **KEPT), Usage(36, 87, 64, 12)),
    "DeepSeek": (counts(36, 87, prompt_cache_hit_tokens=12, **THOUGHT), Usage(36, 87, 64, 12)),
    "Mistral": (counts(36, 87, num_cached_tokens=12), Usage(36, 87, 0, 12)),
    "null details": (counts(36, 87, completion_tokens_details=None, prompt_tokens_details=None), Usage(36, 87)),
    "null within details": (counts(36, 87, completion_tokens_details={"reasoning_tokens": None}), Usage(36, 87)),
    "details of another type": (counts(36, 87, completion_tokens_details=[1], **KEPT), Usage(36, 87, 0, 12)),
    "counts with a decimal point": (counts(36.0, 87.0, total_tokens=123.0, **THOUGHT), Usage(36, 87, 64)),
    "more thoughts than tokens": (counts(36, 10, total_tokens=46, **THOUGHT), Usage(36, 74, 64)),
    "more in the total": (counts(36, 10, total_tokens=1_000), Usage(36, 964)),
    "thoughts without a total": (counts(36, 10, total_tokens=None, **THOUGHT), Usage(36, 74, 64)),
    "more cached than read": (counts(11, 87, **KEPT), Usage(11, 87)),
    "more cached and written than read": (
        counts(36, 87, prompt_tokens_details={"cached_tokens": 12, "cache_write_tokens": 30}),
        Usage(36, 87, cache_write_5m=30, cache_write_1h=None),
    ),
    "negative details": (counts(36, 10, completion_tokens_details={"reasoning_tokens": -3}), Usage(36, 10)),
}


@pytest.mark.parametrize("name", USAGES)
def test_usage_counts_thoughts_within_the_output_and_cached_tokens_within_the_input(name: str) -> None:
    given, expected = USAGES[name]
    assert reply_of(ok(whole(usage=given))).usage == expected
    parts = (ROLE, chunk({"content": "A"}, "stop"), event({"choices": [], "usage": given}), DONE)
    assert reply_of(streamed(*parts)).usage == expected


# --- log-probabilities ---


def token(text: str, logprob: Any, *top: tuple[str, float]) -> dict[str, Any]:
    return {
        "token": text,
        "logprob": logprob,
        "bytes": None,
        "top_logprobs": [{"token": t, "logprob": p} for t, p in top],
    }


CONTENT = [token("po", -0.25, ("po", -0.25), ("so", -1.5)), token("si", -3)]
READ = (TokenLogprob("po", -0.25, (("po", -0.25), ("so", -1.5))), TokenLogprob("si", -3.0))
LISTS = {
    "tokens": ["po", "si"],
    "token_logprobs": [-0.25, -3],
    "top_logprobs": [{"po": -0.25, "so": -1.5}, {}],
    "token_ids": [1, 2],
}
LOGPROBS: dict[str, tuple[Any, tuple[TokenLogprob, ...] | None]] = {
    "OpenAI": ({"content": CONTENT, "refusal": None}, READ),
    "Together": (LISTS, READ),
    "Together, without alternatives": (
        {"tokens": ["po", "si"], "token_logprobs": [-0.25, -3]},
        (TokenLogprob("po", -0.25), TokenLogprob("si", -3.0)),
    ),
    "no tokens": ({"content": []}, ()),
    "null": (None, None),
    "nothing in it": ({"content": None}, None),
    "another type": ("many", None),
    "no number": ({"content": [token("a", None), token("b", "x"), 7, token("c", -1)]}, (TokenLogprob("c", -1.0),)),
    "a number beyond all": ({"content": [token("a", 10**400), token("c", -1)]}, (TokenLogprob("c", -1.0),)),
}


@pytest.mark.parametrize("name", LOGPROBS)
def test_log_probabilities_are_read_in_every_shape_there_is(name: str) -> None:
    given, expected = LOGPROBS[name]
    body = json.dumps({"choices": choice(logprobs=given)}).encode()
    assert reply_of(ok(body)).logprobs == expected


def test_log_probabilities_of_a_stream_are_those_of_its_chunks() -> None:
    def piece(content: str, logprobs: Any) -> bytes:
        return event({"choices": [{"index": 0, "delta": {"content": content}, "logprobs": logprobs}]})

    end = chunk({}, "stop")
    parts = [piece(one["token"], {"content": [one]}) for one in CONTENT]
    assert reply_of(streamed(ROLE, *parts, end, DONE)).logprobs == READ
    # Together gives a number for the token that is the chunk.
    numbers = [piece("po", -0.25), piece("si", -3), piece("", None)]
    assert reply_of(streamed(*numbers, end)).logprobs == (TokenLogprob("po", -0.25), TokenLogprob("si", -3.0))
    assert reply_of(streamed(ROLE, end, DONE)).logprobs is None


# --- citations ---

ONE, TWO = {"url": "https://a.example/1", "title": "One"}, {"url": "https://b.example/2", "title": "Two"}
READ_BOTH = (Citation("https://a.example/1", "One"), Citation("https://b.example/2", "Two"))
UNTITLED = (Citation("https://a.example/1"), Citation("https://b.example/2"))
URLS = ["https://a.example/1", "https://b.example/2"]


def noted(*given: Any) -> dict[str, Any]:
    return {"choices": message("A", annotations=list(given))}


CITATIONS: dict[str, tuple[dict[str, Any], tuple[Citation, ...]]] = {
    "OpenAI and OpenRouter, in annotations": (
        noted({"type": "url_citation", "url_citation": ONE}, {"type": "url_citation", "url_citation": TWO}),
        READ_BOTH,
    ),
    "flat annotations": (noted({"type": "url_citation", **ONE}, {"type": "url_citation", **TWO}), READ_BOTH),
    "the same place twice": (noted({"url_citation": ONE}, {"url_citation": TWO}, {"url_citation": ONE}), READ_BOTH),
    "xAI, addresses beside the choices": ({"citations": URLS}, UNTITLED),
    "Perplexity, with the search results": ({"citations": URLS, "search_results": [TWO, ONE]}, READ_BOTH),
    "search results alone": ({"search_results": [ONE, TWO]}, READ_BOTH),
    "a search result that is not cited": ({"citations": URLS[:1], "search_results": [TWO, ONE]}, READ_BOTH[:1]),
    "objects in the list": ({"citations": [ONE, TWO]}, READ_BOTH),
    "other annotations": (noted({"type": "file_citation", "file_id": "f"}, 7, None, {"url_citation": {"url": 3}}), ()),
    "none": ({"citations": [], "search_results": None}, ()),
    "another type": ({"citations": "https://a.example/1"}, ()),
}


@pytest.mark.parametrize("name", CITATIONS)
def test_citations_are_found_wherever_a_provider_puts_them(name: str) -> None:
    changes, expected = CITATIONS[name]
    assert reply_of(ok(whole(**changes))).citations == expected


@pytest.mark.parametrize("name", CITATIONS)
def test_citations_are_found_in_a_stream_too(name: str) -> None:
    changes, expected = CITATIONS[name]
    notes = changes["choices"][0]["message"]["annotations"] if "choices" in changes else []
    more = {key: value for key, value in changes.items() if key != "choices"}
    parts = (ROLE, chunk({"content": "A", "annotations": notes}), chunk({}, "stop", **more), DONE)
    assert reply_of(streamed(*parts)).citations == expected


# --- how an answer ends ---


WITHIN: dict[str, tuple[dict[str, Any], str, str]] = {
    "overloaded": ({"code": 502, "message": "Provider returned error"}, "server_error", "retry"),
    "throttled": ({"code": 429, "message": "slow down"}, "rate_limited", "throttle"),
    "no credit": ({"code": 402, "message": "add credits"}, "rate_limited", "stop"),
    "unknown": ({"message": "\ud83d"}, "server_error", "retry"),
}


@pytest.mark.parametrize("name", WITHIN)
def test_an_error_that_openrouter_puts_into_a_choice_is_that_error(name: str) -> None:
    error, kind, action = WITHIN[name]
    broken: dict[str, Any] = {"index": 0, "finish_reason": "error", "error": error}
    body = json.dumps({"choices": [{**broken, "message": {"content": "ha"}}]}).encode()
    part = b"data: " + json.dumps({"choices": [{**broken, "delta": {"content": ""}}]}).encode() + b"\n\n"
    for response in (ok(body), streamed(ROLE, chunk({"content": "ha"}), part, DONE)):
        fault = fault_of(response)
        assert (fault.kind, fault.action) == (kind, action)


_ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(
        ["token", "logprob", "content", "tokens", "token_logprobs", "top_logprobs", "url", "title", "url_citation",
         "reasoning_tokens", "cached_tokens", "prompt_tokens", "completion_tokens"]), inner, max_size=4),
    max_leaves=8,
)  # fmt: skip


@settings(max_examples=times(100, 500), deadline=None)
@given(_ANY, _ANY, _ANY, _ANY, _ANY)
def test_odd_details_cost_no_answer_and_break_nothing(
    logprobs: Any, notes: Any, listed: Any, results: Any, usage: Any
) -> None:
    one = {"index": 0, "message": {"content": "A", "annotations": notes}, "finish_reason": "stop", "logprobs": logprobs}
    body = json.dumps({"choices": [one], "citations": listed, "search_results": results, "usage": usage}).encode()
    result = decode(Response(200, body))
    assert not isinstance(result, Fault), result
    assert result.text == "A"
