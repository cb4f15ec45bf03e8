"""What every error of a model's provider means: the table of faults, row by row, from status, headers and body."""

from __future__ import annotations

from itertools import product
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from protocols import ROWS, ProtocolRow
from torture import times

from millstream.engine.endpoint import Fault, Response
from millstream.providers.llm.errors import DETAIL_MAX, EMPTY_ACCOUNT_CODES, error_in
from millstream.providers.llm.faults import fault_of, retry_after_s

in_each_protocol = pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
# Those whose errors are JSON as OpenAI's are. Google and AWS have words of their own (test_gemini_errors,
# test_bedrock_errors), and go by the status where there are none.
LIKE_OPENAI = {name: row for name, row in ROWS.items() if name not in ("gemini", "bedrock", "llama on vertex")}
in_each_like_openai = pytest.mark.parametrize("row", LIKE_OPENAI.values(), ids=LIKE_OPENAI)


def error(code: Any = None, kind: Any = "x", message: Any = "what went wrong") -> bytes:
    return orjson.dumps({"error": {"message": message, "type": kind, "param": None, "code": code}})


def decoded(response: Response, row: ProtocolRow = ROWS["chat"]) -> Fault:
    """As the engine gets it: through the protocol, which must add nothing of its own."""
    fault = row.fault(response)
    assert fault == fault_of(response)
    return fault


# kind, action, whether it may have been billed, whether the rate is cut
MEANINGS: dict[int, tuple[str, str, bool, bool]] = {
    400: ("rejected", "never", False, False),
    401: ("rejected", "confirm", False, False),
    402: ("rate_limited", "stop", False, False),
    403: ("rejected", "confirm", False, False),
    404: ("rejected", "never", False, False),
    405: ("rejected", "never", False, False),
    408: ("server_error", "retry", False, False),
    409: ("server_error", "retry", False, False),
    413: ("rejected", "never", False, False),
    415: ("rejected", "never", False, False),
    422: ("rejected", "never", False, False),
    429: ("rate_limited", "throttle", False, True),
    500: ("server_error", "retry", False, False),
    502: ("server_error", "retry", True, False),
    503: ("server_error", "retry", False, False),
    504: ("server_error", "retry", True, False),
    507: ("server_error", "retry", False, False),
    498: ("server_error", "retry", False, True),
    520: ("server_error", "retry", True, False),
    524: ("server_error", "retry", True, False),
    529: ("server_error", "retry", False, True),
    301: ("redirect", "stop", False, False),
    302: ("redirect", "stop", False, False),
    307: ("redirect", "stop", False, False),
    308: ("redirect", "stop", False, False),
    204: ("rejected", "never", False, False),
}
BODIES = [b"", b"<html><title>oops</title></html>", b'{"detail":"no"}', b"\xff\xfe", b"[]", b"null"]


@in_each_protocol
def test_a_status_gets_what_the_table_gives_it_whatever_its_body(row: ProtocolRow) -> None:
    bodies = BODIES if row.name not in LIKE_OPENAI else (*BODIES, error())
    for status, body, stream in product(MEANINGS, bodies, (False, True)):
        fault = decoded(Response(status, body, stream), row)
        assert (fault.kind, fault.action, fault.is_billed_maybe, fault.cuts_rate) == MEANINGS[status], (status, body)
        assert (fault.quota, fault.status, fault.is_immediate, fault.is_repeated_once) == ("keep", status, False, False)
        assert fault.detail.startswith(str(status)) or status == 402
        assert fault.retry_after_s is None


@in_each_like_openai
def test_an_empty_account_stops_the_lane_whatever_the_status(row: ProtocolRow) -> None:
    for status, code in product((200, 400, 403, 429), sorted(EMPTY_ACCOUNT_CODES)):
        for body in (error(code), error(None, code), error(code.upper()), b"[" + error(code) + b"]"):
            fault = decoded(Response(status, body, headers={"retry-after": "20"}), row)
            means = (fault.kind, fault.action, fault.quota, fault.retry_after_s)
            assert means == ("rate_limited", "stop", "keep", None), (status, body)
            assert "can't pay" in fault.detail and "what went wrong" in fault.detail


@in_each_like_openai
@pytest.mark.parametrize(
    ("code", "status", "kind", "action"),
    [
        ("rate_limit_exceeded", 429, "rate_limited", "throttle"),
        ("invalid_api_key", 401, "rejected", "confirm"),
        ("context_length_exceeded", 400, "rejected", "never"),
        ("model_not_found", 404, "rejected", "never"),
        ("overloaded_error", 529, "server_error", "retry"),
        ("server_error", 500, "server_error", "retry"),
        ("something_new", 500, "server_error", "retry"),
        (None, 500, "server_error", "retry"),
        (429, 429, "rate_limited", "throttle"),
        ("429", 429, "rate_limited", "throttle"),
        (502, 502, "server_error", "retry"),
        (402, 402, "rate_limited", "stop"),
        (401, 401, "rejected", "confirm"),
        (404, 404, "rejected", "never"),
        (200, 500, "server_error", "retry"),
        (301, 500, "server_error", "retry"),
        ("²²²", 500, "server_error", "retry"),
    ],
)
def test_a_200_with_an_error_is_what_the_code_in_its_body_says(
    code: Any, status: int, kind: str, action: str, row: ProtocolRow
) -> None:
    for response in (Response(200, error(code)), Response(200, b"data: " + error(code) + b"\n\n", stream=True)):
        fault = row.fault(response)
        assert (fault.status, fault.kind, fault.action) == (status, kind, action)


@pytest.mark.parametrize(
    ("code", "kind", "status"),
    [("invalid_api_key", "invalid_request_error", 401), ("model_not_found", "invalid_request_error", 404),
     ("rate_limit_exceeded", "invalid_request_error", 429), (None, "invalid_request_error", 400)],
)  # fmt: skip
def test_a_code_goes_before_a_type(code: str | None, kind: str, status: int) -> None:
    assert error_in(error(code, kind)).status == status


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (error(message="slow down"), "slow down"),
        (b'{"error":"slow down"}', "slow down"),
        (b'{"object":"error","message":"slow down","code":400}', "slow down"),
        (b'{"detail":"slow down"}', "slow down"),
        (b'[{"error":{"message":"slow down"}}]', "slow down"),
        (b"slow down\n", "slow down"),
        (b'{"error":{"message":["slow","down"]}}', "['slow', 'down']"),
        (b'{"error":null}', '{"error":null}'),
        (b'{"error":{"message":"slow \\ud800"}}', "slow \ufffd"),
        (b"", ""),
    ],
)
def test_the_message_is_found_in_every_common_shape(body: bytes, message: str) -> None:
    assert error_in(body).message == message
    assert decoded(Response(400, body)).detail == f"400: {message}"


@in_each_protocol
def test_a_detail_has_a_bounded_length_and_can_be_written(row: ProtocolRow) -> None:
    long = "x" * 1_000_000
    for body in (error(message=long), long.encode(), orjson.dumps({"error": long}), orjson.dumps({"message": long})):
        assert len(row.fault(Response(400, body)).detail) <= DETAIL_MAX + len("400: ")
    for body in (
        b'{"message":"\\ud800"}',
        b'{"error":{"message":"\\ud800","type":"\\ud800","status":"\\ud800"}}',
        b"\xff",
    ):
        assert orjson.dumps(row.fault(Response(400, body)).detail)


@in_each_protocol
def test_a_redirect_says_where_it_leads(row: ProtocolRow) -> None:
    fault = decoded(Response(307, b"", headers={"location": "https://elsewhere.example/v1"}), row)
    assert "https://elsewhere.example/v1" in fault.detail and "--base-url" in fault.detail


# --- how long to wait ---

DATE = "Mon, 02 Nov 2026 10:00:00 GMT"
IN_90_S = "Mon, 02 Nov 2026 10:01:30 GMT"
BEFORE = "Mon, 02 Nov 2026 09:00:00 GMT"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after-ms": "250", "retry-after": "30"}, 0.25),
        ({"retry-after-ms": "0", "retry-after": "30"}, 0.0),
        ({"retry-after-ms": "soon", "retry-after": "30"}, 30.0),
        ({"retry-after-ms": "-1", "retry-after": "30"}, 30.0),
        ({"retry-after": IN_90_S, "date": DATE}, 90.0),
        ({"retry-after-ms": "250", "retry-after": IN_90_S, "date": DATE}, 0.25),
        ({"retry-after": BEFORE, "date": DATE}, 0.0),
        ({"retry-after": "Monday, 02-Nov-26 10:01:30 GMT", "date": DATE}, 90.0),
        ({"retry-after": IN_90_S}, None),
        ({"retry-after": IN_90_S, "date": "today"}, None),
        ({"retry-after": "-7"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "1e10"}, None),
        ({"retry-after": "tomorrow"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "Mon, 02 Nov 9999 10:00:00 GMT", "date": DATE}, None),
        ({"retry-after": "Mon, 02 Nov 2026 10:00:00 +9999999999999", "date": DATE}, None),
        ({"retry-after": "Mon, 02 Nov 2026 10:01:30 -0000", "date": DATE}, None),
    ],
)
def test_the_wait_is_read_ms_before_seconds_before_a_date_and_nonsense_is_no_answer(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert retry_after_s(headers) == seconds
    for row in ROWS.values():
        fault = row.fault(Response(429, error("rate_limit_exceeded"), headers=headers))
        assert (fault.action, fault.retry_after_s) == ("throttle", seconds)
        # A provider that says how long to wait has said everything; one that doesn't gets fewer requests.
        assert fault.cuts_rate == (seconds is None)


@settings(max_examples=times(100, 500), deadline=None)
@given(st.dictionaries(st.sampled_from(["retry-after", "retry-after-ms", "date"]), st.text(max_size=40)))
def test_any_headers_are_a_sane_wait_or_none(headers: dict[str, str]) -> None:
    seconds = retry_after_s(headers)
    assert seconds is None or 0 <= seconds < 1e9


_DAY = st.sampled_from(["Mon, ", "", "Xyz, "])
_PART = st.integers(-3, 99_999).map(str)


@settings(max_examples=times(100, 500), deadline=None)
@given(st.tuples(_DAY, _PART, _PART, _PART, _PART, _PART, _PART, st.sampled_from(["GMT", "-0000", "+99999999999", ""])))
def test_any_date_is_a_sane_wait_or_none(parts: tuple[str, ...]) -> None:
    day, number, year, hour, minute, second, _, zone = parts
    seconds = retry_after_s({"retry-after": f"{day}{number} Nov {year} {hour}:{minute}:{second} {zone}", "date": DATE})
    assert seconds is None or 0 <= seconds < 1e9


@settings(max_examples=times(100, 500), deadline=None)
@given(st.integers(100, 599), st.binary(max_size=200))
def test_any_status_and_body_is_a_fault_that_can_be_written(status: int, body: bytes) -> None:
    fault = fault_of(Response(status, body))
    assert orjson.loads(orjson.dumps(fault.detail)) == fault.detail
