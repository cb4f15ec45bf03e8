"""Turns Google's errors (google.rpc.Status) into the form that faults reads.

Owns the statuses of its names and the sign of a day's quota, and finds how long Google asks to wait. What its reasons
and phrases mean stands in errors. Pure: bytes in, values out, never an exception.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from msgspec import structs

from ....engine.call import Reply
from ....engine.endpoint import Fault, Response
from ..answer_values import as_text, objects_in
from ..errors import DETAIL_MAX, ErrorBody, duration_s, shown
from ..faults import refusal_or_fault
from ..repair import mended, read_object

_STATUSES = {
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "OUT_OF_RANGE": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "ALREADY_EXISTS": 409,
    "ABORTED": 409,
    "RESOURCE_EXHAUSTED": 429,
    "INTERNAL": 500,
    "UNKNOWN": 500,
    "DATA_LOSS": 500,
    "UNIMPLEMENTED": 501,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}
_PER_DAY = re.compile(r"per_?day", re.IGNORECASE)
# Models in preview and `-latest` names are on v1beta alone.
_NOT_IN_V1 = re.compile(r"not found for API version v1(?!\w)")


def google_refusal_or_fault(response: Response) -> Reply | Fault:
    """Returns the reply or the fault of an error response."""
    parsed = read_object(response.body)[0]
    error = None if parsed is None else parsed.get("error")
    return refusal_or_fault(response) if not isinstance(error, dict) else _result_of(response, error)


def google_error_within(response: Response, error: Any) -> Reply | Fault:
    """Returns the reply or the fault of an error object within a response with status 200."""
    if not isinstance(error, dict):
        error = {"code": 500, "message": shown(error)}
    return _result_of(response, error)


def _result_of(response: Response, error: dict[str, Any]) -> Reply | Fault:
    message = mended(as_text(error.get("message")))
    if _NOT_IN_V1.search(message):
        message += ' (preview models may be on v1beta alone: set version = "v1beta" under [providers.gemini])'
    details = objects_in(error.get("details"))
    number = _number_of(error)
    status = response.status if response.status != 200 else number
    if status == 429 and (quota := next(_used_up_for_the_day(details), None)) is not None:
        detail = f"{response.status}: the day's quota {quota} is used up: {message[:DETAIL_MAX]}"
        return Fault("rate_limited", f"{detail} (go on tomorrow, or ask Google for more)", "stop", 429)
    reasons = [one["reason"].lower() for one in details if isinstance(one.get("reason"), str)]
    headers = response.headers
    if (wait := next(_waits(details), None)) is not None and "retry-after" not in headers:
        headers = {**headers, "retry-after": wait}
    body = ErrorBody((str(number), *reasons), (message or shown(error.get("status") or error))[:DETAIL_MAX])
    return refusal_or_fault(structs.replace(response, headers=headers), body)


def _number_of(error: dict[str, Any]) -> int:
    code, status = error.get("code"), error.get("status")
    if isinstance(code, int) and 400 <= code < 600:
        return code
    return _STATUSES.get(status, 500) if isinstance(status, str) else 500


def _used_up_for_the_day(details: list[dict[str, Any]]) -> Iterator[str]:
    for one in details:
        for violation in objects_in(one.get("violations")):
            quota = violation.get("quotaId")
            if isinstance(quota, str) and _PER_DAY.search(quota):
                yield mended(quota[:100])


def _waits(details: list[dict[str, Any]]) -> Iterator[str]:
    """Yields the waits that the details ask for, as texts in seconds: `26.0` for RetryInfo's `26s`."""
    for one in details:
        if (seconds := duration_s(as_text(one.get("retryDelay")))) is not None:
            yield str(seconds)
