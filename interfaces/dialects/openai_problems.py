"""Errors, lists of models and anything else that both of OpenAI's protocols say alike, and how it is written.

Pure, values in, bytes out; never an exception, whatever stands in a text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from ...providers.llm.repair import mended
from .dialect import Listed, Problem

_REQUEST = "invalid_request_error"
# What clients look for, by our own word for it.
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
# A request's own mistakes, by how they are told here.
_OF_WORDS = (
    ("Missing required parameter", "missing_required_parameter"),
    ("Invalid type", "invalid_type"),
    ("Invalid value", "invalid_value"),
    ("Unsupported", "unsupported_parameter"),
)
# What a provider refused, in the words that each has for it: a client may shorten its prompt then, or give up.
_OF_PROVIDERS = (
    ("context_length_exceeded", "context_length_exceeded"),
    ("maximum context length", "context_length_exceeded"),
    ("prompt is too long", "context_length_exceeded"),
    ("exceeds the maximum number of tokens", "context_length_exceeded"),
    ("Input is too long", "context_length_exceeded"),
)


def dumps(value: Any) -> bytes:
    """JSON of what the protocol's own objects hold; texts that UTF-8 can't hold are mended."""
    try:
        return orjson.dumps(value)
    except (orjson.JSONEncodeError, TypeError):
        return orjson.dumps(_mended(value))


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return mended(value)
    if isinstance(value, Mapping):
        return {mended(str(name)): _mended(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_mended(one) for one in value]
    return value


def is_writable(value: Any) -> bool:
    """Whether it is JSON at all, and not deeper than anyone reads."""
    try:
        orjson.dumps(_mended(value))
    except (orjson.JSONEncodeError, TypeError, RecursionError):
        return False
    return True


def error_of(problem: Problem) -> dict[str, Any]:
    kind, code = _words_of(problem)
    return {"message": problem.message, "type": kind, "param": problem.param, "code": code}


def problem(told: Problem) -> bytes:
    return dumps({"error": error_of(told)})


def _words_of(told: Problem) -> tuple[str, str | None]:
    # A key that is dead behind us is none of the client's own: only a status below 500 speaks of the request.
    if told.status >= 500:
        return "server_error", told.kind
    if told.kind in _OF_KINDS:
        return _OF_KINDS[told.kind]
    if told.kind == "rejected":
        for words, code in _OF_PROVIDERS:
            if words in told.message:
                return _REQUEST, code
    if told.kind == "invalid":
        for words, code in _OF_WORDS:
            if told.message.startswith(words):
                return _REQUEST, code
    if told.status in _OF_STATUSES:
        return _OF_KINDS[_OF_STATUSES[told.status]]
    return _REQUEST, None if told.kind == "invalid" else told.kind


def _model(listed: Listed) -> dict[str, Any]:
    # When each was made nobody knows here; the protocol wants a number.
    return {"id": listed.name, "object": "model", "created": 0, "owned_by": listed.provider}


def listing(models: Sequence[Listed]) -> bytes:
    return dumps({"object": "list", "data": [_model(one) for one in models]})


def listed(model: Listed) -> bytes:
    return dumps(_model(model))


def event(value: Any, name: str = "") -> bytes:
    """One server-sent event."""
    head = f"event: {name}\ndata: ".encode() if name else b"data: "
    return head + dumps(value) + b"\n\n"


# A comment, which every reader of events skips.
PING = b": ping\n\n"
