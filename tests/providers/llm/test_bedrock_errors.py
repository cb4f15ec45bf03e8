"""What every error of Bedrock's means: the table of faults, row by row, by header, by body and within a stream."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from bedrock_shapes import START, STREAM, delta, error, exception, message, named

from millstream.engine.call import Reply
from millstream.engine.endpoint import Fault, Response
from millstream.providers.llm.bedrock.converse import decode
from millstream.providers.llm.bedrock.errors import STATUSES

THROTTLED = ("rate_limited", "throttle", False, True)
REJECTED = ("rejected", "never", False, False)
DEAD_KEY = ("rejected", "confirm", False, False)
BROKEN = ("server_error", "retry", False, False)
# Status as it comes, and kind, action, maybe billed, cuts the rate.
ROWS: dict[str, tuple[int, tuple[str, str, bool, bool]]] = {
    "ThrottlingException": (429, THROTTLED),
    "TooManyRequestsException": (429, THROTTLED),
    "ModelNotReadyException": (429, THROTTLED),
    "ServiceQuotaExceededException": (400, THROTTLED),
    "ModelTimeoutException": (408, BROKEN),
    "ConflictException": (400, BROKEN),
    "ModelErrorException": (424, BROKEN),
    "ModelStreamErrorException": (424, BROKEN),
    "InternalServerException": (500, BROKEN),
    "ServiceUnavailableException": (503, BROKEN),
    "ValidationException": (400, REJECTED),
    "SerializationException": (400, REJECTED),
    "ResourceNotFoundException": (404, REJECTED),
    "UnknownOperationException": (404, REJECTED),
    "AccessDeniedException": (403, DEAD_KEY),
    "SubscriptionRequiredException": (403, DEAD_KEY),
    "UnrecognizedClientException": (403, DEAD_KEY),
    "ExpiredTokenException": (403, DEAD_KEY),
    "InvalidSignatureException": (403, DEAD_KEY),
    "IncompleteSignatureException": (400, DEAD_KEY),
    "MissingAuthenticationTokenException": (403, DEAD_KEY),
    "RequestExpired": (400, DEAD_KEY),
}


def fault_of(status: int, body: bytes, name: str | None = None, **more: Any) -> Fault:
    result = decode(Response(status, body, headers={} if name is None else named(name), **more))
    assert isinstance(result, Fault), result
    return result


def row_of(fault: Fault) -> tuple[str, str, bool, bool]:
    return fault.kind, fault.action, fault.is_billed_maybe, fault.cuts_rate


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("name", ROWS)
def test_a_name_in_the_header_or_in_the_body_gets_what_the_table_gives_it(name: str, stream: bool) -> None:
    status, row = ROWS[name]
    for fault in (
        fault_of(status, error(), name, stream=stream),
        fault_of(status, error(__type=f"com.amazon.coral.service#{name}"), stream=stream),
        fault_of(status, error(__type=name), stream=stream),
        fault_of(status, orjson.dumps({"Message": "No.", "__type": name}), stream=stream),
    ):
        assert row_of(fault) == row
        assert fault.quota == "keep"
        assert f"{name}: No." in fault.detail


@pytest.mark.parametrize("name", ROWS)
def test_the_name_of_an_error_within_a_stream_decides_its_fault(name: str) -> None:
    _, row = ROWS[name]
    camel = name[0].lower() + name[1:]
    for body in (
        exception(camel),
        exception(name),
        b"".join(STREAM[:7]) + exception(camel),
        START + delta("A") + message(b"", message_type="error", error_code=name, error_message="No."),
    ):
        fault = fault_of(200, body, stream=True)
        assert row_of(fault) == row and f"{name}: No." in fault.detail


def test_the_name_of_an_error_in_a_200_decides_its_fault() -> None:
    body = orjson.dumps({"Output": {"__type": "com.amazon.coral.service#UnknownOperationException"}, "Version": "1.0"})
    assert row_of(fault_of(200, body)) == REJECTED
    assert row_of(fault_of(200, error(__type="ThrottlingException"))) == THROTTLED
    assert row_of(fault_of(200, error(__type=17))) == BROKEN
    assert row_of(fault_of(200, b'{"error":{"code":"rate_limit_exceeded","message":"No."}}')) == THROTTLED


def test_an_exception_without_a_name_or_with_an_odd_body_is_the_servers() -> None:
    for body in (
        exception(""),
        message(b"", message_type="exception"),
        message(b"[3]", message_type="exception", exception_type="newException"),
        message(b"", message_type="error"),
    ):
        assert row_of(fault_of(200, body, stream=True)) == BROKEN


def test_an_unknown_error_name_goes_by_its_status() -> None:
    for status, row in ((418, REJECTED), (429, THROTTLED), (500, BROKEN), (403, DEAD_KEY)):
        assert row_of(fault_of(status, error(), "NewException")) == row
    assert row_of(fault_of(200, exception("newException"), stream=True)) == BROKEN
    assert "NewException" not in STATUSES


@pytest.mark.parametrize("name", ["ModelErrorException", "ModelStreamErrorException"])
def test_a_request_that_the_model_itself_rejected_is_not_tried_again(name: str) -> None:
    for status, row in ((400, REJECTED), (422, REJECTED), (500, BROKEN), (429, BROKEN), ([], BROKEN)):
        assert row_of(fault_of(424, error(originalStatusCode=status), name)) == row
    camel = name[0].lower() + name[1:]
    assert row_of(fault_of(200, exception(camel, originalStatusCode=400), stream=True)) == REJECTED
    assert row_of(fault_of(500, error(originalStatusCode=400), "InternalServerException")) == BROKEN


# --- what the words of an error tell ---


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "within a stream"])
def test_a_days_quota_that_is_used_up_stops_the_lane(stream: bool) -> None:
    said = "Too many tokens per day, please wait before trying again."
    if stream:
        fault = fault_of(200, exception("throttlingException", said), stream=True)
    else:
        fault = fault_of(429, error(said), "ThrottlingException")
    assert (fault.kind, fault.action) == ("rate_limited", "stop") and "go on tomorrow" in fault.detail
    per_minute = fault_of(429, error("Too many tokens, please wait before trying again."), "ThrottlingException")
    assert per_minute.action == "throttle"


def test_an_account_that_can_not_pay_stops_the_lane() -> None:
    said = "Model access is denied due to INVALID_PAYMENT_INSTRUMENT:A valid payment instrument must be provided."
    fault = fault_of(403, error(said), "AccessDeniedException")
    assert (fault.kind, fault.action) == ("rate_limited", "stop") and "can't pay" in fault.detail


@pytest.mark.parametrize(
    "said", ["Output blocked by content filtering policy", "This request has been blocked by our content filters."]
)
def test_a_filters_rejection_is_a_refusal(said: str) -> None:
    for response in (
        Response(400, error(said), headers=named("ValidationException")),
        Response(200, exception("validationException", said), stream=True),
    ):
        reply = decode(response)
        assert isinstance(reply, Reply), reply
        assert (reply.refused, reply.finish_reason) == (True, "content_filter") and said in reply.text


@pytest.mark.parametrize(
    ("name", "said", "advice"),
    [
        ("InvalidSignatureException", "Signature expired: 20260101T000000Z is now earlier than", "clock right?"),
        ("InvalidSignatureException", "Signature not yet current: 2030", "clock right?"),
        ("RequestTimeTooSkewed", "", "clock right?"),
        ("ExpiredTokenException", "The security token included in the request is expired", "set new ones"),
    ],
)
def test_a_dead_key_says_why_where_that_is_known(name: str, said: str, advice: str) -> None:
    fault = fault_of(403, error(said), name)
    assert fault.action == "confirm" and advice in fault.detail
    assert advice not in fault_of(403, error("No."), "InvalidSignatureException").detail
