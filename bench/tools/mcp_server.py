"""Servers of the Model Context Protocol over stdio: what an author declares, and one such server that runs.

A server has one task of its own, which starts it and closes it: the client of the package `mcp` must be left in the
task that entered it. Whatever a server does, its caller gets a result or an error of one line within a time limit.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import re
import shlex
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, structs

from ...engine.content import Image, Tool, ToolResult
from ...engine.fault import LocalFault
from ...engine.missing import missing_module
from .carrying_out import failed, result_of

if TYPE_CHECKING:
    from mcp import Client

_VARIABLE = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*")
# Many servers that start at once are slow to.
STARTED_WITHIN_S = 60.0
# Closing takes up to 7 s where a server ignores the end of its input and a signal.
_CLOSED_WITHIN_S = 10.0
_LAST_WORDS = 300
_NOWHERE = logging.NullHandler()
# What is longer is a program that is installed.
_SCRIPT_BYTES_MAX = 1 << 20


class McpServer(Struct, frozen=True):
    """A server that is declared as a tool; `ms.mcp` makes one.

    command: its words.
    shared: whether all items use one server.
    env: variables of the server, each with the variable of this process whose value it gets.
    cwd: the folder that it runs in.
    """

    command: tuple[str, ...]
    shared: bool = False
    env: tuple[tuple[str, str], ...] = ()
    cwd: str | None = None

    def __repr__(self) -> str:
        return f"mcp({shlex.join(self.command)!r})"

    def specified(self) -> dict[str, Any]:
        """Returns what decides the server's answers, as far as it can be known: the command with the content of the
        files that it names, and no value of a variable."""
        paths = {word: Path(self.cwd or ".", word) for word in self.command}
        files = {
            word: hashlib.sha256(path.read_bytes()).hexdigest() for word, path in paths.items() if _is_script(path)
        }
        return {"command": self.command, "env": [name for name, _ in self.env], "cwd": self.cwd, "files": files}


def mcp(
    command: str, *, shared: bool = False, env: Mapping[str, str] | None = None, cwd: str | Path | None = None
) -> McpServer:
    """Declares a server of the Model Context Protocol, whose tools a benchmark's models may call.

    `command` starts the server, which speaks over stdin and stdout. Each item has a server of its own, which ends with
    the item; with `shared`, all items use one. The server gets PATH, HOME and a few other variables; `env` adds others,
    each from a variable of this process: `env={"TOKEN": "env:MY_TOKEN"}`. Needs `pip install 'mcp>=2'`.
    """
    words = tuple(shlex.split(command))
    if not words:
        raise ValueError('mcp: expected a command, as ms.mcp("mcp-server-time"), got none')
    for name, value in (env or {}).items():
        if not isinstance(value, str) or not _VARIABLE.fullmatch(value):
            # The value is not shown: it may be a secret.
            raise ValueError(f'mcp: env {name} must be "env:NAME", the variable that holds its value')
    named = tuple((name, value.removeprefix("env:")) for name, value in sorted((env or {}).items()))
    return McpServer(words, shared, named, None if cwd is None else str(cwd))


class RunningServer:
    """One server, from its start to its end. `variables` are those of this process."""

    def __init__(
        self, server: McpServer, variables: Mapping[str, str], *, started_within_s: float = STARTED_WITHIN_S
    ) -> None:
        self.server = server
        self.tools: tuple[Tool, ...] = ()
        """Its tools, by the names that models see, once it has started."""
        self._names: dict[str, str] = {}
        self._variables = variables
        self._started_within_s = started_within_s
        self._client: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._closing = asyncio.Event()
        self._error: Exception | None = None
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed by `close`)
        self._owner = asyncio.create_task(self._own())

    def __repr__(self) -> str:
        state = "ended" if self.has_ended else "running" if self._client.done() else "starting"
        return f"<RunningServer {self.server} [{state}, {len(self.tools)} tools]>"

    @property
    def has_ended(self) -> bool:
        """Whether it was closed, ended by itself, or never started."""
        return self._closing.is_set() or self._owner.done()

    async def started(self) -> None:
        """Returns once the server has listed its tools. Raises LocalFault if it does not."""
        either = (self._client, self._owner)
        await asyncio.wait(either, timeout=self._started_within_s, return_when=asyncio.FIRST_COMPLETED)
        if self._client.done():
            return
        reason = f"listed no tools in {self._started_within_s:g} s"
        if self._owner.done():
            reason = f"did not start: {_line_of(self._error or asyncio.CancelledError())}"
        fault = LocalFault(f"{self.server} {reason}{self._last_words()}")
        await self.close()
        raise self._error if isinstance(self._error, LocalFault) else fault

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        """Returns the result of a tool. A server that has ended is an ordinary result, too."""
        from mcp import MCPError
        from mcp.types import CONNECTION_CLOSED

        try:
            result = await self._client.result().call_tool(self._names.get(name, name), arguments)
        except MCPError as error:
            if error.error.code != CONNECTION_CLOSED:
                return failed(name, error.error.message)
            self._closing.set()
            return failed(name, f"{self.server} ended before it answered{self._last_words()}")
        except Exception as error:  # noqa: BLE001 (whatever a server wrote)
            return failed(name, f"{self.server}: {_line_of(error)}")
        parts = [_part(each) for each in result.content]
        is_text = all(isinstance(each, str) for each in parts)
        value = "\n".join(map(str, parts)) if is_text else parts
        made = result_of(name, value if parts else result.structured_content)
        return structs.replace(made, is_error=bool(result.is_error))

    async def close(self) -> None:
        """Closes the server: the end of its input, then a signal. Returns after ten seconds at the latest."""
        self._closing.set()
        if not self._client.done():
            self._owner.cancel()
        await asyncio.wait([self._owner], timeout=_CLOSED_WITHIN_S)
        self._errors.close()

    async def _own(self) -> None:
        """Starts the server, keeps it until it is to be closed, and closes it."""
        try:
            # Importing the package takes a second or two.
            async with await asyncio.to_thread(self._client_of) as client:
                await self._list_tools(client)
                self._client.set_result(client)
                await self._closing.wait()
        except Exception as error:  # noqa: BLE001 (a command that is no server may do anything)
            self._error = error

    def _client_of(self) -> Client:
        try:
            from mcp import Client, StdioServerParameters, stdio_client
        except ImportError as error:
            name = missing_module(error) or "mcp"
            raise LocalFault(f"{self.server} needs the package {name}: pip install 'mcp>=2'") from error
        # A line that is no message would be printed with a traceback.
        logging.getLogger("mcp").addHandler(_NOWHERE)
        values = {}
        for name, variable in self.server.env:
            if variable not in self._variables:
                raise LocalFault(f"{self.server}: {variable} is not in the environment, which {name} is taken from")
            values[name] = self._variables[variable]
        command, *words = self.server.command
        order = StdioServerParameters(
            command=command, args=words, env=values, cwd=self.server.cwd, encoding_error_handler="replace"
        )
        return Client(stdio_client(order, errlog=self._errors), cache=None)  # type: ignore[arg-type]

    async def _list_tools(self, client: Client) -> None:
        cursor = None
        while True:
            page = await client.list_tools(cursor=cursor)
            for tool in page.tools:
                name = re.sub(r"[^A-Za-z0-9_-]", "_", tool.name)[:64]
                self._names[name] = tool.name
                self.tools += (Tool(name, tool.description or "", tool.input_schema),)
            cursor = page.next_cursor
            if cursor is None:
                return

    def _last_words(self) -> str:
        """Returns the end of what the server wrote to stderr, without the values of its variables."""
        if self._errors.closed:
            return ""
        # The server writes where this file ends, so its position must not be moved.
        file = self._errors.fileno()
        text = os.pread(file, 4096, max(0, os.fstat(file).st_size - 4096)).decode("utf-8", "replace")
        for _, variable in self.server.env:
            if value := self._variables.get(variable):
                text = text.replace(value, "…")
        line = next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")
        return f": {line[:_LAST_WORDS]}" if line else ""


def _part(part: Any) -> str | Image:
    """Returns a part of a server's result: a text, an image, or the JSON of another kind."""
    match part.type:
        case "text":
            return str(part.text)
        case "image":
            return Image(f"data:{part.mime_type};base64,{part.data}")
        case "resource" if isinstance(text := getattr(part.resource, "text", None), str):
            return text
    return str(part.model_dump_json(by_alias=True, exclude_none=True))


def _line_of(error: BaseException) -> str:
    """Returns the innermost message of an error, which task groups wrap."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return " ".join(str(error).split()) or type(error).__name__


def _is_script(path: Path) -> bool:
    return path.is_file() and path.stat().st_size <= _SCRIPT_BYTES_MAX
