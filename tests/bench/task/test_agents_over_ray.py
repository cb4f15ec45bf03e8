"""An agent whose calls are carried by the workers of a cluster: its tools are called in the driver, once."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import Provider, finish, lines_of, start

pytestmark = [pytest.mark.process, pytest.mark.long, pytest.mark.timeout(300)]

pytest.importorskip("ray")

AGENT = """
import os
from pathlib import Path
import millstream as ms

def population(city: str) -> int:
    "Returns how many people live in a city."
    with (Path(__file__).parent / "done.txt").open("a") as file:
        file.write(f"{os.getpid()} {city}\\n")
    return len(city)

class Agent(ms.Benchmark):
    data = [{"id": f"c{n}", "city": f"City{n}"} for n in range(12)]
    tools = [population]

    async def run(self, item, ask):
        reply, _ = await ms.tool_loop(ask, f'What is the population of "{item["city"]}"?')
        return reply.text

    def score(self, item, result):
        return str(len(item["city"])) in result
"""


def test_tools_of_a_run_over_workers_are_called_in_its_driver_and_once(provider: Provider, tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(AGENT)
    where = ("--base-url", provider.base_url, "--cache", "cache", "--no-report", "--ray", "local", "--workers", "2")
    for out in ("one", "two"):
        process = start(tmp_path, "run", "agent.py", "--model", "sim/tools", *where, "--out", out)
        done = finish(process, 120)
        assert done.code == 0, done.err
        called = (tmp_path / "done.txt").read_text().splitlines()
        assert {int(line.split()[0]) for line in called} == {process.pid} or out == "two"
        assert len(called) == 12 == len(lines_of(tmp_path / out / "records.jsonl"))
