"""The wire format of Exa's search: pure encode and decode. There is one page of at most a hundred results.

Passages of the pages (`highlights`) are asked for, since they are all that Exa has for a snippet.
"""

from __future__ import annotations

from typing import Any

from ...engine.call import Call, Reply
from ...engine.endpoint import Fault, Request, Response
from ..llm.protocol import Target, WireProtocol, request_of
from .answer import Reading, answer_of, listed
from .query import Reach, asked_of

PATH = "/search"
REACH = Reach(100)
_TAKEN = ("query", "numResults")


def encode(call: Call, target: Target) -> Request:
    asked = asked_of(call, REACH, _TAKEN)
    params: dict[str, Any] = {"contents": {"highlights": True}, **asked.more}
    if asked.count is not None:
        params["numResults"] = asked.count
    return request_of(call, target, PATH, params, {"query": asked.query})


def decode(response: Response) -> Reply | Fault:
    return answer_of(response, _READING)


_READING = Reading(
    lambda answer: listed(answer, "results"), "url", "title", "highlights", has_more=lambda answer: False
)
PROTOCOL = WireProtocol("exa", encode, decode)
