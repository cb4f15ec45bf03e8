"""The loop of an agent: asks a model and carries out its tool calls, until it calls no tool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...engine.call import Message, Reply
from ..tools.toolset import AnyTool
from .messages import Said, user
from .steps_ask import StepAsk


async def tool_loop(
    ask: StepAsk, messages: Said, tools: Sequence[AnyTool] | None = None, *, keep: bool = True, **parameters: Any
) -> tuple[Reply, list[Message | Reply | Mapping[str, Any]]]:
    """Asks the model and carries out its tool calls until a reply has none; returns this reply and all messages.

    `tools` are functions and `ms.mcp(…)` (None: those of the benchmark); `parameters` go to each `ask`. All calls of
    one reply run at once, and their results stand in the order of the calls. Each reply is a step of the item, whose
    `steps_max` ends the loop. Results are kept, so that no tool is called twice; with `keep=False`, a run that goes on
    calls them again: tools that build up a state, in this process or in a server of the item, need this.
    """
    offer = await ask.offer(tools, keep=keep)
    talk: list[Message | Reply | Mapping[str, Any]] = [user(messages)] if isinstance(messages, str) else [*messages]
    while True:
        reply = await ask(talk, tools=offer.declared, **parameters)
        talk.append(reply)
        if not reply.tool_calls:
            return reply, talk
        talk += await ask.carry_out(offer, reply.tool_calls)
