"""The wire format of Google's Custom Search JSON API: pure encode and decode. It ends on 2027-01-01.

An answer without results has no `items`; that it is one of Google's, its `kind` or `searchInformation` tells. Which
search engine of the customer's is asked (`cx`) is the target's project.
"""

from __future__ import annotations

import re
from typing import Any

from msgspec import structs

from ...engine.call import Call, Reply
from ...engine.endpoint import EncodeError, Fault, Request, Response
from ..llm.google_errors import google_refusal_or_fault
from ..llm.protocol import Target, WireProtocol
from .answer import Object, Reading, answer_of, listed
from .faults import Told, search_fault
from .query import Reach, asked_of, request_by_url

PATH = "/customsearch/v1"
REACH = Reach(10, 10)
ENDS = "Google's Custom Search JSON API ends on 2027-01-01 and takes no new customers"
_TAKEN = ("q", "cx", "key", "num", "start")
_PAGE = 10
_DAY = re.compile(r"per[_ ]?day|daily limit", re.IGNORECASE)


def encode(call: Call, target: Target) -> Request:
    asked = asked_of(call, REACH, _TAKEN)
    if target.project is None:
        raise EncodeError(f"{call.model} needs the id of a search engine: set GOOGLE_CSE_ID")
    query = {"cx": target.project, "q": asked.query}
    if asked.page > 1:
        query["start"] = str((asked.page - 1) * (asked.count or _PAGE) + 1)
    more: dict[str, Any] = dict(asked.more)
    if asked.count is not None:
        more["num"] = asked.count
    return request_by_url(call, target, PATH, query, more)


def decode(response: Response) -> Reply | Fault:
    return answer_of(response, _READING)


def _rows(answer: Object) -> list[Any] | None:
    if "items" in answer:
        return listed(answer, "items")
    is_googles = answer.get("kind") == "customsearch#search" or isinstance(answer.get("searchInformation"), dict)
    return [] if is_googles else None


def _has_more(answer: Object) -> bool | None:
    return bool(listed(answer, "queries", "nextPage"))


def _told(answer: Object) -> Told | None:
    """Only that there is one: what it means, Google's own words tell."""
    error = answer.get("error")
    if not error:
        return None
    message = error.get("message") if isinstance(error, dict) else error
    return Told(message if isinstance(message, str) else "")


def _fault(response: Response, told: Told) -> Fault:
    if response.status in (200, 403, 429) and _DAY.search(told.message):
        return search_fault(structs.replace(response, status=429), Told(told.message, is_spent=True))
    result = google_refusal_or_fault(response)
    if isinstance(result, Reply) or result.kind == "redirect":
        return search_fault(response, told)
    if result.action == "confirm":
        return structs.replace(result, detail=f"{result.detail} ({ENDS})")
    return result


_READING = Reading(_rows, "link", "title", "snippet", told=_told, fault=_fault, has_more=_has_more)
PROTOCOL = WireProtocol("google", encode, decode)
