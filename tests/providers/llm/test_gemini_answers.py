"""What counts as a whole answer of Gemini's: bodies and streams as recorded, cut, filtered, odd, and at random."""

from __future__ import annotations

import hashlib
from typing import Any

import orjson
import pytest
from gemini_shapes import (
    GROUNDED,
    LOGPROBS,
    RECITED,
    STREAM,
    TEXT,
    USAGE,
    answer,
    candidate,
    event,
    said,
    whole,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.engine.call import Citation, Reply, TokenLogprob, Usage
from millstream.engine.endpoint import Fault, Response
from millstream.providers.llm.google.generate import decode


def streamed(*parts: bytes, is_cut: bool = False) -> Response:
    return Response(200, b"".join(parts), stream=True, is_cut=is_cut)


def reply_of(response: Response | bytes) -> Reply:
    result = decode(Response(200, response) if isinstance(response, bytes) else response)
    assert isinstance(result, Reply), result
    return result


def fault_of(response: Response | bytes) -> Fault:
    result = decode(Response(200, response) if isinstance(response, bytes) else response)
    assert isinstance(result, Fault), result
    return result


# --- whole answers ---


def test_a_whole_answer_is_read_with_its_usage_and_the_hash_of_its_bytes() -> None:
    body = whole()
    reply = reply_of(body)
    assert (reply.text, reply.finish_reason, reply.refused, reply.raw) == (TEXT, "stop", False, None)
    assert reply.usage == Usage(19, 22, reasoning=12)
    assert reply.raw_hash == hashlib.sha256(body).hexdigest()
    assert reply.logprobs is None and reply.citations == ()


def test_a_stream_is_read_as_the_whole_answer_is() -> None:
    reply = reply_of(streamed(*STREAM))
    assert (reply.text, reply.finish_reason, reply.refused, reply.raw) == (TEXT, "stop", False, None)
    assert reply.usage == Usage(19, 22, reasoning=12)


def test_the_last_usage_of_a_stream_is_kept_where_its_last_chunk_has_no_sound_one() -> None:
    for more in ({}, {"usageMetadata": None}, {"usageMetadata": {"promptTokenCount": "many"}}):
        last = event(said({"text": "!"}, finish="STOP", **more))
        assert reply_of(streamed(*STREAM[:2], last)).usage == Usage(19, 0)


def test_an_answer_that_came_to_its_end_was_not_blocked() -> None:
    assert not reply_of(whole(promptFeedback={"blockReason": "OTHER"})).refused


def test_a_body_cut_at_any_byte_is_never_a_reply() -> None:
    body = whole()
    for cut in range(len(body)):
        fault = fault_of(body[:cut])
        assert (fault.kind, fault.action, fault.quota, fault.is_billed_maybe) == ("bad_json", "retry", "keep", True)


def test_a_stream_cut_at_any_byte_is_a_reply_only_if_a_finish_reason_came() -> None:
    body = b"".join(STREAM)
    for cut in range(len(body) - 3):
        fault = fault_of(streamed(body[:cut], is_cut=True))
        assert (fault.kind, fault.action, fault.is_billed_maybe) in {
            ("incomplete", "retry", True),
            ("bad_json", "retry", True),
        }
    # What is missing now is the end of the line after the last event's data, which was whole.
    for cut in range(len(body) - 1, len(body) + 1):
        assert reply_of(streamed(body[:cut], is_cut=True)).text == TEXT


def test_a_list_of_chunks_cut_at_any_byte_is_never_a_reply() -> None:
    chunks = [said({"text": "posi"}), said({"text": "tion"}, finish="STOP", usageMetadata=USAGE)]
    body = orjson.dumps(chunks)
    for stream in (False, True):
        assert reply_of(Response(200, body, stream=stream)).text == "position"
        for cut in range(len(body)):
            assert isinstance(decode(Response(200, body[:cut], stream=stream)), Fault)


def test_what_was_thought_aloud_is_no_part_of_the_text() -> None:
    thought = {"text": "Perhaps B.", "thought": True}
    assert reply_of(orjson.dumps(said(thought, {"text": "A"}, finish="STOP"))).text == "A"


def test_only_the_first_candidate_is_read() -> None:
    second = candidate("B", index=1)
    assert reply_of(whole(second, candidate("A"))).text == "A"
    assert reply_of(orjson.dumps({"candidates": [{**candidate("A"), "index": 0}, second]})).text == "A"
    only = candidate("A")
    del only["index"]
    assert reply_of(whole(only)).text == "A"


@pytest.mark.parametrize(
    ("usage", "known"),
    [
        ({"promptTokenCount": 5, "candidatesTokenCount": 3, "totalTokenCount": 8}, Usage(5, 3)),
        ({"promptTokenCount": 5, "totalTokenCount": 5}, Usage(5, 0)),
        ({}, Usage(0, 0)),
        ({**USAGE, "cachedContentTokenCount": 16}, Usage(19, 22, 12, 16)),
        ({**USAGE, "toolUsePromptTokenCount": 100, "totalTokenCount": 141}, Usage(119, 22, 12)),
        # Where the total says so, thoughts were counted in the answer's tokens already.
        ({"promptTokenCount": 5, "candidatesTokenCount": 9, "thoughtsTokenCount": 4, "totalTokenCount": 14},
         Usage(5, 9, 4)),
        ({"promptTokenCount": 5, "thoughtsTokenCount": 4, "totalTokenCount": 9}, Usage(5, 4, 4)),
        ({"promptTokenCount": "5"}, None),
        ({"promptTokenCount": -5}, None),
        ({"promptTokenCount": 10**18}, None),
        ({"promptTokenCount": None}, None),
        ([], None),
        (None, None),
    ],
)  # fmt: skip
def test_a_usage_counts_thoughts_in_the_output_and_nonsense_is_none(usage: Any, known: Usage | None) -> None:
    reply = reply_of(whole(usageMetadata=usage))
    assert (reply.text, reply.usage) == (TEXT, known)


def test_log_probabilities_are_read_with_their_alternatives() -> None:
    expected = (
        TokenLogprob("A", -0.25, (("A", -0.25), ("B", -1.5))),
        TokenLogprob("!", 0.0, (("!", 0.0),)),  # Google leaves out a zero
    )
    assert reply_of(whole(candidate("A!", logprobsResult=LOGPROBS))).logprobs == expected
    halves = [
        event(said({"text": "A"}, finish=None)),
        event({"candidates": [candidate("!", logprobsResult=LOGPROBS)]}),
    ]
    assert reply_of(streamed(*halves)).logprobs == expected


@pytest.mark.parametrize(
    "given", [None, [], "x", {"chosenCandidates": 3}, {"topCandidates": []}, {"chosenCandidates": [3, {"token": 4}]}]
)
def test_log_probabilities_that_make_no_sense_cost_no_answer(given: Any) -> None:
    assert not reply_of(whole(candidate("A", logprobsResult=given))).logprobs


@pytest.mark.parametrize("name", ["citationSources", "citations"])
def test_pages_that_an_answer_stands_on_or_recites_are_its_citations_once_each(name: str) -> None:
    one = candidate(groundingMetadata=GROUNDED, citationMetadata={name: RECITED})
    assert reply_of(whole(one)).citations == (
        Citation("https://one.example/a", "one.example"),
        Citation("gs://bucket/two.pdf", "Two"),
        Citation("https://three.example/"),
    )


def test_citations_that_make_no_sense_cost_no_answer() -> None:
    one = candidate(groundingMetadata={"groundingChunks": [3, {"web": {"uri": 4}}]}, citationMetadata={"citations": 5})
    assert reply_of(whole(one)).citations == ()


# --- how it ends ---


@pytest.mark.parametrize("reason", ["MAX_TOKENS", "CONTINUATION"])
def test_an_answer_at_its_limit_is_truncated_even_if_all_of_it_was_thought(reason: str) -> None:
    reply = reply_of(whole(candidate("hal", reason)))
    assert (reply.text, reply.truncated, reply.refused) == ("hal", True, False)
    assert reply_of(whole(candidate(None, reason))).truncated


REFUSED = (
    "SAFETY RECITATION LANGUAGE BLOCKLIST PROHIBITED_CONTENT SPII IMAGE_SAFETY MODEL_ARMOR ESCALATION "
    "IMAGE_PROHIBITED_CONTENT IMAGE_RECITATION"
)


@pytest.mark.parametrize("reason", REFUSED.split())
def test_what_a_filter_ended_is_a_refusal_whole_and_streamed(reason: str) -> None:
    for result in (
        decode(Response(200, whole(candidate(None, reason)))),
        decode(streamed(event(answer(candidate(None, reason))))),
    ):
        assert isinstance(result, Reply)
        assert (result.text, result.refused, result.finish_reason) == ("", True, "content_filter")
    half = reply_of(streamed(STREAM[1], event(answer(candidate(None, reason)))))
    assert (half.text, half.refused) == ("posi", True)


@pytest.mark.parametrize("reason", ["SAFETY", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "MODEL_ARMOR", "JAILBREAK"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_prompt_that_was_blocked_is_a_refusal_with_its_usage(reason: str, stream: bool) -> None:
    body = {"promptFeedback": {"blockReason": reason}, "usageMetadata": {"promptTokenCount": 7, "totalTokenCount": 7}}
    reply = reply_of(streamed(event(body)) if stream else orjson.dumps(body))
    assert (reply.text, reply.refused, reply.finish_reason) == (
        f"The prompt was blocked: {reason}",
        True,
        "content_filter",
    )
    assert reply.usage == Usage(7, 0)


def test_googles_own_word_for_a_block_is_the_text_and_ratings_alone_block_nothing() -> None:
    blocked = {"promptFeedback": {"blockReason": "SAFETY", "blockReasonMessage": "Too rude."}}
    assert reply_of(orjson.dumps(blocked)).text == "Too rude."
    assert reply_of(whole(promptFeedback={"safetyRatings": [{"category": "C", "probability": "LOW"}]})).text == TEXT


BROKEN = (
    "FINISH_REASON_UNSPECIFIED OTHER MALFORMED_FUNCTION_CALL MALFORMED_RESPONSE UNEXPECTED_TOOL_CALL "
    "TOO_MANY_TOOL_CALLS MISSING_THOUGHT_SIGNATURE IMAGE_OTHER NO_IMAGE"
)


@pytest.mark.parametrize("reason", BROKEN.split())
def test_an_answer_that_google_calls_broken_is_none_and_may_have_been_billed(reason: str) -> None:
    for response in (Response(200, whole(candidate("half", reason))), streamed(event(answer(candidate("x", reason))))):
        fault = fault_of(response)
        assert (fault.kind, fault.action, fault.is_billed_maybe) == ("server_error", "retry", True)
        assert reason in fault.detail


def test_a_limited_account_stops_the_lane() -> None:
    fault = fault_of(whole(candidate(None, "PUP_LIMITED_DISABLED")))
    assert (fault.kind, fault.action) == ("rejected", "confirm") and "limited this account" in fault.detail


def test_an_end_that_nobody_knows_yet_is_told_in_its_own_word() -> None:
    assert reply_of(whole(candidate("A", "SOMETHING_NEW"))).finish_reason == "SOMETHING_NEW"


def test_an_answer_without_an_end_is_none() -> None:
    for reason in (None, 17, ""):
        fault = fault_of(whole(candidate("A", None, **({} if reason is None else {"finishReason": reason}))))
        assert (fault.kind, fault.action, fault.is_billed_maybe) == ("server_error", "retry", True)
    assert fault_of(streamed(STREAM[1], STREAM[2])).kind == "incomplete"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_an_answer_that_says_nothing_is_settled_and_tried_twice(stream: bool) -> None:
    bodies = [
        answer(candidate(None)),
        answer({"content": {"role": "model"}, "finishReason": "STOP"}),
        answer({"content": {"parts": [{"text": "Hm.", "thought": True}]}, "finishReason": "STOP"}),
    ]
    if not stream:
        bodies += [answer(candidates=[]), {"usageMetadata": USAGE, "modelVersion": "gemini-2.5-flash"}]
    for body in bodies:
        fault = fault_of(streamed(event(body)) if stream else orjson.dumps(body))
        assert (fault.kind, fault.action, fault.quota, fault.attempts_max) == ("empty", "retry", "settle", 2)
        assert fault.usage_tokens == 41


def test_an_empty_text_is_an_answer() -> None:
    assert reply_of(whole(candidate(""))).text == ""
    call = {"content": {"parts": [{"functionCall": {"name": "f", "args": {}}}]}, "finishReason": "STOP"}
    assert reply_of(whole(call)).text == ""


@pytest.mark.parametrize(
    "body",
    [b"", b"null", b"17", b'"text"', b"[]", b"[1]", b"{}", b'{"object":"chat.completion"}', b"<html>502</html>",
     whole() + b"}", whole() + whole()],
)  # fmt: skip
def test_what_is_no_answer_of_geminis_is_tried_again_and_may_have_been_billed(body: bytes) -> None:
    fault = fault_of(body)
    assert (fault.kind, fault.action, fault.is_billed_maybe) == ("bad_json", "retry", True)


def test_a_mark_that_a_gateway_adds_at_the_end_is_no_chunk_and_proves_nothing() -> None:
    done = b"data: [DONE]\n\n"
    assert reply_of(streamed(*STREAM, done)).text == TEXT
    assert fault_of(streamed(*STREAM[:3], done)).kind == "incomplete"


def test_a_chunk_that_is_no_json_is_no_part_of_an_answer() -> None:
    for chunk in (b"data: {\r\n\r\n", b"data: 17\r\n\r\n"):
        assert fault_of(streamed(STREAM[1], chunk, STREAM[3])).kind == "bad_json"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_text_that_had_to_be_repaired_comes_with_its_bytes(stream: bool) -> None:
    for broken in (b"\xff", b"\\ud83d"):
        body = orjson.dumps(answer(candidate("A#B"))).replace(b"#", broken)
        body = b"data: " + body + b"\r\n\r\n" if stream else body
        reply = reply_of(Response(200, body, stream=stream))
        assert (reply.text, reply.raw) == ("A\ufffdB", body)


_WORDS = st.sampled_from(
    ["candidates", "content", "parts", "text", "finishReason", "STOP", "usageMetadata", "promptFeedback", "error",
     "blockReason", "logprobsResult", "chosenCandidates", "groundingMetadata", "groundingChunks", "web", "uri", "index"]
)  # fmt: skip
_ANY = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.integers(-10, 10**9) | _WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_WORDS, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=500, deadline=None)
@given(_ANY, st.sampled_from([200, 400, 403, 429, 500]), st.booleans())
def test_any_json_is_a_reply_or_a_fault_that_can_be_written(body: Any, status: int, stream: bool) -> None:
    data = orjson.dumps(body, option=orjson.OPT_NON_STR_KEYS)
    result = decode(Response(status, b"data: " + data + b"\n\n" if stream else data, stream=stream))
    assert orjson.dumps(result.text if isinstance(result, Reply) else result.detail)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=300), st.booleans())
def test_any_bytes_are_a_fault(body: bytes, stream: bool) -> None:
    assert isinstance(decode(Response(200, body, stream=stream)), Fault)
