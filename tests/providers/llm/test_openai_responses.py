"""OpenAI Responses as bytes: what is sent, what counts as whole, cut, repaired, odd, and at random."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from response_shapes import CREATED, MESSAGE, REASONING, STREAM, delta, event, response, said, whole

from millstream.engine.call import Call, Citation, Message, Reply, TokenLogprob, Usage
from millstream.engine.endpoint import EncodeError, Fault, Request, Response
from millstream.engine.key import key_of
from millstream.providers.llm.openai.responses import decode, encode
from millstream.providers.llm.protocol import Target

MODEL = "openai-responses/gpt-5.4"
TARGET = Target("http://127.0.0.1:8000/v1", "lab", "gpt-5.4", "openai-responses")


def encoded(call: Call) -> Request:
    return encode(call, TARGET)


def reply_of(body: bytes, *, stream: bool = False, is_cut: bool = False) -> Reply:
    result = decode(Response(200, body, stream=stream, is_cut=is_cut))
    assert isinstance(result, Reply), result
    return result


def fault_of(body: bytes, *, stream: bool = False, status: int = 200) -> Fault:
    result = decode(Response(status, body, stream=stream))
    assert isinstance(result, Fault), result
    return result


# --- what is sent ---


def test_only_what_was_set_is_sent() -> None:
    request = encoded(Call(MODEL, "Say A or B."))
    assert request.body == request.wire == b'{"input":[{"content":"Say A or B.","role":"user"}],"model":"gpt-5.4"}'
    assert (request.url, request.identity) == ("http://127.0.0.1:8000/v1/responses", "lab/responses")


def test_everything_that_was_set_is_sent_under_the_names_it_has_here() -> None:
    schema = {"type": "object"}
    call = Call(
        MODEL,
        (Message("system", "Be brief."), Message("user", "x")),
        temperature=0,
        max_tokens=9,
        top_p=0.5,
        reasoning_effort="high",
        json_schema=schema,
        logprobs=2,
        extra={"store": False},
    )
    assert orjson.loads(encoded(call).body) == {
        "input": [{"content": "Be brief.", "role": "system"}, {"content": "x", "role": "user"}],
        "model": "gpt-5.4",
        "temperature": 0.0,
        "max_output_tokens": 9,
        "top_p": 0.5,
        "reasoning": {"effort": "high"},
        "text": {"format": {"type": "json_schema", "name": "answer", "schema": schema, "strict": True}},
        "include": ["message.output_text.logprobs"],
        "top_logprobs": 2,
        "store": False,
    }


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (Call(MODEL, "x", seed=1), "has no seed: leave it out, or use kind openai"),
        (Call(MODEL, "x", stop=("a",)), "has no stop"),
        (Call(MODEL, "x", extra={"input": "y"}), "can't set input"),
        (Call(MODEL, "x", temperature=float("nan")), "must be a finite number"),
        (Call(MODEL, "lone \ud800"), "can't be written as JSON"),
    ],
)
def test_what_the_protocol_can_not_hold_is_refused_before_it_is_sent(call: Call, said: str) -> None:
    with pytest.raises(EncodeError, match=said):
        encoded(call)


def test_streamed_and_whole_calls_have_one_key() -> None:
    plain, stream = encoded(Call(MODEL, "x")), encoded(Call(MODEL, "x", stream=True))
    assert key_of(plain, 0) == key_of(stream, 0)
    assert orjson.loads(stream.wire) == {**orjson.loads(plain.wire), "stream": True}
    assert stream.stream and stream.url == plain.url


# --- what is read ---

READ = "position <<A>> – ✓ 😀"


def test_a_whole_answer_is_read_with_its_usage_and_the_hash_of_its_bytes() -> None:
    body = whole()
    reply = reply_of(body)
    assert (reply.text, reply.usage, reply.finish_reason) == (READ, Usage(36, 87, 64, 12), "stop")
    assert not reply.refused and not reply.truncated and reply.raw is None
    assert reply.raw_hash == hashlib.sha256(body).hexdigest()


def test_a_stream_is_read_as_the_whole_answer_is() -> None:
    streamed, plain = reply_of(b"".join(STREAM), stream=True), reply_of(whole())
    assert (streamed.text, streamed.usage, streamed.finish_reason) == (plain.text, plain.usage, plain.finish_reason)


def test_a_body_cut_at_any_byte_is_never_a_reply() -> None:
    body = whole()
    for cut in range(len(body)):
        fault = fault_of(body[:cut])
        assert (fault.kind, fault.action, fault.quota, fault.is_billed_maybe) == ("bad_json", "retry", "keep", True)


@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
def test_a_stream_cut_at_any_byte_is_never_a_reply(newline: bytes) -> None:
    body = b"".join(STREAM).replace(b"\n", newline)
    for cut in range(len(body) - len(newline) + 1):
        fault = fault_of(body[:cut], stream=True)
        assert (fault.kind, fault.action, fault.is_billed_maybe) == ("incomplete", "retry", True), cut


def test_a_stream_that_was_cut_behind_its_last_event_is_whole() -> None:
    assert reply_of(b"".join(STREAM) + b"event: x\nda", stream=True, is_cut=True).text == READ


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ([said("A"), said("B")], "AB"),
        ([REASONING, said("")], ""),
        ([{**MESSAGE, "content": [{"type": "output_text", "text": "A"}, {"type": "image"}, 7]}], "A"),
        ([{"type": "function_call", "name": "f"}, 7, None, said("A")], "A"),
        ([said("lone \ud83d")], "lone \ufffd"),
    ],
)
def test_the_text_is_what_messages_say(output: list[Any], text: str) -> None:
    body = json.dumps(response(output=output)).encode()
    reply = reply_of(body)
    assert reply.text == text
    assert (reply.raw is not None) == ("\ufffd" in text)


REFUSAL = {**MESSAGE, "content": [{"type": "refusal", "refusal": "I can't."}]}


def test_refusals_and_filters_are_valid_answers() -> None:
    assert (reply_of(whole(output=[REFUSAL])).text, reply_of(whole(output=[REFUSAL])).refused) == ("I can't.", True)
    filtered = reply_of(whole(status="incomplete", incomplete_details={"reason": "content_filter"}))
    assert (filtered.refused, filtered.finish_reason) == (True, "content_filter")
    flagged = {
        "code": "invalid_prompt",
        "message": "Your prompt was flagged as potentially violating our usage policy.",
    }
    for error in (flagged, {"code": "bio_policy", "message": "No."}):
        assert reply_of(whole(status="failed", error=error, output=[])).refused
        failed = event("response.failed", response=response(status="failed", error=error, output=[]))
        assert reply_of(CREATED + failed, stream=True).refused


@pytest.mark.parametrize("output", [[REASONING, MESSAGE], [REASONING], []])
def test_an_answer_that_ran_out_of_tokens_is_truncated_even_while_it_thought(output: list[Any]) -> None:
    changes = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": output}
    for reply in (
        reply_of(whole(**changes)),
        reply_of(CREATED + event("response.incomplete", response=response(**changes)), stream=True),
    ):
        assert (reply.truncated, reply.refused) == (True, False)


@pytest.mark.parametrize("details", [None, {}, {"reason": None}])
def test_an_answer_that_is_incomplete_for_no_reason_that_is_said_ran_out_of_tokens(details: Any) -> None:
    assert reply_of(whole(status="incomplete", incomplete_details=details)).truncated


@pytest.mark.parametrize("details", [{"reason": "steered"}, {"reason": ["length"]}])
def test_an_answer_that_is_incomplete_for_another_reason_is_no_reply(details: Any) -> None:
    fault = fault_of(whole(status="incomplete", incomplete_details=details))
    assert (fault.kind, fault.action, fault.is_billed_maybe) == ("server_error", "retry", True)


@pytest.mark.parametrize("output", [[], [REASONING], [{"type": "message", "content": None}]])
def test_an_answer_that_says_nothing_is_empty_and_tried_twice(output: list[Any]) -> None:
    fault = fault_of(whole(output=output))
    assert (fault.kind, fault.quota, fault.attempts_max, fault.usage_tokens) == ("empty", "settle", 2, 123)


def test_a_call_of_a_tool_is_no_empty_answer() -> None:
    called = {"type": "function_call", "name": "f", "arguments": "{}", "call_id": "c"}
    assert reply_of(whole(output=[REASONING, called])).text == ""


def test_a_server_that_leaves_the_text_out_of_its_last_event_is_believed_in_its_pieces() -> None:
    last = event("response.completed", response=response(output=[]))
    assert reply_of(CREATED + delta("position ") + delta("A") + last, stream=True).text == "position A"


FAILED: dict[str, tuple[dict[str, Any], str, str]] = {
    "an outage": ({"code": "server_error", "message": "oops"}, "server_error", "retry"),
    "throttled": ({"code": "rate_limit_exceeded", "message": "slow down"}, "rate_limited", "throttle"),
    "a bad prompt": ({"code": "invalid_prompt", "message": "must be a list"}, "rejected", "never"),
    "no money": ({"code": "insufficient_quota", "message": "no"}, "rate_limited", "stop"),
    "something new": ({"code": "something_new", "message": "?"}, "server_error", "retry"),
}


@pytest.mark.parametrize("name", FAILED)
def test_an_answer_that_failed_is_the_fault_that_its_error_names(name: str) -> None:
    error, kind, action = FAILED[name]
    failed = response(status="failed", error=error, output=[])
    bodies = [
        (orjson.dumps(failed), False),
        (orjson.dumps({"error": error}), False),
        (CREATED + delta("ha") + event("response.failed", response=failed), True),
        (CREATED + delta("ha") + event("error", sequence_number=3, param=None, **error), True),
        (CREATED + event("error", error={"type": "x", **error}), True),
        (CREATED + b"data: " + orjson.dumps({"error": error}) + b"\n\n", True),
        (orjson.dumps({"error": error}), True),
    ]
    for body, stream in bodies:
        fault = fault_of(body, stream=stream)
        assert (fault.kind, fault.action) == (kind, action), body


@pytest.mark.parametrize("status", ["in_progress", "queued", "cancelled", "failed"])
def test_an_answer_that_is_not_at_its_end_is_no_reply(status: str) -> None:
    fault = fault_of(whole(status=status))
    assert (fault.kind, fault.action, fault.is_billed_maybe) == ("server_error", "retry", True)
    assert status in fault.detail


@pytest.mark.parametrize(
    "body",
    [b"{}", b"null", b"[]", whole(output=None), whole(status=None), b'{"choices":[{"message":{"content":"A"}}]}', b""],
)
def test_json_that_is_no_response_is_bad(body: bytes) -> None:
    assert fault_of(body).kind == "bad_json"


def test_an_event_that_is_no_json_is_bad() -> None:
    assert fault_of(CREATED + b"data: {oops\n\n" + STREAM[-1], stream=True).kind == "bad_json"


@pytest.mark.parametrize(
    ("status", "kind", "action"),
    [
        (401, "rejected", "confirm"),
        (429, "rate_limited", "throttle"),
        (500, "server_error", "retry"),
        (404, "rejected", "never"),
    ],
)
def test_a_status_is_what_the_table_says(status: int, kind: str, action: str) -> None:
    fault = fault_of(b'{"error":{"message":"no","code":null}}', status=status)
    assert (fault.kind, fault.action, fault.status) == (kind, action, status)


NOTES = [
    {"type": "url_citation", "url": "https://a.example/1", "title": "One"},
    {"type": "file_citation", "file_id": "f"},
]
TOKENS = [{"token": "A", "logprob": -0.5, "top_logprobs": [{"token": "B", "logprob": -1}]}]


def test_citations_and_log_probabilities_are_read() -> None:
    reply = reply_of(whole(output=[said("A", annotations=NOTES, logprobs=TOKENS), said("B", annotations=NOTES)]))
    assert reply.citations == (Citation("https://a.example/1", "One"),)
    assert reply.logprobs == (TokenLogprob("A", -0.5, (("B", -1.0),)),)
    assert reply_of(whole()).logprobs is None and reply_of(whole()).citations == ()


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, None),
        ({}, None),
        ([], None),
        ({"input_tokens": 3, "output_tokens": 4}, Usage(3, 4)),
        ({"input_tokens": 3, "output_tokens": 4, "output_tokens_details": None}, Usage(3, 4)),
        ({"input_tokens": 3, "output_tokens": -4}, None),
        ({"input_tokens": "3", "output_tokens": 4}, None),
        ({"input_tokens": 3, "output_tokens": 4, "output_tokens_details": {"reasoning_tokens": 9}}, Usage(3, 4, 4)),
    ],
)
def test_a_usage_that_makes_no_sense_is_none_and_costs_no_answer(usage: Any, expected: Usage | None) -> None:
    reply = reply_of(whole(usage=usage))
    assert (reply.text, reply.usage) == (READ, expected)


_ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
_FIELDS = ["status", "error", "incomplete_details", "output", "usage", "id"]
_PART = st.dictionaries(st.sampled_from(["type", "text", "refusal", "annotations", "logprobs"]), _ANY, max_size=5)
_OUTPUT = st.lists(_PART | _ANY, max_size=3).map(lambda content: [{"type": "message", "content": content}])


@settings(max_examples=500, deadline=None)
@given(st.dictionaries(st.sampled_from(_FIELDS), _ANY, max_size=4), st.none() | _OUTPUT, st.booleans())
def test_any_answer_is_a_reply_or_a_fault_that_can_be_written(changes: Any, output: Any, stream: bool) -> None:
    given = response(**changes)
    if output is not None:
        given["output"] = output
    body = json.dumps(given).encode()
    if stream:
        body = b'data: {"type":"response.completed","response":' + body + b"}\n\n"
    result = decode(Response(200, body, stream=stream))
    told = result.text if isinstance(result, Reply) else result.detail
    assert orjson.loads(orjson.dumps(told)) == told


@settings(max_examples=500, deadline=None)
@given(st.binary(max_size=200), st.booleans())
def test_noise_is_never_a_reply(body: bytes, stream: bool) -> None:
    assert isinstance(decode(Response(200, body, stream=stream)), Fault)
