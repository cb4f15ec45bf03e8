"""OpenAI Responses as bytes: what is sent, what counts as whole, cut, repaired, odd, and at random."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from response_shapes import CREATED, MESSAGE, delta, event, response, said, whole

from millstream.engine.call import Call, Citation, Reply, TokenLogprob
from millstream.engine.endpoint import EncodeError, Fault, Request, Response
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


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (Call(MODEL, "x", seed=1), "has no seed: leave it out, or use kind openai"),
        (Call(MODEL, "x", stop=("a",)), "has no stop"),
    ],
)
def test_a_call_that_the_protocol_can_not_express_is_refused(call: Call, said: str) -> None:
    with pytest.raises(EncodeError, match=said):
        encoded(call)


# --- what is read ---


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ([{**MESSAGE, "content": [{"type": "output_text", "text": "A"}, {"type": "image"}, 7]}], "A"),
        ([{"type": "function_call", "name": "f"}, 7, None, said("A")], "A"),
    ],
)
def test_the_text_is_that_of_all_messages(output: list[Any], text: str) -> None:
    assert reply_of(whole(output=output)).text == text


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


@pytest.mark.parametrize("details", [None, {}, {"reason": None}])
def test_an_incomplete_response_without_a_reason_is_truncated(details: Any) -> None:
    assert reply_of(whole(status="incomplete", incomplete_details=details)).truncated


@pytest.mark.parametrize("details", [{"reason": "steered"}, {"reason": ["length"]}])
def test_a_response_that_is_incomplete_for_an_unknown_reason_is_no_reply(details: Any) -> None:
    fault = fault_of(whole(status="incomplete", incomplete_details=details))
    assert (fault.kind, fault.action, fault.is_billed_maybe) == ("server_error", "retry", True)


def test_a_message_without_content_is_empty() -> None:
    assert fault_of(whole(output=[{"type": "message", "content": None}])).kind == "empty"


def test_the_deltas_are_the_text_where_the_last_event_has_none() -> None:
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
def test_a_response_that_is_not_completed_is_no_reply(status: str) -> None:
    fault = fault_of(whole(status=status))
    assert (fault.kind, fault.action, fault.is_billed_maybe) == ("server_error", "retry", True)
    assert status in fault.detail


def test_a_response_without_output_is_none() -> None:
    assert fault_of(whole(output=None)).kind == "bad_json"


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
