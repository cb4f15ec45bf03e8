"""Reads the body of an error, in any of the shapes that providers use.

Owns the codes and phrases that distinguish an empty account, a dead API key, a content filter and a refused parameter
among errors that look alike. The consequences are decided in faults. Pure: bytes in, never an exception.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from .repair import mended, read_object

DETAIL_MAX = 400

# An account that can't pay: looks like a rate limit, but waiting does not help.
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
        "credit_limit",
        "payment_required",
        "billing_error",
        "enforced_spend_limit_reached",
        "contract_spend_limit_reached",
        "linked_organization_spend_limit_reached",
        "linked_organization_billing_unavailable",
        # Google's reasons.
        "billing_disabled",
    }
)
# xAI (403, 429), Fireworks (412), Anthropic (400), OpenRouter (403) have no code for it, nor have Google, from
# `prepay` on, and AWS, in the last line.
_EMPTY_ACCOUNT = re.compile(
    r"used all available credits|monthly spending limit|doesn't have any credits|credit balance is too low"
    r"|billing hard limit|insufficient (?:credits?|balance|funds)|key limit exceeded|account \S+ is suspended"
    r"|reached your specified api usage limits|prepay\w* credits|spend(?:ing)? cap|requires billing to be enabled"
    r"|enable billing|billing account\b.*\b(?:disabled|closed|delinquent)"
    r"|INVALID_PAYMENT_INSTRUMENT|valid payment instrument",
    re.IGNORECASE | re.DOTALL,
)
_EMPTY_ACCOUNT_STATUSES = (200, 400, 402, 403, 412, 429)

DEAD_KEY_CODES = frozenset(
    {
        "invalid_api_key",
        "api_key_invalid",
        "expired_api_key",
        "authentication_error",
        "invalid_authentication",
        "account_deactivated",
        "organization_restricted",
        "organization_on_hold",
        # Google's reasons.
        "api_key_expired",
        "access_token_expired",
        "api_key_service_blocked",
    }
)
# xAI answers 400 to a wrong key, and so does Gemini; Anthropic to the key of an organization that no longer exists.
_DEAD_KEY = re.compile(
    r"incorrect api key provided|api key (?:expired|not found|not valid)|invalid api key|reported as leaked"
    r"|this organization has been disabled",
    re.IGNORECASE,
)

CONTENT_FILTER_CODES = frozenset(
    {
        "content_filter",
        "content_policy_violation",
        "responsible_ai_policy_violation",
        "responsibleaipolicyviolation",
        "bio_policy",
        "cyber_policy",
        "misalignment_policy_violation",
        "moderation_blocked",
        "data_inspection_failed",
    }
)
# xAI (403), DeepSeek, Anthropic and AWS (400) have no code for it, OpenAI's `invalid_prompt` has other reasons as well.
_CONTENT_FILTER = re.compile(
    r"content violates usage guidelines|safety_check_type_|^content exists risk|content management policy"
    r"|flagged as potentially violating|blocked by (?:\w+ ){0,2}content filter",
    re.IGNORECASE,
)

_NO_ROOM = re.compile(r"resources? (?:is |are )?unavailable|tier capacity exceeded", re.IGNORECASE)
_TOO_LARGE = re.compile(r"^request too large|must be reduced in order to run", re.IGNORECASE)
_AGAIN_IN = re.compile(
    r"(?:try again in ((?:\d+d)?(?:\d+h)?(?:\d+m(?!s))?(?:[\d.]+m?s)?)|retry after (\d+ s(?=econd)))", re.IGNORECASE
)
_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?", re.ASCII)
_DURATION_S = (86_400.0, 3_600.0, 60.0, 1.0, 0.001)

# The providers' names of a call's parameters -> our names.
_OURS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "topp": "top_p",
    "max_tokens": "max_tokens",
    "max_completion_tokens": "max_tokens",
    "max_output_tokens": "max_tokens",
    "maxtokens": "max_tokens",
    "maxoutputtokens": "max_tokens",
    "stop": "stop",
    "stop_sequences": "stop",
    "stopsequences": "stop",
    "seed": "seed",
    "random_seed": "seed",
    "reasoning_effort": "reasoning_effort",
    "reasoning.effort": "reasoning_effort",
    "reasoningeffort": "reasoning_effort",
    "output_config.effort": "reasoning_effort",
    "effort": "reasoning_effort",
    "thinking": "reasoning_effort",
    "thinking.type.enabled": "reasoning_effort",
    "thinking.type.disabled": "reasoning_effort",
    "response_format": "json_schema",
    "response_format.json_schema": "json_schema",
    "text.format": "json_schema",
    "output_config.format": "json_schema",
    "outputconfig.effort": "reasoning_effort",
    "thinking_level": "reasoning_effort",
    "thinking_budget": "reasoning_effort",
    "thinking_config": "reasoning_effort",
    "response_schema": "json_schema",
    "responseschema": "json_schema",
    "response_json_schema": "json_schema",
    "responsejsonschema": "json_schema",
    "response_mime_type": "json_schema",
    "responsemimetype": "json_schema",
    "controlled generation": "json_schema",
    "json mode": "json_schema",
    "outputconfig.textformat": "json_schema",
    "logprobs": "logprobs",
    "top_logprobs": "logprobs",
    "response_logprobs": "logprobs",
    "responselogprobs": "logprobs",
}
_REFUSED_CODES = frozenset({"unsupported_parameter", "unsupported_value", "extra_forbidden"})
_REFUSED = re.compile(
    r"unsupported|not (?:supported|permitted|allowed|enabled|configurable)|n.t support|unrecognized|deprecated"
    r"|unavailable|cannot find field|unknown name|can.t be disabled|cannot be set",
    re.IGNORECASE,
)
_EXCLUSIVE = re.compile(r"(\w+)`? and `?(\w+)`? (?:cannot|can't|can not) both be (?:specified|set|used)", re.IGNORECASE)
_NAME = re.compile(r"json mode|controlled generation|[A-Za-z][A-Za-z_.]*[A-Za-z]", re.IGNORECASE)


class ErrorBody(Struct, frozen=True):
    """The error in a response's body: its codes in lower case, its message of at most 400 characters, the parameter
    that it names, and what is beside it."""

    codes: tuple[str, ...]
    message: str
    param: str | None = None
    metadata: Mapping[str, Any] = {}

    @property
    def status(self) -> int | None:
        """The HTTP status that the body itself names, as some gateways do within a 200; None if it names none."""
        for code in self.codes:
            if len(code) == 3 and code.isdecimal() and 400 <= int(code) < 600:
                return int(code)
            if code in _STATUS_OF_CODE:
                return _STATUS_OF_CODE[code]
        return None

    @property
    def is_content_filter(self) -> bool:
        if not CONTENT_FILTER_CODES.isdisjoint(self.codes) or "flagged_input" in self.metadata:
            return True
        return _CONTENT_FILTER.search(self.message) is not None

    @property
    def is_dead_key(self) -> bool:
        return not DEAD_KEY_CODES.isdisjoint(self.codes) or _DEAD_KEY.search(self.message) is not None

    def is_empty_account(self, status: int) -> bool:
        if not EMPTY_ACCOUNT_CODES.isdisjoint(self.codes):
            return True
        return status in _EMPTY_ACCOUNT_STATUSES and _EMPTY_ACCOUNT.search(self.message) is not None

    @property
    def is_budget_in_flight(self) -> bool:
        """Whether the budget is only reserved for calls in flight, as OpenRouter reports, so that waiting helps."""
        return self.metadata.get("limit_source") == "openrouter_in_flight_budget"

    @property
    def is_full(self) -> bool:
        """Whether the tier of service has no room for the call, as OpenAI's flex answers; nothing is billed."""
        return "resource_unavailable" in self.codes or _NO_ROOM.search(self.message) is not None

    @property
    def is_too_large_for_quota(self) -> bool:
        """Whether one call has more tokens than the quota of a whole minute, so that waiting does not help."""
        return _TOO_LARGE.search(self.message) is not None

    @property
    def again_in_s(self) -> float | None:
        """The seconds that the message asks to wait, as in `Please try again in 1m7.5s`; None without a wait."""
        match = _AGAIN_IN.search(self.message)
        seconds = None if match is None else duration_s((match[1] or match[2] or "").replace(" ", "").lower())
        return seconds if seconds is not None and seconds < 1e9 else None

    @property
    def exclusive(self) -> tuple[str, ...]:
        """The two parameters, by our names, that the model does not take together; empty for any other error."""
        match = _EXCLUSIVE.search(self.message)
        names = () if match is None else tuple(_OURS.get(name.lower(), "") for name in match.groups())
        return names if all(names) else ()

    @property
    def refused_parameter(self) -> tuple[str, str] | None:
        """The parameter that the model does not take, or not with this value: our name for it, and the name in the
        error. None if the error is about something else."""
        if _REFUSED_CODES.isdisjoint(self.codes) and not _REFUSED.search(self.message):
            return None
        for name in (self.param or "", *_NAME.findall(self.message)):
            ours = _OURS.get(name.lower().removeprefix("inferenceconfig."))
            if ours is not None:
                return ours, name.lower()
        return None


def duration_s(text: str) -> float | None:
    """Returns the seconds of a duration such as 6m0s or 20ms; None for any other text."""
    match = _DURATION.fullmatch(text)
    if match is None or not text:
        return None
    return sum(float(part) * unit for part, unit in zip(match.groups(), _DURATION_S, strict=True) if part)


def error_in(body: bytes) -> ErrorBody:
    """Returns the error in the JSON of a body, else the body itself as a message."""
    parsed = read_object(body)[0]
    return error_of({} if parsed is None else parsed, body[:DETAIL_MAX].decode("utf-8", "replace").strip())


def error_of(parsed: Mapping[str, Any], default: str = "") -> ErrorBody:
    """Returns the error in an object; its message is `default` if it has none."""
    error = parsed.get("error", parsed)
    fields = error if isinstance(error, dict) else parsed
    metadata, param = fields.get("metadata"), fields.get("param")
    return ErrorBody(
        # A type alone is often only `invalid_request_error`.
        tuple(_codes(fields)),
        mended((_message(error, fields) or default)[:DETAIL_MAX]),
        param if isinstance(param, str) else _misplaced(fields),
        metadata if isinstance(metadata, dict) else {},
    )


def _codes(fields: Mapping[str, Any]) -> Iterator[str]:
    for name in ("code", "status", "statusCode", "tag", "type"):
        value = fields.get(name)
        if value and isinstance(value, str | int | float):
            yield str(value).lower()
    # Azure's and Anthropic's.
    for holder, name in (("innererror", "code"), ("details", "error_code")):
        inner = fields.get(holder)
        if isinstance(inner, dict) and isinstance(inner.get(name), str):
            yield inner[name].lower()
    for each in _complaints(fields):
        if isinstance(each.get("type"), str):
            yield each["type"].lower()


def _message(error: Any, fields: Mapping[str, Any]) -> str:
    if isinstance(error, str):
        return error
    complaints = _complaints(fields)
    if complaints:
        return "; ".join(f"{_place(each)}: {shown(each.get('msg'))}" for each in complaints)
    return shown(fields.get("message") or fields.get("detail") or "")


def shown(value: Any) -> str:
    """Returns a value as a message shows it; an empty text if it is nested too deeply."""
    try:
        return str(value)
    except RecursionError:
        return ""


def _complaints(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the entries of a schema validator's error list, each with a message; empty if there is none."""
    for holder in (fields, fields.get("message")):
        listed = holder.get("detail") if isinstance(holder, dict) else None
        if isinstance(listed, list):
            return [each for each in listed if isinstance(each, dict) and "msg" in each]
    return []


def _place(complaint: dict[str, Any]) -> str:
    place = complaint.get("loc")
    return ".".join(map(shown, place)) if isinstance(place, list) else ""


def _misplaced(fields: Mapping[str, Any]) -> str | None:
    """Returns the path of the first field that a schema validator rejects; None if there is none."""
    for each in _complaints(fields):
        return _place(each).removeprefix("body.")
    return None


_STATUS_OF_CODE = {
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "too_many_requests": 429,
    "invalid_api_key": 401,
    "authentication_error": 401,
    "permission_error": 403,
    "invalid_request_error": 400,
    "context_length_exceeded": 400,
    "invalid_prompt": 400,
    "data_residency_mismatch": 400,
    "model_not_found": 404,
    "not_found_error": 404,
    "overloaded_error": 529,
    "server_error": 500,
    "internal_error": 500,
    "api_error": 500,
    "unavailable_error": 503,
    "timeout": 504,
    "timeout_error": 504,
    "billing_error": 402,
    "conflict_error": 409,
    "request_too_large": 413,
}
