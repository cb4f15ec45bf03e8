"""What every error of Google's means: the table of faults, row by row, for Gemini and for what Vertex answers."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from gemini_shapes import STREAM, error, quota, reason, retry_in
from hypothesis import given, settings
from hypothesis import strategies as st
from torture import times

from millstream.engine.endpoint import Fault, Response
from millstream.providers.llm.google.generate import decode

DAY, MINUTE = "GenerateRequestsPerDayPerProjectPerModel-FreeTier", "GenerateRequestsPerMinutePerProjectPerModel"
CHECK = "You exceeded your current quota, please check your plan and billing details."


def fault_of(status: int, body: bytes, **more: Any) -> Fault:
    result = decode(Response(status, body, **more))
    assert isinstance(result, Fault), result
    return result


# kind, action, maybe billed, cuts the rate
ROWS: dict[tuple[int, str], tuple[str, str, bool, bool]] = {
    (400, "INVALID_ARGUMENT"): ("rejected", "never", False, False),
    (400, "FAILED_PRECONDITION"): ("rejected", "never", False, False),
    (400, "OUT_OF_RANGE"): ("rejected", "never", False, False),
    (401, "UNAUTHENTICATED"): ("rejected", "confirm", False, False),
    (403, "PERMISSION_DENIED"): ("rejected", "confirm", False, False),
    (404, "NOT_FOUND"): ("rejected", "never", False, False),
    (409, "ABORTED"): ("server_error", "retry", False, False),
    (413, "INVALID_ARGUMENT"): ("rejected", "never", False, False),
    (429, "RESOURCE_EXHAUSTED"): ("rate_limited", "throttle", False, True),
    (500, "INTERNAL"): ("server_error", "retry", False, False),
    (501, "UNIMPLEMENTED"): ("server_error", "retry", False, False),
    (502, "UNAVAILABLE"): ("server_error", "retry", True, False),
    (503, "UNAVAILABLE"): ("server_error", "retry", False, False),
    (504, "DEADLINE_EXCEEDED"): ("server_error", "retry", True, False),
}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(("status", "name"), ROWS)
def test_a_status_gets_what_the_table_gives_it(status: int, name: str, stream: bool) -> None:
    for body in (error(status, name), b"[" + error(status, name) + b"]"):
        fault = fault_of(status, body, stream=stream)
        assert (fault.kind, fault.action, fault.is_billed_maybe, fault.cuts_rate) == ROWS[status, name]
        assert (fault.quota, fault.status, fault.detail) == ("keep", status, f"{status}: No.")


@pytest.mark.parametrize(("status", "name"), [row for row in ROWS if row[0] not in (413, 502)])
def test_the_number_or_the_name_of_an_error_in_a_200_decides_its_fault(status: int, name: str) -> None:
    told = orjson.loads(error(status, name))["error"]
    nameless = {key: value for key, value in told.items() if key != "code"}
    for one in (told, nameless):
        body = orjson.dumps({"error": one})
        for response in (
            Response(200, body),
            Response(200, b"data: " + body + b"\r\n\r\n", stream=True),
            Response(200, b"".join(STREAM[:2]) + b"data: " + body + b"\r\n\r\n", stream=True),
        ):
            fault = decode(response)
            assert isinstance(fault, Fault)
            assert (fault.kind, fault.action, fault.is_billed_maybe, fault.cuts_rate) == ROWS[status, name]


@pytest.mark.parametrize("told", [{}, {"code": "x"}, {"status": "NEW"}, {"code": 200}, {"status": 7}, "no", [1]])
def test_an_error_in_a_200_without_number_and_name_is_a_server_error(told: Any) -> None:
    fault = decode(Response(200, orjson.dumps({"error": told or {"x": 1}})))
    assert isinstance(fault, Fault) and (fault.kind, fault.action) == ("server_error", "retry")


def test_a_model_that_v1_lacks_is_advised_to_be_asked_at_v1beta() -> None:
    def detail(version: str) -> str:
        said = f"models/gemini-3.1-pro-preview is not found for API version {version}, or is not supported for it."
        return fault_of(404, orjson.dumps({"error": {"code": 404, "message": said, "status": "NOT_FOUND"}})).detail

    assert detail("v1").endswith('alone: set version = "v1beta" under [providers.gemini])')
    assert detail("v1beta").endswith("or is not supported for it.")


# --- how long to wait, and whether waiting helps ---


@pytest.mark.parametrize(("delay", "seconds"), [("26s", 26.0), ("39.837252829s", 39.837252829), ("0s", 0.0)])
def test_the_wait_that_google_asks_for_is_kept(delay: str, seconds: float) -> None:
    fault = fault_of(429, error(429, "RESOURCE_EXHAUSTED", CHECK, quota(MINUTE), retry_in(delay)))
    assert (fault.action, fault.retry_after_s, fault.cuts_rate) == ("throttle", seconds, False)


def test_a_header_that_says_how_long_comes_first() -> None:
    body = error(429, "RESOURCE_EXHAUSTED", CHECK, retry_in("26s"))
    assert fault_of(429, body, headers={"retry-after": "3"}).retry_after_s == 3.0


@pytest.mark.parametrize("delay", ["", "s", "-1s", "soon", "1e9s", 26, None, "99999999999s"])
def test_a_wait_that_makes_no_sense_is_none(delay: Any) -> None:
    fault = fault_of(429, error(429, "RESOURCE_EXHAUSTED", CHECK, {"retryDelay": delay}))
    assert (fault.action, fault.retry_after_s, fault.cuts_rate) == ("throttle", None, True)


@pytest.mark.parametrize("ids", [(DAY,), (MINUTE, DAY), (MINUTE, "generate_requests_per_day")])
def test_a_days_quota_that_is_used_up_stops_the_lane_whatever_wait_is_named(ids: tuple[str, ...]) -> None:
    fault = fault_of(429, error(429, "RESOURCE_EXHAUSTED", CHECK, quota(*ids), retry_in("26s")))
    assert (fault.kind, fault.action, fault.retry_after_s) == ("rate_limited", "stop", None)
    assert ids[-1] in fault.detail and "the day's quota" in fault.detail and CHECK in fault.detail


@pytest.mark.parametrize(
    ("status", "name", "message", "details"),
    [
        (403, "PERMISSION_DENIED", "No.", [reason("BILLING_DISABLED")]),
        (403, "PERMISSION_DENIED", "This API method requires billing to be enabled.", []),
        (400, "FAILED_PRECONDITION",
         "Gemini API free tier is not available in your country. Please enable billing on your project.", []),
        (429, "RESOURCE_EXHAUSTED", "Your prepayment credits are depleted.", [retry_in("5s")]),
        (429, "RESOURCE_EXHAUSTED", "Your project has exceeded its monthly spending cap.", []),
        (403, "PERMISSION_DENIED", "The billing account for the owning project is disabled in state closed", []),
    ],
)  # fmt: skip
def test_an_empty_account_stops_the_lane_however_it_is_said(
    status: int, name: str, message: str, details: list[Any]
) -> None:
    fault = fault_of(status, error(status, name, message, *details))
    assert (fault.kind, fault.action, fault.retry_after_s) == ("rate_limited", "stop", None)
    assert "can't pay" in fault.detail and message in fault.detail


@pytest.mark.parametrize(
    "message",
    ["No spending cap could be read.", "The billing account's state is disabled?", "API key not found in our cache."],
)
def test_a_500_or_503_is_never_read_as_a_dead_key_an_empty_account_or_a_days_quota(message: str) -> None:
    for status, word in ((500, "INTERNAL"), (503, "UNAVAILABLE")):
        fault = fault_of(status, error(status, word, message, quota(DAY)))
        assert (fault.kind, fault.action) == ("server_error", "retry")


@pytest.mark.parametrize(
    ("status", "message", "details"),
    [
        (400, "API key not valid. Please pass a valid API key.", [reason("API_KEY_INVALID")]),
        (400, "API key not valid. Please pass a valid API key.", []),
        (400, "API key expired. Please renew the API key.", []),
        (400, "No.", [reason("API_KEY_EXPIRED")]),
        (400, "API Key not found. Please pass a valid API key.", []),
        (403, "Your API key was reported as leaked. Please use another API key.", []),
        (403, "No.", [reason("SERVICE_DISABLED")]),
        (403, "No.", [reason("CONSUMER_SUSPENDED")]),
        (403, "No.", [reason("IAM_PERMISSION_DENIED")]),
        (401, "Request had invalid authentication credentials.", [reason("ACCESS_TOKEN_EXPIRED")]),
    ],
)
def test_a_dead_key_is_confirmed_whatever_its_status(status: int, message: str, details: list[Any]) -> None:
    fault = fault_of(status, error(status, "INVALID_ARGUMENT", message, *details))
    assert (fault.kind, fault.action, fault.detail) == ("rejected", "confirm", f"{status}: {message}")


_TOLD = st.dictionaries(
    st.sampled_from(["code", "status", "message", "details"]),
    st.none()
    | st.integers(-5, 700)
    | st.text(max_size=20)
    | st.lists(
        st.none()
        | st.dictionaries(
            st.sampled_from(["retryDelay", "violations", "reason"]),
            st.text(max_size=10) | st.lists(st.dictionaries(st.just("quotaId"), st.text(max_size=9) | st.none())),
            max_size=3,
        ),
        max_size=3,
    ),
)


@settings(max_examples=times(100, 500), deadline=None)
@given(st.sampled_from([200, 400, 401, 403, 429, 500]), _TOLD)
def test_any_error_is_a_fault_that_can_be_written(status: int, told: dict[str, Any]) -> None:
    body = b'{"error":' + orjson.dumps({**told, "x": 1}) + b"}"
    result = decode(Response(status, body))
    detail = result.detail if isinstance(result, Fault) else result.text
    assert orjson.loads(orjson.dumps(detail)) == detail
