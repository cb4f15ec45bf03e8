"""Writes errors, lists of models and events in the form that both of OpenAI's protocols share.

Pure: values in, bytes out; never an exception, whatever a text holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..serve_dialect import Problem, ServedModel
from ..serve_replies import dumps

_REQUEST = "invalid_request_error"
# Our kind of a problem -> the type and the code that clients look for.
_OF_KINDS = {
    "unauthorized": (_REQUEST, "invalid_api_key"),
    "forbidden": ("insufficient_permissions", "insufficient_permissions"),
    "unknown_model": (_REQUEST, "model_not_found"),
    "not_found": (_REQUEST, "unknown_url"),
    "not_cached": (_REQUEST, "not_cached"),
    "conflict": (_REQUEST, "conflict"),
    "too_large": (_REQUEST, "request_too_large"),
    "over_budget": ("insufficient_quota", "insufficient_quota"),
    "rate_limited": ("requests", "rate_limit_exceeded"),
}
_OF_STATUSES = {401: "unauthorized", 403: "forbidden", 413: "too_large", 429: "rate_limited"}
# How a message about a wrong request begins -> its code.
_OF_WORDS = (
    ("Missing required parameter", "missing_required_parameter"),
    ("Invalid type", "invalid_type"),
    ("Invalid value", "invalid_value"),
    ("Unsupported", "unsupported_parameter"),
)
# Phrases of the providers for a prompt that is too long, which a client shortens where it gets this code.
_TOO_LONG = "context_length_exceeded"
_TOO_LONG_TEXTS = (
    _TOO_LONG,
    "maximum context length",
    "prompt is too long",
    "exceeds the maximum number of tokens",
    "Input is too long",
)


def error_of(problem: Problem) -> dict[str, Any]:
    kind, code = _words_of(problem)
    return {"message": problem.message, "type": kind, "param": problem.param, "code": code}


def problem(cause: Problem) -> bytes:
    return dumps({"error": error_of(cause)})


def _words_of(cause: Problem) -> tuple[str, str | None]:
    # Only a status below 500 is about the client's request: a dead key behind the gateway is not the client's own.
    if cause.status >= 500:
        return "server_error", cause.kind
    if cause.kind in _OF_KINDS:
        return _OF_KINDS[cause.kind]
    if cause.kind == "rejected" and any(text in cause.message for text in _TOO_LONG_TEXTS):
        return _REQUEST, _TOO_LONG
    if cause.kind == "invalid":
        for words, code in _OF_WORDS:
            if cause.message.startswith(words):
                return _REQUEST, code
    if cause.status in _OF_STATUSES:
        return _OF_KINDS[_OF_STATUSES[cause.status]]
    return _REQUEST, None if cause.kind == "invalid" else cause.kind


def _model(listed: ServedModel) -> dict[str, Any]:
    # The protocol requires a date of creation, which is not known here.
    return {"id": listed.name, "object": "model", "created": 0, "owned_by": listed.provider}


def listing(models: Sequence[ServedModel]) -> bytes:
    return dumps({"object": "list", "data": [_model(one) for one in models]})


def listed(model: ServedModel) -> bytes:
    return dumps(_model(model))


def event(value: Any, name: str = "") -> bytes:
    """Returns one server-sent event; an empty `name` leaves its `event` line out."""
    head = f"event: {name}\ndata: ".encode() if name else b"data: "
    return head + dumps(value) + b"\n\n"


# A comment, which every reader of events skips.
PING = b": ping\n\n"
