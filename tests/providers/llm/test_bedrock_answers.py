"""What counts as a whole answer of Bedrock's: bodies and event streams as recorded, cut, damaged, filtered, odd."""

from __future__ import annotations

import hashlib
from typing import Any

import orjson
import pytest
from bedrock_shapes import (
    CACHED,
    CITATIONS,
    CITED,
    METADATA,
    START,
    STOP,
    STREAM,
    TEXT,
    THOUGHT,
    USAGE,
    answer,
    delta,
    event,
    message,
    thought,
    whole,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.engine.call import Citation, Reply, Usage
from millstream.engine.content import Native
from millstream.engine.endpoint import Fault, Response
from millstream.providers.llm.bedrock.converse import decode


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


def ended(reason: str) -> bytes:
    return event("messageStop", {"stopReason": reason})


# --- whole answers ---


def test_a_whole_answer_is_read_with_its_usage_and_the_hash_of_its_bytes() -> None:
    body = whole()
    assert reply_of(body) == Reply(TEXT, Usage(19, 22), "stop", raw_hash=hashlib.sha256(body).hexdigest())


def test_a_stream_is_read_as_the_whole_answer_is() -> None:
    body = b"".join(STREAM)
    raw_hash, parts = hashlib.sha256(body).hexdigest(), (Native("bedrock", THOUGHT), TEXT)
    assert reply_of(streamed(body)) == Reply(TEXT, Usage(19, 22), "stop", raw_hash=raw_hash, parts=parts)


def test_a_body_cut_at_any_byte_is_never_a_reply() -> None:
    body = whole(THOUGHT, {"text": TEXT})
    for stream in (False, True):
        for cut in range(len(body)):
            fault = decode(Response(200, body[:cut], stream))
            assert isinstance(fault, Fault)
            assert fault.kind == ("incomplete" if stream and not cut else "bad_json")
            assert (fault.action, fault.quota, fault.is_billed_maybe) == ("retry", "keep", True)


def test_a_stream_cut_at_any_byte_is_a_reply_only_if_a_stop_reason_came() -> None:
    body = b"".join(STREAM)
    said_at = len(body) - len(METADATA)
    for cut in range(said_at):
        fault = fault_of(streamed(body[:cut], is_cut=True))
        assert (fault.kind, fault.action, fault.is_billed_maybe) == ("incomplete", "retry", True)
    for cut in range(said_at, len(body)):
        assert reply_of(streamed(body[:cut], is_cut=True)).text == TEXT
        assert reply_of(streamed(body[:cut], is_cut=True)).usage is None
    assert reply_of(streamed(body, is_cut=True)).usage == Usage(19, 22)


def test_a_stream_with_a_flipped_bit_is_never_a_reply() -> None:
    body = b"".join((START, delta("posi"), delta("tion"), STOP, METADATA))
    for place in range(len(body) * 8):
        damaged = bytearray(body)
        damaged[place // 8] ^= 1 << place % 8
        fault = fault_of(streamed(bytes(damaged)))
        assert (fault.kind, fault.action, fault.is_billed_maybe) == ("bad_json", "retry", True)


def test_what_was_thought_aloud_is_no_part_of_the_text() -> None:
    hidden = {"reasoningContent": {"redactedContent": "c2VjcmV0"}}
    assert reply_of(whole(THOUGHT, hidden, {"text": "A"})).text == "A"
    assert reply_of(streamed(START, thought("Hm."), delta("A", 1), STOP)).text == "A"


def test_blocks_of_text_are_one_text() -> None:
    assert reply_of(whole({"text": "posi"}, {"text": "tion"})).text == "position"
    assert reply_of(streamed(START, delta("posi", 0), delta("tion", 1), STOP)).text == "position"


@pytest.mark.parametrize(
    ("usage", "known"),
    [
        (CACHED, Usage(2_067, 22, cached_input=2_000)),
        ({**USAGE, "cacheWriteInputTokens": 48}, Usage(67, 22)),
        ({**USAGE, "cacheReadInputTokens": None}, Usage(19, 22)),
        ({"inputTokens": 0, "outputTokens": 0}, Usage(0, 0)),
        ({"inputTokens": 5}, None),
        ({"inputTokens": "5", "outputTokens": 5}, None),
        ({"inputTokens": -5, "outputTokens": 5}, None),
        ({"inputTokens": True, "outputTokens": 5}, None),
        ({**USAGE, "cacheReadInputTokens": "x"}, None),
        ({"inputTokens": 10**18, "outputTokens": 5}, None),
        ([], None),
        (None, None),
    ],
)
def test_a_usage_counts_what_caches_held_in_the_input_and_nonsense_is_none(usage: Any, known: Usage | None) -> None:
    reply = reply_of(whole(usage=usage))
    assert (reply.text, reply.usage) == (TEXT, known)
    assert reply_of(streamed(delta("A"), STOP, event("metadata", {"usage": usage}))).usage == known


def test_pages_that_an_answer_stands_on_are_its_citations_once_each() -> None:
    reply = reply_of(whole(CITED, {"text": " Truly."}))
    assert (reply.text, reply.citations) == ("So it is said. Truly.", (Citation("https://one.example/a", "One"),))
    given = [event("contentBlockDelta", {"delta": {"citation": one}}) for one in CITATIONS]
    assert reply_of(streamed(delta("A"), *given, STOP)).citations == reply.citations


def test_citations_that_make_no_sense_cost_no_answer() -> None:
    odd: Any
    for odd in (3, [], {"content": 3, "citations": [4, {"location": 5}, {"location": {"web": {"url": 6}}}]}):
        assert reply_of(whole({"text": "A"}, {"citationsContent": odd})).citations == ()


# --- how it ends ---


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("tool_use", "tool_calls"),
        ("something_new", "something_new"),
    ],
)
def test_an_end_is_told_in_everyones_word_or_in_its_own(reason: str, finish: str) -> None:
    for reply in (reply_of(whole({"text": "hal"}, stop=reason)), reply_of(streamed(delta("hal"), ended(reason)))):
        assert (reply.text, reply.finish_reason, reply.refused) == ("hal", finish, False)
        assert reply.truncated == (finish == "length")


def test_an_answer_whose_tokens_all_went_into_thoughts_is_truncated() -> None:
    assert reply_of(whole(THOUGHT, stop="max_tokens")).truncated
    assert reply_of(streamed(START, thought("Hm."), ended("max_tokens"))).truncated


@pytest.mark.parametrize("reason", ["guardrail_intervened", "content_filtered", "refusal"])
def test_what_a_guardrail_or_a_filter_ended_is_a_refusal_whole_and_streamed(reason: str) -> None:
    said = "Sorry, the model cannot answer this question."
    for reply in (
        reply_of(whole({"text": said}, stop=reason)),
        reply_of(streamed(START, delta(said), ended(reason), METADATA)),
    ):
        assert (reply.text, reply.refused, reply.finish_reason) == (said, True, "content_filter")
        assert reply.usage == Usage(19, 22)
    assert reply_of(orjson.dumps({**answer(), "output": {"message": {"content": []}}, "stopReason": reason})).refused


@pytest.mark.parametrize("reason", ["malformed_model_output", "malformed_tool_use"])
def test_an_answer_that_bedrock_calls_malformed_is_none_and_may_have_been_billed(reason: str) -> None:
    for response in (Response(200, whole(stop=reason)), streamed(delta("half"), ended(reason))):
        fault = fault_of(response)
        assert (fault.kind, fault.action, fault.is_billed_maybe) == ("server_error", "retry", True)
        assert reason in fault.detail


def test_an_answer_without_an_end_is_none() -> None:
    assert fault_of(whole(stop=None)).kind == "bad_json"
    for odd in (None, 17, ""):
        fault = fault_of(orjson.dumps({**answer(), "stopReason": odd}))
        assert (fault.kind, fault.action, fault.is_billed_maybe) == ("server_error", "retry", True)
        assert fault_of(streamed(delta("A"), event("messageStop", {"stopReason": odd}), METADATA)).kind == "incomplete"


def test_an_answer_that_says_nothing_is_settled_and_tried_twice() -> None:
    empty = {**answer(), "output": {"message": {"content": []}}}
    for response in (
        Response(200, orjson.dumps(empty)),
        Response(200, whole(THOUGHT)),
        streamed(START, STOP, METADATA),
        streamed(START, thought("Hm."), STOP, METADATA),
        streamed(event("contentBlockStart", {"start": {"reasoningContent": {}}}), STOP, METADATA),
    ):
        fault = fault_of(response)
        assert (fault.kind, fault.action, fault.quota, fault.attempts_max) == ("empty", "retry", "settle", 2)
        assert fault.usage_tokens == 41


def test_an_empty_text_is_an_answer() -> None:
    assert reply_of(whole({"text": ""})).text == ""
    assert reply_of(whole({"toolUse": {"toolUseId": "t", "name": "f", "input": {}}})).text == ""
    assert reply_of(streamed(START, delta(""), STOP)).text == ""
    assert reply_of(streamed(START, event("contentBlockStart", {"start": {}}), STOP)).text == ""


@pytest.mark.parametrize(
    "body",
    [b"", b"null", b"17", b'"text"', b"[]", b"[1]", b"{}", b'{"object":"chat.completion"}', b"<html>502</html>",
     b'{"stopReason":"end_turn"}', b'{"stopReason":"end_turn","output":{"message":{"content":"A"}}}',
     whole() + b"}", whole() + whole()],
)  # fmt: skip
def test_what_is_no_answer_of_converses_is_tried_again_and_may_have_been_billed(body: bytes) -> None:
    fault = fault_of(body)
    assert (fault.kind, fault.action, fault.is_billed_maybe) == ("bad_json", "retry", True)


def test_an_event_that_is_no_json_is_no_part_of_an_answer() -> None:
    for payload in (b"{", b"", b"17"):
        odd = message(payload, event_type="contentBlockDelta", message_type="event")
        assert fault_of(streamed(delta("A"), odd, STOP)).kind == "bad_json"


def test_an_event_of_a_kind_that_nobody_knows_yet_says_nothing() -> None:
    assert reply_of(streamed(START, event("somethingNew", {"delta": {"text": "B"}}), delta("A"), STOP)).text == "A"


@pytest.mark.parametrize("broken", [b"\xff", b"\\ud83d"])
def test_a_text_that_had_to_be_repaired_comes_with_its_bytes(broken: bytes) -> None:
    body = whole({"text": "A#B"}).replace(b"#", broken)
    reply = reply_of(body)
    assert (reply.text, reply.raw) == ("A\ufffdB", body)
    payload = orjson.dumps({"delta": {"text": "A#B"}}).replace(b"#", broken)
    stream = message(payload, event_type="contentBlockDelta", message_type="event") + STOP
    reply = reply_of(streamed(stream))
    assert (reply.text, reply.raw) == ("A\ufffdB", stream)


_WORDS = st.sampled_from(
    ["output", "message", "content", "text", "stopReason", "end_turn", "usage", "inputTokens", "citationsContent",
     "citations", "location", "web", "url", "delta", "citation", "start", "__type", "Output", "originalStatusCode"]
)  # fmt: skip
_ANY = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.integers(-10, 10**9) | _WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_WORDS, inner, max_size=4),
    max_leaves=12,
)
_KINDS = st.sampled_from(["messageStop", "contentBlockDelta", "contentBlockStart", "metadata"])


@settings(max_examples=500, deadline=None)
@given(_ANY, st.sampled_from([200, 400, 403, 424, 429, 500]), st.booleans(), _KINDS)
def test_any_json_is_a_reply_or_a_fault_that_can_be_written(body: Any, status: int, stream: bool, kind: str) -> None:
    data = event(kind, body) + STOP if stream else orjson.dumps(body)
    result = decode(Response(status, data, stream=stream))
    assert orjson.dumps(result.text if isinstance(result, Reply) else result.detail)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=300), st.booleans())
def test_any_bytes_are_a_fault(body: bytes, stream: bool) -> None:
    assert isinstance(decode(Response(200, body, stream=stream)), Fault)
