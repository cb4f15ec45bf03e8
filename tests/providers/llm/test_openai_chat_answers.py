"""What counts as a whole answer: bodies and streams as recorded, cut, repaired, odd, and at random."""

from __future__ import annotations

import hashlib
from typing import Any

import orjson
import pytest
from chat_shapes import (
    DONE,
    ROLE,
    STREAM,
    USAGE,
    choice,
    chunk,
    event,
    fault_of,
    message,
    ok,
    reply_of,
    streamed,
    whole,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.engine.call import Reply
from millstream.engine.endpoint import Fault, Response
from millstream.providers.llm.openai.chat import decode
from millstream.providers.llm.sse import events_of

# --- whole answers ---


def test_a_whole_answer_is_read_with_its_usage_and_the_hash_of_its_bytes() -> None:
    body = whole()
    reply = reply_of(ok(body))
    assert reply.text == "position <<A>> – ✓ 😀"
    assert (reply.usage is not None) and (reply.usage.input, reply.usage.output) == (19, 10)
    assert reply.finish_reason == "stop"
    assert not reply.refused and not reply.truncated and reply.raw is None
    assert reply.raw_hash == hashlib.sha256(body).hexdigest()


def test_a_body_cut_at_any_byte_is_never_a_reply() -> None:
    body = whole()
    for cut in range(len(body)):
        fault = fault_of(ok(body[:cut]))
        assert (fault.kind, fault.action, fault.quota, fault.is_billed_maybe) == ("bad_json", "retry", "keep", True)


PARTS = [{"type": "text", "text": "A"}, {"type": "image"}, {"type": "text", "text": "B"}]
TOOL = {"content": None, "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]}
RECORDED = "position <<A>> – ✓ 😀"


@pytest.mark.parametrize(
    ("body", "text", "finish"),
    [
        (whole(choices=message("")), "", "stop"),
        (whole(choices=choice(message=TOOL)), "", "tool_calls"),
        (whole(choices=message(PARTS)), "AB", "stop"),
        (whole(choices=message("A", reasoning_content="because")), "A", "stop"),
        (whole(choices=choice(finish_reason=None)), "A", None),
        (whole(choices=choice(finish_reason=17)), "A", None),
        (whole(choices=choice(message=TOOL, finish_reason="tool_calls")), "", "tool_calls"),
        (whole(error=None), RECORDED, "stop"),
        (b"[" + whole() + b"]", RECORDED, "stop"),
        (b" \n" + whole() + b"\n\n", RECORDED, "stop"),
    ],
)
def test_answers_of_less_usual_shapes_are_answers(body: bytes, text: str, finish: str | None) -> None:
    reply = reply_of(ok(body))
    assert (reply.text, reply.finish_reason, reply.refused, reply.raw) == (text, finish, False, None)


@pytest.mark.parametrize(
    ("usage", "known"),
    [
        (b"null", None),
        (b"{}", (0, 0)),
        (b'{"prompt_tokens":12.0,"completion_tokens":3}', (12, 3)),
        (b'{"prompt_tokens":null,"completion_tokens":3}', None),
        (b'{"prompt_tokens":"12","completion_tokens":3}', None),
        (b'{"prompt_tokens":-1,"completion_tokens":3}', None),
        (b'{"prompt_tokens":1e300,"completion_tokens":3}', None),
        (b'{"prompt_tokens":NaN,"completion_tokens":3}', None),
        (b'{"prompt_tokens":' + b"9" * 60 + b',"completion_tokens":3}', None),
        (b"[]", None),
    ],
)
def test_a_usage_that_makes_no_sense_is_none_and_costs_no_answer(usage: bytes, known: tuple[int, int] | None) -> None:
    reply = reply_of(ok(b'{"choices":[{"message":{"content":"A"},"finish_reason":"stop"}],"usage":' + usage + b"}"))
    assert reply.text == "A"
    assert (None if reply.usage is None else (reply.usage.input, reply.usage.output)) == known


def test_a_usage_that_is_missing_costs_no_answer() -> None:
    reply = reply_of(ok(b'{"choices":[{"message":{"content":"A"}}]}'))
    assert (reply.text, reply.usage) == ("A", None)


def test_finish_reason_length_is_a_truncated_answer() -> None:
    assert reply_of(ok(whole(choices=choice(finish_reason="length")))).truncated


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (whole(choices=choice(message={"content": None, "refusal": "I can't."})), "I can't."),
        (whole(choices=choice(message={"content": None}, finish_reason="content_filter")), ""),
        (whole(choices=choice(message={"content": "half"}, finish_reason="content_filter")), "half"),
        (b'{"error":{"code":"content_filter","message":"filtered"}}', "filtered"),
    ],
)
def test_a_refusal_is_a_valid_answer(body: bytes, text: str) -> None:
    reply = reply_of(ok(body))
    assert (reply.text, reply.refused) == (text, True)


@pytest.mark.parametrize("status", [400, 403, 422])
@pytest.mark.parametrize("code", ["content_filter", "content_policy_violation"])
def test_the_error_of_a_content_filter_is_a_refusal(status: int, code: str) -> None:
    body = orjson.dumps({"error": {"message": "The response was filtered \u2026", "code": code}})
    reply = reply_of(Response(status, body))
    assert (reply.text, reply.refused, reply.finish_reason) == ("The response was filtered …", True, "content_filter")


def test_an_answer_without_a_refusal_text_is_not_refused() -> None:
    assert not reply_of(ok(whole(choices=message("A", refusal="")))).refused


def test_empty_choices_are_settled_at_what_was_used_and_tried_twice() -> None:
    fault = fault_of(ok(whole(choices=[])))
    assert (fault.kind, fault.action, fault.quota, fault.attempts_max, fault.usage_tokens) == (
        "empty",
        "retry",
        "settle",
        2,
        29,
    )


@pytest.mark.parametrize(
    "body",
    [b"", b"null", b"17", b'"text"', b"[]", b"{}", b"<html>502</html>", whole(choices=None), whole(choices={}),
     whole(choices=[{"index": 0}]), whole() + b"}", whole() + whole(), b'{"choices":[{"message":"A"}]}'],
)  # fmt: skip
def test_what_is_no_chat_completion_is_tried_again_and_may_have_been_billed(body: bytes) -> None:
    fault = fault_of(ok(body))
    assert (fault.kind, fault.action, fault.is_billed_maybe) == ("bad_json", "retry", True)


@pytest.mark.parametrize(
    "body",
    [
        b'{"error":{"message":"upstream","code":"server_error"}}',
        whole(error={"message": "upstream", "code": 500}),
        whole(error="upstream"),
        whole(choices=choice(finish_reason="error")),
        b'[{"error":{"message":"upstream","code":503}}]',
    ],
)
def test_a_200_that_holds_an_error_is_never_ok(body: bytes) -> None:
    assert fault_of(ok(body)).kind == "server_error"


# --- text that no encoding allows ---


@pytest.mark.parametrize(
    ("inside", "text"),
    [
        (b"A \xff\xfe", "A \ufffd\ufffd"),
        (b"A \\ud800", "A \ufffd"),
        (b"\\udc00 A", "\ufffd A"),
        (b"\\ud83d \\ude00", "\ufffd \ufffd"),
        (b"\\ud83d\\ude00 \\ud800", "😀 \ufffd"),
    ],
)
def test_text_that_no_encoding_allows_is_replaced_and_its_bytes_are_kept(inside: bytes, text: str) -> None:
    body = b'{"choices":[{"message":{"content":"' + inside + b'"},"finish_reason":"stop"}]}'
    reply = reply_of(ok(body))
    assert (reply.text, reply.raw) == (text, body)
    events = b'data: {"choices":[{"delta":{"content":"' + inside + b'"}}]}\n\n' + chunk({}, "stop")
    reply = reply_of(streamed(events))
    assert (reply.text, reply.raw) == (text, events)


def test_a_sign_whose_halves_came_in_two_chunks_is_one_sign() -> None:
    halves = [b'data: {"choices":[{"delta":{"content":"' + half + b'"}}]}\n\n' for half in (b"\\ud83d", b"\\ude00")]
    assert reply_of(streamed(*halves, chunk({}, "stop"))).text == "😀"


def test_a_message_of_an_error_can_always_be_written() -> None:
    body = b'{"error":{"message":"\\ud800 \xff","code":"content_filter"}}'
    assert reply_of(Response(400, body)).text == "\ufffd \ufffd"
    assert "\ufffd" in fault_of(Response(400, b'{"error":{"message":"\\ud800"}}')).detail


@pytest.mark.parametrize("depth", [500, 1_020, 5_000, 200_000])
@pytest.mark.parametrize("field", ["logprobs", "error", "choices", "usage"])
def test_deep_json_breaks_nothing(depth: int, field: str) -> None:
    deep = b'{"choices":[{"message":{"content":"A"}}],"' + field.encode() + b'":' + b"[" * depth + b"]" * depth + b"}"
    for response in (ok(deep), streamed(b"data: " + deep + b"\n\n"), Response(500, deep), streamed(deep)):
        assert isinstance(decode(response), Reply | Fault)


# --- streams ---


def test_a_stream_is_joined_into_one_answer() -> None:
    reply = reply_of(streamed(*STREAM))
    assert (reply.text, reply.finish_reason, reply.refused, reply.raw) == ("position ✓", "stop", False, None)
    assert reply.usage is not None and (reply.usage.input, reply.usage.output) == (19, 3)
    assert reply.raw_hash == hashlib.sha256(b"".join(STREAM)).hexdigest()


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("is_cut", [True, False])
def test_a_stream_cut_at_any_byte_is_an_answer_only_if_its_finish_reason_came(newline: bytes, is_cut: bool) -> None:
    body = b"".join(STREAM).replace(b"\n", newline)
    finish_came = len(b"".join(STREAM[:4]).replace(b"\n", newline))
    if newline == b"\r\n":
        finish_came -= 1  # a lone CR ends a line too, so the last LF adds nothing
    for cut in range(len(body) + 1):
        result = decode(streamed(body[:cut], is_cut=is_cut))
        assert isinstance(result, Reply) == (cut >= finish_came), (cut, result)
        if isinstance(result, Reply):
            assert result.text == "position ✓"
        else:
            assert (result.kind, result.action, result.quota, result.is_billed_maybe) == (
                "incomplete",
                "retry",
                "keep",
                True,
            )


THOUGHT = [{"type": "thinking", "thinking": [{"type": "text", "text": "because"}]}]


@pytest.mark.parametrize(
    "response",
    [
        ok(whole(choices=message(None))),
        ok(whole(choices=message(None, reasoning_content="because", tool_calls=[]))),
        ok(whole(choices=message(THOUGHT))),
        ok(whole(choices=choice(message={"role": "assistant"}))),
        ok(whole(choices=choice(message={"role": "assistant"}, finish_reason="eos"))),
        streamed(chunk({"role": "assistant", "content": None}), chunk({}, "stop"), USAGE, DONE),
        streamed(chunk({"reasoning_content": "because"}), chunk({}, "stop"), USAGE, DONE),
    ],
)
def test_a_message_that_says_nothing_is_empty_and_tried_twice(response: Response) -> None:
    fault = fault_of(response)
    assert (fault.kind, fault.action, fault.quota, fault.attempts_max) == ("empty", "retry", "settle", 2)
    assert fault.usage_tokens in (29, 22)


@pytest.mark.parametrize("content", [None, ""])
def test_tokens_that_were_all_thought_are_an_answer_cut_short(content: str | None) -> None:
    for response in (
        ok(whole(choices=choice(message={"role": "assistant", "content": content}, finish_reason="length"))),
        streamed(chunk({"content": content}), chunk({}, "length"), DONE),
    ):
        reply = reply_of(response)
        assert (reply.text, reply.truncated, reply.refused) == ("", True, False)


def test_a_call_of_a_tool_that_is_streamed_is_no_empty_answer() -> None:
    parts = chunk({"role": "assistant", "content": None}), chunk({"tool_calls": TOOL["tool_calls"]}), chunk({}, "stop")
    assert reply_of(streamed(*parts, DONE)).text == ""


def test_an_end_mark_alone_makes_no_answer() -> None:
    assert fault_of(streamed(ROLE, STREAM[1], DONE)).kind == "incomplete"


def test_a_stream_that_ends_with_no_choice_is_empty() -> None:
    fault = fault_of(streamed(USAGE, DONE))
    assert (fault.kind, fault.quota, fault.attempts_max, fault.usage_tokens) == ("empty", "settle", 2, 22)
    assert fault_of(streamed(USAGE)).kind == "incomplete"


def test_a_whole_answer_to_a_stream_request_is_an_answer() -> None:
    assert reply_of(streamed(whole())).text == "position <<A>> – ✓ 😀"
    assert fault_of(streamed(whole()[:-1], is_cut=True)).kind == "bad_json"


def test_comments_and_other_fields_of_a_stream_are_passed_over() -> None:
    noise = b": keep-alive\n\nevent: x\nid: 1\nretry: 5\n\n"
    assert reply_of(streamed(noise, ROLE, noise, chunk({"content": "A"}), noise, chunk({}, "stop"), DONE)).text == "A"
    assert list(events_of(b"data: a\ndata:b\n\nevent: x\n\ndata: c")) == [b"a\nb"]


def test_only_the_first_of_several_choices_is_read() -> None:
    other = event({"choices": [{"index": 1, "delta": {"content": "no"}, "finish_reason": "length"}]})
    assert fault_of(streamed(ROLE, other)).kind == "incomplete"
    reply = reply_of(streamed(ROLE, other, chunk({"content": "A"}), other, chunk({}, "stop")))
    assert (reply.text, reply.finish_reason) == ("A", "stop")


def test_a_streamed_refusal_is_a_refusal() -> None:
    reply = reply_of(streamed(ROLE, chunk({"refusal": "I "}), chunk({"refusal": "can't."}), chunk({}, "stop")))
    assert (reply.text, reply.refused) == ("I can't.", True)
    reply = reply_of(streamed(ROLE, chunk({}, "content_filter")))
    assert (reply.text, reply.refused) == ("", True)
    reply = reply_of(streamed(ROLE, event({"error": {"message": "filtered", "code": "content_filter"}})))
    assert (reply.text, reply.refused) == ("filtered", True)


@pytest.mark.parametrize(
    ("error", "kind", "action"),
    [
        ({"message": "x", "code": "server_error"}, "server_error", "retry"),
        ({"message": "x", "code": 502}, "server_error", "retry"),
        ({"message": "x", "code": "insufficient_quota"}, "rate_limited", "stop"),
        ({"message": "x", "code": "rate_limit_exceeded"}, "rate_limited", "throttle"),
        ("x", "server_error", "retry"),
    ],
)
def test_an_error_in_a_stream_is_the_fault_that_its_code_says(error: Any, kind: str, action: str) -> None:
    fault = fault_of(streamed(ROLE, STREAM[1], event({"error": error}), DONE))
    assert (fault.kind, fault.action) == (kind, action)


def test_a_chunk_that_is_no_json_is_bad_json() -> None:
    assert fault_of(streamed(ROLE, b"data: {oops\n\n", chunk({}, "stop"), DONE)).kind == "bad_json"


ODD: list[Any] = [17, "x", [1], {"choices": 3}, {"choices": [1, {"delta": 4}]}, {"usage": []}]


@pytest.mark.parametrize("odd", [*ODD, {"choices": [{"delta": {"content": {}}}]}])
def test_a_chunk_of_an_odd_shape_is_never_an_exception(odd: Any) -> None:
    assert isinstance(decode(streamed(ROLE, event(odd), chunk({"content": "A"}), chunk({}, "stop"))), Reply | Fault)


# --- anything at all ---


_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_NUMBER = st.floats(0, 2, allow_nan=False).map(lambda number: number + 0.0)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**31), 2**31) | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=5,
)
_PIECES = st.sampled_from(
    [b"{", b"}", b"[", b"]", b":", b",", b'"', b"null", b"1e999", b"-1", b"data: ", b"\n\n", b"\r", b"[DONE]", b"\xff",
     b"\\ud800", b'"choices"', b'"message"', b'"delta"', b'"content"', b'"finish_reason"', b'"stop"', b'"usage"',
     b'"error"', b'"code"', b'"prompt_tokens"', b'"A"', whole(), b"".join(STREAM), ROLE, STREAM[3]]
)  # fmt: skip


@settings(max_examples=1_500, deadline=None)
@given(
    st.binary(max_size=200) | st.lists(_PIECES, max_size=12).map(b"".join) | _JSON.map(orjson.dumps),
    st.sampled_from([200, 200, 200, 204, 302, 400, 401, 402, 403, 429, 500, 503, 599]),
    st.booleans(),
    st.dictionaries(st.sampled_from(["retry-after", "retry-after-ms", "date", "location"]), st.text(max_size=30)),
)
def test_any_bytes_are_a_reply_or_a_fault_and_never_an_exception(
    body: bytes, status: int, stream: bool, headers: dict[str, str]
) -> None:
    result = decode(Response(status, body, stream, headers=headers))
    assert isinstance(result, Reply | Fault)
    written = result.text if isinstance(result, Reply) else result.detail
    assert written.encode().decode() == written


@settings(max_examples=500, deadline=None)
@given(st.integers(0, len(whole()) - 1), st.integers(1, 255))
def test_one_wrong_byte_is_never_an_exception_and_its_text_can_always_be_written(at: int, change: int) -> None:
    body = bytearray(whole())
    body[at] ^= change
    result = decode(ok(bytes(body)))
    assert isinstance(result, Fault) or orjson.dumps(result.text)
