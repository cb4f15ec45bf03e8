"""A limit on cost holds over kills: what the provider bills is never above it, whatever is killed and resumed.

Some kills here; MILLSTREAM_CAPPED_KILLS=200 is what `make torture` does.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
from batches import line
from command_line import Done, Provider, finish, start
from simulated_outside import UNSPARED, Outside

KILLS = int(os.environ.get("MILLSTREAM_CAPPED_KILLS", "6"))
# Dollars a million tokens, of prompts and of answers alike: what is billed follows from the sum of both.
DOLLARS = 20.0
PRICES = "".join(f'[prices."sim/{model}"]\ninput = {DOLLARS}\noutput = {DOLLARS}\n' for model in ("open", "judge"))
WIDE = ("--concurrency", "64", "--no-progress", "--json", "--config", "prices.toml", "--cache", "cache")
SIZE = ("--temperature", "0", "0.5", "--conversations", "4", "--turns", "5", "--pages", "4", "--max-tokens", "300")


def billed(provider: Provider) -> float:
    """Of every call that was received, whether anybody was still there to hear its answer."""
    return float(provider.summary()["tokens_admitted"]) * DOLLARS / 1e6


def command_of(name: str, outside: Outside, max_cost: float) -> tuple[str, ...]:
    """Each would cost more than its limit."""
    where = ("--base-url", outside.provider.base_url)
    cap = ("--max-cost", str(max_cost), *WIDE)
    if name == "batch":
        return ("batch", "in.jsonl", "out.jsonl", *where, *cap)
    if name == "run":
        return (
            "run",
            "millstone",
            "--model",
            "sim/open",
            "--max-tokens",
            "16",
            *where,
            *cap,
            "--out",
            "run",
            "--no-report",
        )
    models = ("--model", "sim/open", "--judge", "sim/judge")
    # The last --config is the one that counts, and outside.flags has one of its own.
    return ("run", "chameleon", *models, *SIZE, *outside.flags, *cap, "--out", "run", "--no-report")


def killed_again_and_again(home: Path, command: tuple[str, ...], outside: Outside, kills: int) -> Done:
    """The same command, killed at random instants after its first calls, and then let go to its end."""
    chance = random.Random(kills)
    for _ in range(kills):
        before = outside.provider.calls()
        process = start(home, *command, **outside.variables)
        while process.poll() is None and outside.provider.calls() == before:
            time.sleep(0.01)
        try:
            process.wait(chance.uniform(0.0, 0.8))
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
        finish(process)
    return finish(start(home, *command, **outside.variables), within_s=120)


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


@pytest.mark.timeout(120 + 4 * KILLS)
@pytest.mark.parametrize(("name", "max_cost"), [("run", 4.0), ("batch", 1.0), ("conversations", 4.0)])
def test_what_is_billed_stays_under_the_limit_however_often_a_command_is_killed(
    outside: Outside, home: Path, name: str, max_cost: float
) -> None:
    provider = outside.provider
    provider.set_faults("slow_body=0.3")
    done = killed_again_and_again(home, command_of(name, outside, max_cost), outside, KILLS // 3)
    assert done.code == 4 or name == "conversations", done.out + done.err
    money = money_in(done.out)
    print(f"{name}: billed ${billed(provider):.4f}, {money}")
    assert money["spent"] - 1e-6 <= billed(provider) <= money["at_most"] + 1e-6 <= max_cost + 2e-6
    # A higher limit goes on from there, and what may have been billed stays counted.
    provider.set_faults()
    more = finish(start(home, *command_of(name, outside, max_cost + 0.5), **outside.variables), within_s=120)
    assert billed(provider) <= money_in(more.out)["at_most"] + 1e-6 <= max_cost + 0.5 + 2e-6


@pytest.mark.parametrize(("name", "max_cost"), [("run", 4.0), ("batch", 1.0)])
def test_without_kills_at_least_95_percent_of_the_limit_is_spent(
    outside: Outside, home: Path, name: str, max_cost: float
) -> None:
    done = finish(start(home, *command_of(name, outside, max_cost), **outside.variables), within_s=120)
    assert done.code == 4, done.out + done.err
    money = money_in(done.out)
    assert 0.95 * max_cost <= money["spent"] == money["at_most"] <= max_cost
    assert money["spent"] == pytest.approx(billed(outside.provider))
