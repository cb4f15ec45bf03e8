"""Anthropic Messages as bytes that came: what counts as whole, cut, refused, repaired, odd, and at random."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import orjson
import pytest
from anthropic_shapes import (
    READ,
    SAID,
    START,
    STOP,
    STREAM,
    THOUGHT,
    USAGE,
    closed,
    delta,
    ended,
    event,
    failed,
    message,
    opened,
    said,
    text,
    whole,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.engine.call import Citation, Reply, Usage
from millstream.engine.content import Native, ToolCall
from millstream.engine.endpoint import Fault, Response
from millstream.providers.llm.anthropic.messages import decode


def reply_of(body: bytes, *, stream: bool = False, is_cut: bool = False) -> Reply:
    result = decode(Response(200, body, stream=stream, is_cut=is_cut))
    assert isinstance(result, Reply), result
    return result


def fault_of(body: bytes, *, stream: bool = False, status: int = 200) -> Fault:
    result = decode(Response(status, body, stream=stream))
    assert isinstance(result, Fault), result
    return result


def streamed(*events: bytes) -> bytes:
    return START + b"".join(events)


def test_a_whole_answer_is_read_with_its_usage_and_the_hash_of_its_bytes() -> None:
    body = whole()
    reply = reply_of(body)
    # What was written to the provider's cache and what was read from it are input as well.
    assert (reply.text, reply.usage, reply.finish_reason) == (READ, Usage(36, 87, 64, 12), "stop")
    assert not reply.refused and not reply.truncated and reply.raw is None and reply.logprobs is None
    assert reply.raw_hash == hashlib.sha256(body).hexdigest()


def test_a_stream_is_read_as_the_whole_answer_is() -> None:
    plain, stream = reply_of(whole()), reply_of(b"".join(STREAM), stream=True)
    assert (stream.text, stream.usage, stream.finish_reason) == (plain.text, plain.usage, plain.finish_reason)


def test_a_whole_answer_to_a_streamed_call_is_read_too() -> None:
    assert reply_of(whole(), stream=True).text == READ


def test_a_body_cut_at_any_byte_is_never_a_reply() -> None:
    body = whole()
    for cut in range(len(body)):
        fault = fault_of(body[:cut])
        assert (fault.kind, fault.action, fault.quota, fault.is_billed_maybe) == ("bad_json", "retry", "keep", True)


@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
def test_a_stream_cut_at_any_byte_before_its_stop_reason_is_never_a_reply(newline: bytes) -> None:
    body = b"".join(STREAM).replace(b"\n", newline)
    # Its last line's end may be half there: one sign of the pair ends it as well.
    told = len(b"".join(STREAM[:-1]).replace(b"\n", newline)) - len(newline) + 1
    for cut in range(len(body) + 1):
        result = decode(Response(200, body[:cut], stream=True))
        if cut < told:
            assert isinstance(result, Fault), cut
            assert (result.kind, result.action, result.is_billed_maybe) == ("incomplete", "retry", True), cut
        else:
            assert isinstance(result, Reply) and result.text == READ, cut
            assert result.usage == Usage(36, 87, 64, 12)


def test_a_stream_that_was_cut_behind_its_stop_reason_is_whole() -> None:
    assert reply_of(b"".join(STREAM[:-1]) + b"event: mess", stream=True, is_cut=True).text == READ


def test_an_end_without_a_stop_reason_proves_nothing() -> None:
    for body, stream in ((whole(stop_reason=None), False), (streamed(text("A"), ended(None), STOP), True)):
        fault = fault_of(body, stream=stream)
        assert (fault.kind, fault.action, fault.is_billed_maybe) == ("server_error", "retry", True)
        assert "no stop reason" in fault.detail


@pytest.mark.parametrize(
    ("stop", "finish", "truncated", "refused"),
    [
        ("end_turn", "stop", False, False),
        ("stop_sequence", "stop", False, False),
        ("max_tokens", "length", True, False),
        ("model_context_window_exceeded", "length", True, False),
        ("pause_turn", "length", True, False),
        ("refusal", "content_filter", False, True),
        ("content_filter", "content_filter", False, True),
        ("tool_use", "tool_calls", False, False),
        ("something_new", "something_new", False, False),
    ],
)
def test_an_ending_is_told_in_the_words_that_all_providers_share(
    stop: str, finish: str, truncated: bool, refused: bool
) -> None:
    for reply in (
        reply_of(whole(content=[said("A")], stop_reason=stop)),
        reply_of(streamed(opened(0, said("")), text("A"), ended(stop), STOP), stream=True),
    ):
        assert (reply.text, reply.finish_reason) == ("A", finish)
        assert (reply.truncated, reply.refused) == (truncated, refused)


REFUSED = {"type": "refusal", "category": "bio", "explanation": "Not that."}


def test_a_refusal_that_says_nothing_is_a_valid_answer_with_its_explanation() -> None:
    for details, expected in ((REFUSED, "Not that."), ({**REFUSED, "explanation": None}, ""), (None, "")):
        changes: Any = {"stop_reason": "refusal", "stop_details": details}
        stream = streamed(ended("refusal", stop_details=details), STOP)
        for reply in (reply_of(whole(content=[], **changes)), reply_of(stream, stream=True)):
            assert (reply.text, reply.refused, reply.usage) == (expected, True, Usage(36, 87, 64, 12))


def test_what_was_said_before_a_refusal_is_its_text() -> None:
    assert reply_of(whole(content=[said("Well")], stop_reason="refusal", stop_details=REFUSED)).text == "Well"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ([said("A"), said("B")], "AB"),
        ([THOUGHT, said("")], ""),
        ([said("A"), {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}, 7, None], "A"),
        ([{"type": "redacted_thinking", "data": "x"}, said("A")], "A"),
        ([said("lone \ud83d")], "lone \ufffd"),
    ],
)
def test_the_text_is_what_text_blocks_say(content: list[Any], expected: str) -> None:
    reply = reply_of(json.dumps(message(content=content)).encode())
    assert reply.text == expected
    assert (reply.raw is not None) == ("\ufffd" in expected)


@pytest.mark.parametrize("content", [[], [THOUGHT], [{"type": "redacted_thinking", "data": "x"}]])
def test_an_answer_that_says_nothing_is_empty_and_tried_twice(content: list[Any]) -> None:
    blocks = [opened(number, block) + closed(number) for number, block in enumerate(content)]
    for body, stream in ((whole(content=content), False), (streamed(*blocks, ended(), STOP), True)):
        fault = fault_of(body, stream=stream)
        assert (fault.kind, fault.quota, fault.attempts_max, fault.usage_tokens) == ("empty", "settle", 2, 123)


@pytest.mark.parametrize("stop", ["max_tokens", "stop_sequence", "tool_use"])
def test_an_answer_that_was_stopped_before_it_said_anything_is_an_answer(stop: str) -> None:
    assert reply_of(whole(content=[THOUGHT], stop_reason=stop)).text == ""


PAGE = {"type": "web_search_result_location", "url": "https://a.example/1", "title": "One", "cited_text": "…"}
RESULT = {"type": "search_result_location", "source": "https://b.example/2", "title": None, "cited_text": "…"}
PASSAGE = {"type": "char_location", "document_index": 0, "document_title": "Doc", "cited_text": "…"}
CITED = (Citation("https://a.example/1", "One"), Citation("https://b.example/2"))


def test_citations_are_addresses_each_once() -> None:
    content = [said("A", citations=[PAGE, PASSAGE]), said("B", citations=None), said("C", citations=[RESULT, PAGE, 7])]
    assert reply_of(whole(content=content)).citations == CITED
    cited = [delta("citations_delta", citation=one) for one in (PAGE, PASSAGE, RESULT, PAGE)]
    body = streamed(opened(0, said("", citations=[])), text("ABC"), *cited, closed(0), ended(), STOP)
    assert reply_of(body, stream=True).citations == CITED
    assert reply_of(whole()).citations == ()


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, None),
        ({}, None),
        ([], None),
        ({"input_tokens": 3, "output_tokens": 4}, Usage(3, 4)),
        ({"input_tokens": 3, "output_tokens": 4, "cache_read_input_tokens": None}, Usage(3, 4)),
        ({"input_tokens": 3, "output_tokens": 4, "cache_creation_input_tokens": 5}, Usage(8, 4)),
        ({"input_tokens": 3, "output_tokens": 4, "cache_read_input_tokens": 5}, Usage(8, 4, 0, 5)),
        ({"input_tokens": 3, "output_tokens": 4, "cache_read_input_tokens": -5}, Usage(3, 4)),
        ({"input_tokens": 3, "output_tokens": -4}, None),
        ({"input_tokens": "3", "output_tokens": 4}, None),
        ({"input_tokens": 10**12, "output_tokens": 4}, None),
        ({"input_tokens": 3, "output_tokens": 4, "output_tokens_details": {"thinking_tokens": 9}}, Usage(3, 4, 4)),
    ],
)
def test_a_usage_that_makes_no_sense_is_none_and_costs_no_answer(usage: Any, expected: Usage | None) -> None:
    reply = reply_of(whole(usage=usage))
    assert (reply.text, reply.usage) == (READ, expected)


def test_the_last_count_of_a_stream_holds_and_what_it_leaves_out_was_told_before() -> None:
    for usage, expected in (
        ({"output_tokens": 50}, Usage(36, 50, 0, 12)),
        ({"output_tokens": 50, "input_tokens": None, "cache_read_input_tokens": None}, Usage(36, 50, 0, 12)),
        ({**USAGE, "input_tokens": 30}, Usage(46, 87, 64, 12)),
        (None, Usage(36, 1, 0, 12)),
    ):
        body = streamed(opened(0, SAID), ended(usage=usage), STOP)
        assert reply_of(body, stream=True).usage == expected


def test_events_that_mean_nothing_here_change_nothing() -> None:
    odd = (
        event("something_new", delta={"text": "x"}),
        event("content_block_delta", index=0, delta=None),
        event("content_block_start", index=0, content_block=None),
        event("message_delta", delta=None, usage=[]),
        b": a comment\n\n",
    )
    body = streamed(*odd, *STREAM[1:])
    assert reply_of(body, stream=True).text == READ


def test_nothing_comes_after_the_end() -> None:
    assert reply_of(b"".join(STREAM) + failed("api_error") + b"data: {oops\n\n", stream=True).text == READ


def test_a_stop_reason_that_can_not_be_written_is_mended() -> None:
    reply = reply_of(json.dumps(message(stop_reason="new \ud800")).encode())
    assert reply.finish_reason == "new \ufffd"


@pytest.mark.parametrize(
    "body", [b"{}", b"null", b"[]", whole(content=None), b'{"choices":[{"message":{"content":"A"}}]}', b""]
)
def test_json_that_is_no_message_is_bad(body: bytes) -> None:
    assert fault_of(body).kind == "bad_json"


def test_an_event_that_is_no_json_is_bad() -> None:
    assert fault_of(START + b"data: {oops\n\n" + b"".join(STREAM[1:]), stream=True).kind == "bad_json"


_ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
_FIELDS = ["content", "stop_reason", "stop_details", "usage", "error", "type"]
_NAMES = ["type", "text", "citations", "thinking", "id", "name", "input", "partial_json", "signature"]
_BLOCK = st.dictionaries(st.sampled_from(_NAMES), _ANY, max_size=4)
_TYPE = st.sampled_from(["text", "tool_use", "thinking", "text_delta", "input_json_delta", "thinking_delta"])
_TYPED = st.builds(lambda block, kind: {"type": kind, **block}, _BLOCK, _TYPE)
_CONTENT = st.lists(_TYPED | _ANY, max_size=3)
_KINDS = ["message_start", "content_block_start", "content_block_delta", "message_delta", "error"]
_EVENT = st.fixed_dictionaries(
    {
        "type": st.sampled_from(
            ["message_start", "content_block_start", "content_block_delta", "message_delta", "error"]
        )
    },
    optional=dict.fromkeys(("message", "content_block", "delta", "usage", "error"), _ANY | _TYPED),
)


@settings(max_examples=500, deadline=None)
@given(st.dictionaries(st.sampled_from(_FIELDS), _ANY, max_size=4), st.none() | _CONTENT)
def test_any_answer_is_a_reply_or_a_fault_that_can_be_written(changes: Any, content: Any) -> None:
    given = message(**changes)
    if content is not None:
        given["content"] = content
    assert_written(decode(Response(200, json.dumps(given).encode())))


@settings(max_examples=500, deadline=None)
@given(st.lists(_EVENT, max_size=5))
def test_any_stream_is_a_reply_or_a_fault_that_can_be_written(events: list[Any]) -> None:
    lines = b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in events)
    assert_written(decode(Response(200, streamed(lines, ended(), STOP), stream=True)))


@settings(max_examples=500, deadline=None)
@given(st.binary(max_size=200), st.booleans())
def test_noise_is_never_a_reply(body: bytes, stream: bool) -> None:
    assert isinstance(decode(Response(200, body, stream=stream)), Fault)


def assert_written(result: Reply | Fault) -> None:
    told = (result.text, result.finish_reason) if isinstance(result, Reply) else (result.detail, "")
    assert orjson.loads(orjson.dumps(told)) == list(told)
    for part in result.parts if isinstance(result, Reply) else ():
        assert orjson.dumps(part.value if isinstance(part, Native) else repr(part))
        assert not isinstance(part, ToolCall) or f"{part.id}{part.name}{part.arguments}".encode() is not None
