"""The wire format of Brave's Web Search API: pure encode and decode.

An answer without results has no `web` at all; its `query` shows that it is one of Brave's.
"""

from __future__ import annotations

from typing import Any

from msgspec import structs

from ...engine.call import Call
from ...engine.endpoint import Request
from ..llm.answer_values import as_object
from ..llm.errors import ErrorBody
from ..llm.protocol import Target, WireProtocol
from .answer import AnswerLayout, Object, list_at
from .faults import QUOTA_SPENT, error_in_answer
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


def _error(answer: Object) -> ErrorBody | None:
    """Returns the error, None if there is none. A used-up monthly quota has the same code as a limit a second: the
    numbers beside it decide."""
    error = error_in_answer(answer)
    meta = {} if error is None else as_object(as_object(answer.get("error")).get("meta"))
    used, limit = meta.get("quota_current"), meta.get("quota_limit")
    if error is not None and isinstance(used, int) and isinstance(limit, int) and 0 < limit <= used:
        return structs.replace(error, codes=(QUOTA_SPENT, *error.codes))
    return error


_LAYOUT = AnswerLayout(_rows, "url", "title", "description", error=_error, has_more=_has_more)
PROTOCOL = WireProtocol("brave", encode, _LAYOUT.decode)
