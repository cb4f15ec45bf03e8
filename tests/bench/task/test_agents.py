"""An agent with three tools, from the command line and from Python: killed in the middle, it goes on, each call is paid
once, and each tool is called once."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from command_line import Done, Provider, environment, finish, lines_of, run_command, start

CITIES = ("Lima", "Oslo", "Rome", "Cairo")
# The simulated model calls the tools that the last question names. The last city's second question kills the process
# once the records of all others are written, so that nothing else is under way.
AGENT = """
import asyncio, os, signal, sys, time
from pathlib import Path
import millstream as ms

HERE = Path(__file__).parent
RUN = HERE / "run"

def done(what):
    with (HERE / "done.txt").open("a") as file:
        file.write(what + "\\n")

def population(city: str) -> int:
    "Returns how many people live in a city."
    done(f"population {city}")
    return 1000 * len(city)

async def area(city: str) -> float:
    "Returns the area of a city."
    await asyncio.sleep(0.01)
    done(f"area {city}")
    return len(city) / 2

def mayor(city: str) -> str:
    "Returns the mayor of a city."
    if city == "Cairo" and (HERE / "kill").exists():
        while not (RUN / "records.jsonl").exists() or (RUN / "records.jsonl").read_text().count("\\n") < 3:
            time.sleep(0.01)
        (HERE / "kill").unlink()
        os.kill(os.getpid(), 9)
    done(f"mayor {city}")
    raise LookupError(f"{city} has none")

class Agent(ms.Benchmark):
    data = [{"id": city, "city": city} for city in CITIES]
    tools = [population, area, mayor]
    steps_max = 6

    async def run(self, item, ask):
        talk = [ms.user(f'What are population and area of "{item["city"]}" and "{item["city"]}"?')]
        reply, talk = await ms.tool_loop(ask, talk, self.tools)
        reply, talk = await ms.tool_loop(ask, [*talk, ms.user(f'And the mayor of "{item["city"]}"?')], self.tools)
        return [message.words for message in talk if isinstance(message, ms.Message) and message.role == "tool"] + [
            reply.text
        ]

    def score(self, item, result):
        return "has none" in result[-1]

if __name__ == "__main__":
    print(ms.evaluate(Agent, models="sim/tools", out=RUN, base_url=sys.argv[1], cache="cache", report=False))
""".replace("CITIES]", f"{CITIES}]")


def tools_in(line: dict[str, Any]) -> list[dict[str, Any]]:
    return [call for call in line["transcript"]["calls"] if call.get("role") == "tool"]


def command(home: Path, provider: Provider, way: str) -> subprocess.Popen[str]:
    if way == "command line":
        where = ("--base-url", provider.base_url, "--cache", "cache", "--out", "run", "--no-report")
        return start(home, "run", "agent.py", "--model", "sim/tools", *where)
    return subprocess.Popen(
        [sys.executable, "-P", "agent.py", provider.base_url],
        cwd=home,
        env=environment(home),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("way", ["command line", "evaluate"])
def test_an_agent_that_is_killed_goes_on_and_neither_pays_nor_does_anything_twice(
    provider: Provider, tmp_path: Path, way: str
) -> None:
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "kill").touch()
    killed = finish(command(tmp_path, provider, way))
    assert killed.code == -signal.SIGKILL, killed.err
    assert not (tmp_path / "kill").exists() and len(lines_of(tmp_path / "run/records.jsonl")) == 3
    ended = finish(command(tmp_path, provider, way))
    assert ended.code == 0, ended.err
    wanted = [f"{tool} {city}" for tool in ("population", "area", "mayor") for city in CITIES]
    assert sorted((tmp_path / "done.txt").read_text().splitlines()) == sorted(wanted)
    # Four questions an item: both loops have one before their tools, and one after.
    assert provider.calls() == 4 * len(CITIES) and set(provider.received().values()) == {1}
    verified = run_command(tmp_path, "verify", "run")
    assert verified.code == 0 and "ok: 4 records, 0 failures, 0 pending" in verified.out
    lines = {line["item"]: line for line in lines_of(tmp_path / "run/records.jsonl")}
    assert [line["score"] for line in lines.values()] == [1.0] * 4
    for city in CITIES:
        uses = tools_in(lines[city])
        assert [use["model"] for use in uses] == ["population", "area", "mayor"]
        assert [use.get("cached", False) for use in uses] == ([True, True, False] if city == "Cairo" else [False] * 3)
        assert [use.get("status", "ok") for use in uses] == ["ok", "ok", "failed"]
        assert lines[city]["keys"] == list(dict.fromkeys(lines[city]["keys"])) and len(lines[city]["keys"]) == 7


def made(home: Path, provider: Provider, *more: str, out: str = "run") -> Done:
    where = ("--base-url", provider.base_url, "--cache", "cache", "--out", out, "--no-report")
    return run_command(home, "run", "agent.py", "--model", "sim/tools", *where, *more)


def test_a_snapshot_repeats_an_agent_without_a_network_and_without_its_tools(
    provider: Provider, tmp_path: Path
) -> None:
    (tmp_path / "agent.py").write_text(AGENT)
    assert made(tmp_path, provider).code == 0
    before, calls = (tmp_path / "done.txt").read_text(), provider.calls()
    assert run_command(tmp_path, "cache", "export", "run", "snapshot").code == 0
    strict = ("--mode", "strict", "--snapshot", "snapshot", "--cache", "empty")
    again = made(tmp_path, provider, *strict, out="again")
    assert again.code == 0, again.err
    assert (tmp_path / "done.txt").read_text() == before and provider.calls() == calls

    def results(run: str) -> dict[str, Any]:
        return {line["item"]: line["result"] for line in lines_of(tmp_path / run / "records.jsonl")}

    assert results("again") == results("run")


def test_another_run_has_the_kept_results_until_the_function_is_changed(provider: Provider, tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(AGENT)
    assert made(tmp_path, provider).code == 0
    assert made(tmp_path, provider, out="second").code == 0
    done = (tmp_path / "done.txt").read_text().splitlines()
    assert len(done) == 12
    (tmp_path / "agent.py").write_text(AGENT.replace("1000 * len", "2000 * len"))
    assert made(tmp_path, provider, out="third").code == 0
    counts = Counter(line.split()[0] for line in (tmp_path / "done.txt").read_text().splitlines())
    # The model reads another population, so that it is asked anew; the area and the mayor are the same questions.
    assert counts == {"population": 8, "area": 4, "mayor": 4}
    made(tmp_path, provider, "--mode", "live", out="live")
    assert len((tmp_path / "done.txt").read_text().splitlines()) == 16 + 12


def test_tools_made_for_an_item_and_steps_beyond_the_most_are_as_elsewhere(provider: Provider, tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(
        "import millstream as ms\n\nclass Own(ms.Benchmark):\n    data = [{'id': 'a', 'word': 'x'}]\n"
        "    steps_max = 2\n"
        "    async def run(self, item, ask):\n        def spell(word: str) -> str:\n            return item['word']\n"
        "        for _ in range(item.get('times', 1)):\n"
        "            reply, _ = await ms.tool_loop(ask, [ms.user('spell it')], [spell], max_tokens=90)\n"
        "        return reply.text\n"
        "    def score(self, item, result):\n        return result == 'The tools said: x'\n"
    )
    assert made(tmp_path, provider).code == 0
    (line,) = lines_of(tmp_path / "run/records.jsonl")
    assert line["score"] == 1.0
    text = (tmp_path / "agent.py").read_text()
    (tmp_path / "agent.py").write_text(text.replace("'word': 'x'", "'word': 'x', 'times': 2"))
    assert made(tmp_path, provider, out="more").code == 3
    (failed,) = lines_of(tmp_path / "more/failures.jsonl")
    assert failed["status"] == "steps_exceeded" and len(tools_in(failed)) == 1
    (tmp_path / "agent.py").write_text(text.replace("word: str", "word"))
    refused = made(tmp_path, provider, out="wrong")
    assert refused.code == 2 and "tool spell: parameter word has no type: write one, as word: str" in refused.err
    (tmp_path / "agent.py").write_text(text.replace("steps_max = 2", "tools = [lambda word: word]"))
    refused = made(tmp_path, provider, out="wrong")
    assert refused.code == 2 and "Own: tool <lambda>: a tool's name has up to 64 letters" in refused.err


STATEFUL = """
import os
from pathlib import Path
import millstream as ms

HERE = Path(__file__).parent

class Count(ms.Benchmark):
    data = [{"id": "a"}]

    async def run(self, item, ask):
        state = []

        def count() -> int:
            "Counts."
            state.append(1)
            if len(state) == 2 and (HERE / "kill").exists():
                (HERE / "kill").unlink()
                os.kill(os.getpid(), 9)
            return len(state)

        talk = []
        for time in range(3):
            reply, talk = await ms.tool_loop(ask, [*talk, ms.user(f"count, please: {time}")], [count], keep=False)
        return [reply.text, len(state)]

    def score(self, item, result):
        return result == ["The tools said: 3", 3]
"""


def test_a_pilot_counts_the_calls_of_models_alone(provider: Provider, tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(AGENT)
    where = ("--base-url", provider.base_url, "--cache", "cache", "--pilot", "2")
    planned = run_command(tmp_path, "plan", "agent.py", "--model", "sim/tools", *where)
    assert planned.code == 0 and provider.calls() == 8
    assert "2 of 4 items, 8 calls sent, 0 from the cache" in planned.out and "sim/tools" in planned.out
    assert "no estimate" not in planned.out
    assert len((tmp_path / "done.txt").read_text().splitlines()) == 6
    assert made(tmp_path, provider).code == 0
    assert len((tmp_path / "done.txt").read_text().splitlines()) == 12 and provider.calls() == 16


def test_a_loop_of_the_authors_own_is_what_the_ready_one_is(provider: Provider, tmp_path: Path) -> None:
    own = (
        "offer, talk = await ask.offer(), [ms.user('one and two')]\n"
        "        while not talk or not isinstance(talk[-1], ms.Reply):\n"
        "            reply = await ask(talk, tools=offer.declared)\n"
        "            talk += [reply, *await ask.carry_out(offer, reply.tool_calls)]\n"
    )
    program = (
        "import millstream as ms\n\ndef one() -> int:\n    return 1\n\ndef two() -> int:\n    return 2\n\n"
        "class Own(ms.Benchmark):\n    data = [{'id': 'a'}]\n    tools = [one, two]\n"
        "    async def run(self, item, ask):\n"
        f"        {own}        return reply.text\n"
        "    def score(self, item, result):\n        return result == 'The tools said: 1; 2'\n"
    )
    (tmp_path / "agent.py").write_text(program)
    assert made(tmp_path, provider).code == 0
    ready = program.replace(own, "reply, talk = await ms.tool_loop(ask, 'one and two')\n")
    (tmp_path / "agent.py").write_text(ready)
    assert made(tmp_path, provider, out="ready").code == 0
    (one,), (other,) = (lines_of(tmp_path / run / "records.jsonl") for run in ("run", "ready"))
    assert one["score"] == other["score"] == 1.0 and one["keys"] == other["keys"]
    assert one["transcript"]["messages"] == other["transcript"]["messages"] and provider.calls() == 2


def test_a_tool_may_ask_a_model_and_the_items_end_in_it_is_no_result(provider: Provider, tmp_path: Path) -> None:
    program = (
        "from pathlib import Path\nimport millstream as ms\n\nclass Own(ms.Benchmark):\n    data = [{'id': 'a'}]\n"
        "    steps_max = 3\n"
        "    async def run(self, item, ask):\n"
        "        async def count() -> str:\n"
        "            with (Path(__file__).parent / 'done.txt').open('a') as file:\n"
        "                file.write('count\\n')\n"
        "            async def inner() -> int:\n                return 7\n"
        "            reply, _ = await ms.tool_loop(ask, 'inner', [inner])\n"
        "            return reply.text\n"
        "        reply, _ = await ms.tool_loop(ask, 'count', [count])\n        return reply.text\n"
        "    def score(self, item, result):\n        return result == 'The tools said: The tools said: 7'\n"
    )
    (tmp_path / "agent.py").write_text(program.replace("steps_max = 3", "steps_max = 2"))
    assert made(tmp_path, provider).code == 3
    (failed,) = lines_of(tmp_path / "run/failures.jsonl")
    assert failed["status"] == "steps_exceeded"
    (tmp_path / "agent.py").write_text(program.replace("steps_max = 3", "steps_max = 4"))
    assert made(tmp_path, provider, out="again").code == 0
    (line,) = lines_of(tmp_path / "again/records.jsonl")
    assert line["score"] == 1.0 and len(line["keys"]) == 6
    assert (tmp_path / "done.txt").read_text() == "count\n" * 2 and provider.calls() == 4


def test_a_kept_result_of_a_tool_that_asks_leaves_later_calls_their_samples(provider: Provider, tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(
        "import millstream as ms\n\nclass Own(ms.Benchmark):\n    data = [{'id': 'a'}]\n"
        "    async def run(self, item, ask):\n"
        "        async def colour() -> str:\n            return (await ask('Name a colour.')).text\n"
        "        await ms.tool_loop(ask, 'colour', [colour])\n"
        "        return [(await ask('Name a colour.')).text for _ in range(2)]\n"
        "    def score(self, item, result):\n        return True\n"
    )
    assert made(tmp_path, provider).code == 0 and provider.calls() == 5
    assert made(tmp_path, provider, out="again").code == 0 and provider.calls() == 5
    (first,), (again,) = (lines_of(tmp_path / run / "records.jsonl") for run in ("run", "again"))
    keys = [call["key"] for call in first["transcript"]["calls"]]
    assert len(set(keys)) == 6 and keys[:2] + keys[3:] == [call["key"] for call in again["transcript"]["calls"]]


def test_tools_with_a_state_are_called_again_so_that_it_is_as_before(provider: Provider, tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(STATEFUL)
    (tmp_path / "kill").touch()
    where = ("--base-url", provider.base_url, "--cache", "cache", "--out", "run", "--no-report")
    assert finish(start(tmp_path, "run", "agent.py", "--model", "sim/tools", *where)).code == -signal.SIGKILL
    calls = provider.calls()
    assert calls == 3 and made(tmp_path, provider).code == 0
    (line,) = lines_of(tmp_path / "run/records.jsonl")
    assert line["score"] == 1.0 and provider.calls() == 6 and len(line["keys"]) == 6
    (tmp_path / "agent.py").write_text(
        STATEFUL.replace("return len(state)", 'raise LocalFault("no disk")').replace(
            "import os", "import os\nfrom millstream.engine.fault import LocalFault"
        )
    )
    stopped = made(tmp_path, provider, out="stopped")
    assert stopped.code == 5 and "no disk" in stopped.err
    assert lines_of(tmp_path / "stopped/failures.jsonl") == []


def test_a_tool_that_needs_a_missing_server_stops_the_run_which_goes_on_later(
    provider: Provider, tmp_path: Path
) -> None:
    server = tmp_path / "server.py"
    (tmp_path / "agent.py").write_text(
        "import sys\nimport millstream as ms\n\nclass Own(ms.Benchmark):\n    data = [{'id': 'a'}, {'id': 'b'}]\n"
        f"    tools = [ms.mcp(f'{{sys.executable}} {server}')]\n"
        "    async def run(self, item, ask):\n"
        "        reply, _ = await ms.tool_loop(ask, [ms.user('count')])\n        return reply.text\n"
        "    def score(self, item, result):\n        return True\n"
    )
    stopped = made(tmp_path, provider)
    assert stopped.code == 5 and "did not start" in stopped.err, stopped
    assert lines_of(tmp_path / "run/failures.jsonl") == [] and provider.calls() == 0
    server.write_text(SERVER)
    assert made(tmp_path, provider).code == 0
    assert [line["result"] for line in lines_of(tmp_path / "run/records.jsonl")] == ["The tools said: 1"] * 2


SERVER = """
import json, sys
count = 0
for line in sys.stdin:
    asked = json.loads(line)
    answer = None
    if asked["method"] == "initialize":
        version = asked["params"]["protocolVersion"]
        answer = dict(protocolVersion=version, capabilities=dict(tools={}), serverInfo=dict(name="own", version="1"))
    elif asked["method"] == "tools/list":
        answer = dict(tools=[dict(name="count", inputSchema=dict(type="object"))])
    elif asked["method"] == "tools/call":
        count += 1
        answer = dict(content=[dict(type="text", text=str(count))])
    if "id" in asked:
        end = dict(error=dict(code=-32601, message="unknown")) if answer is None else dict(result=answer)
        print(json.dumps(dict(jsonrpc="2.0", id=asked["id"], **end)), flush=True)
"""
