"""What an answer that is no reply means: status, headers and the body's own code become a fault.

The rows of FAULTS.md for models, in one place for every protocol that speaks JSON errors over HTTP.
Pure: no I/O, no clock but the response's own Date.
"""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from hashlib import sha256

from ...engine.call import FailureKind, Reply, Usage
from ...engine.endpoint import Action, Fault, Response
from .repair import mended, object_of, parse_leniently

# Answers to an account that can't pay: they look like rate limits, and waiting does not help.
EMPTY_ACCOUNT_CODES = frozenset(
    {
        "insufficient_quota",
        "billing_hard_limit_reached",
        "billing_not_active",
        "spend_cap",
        "spend_cap_reached",
        "spending_limit_reached",
        "spend_limit_exceeded",
        "insufficient_credits",
        "insufficient_balance",
        "credit_balance_too_low",
        "payment_required",
    }
)
CONTENT_FILTER_CODES = frozenset({"content_filter", "content_policy_violation", "responsible_ai_policy_violation"})
DETAIL_MAX = 400
# No model counts this far: a usage beyond it is noise, and would keep a lane waiting for years.
TOKENS_MAX = 1_000_000_000

_DEAD_KEY = (401, 403)
_SERVER = (408, 409, 500, 503, 529)
_GATEWAY = (502, 504)


class ErrorBody:
    """What the body of an error says of itself, in whichever of the common shapes."""

    def __init__(self, body: bytes) -> None:
        # In the order of how much they tell: a type is often no more than `invalid_request_error`.
        self.codes: tuple[str, ...] = ()
        message = body[:DETAIL_MAX].decode("utf-8", "replace").strip()
        parsed = object_of(parse_leniently(body))
        error = parsed.get("error", parsed) if parsed is not None else None
        if isinstance(error, str):
            message = error
        elif isinstance(error, dict):
            self.codes = tuple(str(error[name]).lower() for name in ("code", "status", "type") if error.get(name))
            message = str(error.get("message") or error.get("detail") or message)
        self.message = mended(message[:DETAIL_MAX])

    @property
    def status(self) -> int | None:
        """A status that the body names for itself, as some gateways do with 200."""
        for code in self.codes:
            if len(code) == 3 and code.isdecimal() and 400 <= int(code) < 600:
                return int(code)
            if code in _STATUS_OF_CODE:
                return _STATUS_OF_CODE[code]
        return None

    @property
    def is_content_filter(self) -> bool:
        return not CONTENT_FILTER_CODES.isdisjoint(self.codes)

    @property
    def is_empty_account(self) -> bool:
        return not EMPTY_ACCOUNT_CODES.isdisjoint(self.codes)


_STATUS_OF_CODE = {
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "too_many_requests": 429,
    "invalid_api_key": 401,
    "authentication_error": 401,
    "permission_error": 403,
    "invalid_request_error": 400,
    "context_length_exceeded": 400,
    "model_not_found": 404,
    "not_found_error": 404,
    "overloaded_error": 529,
    "server_error": 500,
    "internal_error": 500,
    "api_error": 500,
    "timeout": 504,
}


def fault_of(response: Response) -> Fault:
    """The fault of a response that is an error, by its status or by what a 200's body says."""
    error = ErrorBody(response.body)
    status = response.status
    if status == 200:
        status = error.status or 500
    detail = f"{response.status}: {error.message}"
    if 300 <= status < 400:
        where = response.headers.get("location", "elsewhere")
        return Fault("redirect", f"{status}: the address redirects to {where}: set --base-url to it", "stop", status)
    if status == 402 or error.is_empty_account:
        return Fault("rate_limited", f"the account can't pay: {detail}", "stop", status)
    if status == 429:
        return _throttled(response, status, detail)
    kind: FailureKind
    action: Action
    if status in _DEAD_KEY:
        kind, action = "rejected", "confirm"
    elif status in _GATEWAY:
        return Fault("server_error", detail, "retry", status, is_billed_maybe=True)
    elif status in _SERVER or status >= 500:
        kind, action = "server_error", "retry"
    else:
        kind, action = "rejected", "never"
    return Fault(kind, detail, action, status, cuts_rate=status == 529)


def refusal_or_fault(response: Response, said: bytes) -> Reply | Fault:
    """A content filter's refusal is an answer; everything else is a fault. `said`: the JSON that tells."""
    if response.status in (200, 400, 403, 422):
        error = ErrorBody(said)
        if error.is_content_filter:
            raw_hash = sha256(response.body).hexdigest()
            return Reply(error.message, None, "content_filter", refused=True, raw_hash=raw_hash)
    return fault_of(Response(response.status, said, headers=response.headers))


def bad_json(detail: str) -> Fault:
    return Fault("bad_json", detail, "retry", 200, is_billed_maybe=True)


def cut_stream(before: str) -> Fault:
    return Fault("incomplete", f"a stream that ended before {before}", "retry", 200, is_billed_maybe=True)


def empty_answer(what: str, usage: Usage | None) -> Fault:
    tokens = 0 if usage is None else usage.input + usage.output
    return Fault("empty", f"200 with {what}", "retry", 200, quota="settle", attempts_max=2, usage_tokens=tokens)


def _throttled(response: Response, status: int, detail: str) -> Fault:
    wait = retry_after_s(response.headers)
    return Fault("rate_limited", detail, "throttle", status, retry_after_s=wait, cuts_rate=wait is None)


def retry_after_s(headers: dict[str, str]) -> float | None:
    """Milliseconds before seconds before a date, and a date against the response's own clock."""
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
    # A provider that says nan, inf or a negative number says nothing.
    return number if 0 <= number < 1e9 else None
