"""The wire format of Tavily's search: pure encode and decode. There is one page of at most twenty results."""

from __future__ import annotations

from typing import Any

from ...engine.call import Call, Reply
from ...engine.endpoint import Fault, Request, Response
from ..llm.protocol import Target, WireProtocol, request_of
from .answer import Reading, answer_of, listed
from .query import Reach, asked_of

PATH = "/search"
REACH = Reach(20, characters_max=400)
_TAKEN = ("query", "max_results", "api_key")


def encode(call: Call, target: Target) -> Request:
    asked = asked_of(call, REACH, _TAKEN)
    params: dict[str, Any] = dict(asked.more)
    if asked.count is not None:
        params["max_results"] = asked.count
    return request_of(call, target, PATH, params, {"query": asked.query})


def decode(response: Response) -> Reply | Fault:
    return answer_of(response, _READING)


_READING = Reading(lambda answer: listed(answer, "results"), "url", "title", "content", has_more=lambda answer: False)
PROTOCOL = WireProtocol("tavily", encode, decode)
