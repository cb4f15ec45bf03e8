"""The loop of an agent: a model is asked, its tool calls are carried out, until it calls no tool."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from ...engine.call import Message, Reply
from ...engine.content import Tool, ToolResult

if TYPE_CHECKING:
    from asyncio import Task

    from .toolbox import AnyTool, Toolbox


class Asking(Protocol):
    """What the loop needs of an item's `ask`."""

    @property
    def toolbox(self) -> Toolbox: ...

    def begin(self, work: Coroutine[Any, Any, ToolResult]) -> Task[ToolResult]: ...

    async def __call__(self, messages: Sequence[Any], *, tools: Sequence[Tool], **parameters: Any) -> Reply: ...


async def tool_loop(
    ask: Asking,
    messages: Sequence[Message | Reply | Mapping[str, Any]],
    tools: Sequence[AnyTool] | None = None,
    **parameters: Any,
) -> tuple[Reply, list[Message | Reply | Mapping[str, Any]]]:
    """Asks the model and carries out its tool calls until a reply has none; returns this reply and all messages.

    `tools` are functions and `ms.mcp(…)` (None: those of the benchmark); `parameters` go to each `ask`. All calls of
    one reply run at once, and their results stand in the order of the calls. Each reply is a step of the item, whose
    `steps_max` ends the loop.
    """
    offer = await ask.toolbox.offer(tools)
    talk = [*messages]
    while True:
        reply = await ask(talk, tools=offer.declared, **parameters)
        talk.append(reply)
        if not reply.tool_calls:
            return reply, talk
        results = [ask.begin(offer.result(call)) for call in reply.tool_calls]
        talk.append(Message("tool", tuple([await each for each in results])))
