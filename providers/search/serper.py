"""The wire format of Serper's Google search: pure encode and decode.

Pages of ten: Google gives no more at once, whatever is asked.
"""

from __future__ import annotations

from typing import Any

from ...engine.call import Call, Reply
from ...engine.endpoint import Fault, Request, Response
from ..llm.protocol import Target, WireProtocol, request_of
from .answer import Reading, answer_of, listed
from .query import Reach, asked_of

PATH = "/search"
REACH = Reach(10, 10)
_TAKEN = ("q", "num")


def encode(call: Call, target: Target) -> Request:
    asked = asked_of(call, REACH, _TAKEN)
    params: dict[str, Any] = dict(asked.more)
    if asked.count is not None:
        params["num"] = asked.count
    if asked.page > 1:
        params["page"] = asked.page
    return request_of(call, target, PATH, params, {"q": asked.query})


def decode(response: Response) -> Reply | Fault:
    return answer_of(response, _READING)


_READING = Reading(lambda answer: listed(answer, "organic"), "link", "title", "snippet")
PROTOCOL = WireProtocol("serper", encode, decode)
