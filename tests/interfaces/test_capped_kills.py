"""A limit on cost holds over kills: what the provider bills is never above it, whatever is killed and resumed.

Some kills here, 200 in `make torture`.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from batches import line
from command_line import Provider, environment, finish, start
from simulated_outside import UNSPARED, Outside
from torture import SEED, record, times

pytestmark = pytest.mark.needs_benchmark("millstone", "chameleon")

KILLS = times(9, 200)
# Dollars a million tokens, of prompts and of answers alike: what is billed follows from the sum of both.
DOLLARS = 20.0
PRICES = "".join(f'[prices."sim/{model}"]\ninput = {DOLLARS}\noutput = {DOLLARS}\n' for model in ("open", "judge"))
WIDE = ("--concurrency", "16", "--no-progress", "--json", "--config", "prices.toml")
SIZE = ("--temperature", "0", "0.5", "--conversations", "4", "--turns", "5", "--pages", "4", "--max-tokens", "300")


def billed(provider: Provider) -> float:
    """Of every call that was received, whether anybody was still there to hear its answer."""
    return float(provider.summary()["tokens_admitted"]) * DOLLARS / 1e6


def command_of(name: str, outside: Outside, max_cost: float, number: int = 0) -> tuple[str, ...]:
    """Each but the conversations would cost more than its limit. `number`: of the run, which has a folder and a cache
    of its own."""
    where = ("--base-url", outside.provider.base_url)
    cap = ("--max-cost", str(max_cost), *WIDE, "--cache", f"cache-{number}")
    out = ("--out", f"run-{number}", "--no-report")
    if name == "batch":
        return ("batch", "in.jsonl", f"out-{number}.jsonl", *where, *cap)
    if name == "run":
        return ("run", "millstone", "--model", "sim/open", "--max-tokens", "16", *where, *cap, *out)
    models = ("--model", "sim/open", "--judge", "sim/judge")
    # The last --config is the one that counts, and outside.flags has one of its own.
    return ("run", "chameleon", *models, *SIZE, *outside.flags, *cap, *out)


def kill_three_times(home: Path, command: tuple[str, ...], outside: Outside, chance: random.Random) -> None:
    """The same command, killed at random instants after its first calls."""
    for _ in range(3):
        before = outside.provider.calls()
        process = start(home, *command, **outside.variables)
        while process.poll() is None and outside.provider.calls() == before:
            time.sleep(0.01)
        try:
            process.wait(chance.uniform(0.0, 0.8))
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
        finish(process)


def money_in(told: str) -> dict[str, float]:
    found = json.loads(told)
    money: dict[str, float] = (found["runs"][0] if "runs" in found else found)["money"]
    return money


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "prices.toml").write_text(UNSPARED + PRICES)
    lines = (line(f"r{n}", f"Question {n}: A or B? " * 8, model="sim/open", max_tokens=16) for n in range(2_000))
    (tmp_path / "in.jsonl").write_bytes(b"".join(lines))
    return tmp_path


@pytest.mark.timeout(120 + 8 * KILLS)
@pytest.mark.parametrize(
    ("name", "max_cost"), [("run", 3.0), ("batch", 0.15), pytest.param("conversations", 3.0, marks=pytest.mark.long)]
)
def test_what_is_billed_stays_under_the_limit_however_often_a_command_is_killed(
    outside: Outside, home: Path, name: str, max_cost: float
) -> None:
    provider, chance, rounds = outside.provider, random.Random(SEED), -(-KILLS // 9)
    highest = 0.0
    for number in range(rounds):
        outside.reset()
        provider.set_faults("slow_body=0.3")
        command = command_of(name, outside, max_cost, number)
        kill_three_times(home, command, outside, chance)
        done = finish(start(home, *command, **outside.variables), within_s=120)
        assert done.code == 4 or name == "conversations", done.out + done.err
        money = money_in(done.out)
        assert money["spent"] - 1e-6 <= billed(provider) <= money["at_most"] + 1e-6 <= max_cost + 2e-6
        highest = max(highest, billed(provider))
    print(f"{name}: of a limit of ${max_cost} at most ${highest:.4f} was billed; the latest: {money}")
    # A higher limit goes on from there, and what may have been billed stays counted.
    higher = max_cost * 1.2
    more = finish(start(home, *command_of(name, outside, higher, number), **outside.variables), within_s=120)
    assert billed(provider) <= money_in(more.out)["at_most"] + 1e-6 <= higher + 2e-6
    record(
        "11", 3 * rounds, 3 * rounds, f"{name}: of a limit of ${max_cost} at most ${highest:.4f} was billed", f"{SEED}"
    )


@pytest.mark.parametrize(("name", "max_cost"), [("run", 4.0), ("batch", 1.0)])
def test_without_kills_at_least_95_percent_of_the_limit_is_spent(
    outside: Outside, home: Path, name: str, max_cost: float
) -> None:
    done = finish(start(home, *command_of(name, outside, max_cost), **outside.variables), within_s=120)
    assert done.code == 4, done.out + done.err
    money = money_in(done.out)
    assert 0.95 * max_cost <= money["spent"] == money["at_most"] <= max_cost
    assert money["spent"] == pytest.approx(billed(outside.provider))


PROGRAM = """
import asyncio, sys
import millstream as ms

async def main():
    prices = {"sim/open": ms.Price(20.0, 20.0)}
    lane = ms.Lane("sim/open", concurrency=32)
    settings = ms.Settings(lanes=(lane,), base_url=sys.argv[1], cache="cache", max_cost=0.4, prices=prices)
    calls = (ms.Call("sim/open", f"Question {n}: A or B? " * 8, max_tokens=16) for n in range(2_000))
    async with ms.Engine(settings=settings) as engine:
        async for outcome in engine.run(calls):
            pass

try:
    asyncio.run(main())
except ms.Stopped as stopped:
    sys.exit(str(stopped))
"""


def test_a_program_that_is_killed_and_started_again_stays_under_its_limit(outside: Outside, home: Path) -> None:
    provider = outside.provider
    provider.set_faults("slow_body=0.5")
    (home / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-P", "program.py", provider.base_url]
    for _ in range(3):
        before = provider.calls()
        process = subprocess.Popen(command, cwd=home, env=environment(home), stderr=subprocess.PIPE, text=True)
        while process.poll() is None and provider.calls() < before + 20:
            time.sleep(0.01)
        process.kill()
        process.communicate()
    refused = subprocess.run(command, cwd=home, env=environment(home), capture_output=True, text=True, check=False)
    assert "raise --max-cost" in refused.stderr and "delete it to begin anew" in refused.stderr
    assert 0 < billed(provider) <= 0.4
    # One that was refused for it leaves it: whatever starts it again, nothing more is spent.
    (left,) = (home / "cache" / "budgets").iterdir()
    assert str(left) in str((home / refused.stderr.split("may have been spent: ")[1].split(";")[0]).resolve())
