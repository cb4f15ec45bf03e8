"""Tools of MCP servers over stdio: real servers, in processes of their own. A server that dies, hangs or writes garbage
is an ordinary result or a failure of one line."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import millstream as ms
from millstream.bench.tools.mcp_server import RunningServer
from millstream.bench.tools.toolset import CarryOut, Offer, ToolSet
from millstream.engine.content import Image, ToolCall, ToolResult
from millstream.engine.fault import LocalFault

pytestmark = pytest.mark.process

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
# By hand, since a server of the official package takes seconds to start.
OWN = f"""
import json, os, sys, time

def whoami():
    return f"{{os.getpid()}} {{os.environ.get('TOKEN')}} {{os.environ.get('MS_OTHER')}}"

def die():
    print("last words", os.environ.get("TOKEN"), file=sys.stderr, flush=True)
    os._exit(3)

def hang():
    time.sleep(1000)

def garbage():
    print("this is no message", flush=True)
    return "and this is"

def picture():
    return [dict(type="text", text="a pixel"), dict(type="image", data="{PIXEL}", mimeType="image/png")]

TOOLS = {{"whoami": whoami, "die": die, "hang": hang, "garbage": garbage, "see.picture": picture}}
for line in sys.stdin:
    asked = json.loads(line)
    method, answer = asked["method"], None
    if method == "initialize":
        version = asked["params"]["protocolVersion"]
        answer = dict(protocolVersion=version, capabilities=dict(tools={{}}), serverInfo=dict(name="own", version="1"))
    elif method == "tools/list":
        answer = dict(tools=[dict(name=name, inputSchema=dict(type="object")) for name in TOOLS])
    elif method == "tools/call":
        content = TOOLS[asked["params"]["name"]]()
        answer = dict(content=content if isinstance(content, list) else [dict(type="text", text=content)])
    if "id" in asked:
        end = dict(error=dict(code=-32601, message="unknown")) if answer is None else dict(result=answer)
        print(json.dumps(dict(jsonrpc="2.0", id=asked["id"], **end)), flush=True)
"""


async def unkept(question: dict[str, Any], carry_out: CarryOut) -> ToolResult:
    return await carry_out()


@asynccontextmanager
async def offered(*tools: Any, limit_s: float = 20.0, variables: dict[str, str] | None = None) -> AsyncIterator[Offer]:
    toolset = ToolSet(tools, time_limit_s=limit_s, variables=variables or {})
    servers = toolset.of_item()
    try:
        yield await toolset.offer(None, servers, unkept)
    finally:
        await servers.close()
        await toolset.close()


async def called(offer: Offer, name: str, arguments: str = "{}") -> ToolResult:
    begun = offer.begun(ToolCall("c", name, arguments))
    return begun if isinstance(begun, ToolResult) else await begun[1]()


@pytest.fixture
def own(tmp_path: Path) -> str:
    path = tmp_path / "own.py"
    path.write_text(OWN)
    return shlex.join([sys.executable, str(path)])


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_server_from_a_registry_lists_its_tools_and_answers() -> None:
    async def asked() -> None:
        command = shlex.join([sys.executable, "-m", "mcp_server_time", "--local-timezone", "UTC"])
        async with offered(ms.mcp(command)) as offer:
            tool = next(each for each in offer.declared if each.name == "convert_time")
            assert set((tool.parameters or {})["properties"]) == {"source_timezone", "time", "target_timezone"}
            asked = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
            result = await called(offer, "convert_time", json.dumps(asked))
            assert json.loads(str(result.content))["target"]["datetime"].endswith("21:00:00+09:00")
            assert not result.is_error
            wrong = await called(offer, "convert_time", json.dumps(asked | {"time": "noon"}))
            assert wrong.is_error and "Invalid time format" in str(wrong.content)
            assert (await called(offer, "convert_time", '["noon"]')).is_error

    asyncio.run(asked())


def test_each_item_has_a_server_of_its_own_unless_it_is_shared_and_none_outlives_its_end(own: str) -> None:
    async def asked() -> None:
        for shared in (False, True):
            toolset = ToolSet([ms.mcp(own, shared=shared)])
            items = [toolset.of_item() for _ in range(2)]
            offers = await asyncio.gather(*(toolset.offer(None, servers, unkept) for servers in items))
            said = [str((await called(offer, "whoami")).content) for offer in offers]
            pids = {int(text.split()[0]) for text in said}
            assert len(pids) == (1 if shared else 2)
            await asyncio.gather(*(servers.close() for servers in items))
            assert [is_running(pid) for pid in pids] == ([True] if shared else [False, False])
            await toolset.close()
            assert not any(map(is_running, pids))

    asyncio.run(asked())


def test_a_server_that_dies_is_a_result_and_is_started_anew(own: str) -> None:
    async def asked() -> None:
        variables = {"SECRET": "sk-1", "MS_OTHER": "x"}
        async with offered(ms.mcp(own, env={"TOKEN": "env:SECRET"}), variables=variables) as offer:
            first = str((await called(offer, "whoami")).content)
            died = await called(offer, "die")
            assert died.is_error and "ended before it answered: last words …" in str(died.content)
            second = str((await called(offer, "whoami")).content)
            assert first.split()[1:] == second.split()[1:] == ["sk-1", "None"] and first != second
            os.kill(int(second.split()[0]), signal.SIGKILL)
            killed = await called(offer, "whoami")
            assert killed.is_error and "ended before it answered" in str(killed.content)
            files = len(os.listdir("/proc/self/fd"))
            for _ in range(3):
                assert (await called(offer, "die")).is_error
            assert len(os.listdir("/proc/self/fd")) <= files

    asyncio.run(asked())


def test_what_hangs_is_abandoned_and_garbage_is_passed_over(own: str) -> None:
    async def asked() -> None:
        async with offered(ms.mcp(own), limit_s=0.5) as offer:
            began = time.monotonic()
            hung = await called(offer, "hang")
            assert hung.content == "hang gave no result in 0.5 s and was abandoned" and time.monotonic() - began < 3
        async with offered(ms.mcp(own)) as offer:
            assert (await called(offer, "garbage")).content == "and this is"
            assert (await called(offer, "see_picture")).content == (
                "a pixel",
                Image(f"data:image/png;base64,{PIXEL}"),
            )

    asyncio.run(asked())


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("no-such-command-here", "did not start: .*No such file"),
        (f"{sys.executable} -c 'raise SystemExit(\"not today\")'", "did not start: .*: not today"),
        (f"{sys.executable} -c 'print(1)'", "did not start: "),
    ],
)
def test_a_command_that_is_no_server_is_a_fault_of_one_line(command: str, says: str) -> None:
    async def asked() -> None:
        async with offered(ms.mcp(command)):
            pass

    with pytest.raises(LocalFault, match=says) as fault:
        asyncio.run(asked())
    assert "\n" not in str(fault.value)


def test_a_server_that_never_speaks_is_given_up() -> None:
    async def asked() -> None:
        command = shlex.join([sys.executable, "-c", "import sys; sys.stdin.read()"])
        running = RunningServer(ms.mcp(command), {}, started_within_s=0.5)
        with pytest.raises(LocalFault, match=r"listed no tools in 0.5 s"):
            await running.started()

    asyncio.run(asked())


def test_a_variable_is_named_and_never_written_out(own: str) -> None:
    with pytest.raises(ValueError, match='env TOKEN must be "env:NAME"') as refused:
        ms.mcp(own, env={"TOKEN": "sk-1"})
    assert "sk-1" not in str(refused.value)
    server = ms.mcp(own, env={"TOKEN": "env:SECRET"})
    assert "SECRET" not in repr(server) and "SECRET" not in repr(server.specified())

    async def asked() -> None:
        async with offered(server):
            pass

    with pytest.raises(LocalFault, match="SECRET is not in the environment, which TOKEN is taken from"):
        asyncio.run(asked())


def test_a_changed_script_is_another_server(tmp_path: Path, own: str) -> None:
    before = ms.mcp(own).specified()
    assert before == ms.mcp(own).specified()
    (tmp_path / "own.py").write_text(OWN + "\n")
    assert before != ms.mcp(own).specified()


def test_a_server_ends_with_the_task_that_is_cancelled(own: str) -> None:
    pids: list[int] = []

    async def asked() -> None:
        async with offered(ms.mcp(own)) as offer:
            pids.append(int(str((await called(offer, "whoami")).content).split()[0]))
            await called(offer, "hang")

    async def cancelled() -> None:
        task = asyncio.create_task(asked())
        while not pids:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert not is_running(pids[0])


def test_a_server_ends_with_a_process_that_is_killed(own: str) -> None:
    program = (
        "import asyncio, sys, millstream as ms\n"
        "from millstream.bench.tools.mcp_server import RunningServer\n"
        "async def main():\n"
        "    running = RunningServer(ms.mcp(sys.argv[1]), {})\n"
        "    await running.started()\n"
        "    print((await running.call('whoami', {})).content, flush=True)\n"
        "    await asyncio.sleep(1000)\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen([sys.executable, "-P", "-c", program, own], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline().split()[0])
        assert is_running(pid)
        process.kill()
    until = time.monotonic() + 10
    while is_running(pid):
        assert time.monotonic() < until
        time.sleep(0.01)


def test_without_the_package_the_message_says_what_to_install() -> None:
    async def asked() -> None:
        running = RunningServer(ms.mcp("mcp-server-time"), {})
        try:
            await running.started()
        finally:
            await running.close()

    hidden = {name: module for name, module in sys.modules.items() if name == "mcp" or name.startswith("mcp.")}
    for name in hidden:
        del sys.modules[name]
    sys.modules["mcp"] = None  # type: ignore[assignment]
    try:
        with pytest.raises(LocalFault, match=r"needs the package mcp: pip install 'mcp>=2'"):
            asyncio.run(asked())
    finally:
        del sys.modules["mcp"]
        sys.modules.update(hidden)
