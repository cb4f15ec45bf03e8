"""The wire format of Brave's Web Search API: pure encode and decode.

An answer without results has no `web` at all; its `query` shows that it is one of Brave's.
"""

from __future__ import annotations

from typing import Any

from ...engine.call import Call
from ...engine.endpoint import Request
from ..llm.protocol import Target, WireProtocol
from .answer import AnswerLayout, Object, list_at
from .faults import EngineError, error_in
from .query import Reach, request_by_url, search_query

PATH = "/web/search"
REACH = Reach(20, 10, characters_max=400, words_max=50)
_TAKEN = ("q", "offset")


def encode(call: Call, target: Target) -> Request:
    search = search_query(call, REACH, _TAKEN)
    query = {"q": search.query}
    if search.page > 1:
        query["offset"] = str(search.page - 1)  # counted in pages
    # Web pages alone, and no markup in their texts, unless the caller's own parameters differ.
    more: dict[str, Any] = {"result_filter": "web", "text_decorations": False, **search.more}
    if search.count is not None:
        more["count"] = search.count
    return request_by_url(call, target, PATH, query, more)


def _rows(answer: Object) -> list[Any] | None:
    if "web" not in answer:
        return [] if isinstance(answer.get("query"), dict) else None
    return list_at(answer, "web", "results")


def _has_more(answer: Object) -> bool | None:
    query = answer.get("query")
    value = query.get("more_results_available") if isinstance(query, dict) else None
    return value if isinstance(value, bool) else None


def _error(answer: Object) -> EngineError | None:
    """Returns the error, None if there is none. A used-up monthly quota has the same code as a limit a second: the
    numbers beside it decide."""
    engine_error, error = error_in(answer), answer.get("error")
    meta = error.get("meta") if isinstance(error, dict) else None
    if engine_error is None or not isinstance(meta, dict):
        return engine_error
    used, limit = meta.get("quota_current"), meta.get("quota_limit")
    is_spent = isinstance(used, int) and isinstance(limit, int) and 0 < limit <= used
    return EngineError(engine_error.message, engine_error.code, engine_error.status, is_spent)


_LAYOUT = AnswerLayout(_rows, "url", "title", "description", error=_error, has_more=_has_more)
PROTOCOL = WireProtocol("brave", encode, _LAYOUT.decode)
