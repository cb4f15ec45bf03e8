"""Writes errors and lists of models as Anthropic's servers do. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..serve_dialect import Problem, ServedModel
from ..serve_replies import dumps

# Our kinds that are more precise than the status; the others go by their status.
_OF_KINDS = {"over_budget": "billing_error", "unknown_model": "not_found_error", "timeout": "timeout_error"}
_OF_STATUSES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    409: "conflict_error",
    413: "request_too_large",
    415: "invalid_request_error",
    422: "invalid_request_error",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
    529: "overloaded_error",
}
# The field for a conversation that the server holds. Its clients send the whole conversation after this error.
THREAD = "thread"
_NO_THREADS = {"error_code": "thread_unsupported_request", "unsupported": []}
# Anthropic's own value for a model whose date is not known.
_SOME_DAY = "1970-01-01T00:00:00Z"


def problem(cause: Problem) -> bytes:
    kind = _OF_KINDS.get(cause.kind) or _OF_STATUSES.get(cause.status, "api_error")
    error: dict[str, Any] = {"type": kind, "message": cause.message}
    if cause.param == THREAD:
        error["details"] = _NO_THREADS
    return dumps({"type": "error", "error": error, "request_id": cause.request_id})


def listing(models: Sequence[ServedModel]) -> bytes:
    """Returns the JSON of the list of models, all on one page."""
    page = {
        "data": [_model(each) for each in models],
        "has_more": False,
        "first_id": models[0].name if models else None,
        "last_id": models[-1].name if models else None,
    }
    return dumps(page)


def listed(model: ServedModel) -> bytes:
    return dumps(_model(model))


def _model(model: ServedModel) -> dict[str, str]:
    return {
        "type": "model",
        "id": model.name,
        "display_name": model.name,
        "created_at": _SOME_DAY,
        "lifecycle": "active",
    }
