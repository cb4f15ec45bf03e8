"""The tools of a run and of one item: what is offered to a model, and the result of each of its calls.

Every call has a result: a wrong name or wrong arguments, an exception, a limit that has passed are results, too. How a
result is kept is the caller's: `Keep`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from inspect import isawaitable, iscoroutinefunction
from types import MappingProxyType
from typing import Any, Literal, Protocol

import msgspec
from msgspec import Struct, structs

from ...engine.content import Tool, ToolCall, ToolResult
from ...engine.fault import LocalFault, Stopped
from ...engine.remarks import remark
from ..evaluation.door.defect import BenchmarkDefect
from .carrying_out import OverTime, Workers
from .function import FunctionTool, WrongArguments, expected
from .mcp_server import McpServer, RunningServer
from .results import content_of, failed, raised

AnyTool = Callable[..., Any] | McpServer
TIME_LIMIT_S = 60.0
# Items that have servers of their own at once: each is a process.
ITEMS_WITH_SERVERS_MOST = 16
_LISTED = msgspec.json.Decoder(tuple[Tool, ...])


class Kept(Struct, frozen=True):
    """The result of a tool."""

    result: ToolResult
    """The result."""
    is_replayed: bool = False
    """Whether it was stored before, so that the tool was not carried out."""
    seconds: float | None = None
    """How long it took; None: not measured."""


KeptFor = Literal["run", "item", "nobody"]


class Keep(Protocol):
    """Keeps results: returns the stored result of a question, else that of `work`, once it is stored. `kept_for`: whose
    question it is; that of nobody is neither stored nor looked up."""

    async def __call__(
        self, name: str, question: Mapping[str, Any], work: Callable[[], Awaitable[ToolResult]], kept_for: KeptFor
    ) -> Kept: ...


class ToolSet:
    """The tools of a benchmark, for all items of a run. The constructor raises BenchmarkDefect for a function that
    can't be described to a model. `variables` are the environment's; `source_of` returns a function's fingerprint."""

    def __init__(
        self,
        tools: Sequence[AnyTool] = (),
        *,
        time_limit_s: float = TIME_LIMIT_S,
        variables: Mapping[str, str] = MappingProxyType({}),
        source_of: Callable[[Callable[..., Any]], str] = lambda function: "",
    ) -> None:
        self.tools = _listed(tools)
        self.time_limit_s = time_limit_s
        self.workers = Workers()
        self.raised = Counter[str]()
        self.raised_first: dict[str, str] = {}
        self.variables = variables
        self._source_of = source_of
        self.room_for_items = asyncio.Semaphore(ITEMS_WITH_SERVERS_MOST)
        self.shared: dict[McpServer, RunningServer] = {}
        self._functions: dict[int, FunctionTool] = {}
        functions = (each for each in self.tools if not isinstance(each, McpServer))
        self._functions = {id(each): self.function(each) for each in functions}
        _by_name([*self._functions.values()])

    def __repr__(self) -> str:
        return f"<ToolSet [{len(self.tools)} tools, {len(self.shared)} shared servers, {self.workers}]>"

    def function(self, function: Callable[..., Any]) -> FunctionTool:
        """Returns a function as a tool, also one that the benchmark made for an item."""
        return self._functions.get(id(function)) or FunctionTool(function, self._source_of(function))

    async def close(self) -> None:
        """Closes the shared servers, and says how many calls were abandoned or raised an exception: models read the
        exceptions, and may seem worse than they are."""
        await asyncio.gather(*(server.close() for server in self.shared.values()))
        self.shared.clear()
        if self.workers.abandoned:
            names = ", ".join(f"{name} {count:,}" for name, count in self.workers.abandoned.items())
            running = self.workers.still_running
            remark(
                f"calls of tools that ran over their limit of {self.time_limit_s:g} s and were abandoned: {names}"
                + (f"; {running:,} of them still run in this process" if running else "")
            )
        for name, count in self.raised.items():
            first = f"the first {self.raised_first[name]}"
            remark(f"the tool {name} raised an exception {count:,} times, which models read: {first}")


class Toolbox:
    """The tools of one item: its servers, and how often it has asked what."""

    def __init__(self, tools: ToolSet, keep: Keep) -> None:
        self.tools = tools
        self.keep = keep
        self._asked: Counter[bytes] = Counter()
        self._servers: dict[McpServer, RunningServer] = {}
        self._has_room = False
        self._is_closed = False
        self._starting = asyncio.Lock()

    def __repr__(self) -> str:
        return f"<Toolbox [{self._asked.total()} calls, {len(self._servers)} servers]>"

    async def offer(self, tools: Sequence[AnyTool] | None = None, *, keep: bool = True) -> Offer:
        """Returns what is offered to a model: the given tools (None: the benchmark's). Raises BenchmarkDefect for a
        function that can't be described to a model. `keep`: whether results are kept."""
        each_tool: list[FunctionTool | ServerTool] = []
        for each in self.tools.tools if tools is None else _listed(tools):
            if isinstance(each, McpServer):
                each_tool += await self._tools_of(each)
            else:
                each_tool.append(self.tools.function(each))
        return Offer(self, _by_name(each_tool), "item" if keep else "nobody")

    async def close(self) -> None:
        """Closes the item's servers."""
        self._is_closed = True
        try:
            await asyncio.gather(*(server.close() for server in self._servers.values()))
        finally:
            if self._has_room:
                self._has_room = False
                self.tools.room_for_items.release()

    def count(self, question: Mapping[str, Any]) -> int:
        """Returns how often the item has asked this before: equal calls are separate calls."""
        asked = msgspec.json.encode(question, order="deterministic")
        self._asked[asked] += 1
        return self._asked[asked] - 1

    async def server(self, server: McpServer) -> RunningServer:
        """Returns the running server of a declaration, started if it isn't there or has ended."""
        async with self._starting:
            servers = self.tools.shared if server.shared else self._servers
            running = servers.get(server)
            if running is not None and running.has_ended:
                await running.close()
                running = None
            if running is None:
                if not server.shared and not self._has_room:
                    self._has_room = await self.tools.room_for_items.acquire()
                if self._is_closed:
                    raise asyncio.CancelledError("the item has ended")
                running = servers[server] = RunningServer(server, self.tools.variables)
        await running.started()
        return running

    async def _tools_of(self, server: McpServer) -> list[ServerTool]:
        """Returns a server's tools. The list is kept like a result, so that a run that is repeated needs no server."""

        async def listed() -> ToolResult:
            running = await self.server(server)
            return ToolResult("", msgspec.json.encode(running.tools).decode(), "mcp")

        source = server.specified()
        kept = await self.keep("mcp", {"tools_of": source}, listed, "run")
        return [ServerTool(server, tool, source) for tool in _LISTED.decode(str(kept.result.content))]


class ServerTool:
    """One tool of a server. `source`: what decides its results beside the arguments."""

    def __init__(self, server: McpServer, declared: Tool, source: Mapping[str, Any]) -> None:
        self.server = server
        self.source = source
        self.name = declared.name
        self.declared = declared


class Offer:
    """Tools that are offered to a model, and the results of its calls of them."""

    def __init__(self, box: Toolbox, by_name: Mapping[str, FunctionTool | ServerTool], kept_for: KeptFor) -> None:
        self._box = box
        self._kept_for = kept_for
        self._by_name = by_name

    def __repr__(self) -> str:
        return f"<Offer {', '.join(self._by_name)}>"

    @property
    def declared(self) -> tuple[Tool, ...]:
        """The tools as a model reads them."""
        return tuple(each.declared for each in self._by_name.values())

    async def result(self, call: ToolCall) -> Kept:
        """Returns the result of a model's call, the kept one if there is one."""
        tool = self._by_name.get(call.name)
        if tool is None:
            names = ", ".join(self._by_name) or "none"
            return _named(call, Kept(failed(call.name, f"there is no tool {call.name!r}; there are: {names}")))
        try:
            work = self._work(tool, call.arguments)
        except WrongArguments as error:
            return _named(call, Kept(failed(call.name, str(error))))
        question = {"source": tool.source, "arguments": msgspec.json.decode(call.arguments.strip() or "{}")}
        question["count"] = self._box.count({"tool": tool.name, **question})
        return _named(call, await self._box.keep(tool.name, question, work, self._kept_for))

    def _work(self, tool: FunctionTool | ServerTool, text: str) -> Callable[[], Awaitable[ToolResult]]:
        """Returns what makes the result of a call with these arguments. Raises WrongArguments."""
        if isinstance(tool, ServerTool):
            try:
                arguments = msgspec.json.decode(text.strip() or "{}", type=dict[str, Any])
            except (msgspec.MsgspecError, ValueError, RecursionError) as error:
                raise WrongArguments(f"wrong arguments: {error}. {expected(tool.declared)}") from error
            return lambda: self._called(tool, arguments)
        bound = tool.arguments(text)
        return lambda: self._carried_out(tool, bound.args, bound.kwargs)

    async def _carried_out(self, tool: FunctionTool, args: Any, kwargs: Any) -> ToolResult:
        tools, function = self._box.tools, tool.function

        def call() -> Any:
            value = function(*args, **kwargs)
            return value if isawaitable(value) else content_of(value)

        try:
            if iscoroutinefunction(function):
                made = function(*args, **kwargs)
            else:
                made = await tools.workers.thread(tool.name, call, tools.time_limit_s)
            if isawaitable(made):
                made = content_of(await tools.workers.task(tool.name, made, tools.time_limit_s))
            return ToolResult("", made, tool.name)
        except OverTime as error:
            return failed(tool.name, str(error))
        except (Stopped, LocalFault):
            raise
        except Exception as error:  # noqa: BLE001 (an author's code: whatever it raises is the tool's result)
            result = raised(tool.name, error)
            tools.raised[tool.name] += 1
            tools.raised_first.setdefault(tool.name, str(result.content))
            return result

    async def _called(self, tool: ServerTool, arguments: dict[str, Any]) -> ToolResult:
        tools, running = self._box.tools, await self._box.server(tool.server)
        try:
            result: ToolResult = await tools.workers.task(
                tool.name, running.call(tool.name, arguments), tools.time_limit_s
            )
        except OverTime as error:
            return failed(tool.name, str(error))
        return result


def _listed(tools: Any) -> tuple[AnyTool, ...]:
    if not isinstance(tools, list | tuple):
        raise BenchmarkDefect(f"tools: expected a list of functions and ms.mcp(…), got {tools!r}")
    for each in tools:
        if not callable(each) and not isinstance(each, McpServer):
            raise BenchmarkDefect(f"tools: expected functions and ms.mcp(…), got {each!r}")
    return tuple(tools)


def _named(call: ToolCall, kept: Kept) -> Kept:
    return structs.replace(kept, result=structs.replace(kept.result, id=call.id, name=call.name))


def _by_name(tools: Sequence[Any]) -> dict[str, Any]:
    by_name: dict[str, Any] = {}
    for tool in tools:
        if tool.name in by_name:
            raise BenchmarkDefect(f"tools: two are called {tool.name}: name each differently")
        by_name[tool.name] = tool
    return by_name
