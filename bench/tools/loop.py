"""The loop of an agent: a model is asked, its tool calls are carried out, until it calls no tool."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from ...engine.call import Message, Reply
from ...engine.content import Tool, ToolCall

if TYPE_CHECKING:
    from .toolbox import AnyTool, Offer


Said: TypeAlias = Message | Reply | Mapping[str, Any]


class Asking(Protocol):
    """What the loop needs of an item's `ask`."""

    async def offer(self, tools: Sequence[AnyTool] | None = None, *, keep: bool = True) -> Offer: ...

    async def carry_out(self, offer: Offer, calls: Sequence[ToolCall]) -> list[Message]: ...

    def __call__(
        self, messages: Sequence[Any], *, tools: Sequence[Tool], **parameters: Any
    ) -> Coroutine[Any, Any, Reply]: ...


async def tool_loop(
    ask: Asking,
    messages: str | Sequence[Said],
    tools: Sequence[AnyTool] | None = None,
    *,
    keep: bool = True,
    **parameters: Any,
) -> tuple[Reply, list[Said]]:
    """Asks the model and carries out its tool calls until a reply has none; returns this reply and all messages.

    `tools` are functions and `ms.mcp(…)` (None: those of the benchmark); `parameters` go to each `ask`. All calls of
    one reply run at once, and their results stand in the order of the calls. Each reply is a step of the item, whose
    `steps_max` ends the loop. Results are kept, so that no tool is called twice; with `keep=False`, a run that goes on
    calls them again, as tools need that build up a state in this process or in a server of the item.
    """
    offer = await ask.offer(tools, keep=keep)
    talk: list[Said] = [Message("user", messages)] if isinstance(messages, str) else [*messages]
    while True:
        reply = await ask(talk, tools=offer.declared, **parameters)
        talk.append(reply)
        if not reply.tool_calls:
            return reply, talk
        talk += await ask.carry_out(offer, reply.tool_calls)
