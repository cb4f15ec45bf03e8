"""The wire format of Google's Custom Search JSON API: pure encode and decode. It ends on 2027-01-01.

An answer without results has no `items`; its `kind` or `searchInformation` shows that it is one of Google's. The id of
the customer's own search engine (`cx`) is the target's project.
"""

from __future__ import annotations

import re
from typing import Any

from msgspec import structs

from ...engine.call import Call, Reply
from ...engine.endpoint import EncodeError, Fault, Request, Response
from ...engine.verdict import verdict
from ..llm.errors import ErrorBody
from ..llm.google.errors import google_refusal_or_fault
from ..llm.protocol import Target, WireProtocol
from .answer import AnswerLayout, Object, list_at
from .faults import QUOTA_SPENT, search_fault
from .query import Reach, request_by_url, search_query

PATH = "/customsearch/v1"
REACH = Reach(10, 10)
ENDS = "Google's Custom Search JSON API ends on 2027-01-01 and takes no new customers"
_TAKEN = ("q", "cx", "key", "num", "start")
_PAGE = 10
_DAY = re.compile(r"per[_ ]?day|daily limit", re.IGNORECASE)


def encode(call: Call, target: Target) -> Request:
    search = search_query(call, REACH, _TAKEN)
    if target.project is None:
        raise EncodeError(f"{call.model} needs the id of a search engine: set GOOGLE_CSE_ID")
    query = {"cx": target.project, "q": search.query}
    if search.page > 1:
        query["start"] = str((search.page - 1) * (search.count or _PAGE) + 1)
    more: dict[str, Any] = dict(search.more)
    if search.count is not None:
        more["num"] = search.count
    return request_by_url(call, target, PATH, query, more)


def _rows(answer: Object) -> list[Any] | None:
    if "items" in answer:
        return list_at(answer, "items")
    is_googles = answer.get("kind") == "customsearch#search" or isinstance(answer.get("searchInformation"), dict)
    return [] if is_googles else None


def _has_more(answer: Object) -> bool | None:
    return bool(list_at(answer, "queries", "nextPage"))


def _fault(response: Response, error: ErrorBody) -> Fault:
    """Returns the fault of an error, by Google's own codes."""
    if response.status in (200, 403, 429) and _DAY.search(error.message):
        return search_fault(structs.replace(response, status=429), ErrorBody((QUOTA_SPENT,), error.message))
    result = google_refusal_or_fault(response)
    if isinstance(result, Reply) or result.kind == "redirect":
        return search_fault(response, error)
    if verdict(result).learns == "doubt":
        return structs.replace(result, detail=f"{result.detail} ({ENDS})")
    return result


_LAYOUT = AnswerLayout(_rows, "link", "title", "snippet", fault=_fault, has_more=_has_more)
PROTOCOL = WireProtocol("google", encode, _LAYOUT.decode)
