"""The wire format of Brave's Web Search API: pure encode and decode.

An answer without results has no `web` at all; that it is one of Brave's, its `query` tells.
"""

from __future__ import annotations

from typing import Any

from ...engine.call import Call, Reply
from ...engine.endpoint import Fault, Request, Response
from ..llm.protocol import Target, WireProtocol
from .answer import Object, Reading, answer_of, listed
from .faults import Told, told_by
from .query import Reach, asked_of, request_by_url

PATH = "/web/search"
REACH = Reach(20, 10, characters_max=400, words_max=50)
_TAKEN = ("q", "offset")


def encode(call: Call, target: Target) -> Request:
    asked = asked_of(call, REACH, _TAKEN)
    query = {"q": asked.query}
    if asked.page > 1:
        query["offset"] = str(asked.page - 1)  # counted in pages
    # Web pages alone, and no marks in their texts, unless the caller wants it otherwise.
    more: dict[str, Any] = {"result_filter": "web", "text_decorations": False, **asked.more}
    if asked.count is not None:
        more["count"] = asked.count
    return request_by_url(call, target, PATH, query, more)


def decode(response: Response) -> Reply | Fault:
    return answer_of(response, _READING)


def _rows(answer: Object) -> list[Any] | None:
    if "web" not in answer:
        return [] if isinstance(answer.get("query"), dict) else None
    return listed(answer, "web", "results")


def _has_more(answer: Object) -> bool | None:
    query = answer.get("query")
    said = query.get("more_results_available") if isinstance(query, dict) else None
    return said if isinstance(said, bool) else None


def _told(answer: Object) -> Told | None:
    """A month's quota that is used up has the same code as a second's."""
    told, error = told_by(answer), answer.get("error")
    meta = error.get("meta") if isinstance(error, dict) else None
    if told is None or not isinstance(meta, dict):
        return told
    used, limit = meta.get("quota_current"), meta.get("quota_limit")
    is_spent = isinstance(used, int) and isinstance(limit, int) and 0 < limit <= used
    return Told(told.message, told.code, told.status, is_spent)


_READING = Reading(_rows, "url", "title", "description", told=_told, has_more=_has_more)
PROTOCOL = WireProtocol("brave", encode, decode)
