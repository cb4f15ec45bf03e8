"""What every error of Anthropic's means, as a response and in a stream, and every row of the table of faults."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from anthropic_shapes import START, STOP, STREAM, ended, failed, opened, said, text, whole

from millstream.engine.call import Reply
from millstream.engine.endpoint import Fault, Response
from millstream.providers.llm.anthropic.messages import decode


def error(kind: str, message: str = "No.", **more: Any) -> bytes:
    told = {"type": kind, "message": message, **more}
    return orjson.dumps({"type": "error", "error": told, "request_id": "req_011CSHoEeqs5C35K2UUqR7Fy"})


def code(name: str) -> dict[str, Any]:
    return {"details": {"error_code": name}}


THROTTLED = ("rate_limited", "throttle")
EMPTY_ACCOUNT = ("rate_limited", "stop")
DEAD_KEY = ("rejected", "confirm")
REJECTED = ("rejected", "never")
BROKEN = ("server_error", "retry")

PER_MINUTE = "This request would exceed your organization's rate limit of 40,000 input tokens per minute."
SPENT = "You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC."
POOR = "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade."
TOO_LONG = "prompt is too long: 210000 tokens > 200000 maximum"
NO_BILLING = code("linked_organization_billing_unavailable")
FILTERED = "Output blocked by content filtering policy"

# status, type, message, what stands beside them
TOLD: dict[str, tuple[int, str, str, dict[str, Any], tuple[str, str]]] = {
    "a bad request": (400, "invalid_request_error", TOO_LONG, {}, REJECTED),
    "no money": (400, "invalid_request_error", POOR, {}, EMPTY_ACCOUNT),
    "a limit that the user set": (400, "invalid_request_error", SPENT, {}, EMPTY_ACCOUNT),
    "an organization that is no more": (
        400,
        "invalid_request_error",
        "This organization has been disabled.",
        {},
        DEAD_KEY,
    ),
    "an organization on hold": (403, "permission_error", "No.", code("organization_on_hold"), DEAD_KEY),
    "the same by its code alone": (400, "invalid_request_error", "No.", code("organization_on_hold"), DEAD_KEY),
    "a wrong key": (401, "authentication_error", "invalid x-api-key", {}, DEAD_KEY),
    "a wrong token": (401, "authentication_error", "Invalid bearer token", {"details": None}, DEAD_KEY),
    "billing": (402, "billing_error", "No.", {}, EMPTY_ACCOUNT),
    "a tier's monthly limit": (429, "rate_limit_error", "No.", code("enforced_spend_limit_reached"), EMPTY_ACCOUNT),
    "a contract's limit": (429, "rate_limit_error", "No.", code("contract_spend_limit_reached"), EMPTY_ACCOUNT),
    "another's billing": (
        403,
        "permission_error",
        "No.",
        code("linked_organization_billing_unavailable"),
        EMPTY_ACCOUNT,
    ),
    "no permission": (403, "permission_error", "Your API key does not have permission.", {}, DEAD_KEY),
    "no such model": (404, "not_found_error", "model: claude-none", {}, REJECTED),
    "a conflict": (409, "conflict_error", "No.", {}, BROKEN),
    "too large": (413, "request_too_large", "Request exceeds the maximum size", {}, REJECTED),
    "throttled": (429, "rate_limit_error", PER_MINUTE, {}, THROTTLED),
    "usage that grows too fast": (429, "rate_limit_error", "No.", code("ramp_limit_exceeded"), THROTTLED),
    "an error of theirs": (500, "api_error", "Internal server error", {}, BROKEN),
    "too slow": (504, "timeout_error", "No.", {}, BROKEN),
    "overloaded": (529, "overloaded_error", "Overloaded", {}, BROKEN),
}


@pytest.mark.parametrize("name", TOLD)
def test_an_error_is_what_it_says_whether_as_a_response_or_in_one(name: str) -> None:
    status, kind, message, more, expected = TOLD[name]
    body = error(kind, message, **more)
    event = failed(kind, message, **more)
    for response in (
        Response(status, body),
        Response(status, body, stream=True),
        Response(200, body),
        Response(200, body, stream=True),
        Response(200, event, stream=True),
        Response(200, START + text("ha") + event, stream=True),
    ):
        fault = decode(response)
        assert isinstance(fault, Fault), response
        assert (fault.kind, fault.action) == expected, response
        assert (fault.quota, fault.status) == ("keep", status), response
        assert fault.cuts_rate == (name in ("throttled", "usage that grows too fast", "overloaded"))
        assert message in fault.detail


@pytest.mark.parametrize("status", [400, 403, 429])
def test_billing_stops_the_lane_whatever_its_status(status: int) -> None:
    fault = decode(Response(status, error("billing_error")))
    assert isinstance(fault, Fault) and (fault.kind, fault.action) == EMPTY_ACCOUNT


def test_an_error_that_says_nothing_is_the_servers() -> None:
    for response in (Response(200, START + b'data: {"type":"error"}\n\n', stream=True), Response(500, b"{}")):
        fault = decode(response)
        assert isinstance(fault, Fault) and (fault.kind, fault.action) == BROKEN


def test_a_content_filter_is_an_answer_wherever_it_is_told() -> None:
    body = error("invalid_request_error", FILTERED)
    for response in (
        Response(400, body),
        Response(200, START + text("Well") + failed("invalid_request_error", FILTERED), stream=True),
    ):
        reply = decode(response)
        assert isinstance(reply, Reply)
        assert (reply.text, reply.refused, reply.finish_reason) == (FILTERED, True, "content_filter")


@pytest.mark.parametrize(
    ("message", "name", "advice"),
    [
        ("temperature: Extra inputs are not permitted", "temperature", "--temperature"),
        ("`temperature` is deprecated for this model.", "temperature", "--temperature"),
        ("top_p: Extra inputs are not permitted", "top_p", "it"),
        ("This model does not support the effort parameter.", "reasoning_effort", "it"),
        ("output_config.effort: Extra inputs are not permitted", "reasoning_effort", "it"),
        ('"thinking.type.enabled" is not supported for this model.', "reasoning_effort", "it"),
        ('"thinking.type.disabled" is not supported for this model.', "reasoning_effort", "it"),
        ("thinking: Extra inputs are not permitted", "reasoning_effort", "it"),
        ("output_config.format: Extra inputs are not permitted", "json_schema", "it"),
        ("stop_sequences: Extra inputs are not permitted", "stop", "it"),
    ],
)
def test_a_parameter_that_a_model_refuses_is_named_with_what_to_do(message: str, name: str, advice: str) -> None:
    fault = decode(Response(400, error("invalid_request_error", message)))
    assert isinstance(fault, Fault)
    assert (fault.kind, fault.action) == REJECTED
    assert fault.detail == f"400: {message} (the model refuses {name}: leave {advice} out)"


def test_of_two_parameters_that_exclude_each_other_one_is_to_be_left_out() -> None:
    message = "`temperature` and `top_p` cannot both be specified for this model. Please use only one."
    fault = decode(Response(400, error("invalid_request_error", message)))
    assert isinstance(fault, Fault) and (fault.kind, fault.action) == REJECTED
    assert fault.detail == f"400: {message} (the model takes only one of temperature and top_p: leave the other out)"


def test_a_complaint_of_something_else_gives_no_advice_on_parameters() -> None:
    for message in (TOO_LONG, "max_tokens: 99999 > 64000, which is the maximum allowed number of output tokens"):
        fault = decode(Response(400, error("invalid_request_error", message)))
        assert isinstance(fault, Fault) and fault.detail == f"400: {message}"


NOTHING_SAID = START + ended() + STOP
CUT = b"".join(STREAM[:-2])
DATE, IN_90_S = "Mon, 02 Nov 2026 10:00:00 GMT", "Mon, 02 Nov 2026 10:01:30 GMT"
LIMITED = error("rate_limit_error", PER_MINUTE)

# The rows of FAULTS that a protocol decides: kind, action, quota, maybe billed, cuts the rate, seconds to wait
ROWS: dict[str, tuple[Response, tuple[str, str, str, bool, bool, float | None]]] = {
    "truncated JSON with 200": (Response(200, whole()[:-1]), ("bad_json", "retry", "keep", True, False, None)),
    "an empty body with 200": (Response(200, b""), ("bad_json", "retry", "keep", True, False, None)),
    "200 with an error body": (
        Response(200, error("api_error")),
        ("server_error", "retry", "keep", False, False, None),
    ),
    "429 with Retry-After": (
        Response(429, LIMITED, headers={"retry-after": "7"}),
        ("rate_limited", "throttle", "keep", False, False, 7.0),
    ),
    "429 with a date": (
        Response(429, LIMITED, headers={"retry-after": IN_90_S, "date": DATE}),
        ("rate_limited", "throttle", "keep", False, False, 90.0),
    ),
    "429 with retry-after-ms": (
        Response(429, LIMITED, headers={"retry-after": "7", "retry-after-ms": "250"}),
        ("rate_limited", "throttle", "keep", False, False, 0.25),
    ),
    "429 without": (Response(429, LIMITED), ("rate_limited", "throttle", "keep", False, True, None)),
    "no money": (
        Response(402, error("billing_error"), headers={"retry-after": "7"}),
        ("rate_limited", "stop", "keep", False, False, None),
    ),
    "500": (Response(500, error("api_error")), ("server_error", "retry", "keep", False, False, None)),
    "503": (Response(503, b""), ("server_error", "retry", "keep", False, False, None)),
    "529": (Response(529, error("overloaded_error")), ("server_error", "retry", "keep", False, True, None)),
    "408": (Response(408, b""), ("server_error", "retry", "keep", False, False, None)),
    "409": (Response(409, b""), ("server_error", "retry", "keep", False, False, None)),
    "502": (Response(502, b"<html>"), ("server_error", "retry", "keep", True, False, None)),
    "504": (Response(504, error("timeout_error")), ("server_error", "retry", "keep", True, False, None)),
    "400": (Response(400, error("invalid_request_error")), ("rejected", "never", "keep", False, False, None)),
    "404": (Response(404, error("not_found_error")), ("rejected", "never", "keep", False, False, None)),
    "413": (Response(413, error("request_too_large")), ("rejected", "never", "keep", False, False, None)),
    "422": (Response(422, b""), ("rejected", "never", "keep", False, False, None)),
    "401": (Response(401, error("authentication_error")), ("rejected", "confirm", "keep", False, False, None)),
    "403": (Response(403, error("permission_error")), ("rejected", "confirm", "keep", False, False, None)),
    "empty choices": (Response(200, whole(content=[])), ("empty", "retry", "settle", False, False, None)),
    "empty choices, streamed": (
        Response(200, NOTHING_SAID, stream=True),
        ("empty", "retry", "settle", False, False, None),
    ),
    "stream cut before its end mark": (
        Response(200, CUT, stream=True, is_cut=True),
        ("incomplete", "retry", "keep", True, False, None),
    ),
    "redirect": (
        Response(307, b"", headers={"location": "https://elsewhere.example"}),
        ("redirect", "stop", "keep", False, False, None),
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_row_of_the_table_ends_as_it_says(name: str) -> None:
    response, expected = ROWS[name]
    fault = decode(response)
    assert isinstance(fault, Fault)
    told = (fault.kind, fault.action, fault.quota, fault.is_billed_maybe, fault.cuts_rate, fault.retry_after_s)
    assert told == expected
    assert fault.attempts_max == (2 if fault.kind == "empty" else None)


INVALID = whole(content=[said("AXB")]).replace(b"X", b"\xff")

# The rows that end as an answer: text, refused, truncated, whether its bytes are kept
ANSWERED: dict[str, tuple[Response, tuple[str, bool, bool, bool]]] = {
    "content-filter refusal": (
        Response(200, whole(content=[said("No.")], stop_reason="refusal")),
        ("No.", True, False, False),
    ),
    "finish_reason length": (
        Response(200, whole(content=[said("ha")], stop_reason="max_tokens")),
        ("ha", False, True, False),
    ),
    "invalid UTF-8": (Response(200, INVALID), ("A\ufffdB", False, False, True)),
    "invalid UTF-8, streamed": (
        Response(200, START + opened(0, said("")) + text("AXB").replace(b"X", b"\xff") + ended() + STOP, stream=True),
        ("A\ufffdB", False, False, True),
    ),
    "stream cut behind its stop reason": (
        Response(200, START + opened(0, said("A")) + ended() + b"event", stream=True, is_cut=True),
        ("A", False, False, False),
    ),
}


@pytest.mark.parametrize("name", ANSWERED)
def test_a_row_of_the_table_that_is_an_answer_is_one(name: str) -> None:
    response, expected = ANSWERED[name]
    reply = decode(response)
    assert isinstance(reply, Reply)
    assert (reply.text, reply.refused, reply.truncated, reply.raw is not None) == expected
    assert reply.raw in (None, response.body)
