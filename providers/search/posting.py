"""The wire formats of Exa, Serper and Tavily: a POST with JSON, answered by one list of results. Pure."""

from __future__ import annotations

from typing import Any

from ...engine.call import Call
from ...engine.endpoint import Request
from ..llm.protocol import Target, WireProtocol, request_of
from .answer import AnswerLayout, Object, list_at
from .query import Reach, search_query

PATH = "/search"
EXA_REACH = Reach(100)
# Google returns at most ten results at once.
SERPER_REACH = Reach(10, 10)
TAVILY_REACH = Reach(20, characters_max=400)


def _protocol(
    kind: str, reach: Reach, query: str, count: str, layout: AnswerLayout, *taken: str, page: str = "", **fixed: Any
) -> WireProtocol:
    """Returns the protocol of an engine with these names for the query, the number of results and the page; empty: it
    has one page. A call must not set the fields in `taken`; `fixed` are sent unless a call sets them."""

    def encode(call: Call, target: Target) -> Request:
        search = search_query(call, reach, (query, count, *taken))
        params = {**fixed, **search.more}
        if search.count is not None:
            params[count] = search.count
        if page and search.page > 1:
            params[page] = search.page
        return request_of(call, target, PATH, params, {query: search.query})

    return WireProtocol(kind, encode, layout.decode)


def _results(answer: Object) -> list[Any] | None:
    return list_at(answer, "results")


def _has_more(answer: Object) -> bool:
    return False


_EXA = AnswerLayout(_results, "url", "title", "highlights", has_more=_has_more)
_SERPER = AnswerLayout(lambda answer: list_at(answer, "organic"), "link", "title", "snippet")
_TAVILY = AnswerLayout(_results, "url", "title", "content", has_more=_has_more)
# Passages of the pages, since Exa has no other snippets.
EXA = _protocol("exa", EXA_REACH, "query", "numResults", _EXA, contents={"highlights": True})
SERPER = _protocol("serper", SERPER_REACH, "q", "num", _SERPER, page="page")
TAVILY = _protocol("tavily", TAVILY_REACH, "query", "max_results", _TAVILY, "api_key")
