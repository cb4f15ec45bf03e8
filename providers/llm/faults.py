"""Turns an error response into a fault, by its status, its headers and the codes and message of its body.

The decisions about models' faults, in one place for every protocol with JSON errors over HTTP. Pure: no I/O, and no
clock but the response's own Date.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container
from email.utils import parsedate_to_datetime
from hashlib import sha256
from typing import Any

from msgspec import structs

from ...engine.call import Reply, Usage
from ...engine.endpoint import Fault, Response
from ...engine.page_urls import with_shown_addresses
from .errors import ErrorBody, error_in

_OTHER_NAMES = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
_REFUSAL_STATUSES = (200, 400, 403, 422)

_DEAD_KEY = Fault("rejected", "", "confirm")
_UNPAID = Fault("rate_limited", "the account can't pay: ", "stop")
_THROTTLED = Fault("rate_limited", "", "throttle")
_BROKEN = Fault("server_error", "", "retry")
_REJECTED = Fault("rejected", "", "never")
_ANY = range(1 << 16)
# What an error means: by its status, and by what its body says at which status (None: whatever it says); the first row
# that fits. The status and the message are added to the detail, and what depends on the response.
MEANINGS: tuple[tuple[Container[int], Callable[[ErrorBody, int], bool] | None, Fault], ...] = (
    (range(300, 400), None, Fault("redirect", "", "stop")),
    ((402,), lambda error, _: error.is_budget_in_flight, _THROTTLED),
    ((402,), None, _UNPAID),
    (_ANY, ErrorBody.is_empty_account, _UNPAID),
    ((429,), lambda error, _: not error.is_too_large_for_quota, _THROTTLED),
    ((401, 403), None, _DEAD_KEY),
    ((400,), lambda error, _: error.is_dead_key, _DEAD_KEY),
    # 498: Groq's flexible tier is full; 529: Anthropic has no room.
    ((498, 529), None, structs.replace(_BROKEN, is_full=True, cuts_rate=True)),
    # Gemini's word for having no room.
    ((503,), None, structs.replace(_BROKEN, is_full=True)),
    # Behind a gateway. 520 is Cloudflare's: the answer was broken; 524: it did not come in time.
    ((502, 504, 520, 524), None, structs.replace(_BROKEN, is_billed_maybe=True)),
    ((408, 409), None, _BROKEN),
    (range(500, _ANY.stop), None, _BROKEN),
    (_ANY, None, _REJECTED),
)


def fault_of(response: Response, error: ErrorBody | None = None) -> Fault:
    """Returns the fault of an error response by its status; for a 200, by the status in its body, else as a 500. The
    error is that in its body if none is given."""
    error = error or error_in(response.body)
    status = response.status if response.status != 200 else error.status or 500
    fault = meaning = next(
        fault for statuses, says, fault in MEANINGS if status in statuses and (not says or says(error, response.status))
    )
    detail = f"{fault.detail}{response.status}: {error.message}"
    if fault.kind == "redirect":
        where = with_shown_addresses(response.headers.get("location", "elsewhere"))
        detail = f"{status}: the address redirects to {where}: another --base-url is wanted"
    elif meaning is _THROTTLED:
        wait = retry_after_s(response.headers)
        wait = error.again_in_s if wait is None else wait
        fault = structs.replace(fault, retry_after_s=wait, cuts_rate=wait is None, is_full=error.is_full)
    elif meaning is _REJECTED and (advice := _advice_on(error, status)):
        detail = f"{detail} ({advice})"
    return structs.replace(fault, detail=detail, status=status)


def refusal_or_fault(response: Response, error: ErrorBody | None = None) -> Reply | Fault:
    """Returns a refused reply for a content filter's refusal, else the fault of the error, which is that in the
    response's body if none is given."""
    error = error or error_in(response.body)
    if response.status in _REFUSAL_STATUSES and error.is_content_filter:
        raw_hash = sha256(response.body).hexdigest()
        return Reply(error.message, None, "content_filter", refused=True, raw_hash=raw_hash)
    return fault_of(response, error)


def error_within(response: Response, error: Any) -> Reply | Fault:
    """Returns the reply or the fault of an error object within an answer with status 200."""
    # Python's own writer: values that were read leniently may be such as a strict writer refuses.
    try:
        error_json = json.dumps({"error": error}).encode()
    except RecursionError:
        error_json = b"an error that is nested too deeply"
    return refusal_or_fault(response, error_in(error_json))


def _advice_on(error: ErrorBody, status: int) -> str:
    """Returns advice for a person whose parameter the model refuses; empty if the error is about something else."""
    if "v1/responses" in error.message and "v1/chat/completions" in error.message:
        return "ask it through Responses, as openai-responses/MODEL"
    if status not in (400, 422):
        return ""
    if exclusive := error.exclusive:
        return f"the model takes only one of {' and '.join(exclusive)}: leave the other out"
    if (refused := error.refused_parameter) is None:
        return ""
    name, theirs = refused
    other = _OTHER_NAMES.get(theirs)
    # Only chat completions know the newer name.
    if other is not None and (other in error.message or theirs == "max_completion_tokens"):
        return f'the model refuses {theirs}: set max_tokens_name = "{other}" under [providers.NAME] in a --config file'
    if name == "max_tokens":
        return "the model refuses this max_tokens: leave --max-tokens out if it was given, else give another"
    in_run = ", in a run with --temperature none" if name == "temperature" else ""
    return f"the model refuses {name}: leave it out{in_run}"


def bad_json(detail: str) -> Fault:
    return Fault("bad_json", detail, "retry", 200, is_billed_maybe=True)


def unreadable(body: bytes) -> Fault:
    """Returns the fault of a 200 whose body is no JSON."""
    return bad_json(f"200 with JSON that {'ends in the middle or is none' if body else 'is empty'}")


def cut_stream(before: str) -> Fault:
    return Fault("incomplete", f"a stream that ended before {before}", "retry", 200, is_billed_maybe=True)


def broken_answer(why: str) -> Fault:
    """Returns the fault of a 200 whose answer its provider itself calls incomplete; `why` follows `200 whose`."""
    return Fault("server_error", f"200 whose {why}", "retry", 200, is_billed_maybe=True)


def empty_answer(what: str, usage: Usage | None) -> Fault:
    tokens = None if usage is None else usage.tokens
    return Fault("empty", f"200 with {what}", "retry", 200, quota="settle", is_repeated_once=True, usage_tokens=tokens)


def retry_after_s(headers: dict[str, str]) -> float | None:
    """Returns the seconds to wait, from `retry-after-ms`, else from `retry-after` as a number or a date, which is
    compared with the response's own Date; None if neither is usable."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is not None:
        return seconds
    try:
        until = parsedate_to_datetime(value or "")
        now = parsedate_to_datetime(headers.get("date", ""))
        return _number(str(max(0.0, (until - now).total_seconds())))
    except (ValueError, TypeError, OverflowError):
        return None


def _number(value: str | None) -> float | None:
    try:
        number = float(value or "")
    except ValueError:
        return None
    # nan, inf and negative numbers are ignored.
    return number if 0 <= number < 1e9 else None
