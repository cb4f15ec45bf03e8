"""What every error of Anthropic's means, as a response and in a stream, and every row of the table of faults."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from anthropic_shapes import START, failed, text

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
def test_an_error_is_the_same_fault_as_a_response_and_within_one(name: str) -> None:
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


def test_an_error_without_type_and_message_is_a_server_error() -> None:
    for response in (Response(200, START + b'data: {"type":"error"}\n\n', stream=True), Response(500, b"{}")):
        fault = decode(response)
        assert isinstance(fault, Fault) and (fault.kind, fault.action) == BROKEN


def test_a_content_filters_error_is_a_refusal_as_a_response_and_in_a_stream() -> None:
    body = error("invalid_request_error", FILTERED)
    for response in (
        Response(400, body),
        Response(200, START + text("Well") + failed("invalid_request_error", FILTERED), stream=True),
    ):
        reply = decode(response)
        assert isinstance(reply, Reply)
        assert (reply.text, reply.refused, reply.finish_reason) == (FILTERED, True, "content_filter")
