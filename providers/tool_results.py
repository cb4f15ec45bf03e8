"""Results of tools as the engine keeps them: a call whose answer is made in this process.

A call to `tool/NAME` has the question as its input, JSON that decides the result, and what carries it out as its tag.
So results are cached, replayed and exported as answers are. What a tool does: its caller.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from hashlib import sha256

import msgspec

from ..engine.call import Call, Reply
from ..engine.content import ToolResult
from ..engine.endpoint import AwaitingEndpoint, Cleared, Fault, Request, Response
from ..engine.lane import Lane
from ..engine.limits import Limit
from .llm.faults import bad_json

PROVIDER = "tool"
# What is carried out waits elsewhere, where it needs room.
_IN_FLIGHT_MOST = 100_000
_RESULT = msgspec.json.Decoder(ToolResult)


def is_tool(lane: str) -> bool:
    return lane.startswith(f"{PROVIDER}/")


def tool_lane(name: str) -> Lane:
    """Returns the lane of a tool, in which nothing waits."""
    return Lane(name, concurrency=_IN_FLIGHT_MOST)


def result_in(reply: Reply) -> ToolResult:
    """Returns the result that a reply of `tool/NAME` holds."""
    (result,) = (part for part in reply.parts if isinstance(part, ToolResult))
    return result


class _ToolRequest(Request, frozen=True):
    carry_out: Callable[[], Awaitable[ToolResult]] | None = None


class ToolEndpoint(AwaitingEndpoint):
    """The endpoint of every tool."""

    base_url = f"{PROVIDER}:"

    def limits(self, response: Response) -> tuple[Limit, ...]:
        return ()

    def encode(self, call: Call) -> Request:
        body = str(call.input).encode()
        return _ToolRequest(self.base_url, call.model, body, body, body, b"{}", carry_out=call.tag)

    async def send(self, request: Request, cleared: Cleared) -> Response:
        assert isinstance(request, _ToolRequest) and request.carry_out is not None, request
        loop = asyncio.get_running_loop()
        began = loop.time()
        body = msgspec.json.encode(await request.carry_out())
        return Response(200, body, latency_ms=1000 * (loop.time() - began))

    def decode(self, response: Response) -> Reply | Fault:
        try:
            result = _RESULT.decode(response.body)
        except msgspec.MsgspecError:
            return bad_json("a tool's stored result can't be read")
        return Reply("", raw_hash=sha256(response.body).hexdigest(), parts=(result,))
