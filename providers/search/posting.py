"""The wire formats of Exa, Serper and Tavily: a POST with JSON, answered by one list of results. Pure."""

from __future__ import annotations

from typing import Any

from ...engine.call import Call
from ...engine.endpoint import Request
from ..llm.protocol import Target, WireProtocol, request_of
from .answer import AnswerLayout, list_at
from .query import Reach, search_query

PATH = "/search"
EXA_REACH = Reach(100)
# Google returns at most ten results at once.
SERPER_REACH = Reach(10, 10)
TAVILY_REACH = Reach(20, characters_max=400)


def encode_exa(call: Call, target: Target) -> Request:
    """Returns the request. It asks for passages of the pages (`highlights`), since Exa has no other snippets."""
    asked = search_query(call, EXA_REACH, ("query", "numResults"))
    params: dict[str, Any] = {"contents": {"highlights": True}, **asked.more, **_number("numResults", asked.count)}
    return request_of(call, target, PATH, params, {"query": asked.query})


def encode_serper(call: Call, target: Target) -> Request:
    asked = search_query(call, SERPER_REACH, ("q", "num"))
    page = _number("page", asked.page if asked.page > 1 else None)
    params = {**asked.more, **_number("num", asked.count), **page}
    return request_of(call, target, PATH, params, {"q": asked.query})


def encode_tavily(call: Call, target: Target) -> Request:
    asked = search_query(call, TAVILY_REACH, ("query", "max_results", "api_key"))
    params = {**asked.more, **_number("max_results", asked.count)}
    return request_of(call, target, PATH, params, {"query": asked.query})


def _number(name: str, value: int | None) -> dict[str, int]:
    return {} if value is None else {name: value}


EXA = WireProtocol(
    "exa",
    encode_exa,
    AnswerLayout(
        lambda answer: list_at(answer, "results"), "url", "title", "highlights", has_more=lambda answer: False
    ).decode,
)
SERPER = WireProtocol(
    "serper", encode_serper, AnswerLayout(lambda answer: list_at(answer, "organic"), "link", "title", "snippet").decode
)
TAVILY = WireProtocol(
    "tavily",
    encode_tavily,
    AnswerLayout(
        lambda answer: list_at(answer, "results"), "url", "title", "content", has_more=lambda answer: False
    ).decode,
)
