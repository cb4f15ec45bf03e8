"""The tools of a benchmark as they are offered to a model, and the servers of one item or of all.

Every call has a result: a wrong name or wrong arguments, an exception, a limit that has passed are results, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from types import MappingProxyType
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from ...engine.content import Tool, ToolCall, ToolResult
from ...engine.remarks import remark
from ..evaluation.door.defect import BenchmarkDefect
from .carrying_out import TIME_LIMIT_S, Workers, failed
from .function import OfferedTool, function_tool
from .mcp_server import McpServer, RunningServer

AnyTool: TypeAlias = Callable[..., Any] | McpServer
CarryOut: TypeAlias = Callable[[], Awaitable[ToolResult]]
# Items that have servers of their own at once: each is a process.
ITEMS_WITH_SERVERS_MOST = 16
_LISTED = msgspec.json.Decoder(tuple[Tool, ...])
_ARGUMENTS = msgspec.json.Decoder(dict[str, Any])


class Offer(Struct, frozen=True):
    """Tools that are offered to a model, by name. `is_kept`: whether their results are stored and replayed."""

    tools: dict[str, OfferedTool]
    is_kept: bool

    @property
    def declared(self) -> tuple[Tool, ...]:
        """The tools as a model reads them."""
        return tuple(each.declared for each in self.tools.values())

    def begun(self, call: ToolCall) -> ToolResult | tuple[dict[str, Any], CarryOut]:
        """Returns what decides the result of a model's call, with what carries it out; the result itself of a call that
        no tool takes."""
        tool = self.tools.get(call.name)
        if tool is None:
            return failed(call.name, f"there is no tool {call.name!r}; there are: {', '.join(self.tools) or 'none'}")
        text = call.arguments.strip() or "{}"
        try:
            arguments = tool.decode(text)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            schema = tool.declared.parameters or {}
            needed = schema.get("required") or ()
            names = [name if name in needed else f"{name} (optional)" for name in schema.get("properties") or ()]
            takes = f"{call.name} takes a JSON object with {', '.join(names) or 'no fields'}."
            return failed(call.name, f"wrong arguments: {error}. {takes}")
        question = {"source": tool.source, "arguments": msgspec.json.decode(text)}
        return question, partial(tool.carry_out, arguments)


class Servers:
    """The servers of one item, or those that all items share: each is started when it is first needed. `room`: what the
    first one takes until the end; None: nothing."""

    def __init__(self, variables: Mapping[str, str], room: asyncio.Semaphore | None = None) -> None:
        self._variables = variables
        self._room = room
        self._running: dict[McpServer, RunningServer] = {}
        self._starting = asyncio.Lock()
        self._at_end = AsyncExitStack()

    async def running(self, server: McpServer) -> RunningServer:
        """Returns a server that runs: started if it isn't there or has ended."""
        async with self._starting:
            running = self._running.get(server)
            if running is None or running.has_ended:
                if running is not None:
                    await running.close()
                elif not self._running and self._room is not None:
                    await self._at_end.enter_async_context(self._room)
                running = self._running[server] = RunningServer(server, self._variables)
        await running.started()
        return running

    async def listed(self, server: McpServer) -> ToolResult:
        """Returns the tools of a server as JSON."""
        running = await self.running(server)
        return ToolResult("", msgspec.json.encode(running.tools).decode())

    async def close(self) -> None:
        """Closes all of them. No call is under way then."""
        async with self._at_end:
            await asyncio.gather(*(running.close() for running in self._running.values()))


class ToolSet(Servers):
    """The tools of a benchmark, for all items of a run, with the servers that these share. The constructor raises
    BenchmarkDefect for a function that can't be described to a model. `variables` are the environment's; `source_of`
    returns a function's fingerprint."""

    def __init__(
        self,
        tools: Sequence[AnyTool] = (),
        *,
        time_limit_s: float = TIME_LIMIT_S,
        variables: Mapping[str, str] = MappingProxyType({}),
        source_of: Callable[[Callable[..., Any]], str] = lambda function: "",
    ) -> None:
        super().__init__(variables)
        self.workers = Workers(time_limit_s)
        self._tools = _listed(tools)
        self._source_of = source_of
        self._room_for_items = asyncio.Semaphore(ITEMS_WITH_SERVERS_MOST)
        self._functions: dict[int, OfferedTool] = {}
        self._functions = {id(each): self._function(each) for each in self._tools if not isinstance(each, McpServer)}
        _by_name(self._functions.values())

    def __repr__(self) -> str:
        return f"<ToolSet [{len(self._tools)} tools, {self.workers}]>"

    def of_item(self) -> Servers:
        """Returns the servers of a new item: none yet."""
        return Servers(self._variables, self._room_for_items)

    async def offer(
        self,
        tools: Sequence[AnyTool] | None,
        of_item: Servers,
        keep: Callable[[dict[str, Any], CarryOut], Awaitable[ToolResult]],
        *,
        is_kept: bool = True,
    ) -> Offer:
        """Returns these tools (None: the benchmark's) as they are offered in an item with its own servers (`of_item`).
        A server's list is kept like a result, so that a run that is repeated needs no server. Raises
        BenchmarkDefect for a function that can't be described to a model."""
        offered: list[OfferedTool] = []
        for each in self._tools if tools is None else _listed(tools):
            if not isinstance(each, McpServer):
                offered.append(self._function(each))
                continue
            source, servers = each.specified(), self if each.shared else of_item
            kept = await keep({"tools_of": source}, partial(servers.listed, each))
            for tool in _LISTED.decode(str(kept.content)):
                carry_out = partial(self._served, servers, each, tool.name)
                offered.append(OfferedTool(tool, source, _ARGUMENTS.decode, carry_out))
        return Offer(_by_name(offered), is_kept)

    async def close(self) -> None:
        await super().close()
        for line in self.workers.remarks():
            remark(line)

    def _function(self, function: Callable[..., Any]) -> OfferedTool:
        """Returns a function as a tool, also one that the benchmark made for an item."""
        return self._functions.get(id(function)) or function_tool(function, self.workers, self._source_of(function))

    async def _served(self, servers: Servers, server: McpServer, name: str, arguments: dict[str, Any]) -> ToolResult:
        running = await servers.running(server)
        return await self.workers.awaited(name, partial(running.call, name, arguments))


def _listed(tools: Any) -> tuple[AnyTool, ...]:
    if not isinstance(tools, list | tuple):
        raise BenchmarkDefect(f"tools: expected a list of functions and ms.mcp(…), got {tools!r}")
    for each in tools:
        if not callable(each) and not isinstance(each, McpServer):
            raise BenchmarkDefect(f"tools: expected functions and ms.mcp(…), got {each!r}")
    return tuple(tools)


def _by_name(tools: Iterable[OfferedTool]) -> dict[str, OfferedTool]:
    by_name: dict[str, OfferedTool] = {}
    for tool in tools:
        if by_name.setdefault(tool.declared.name, tool) is not tool:
            raise BenchmarkDefect(f"tools: two are called {tool.declared.name}: name each differently")
    return by_name
