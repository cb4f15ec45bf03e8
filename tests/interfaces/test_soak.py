"""A gateway and a run for long under faults: what the process holds in memory, descriptors, threads, tasks and timers
does not grow, and nothing is left at the end.

Some seconds here, an hour in `make torture`.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random
from statistics import median

import pytest
from command_line import Provider, environment
from gateways import Client, question
from soaked import Held
from torture import IS_LONG, SEED, record, times

pytestmark = pytest.mark.process

SECONDS = times(8, 3_600)
CLIENTS = 6
# Questions are counted by the gateway, so a new one costs it memory; asked again, each is a new trial.
QUESTIONS = 200
FAULTS = (
    *("rate_limited_ms=20,rate=0.02", "server_error,rate=0.02", "refuse,rate=0.01", "refuse=reset,rate=0.01"),
    *("reset_body,rate=0.01", "cut_chunk,rate=0.01", "truncated_json,rate=0.01", "short_content_length,rate=0.01"),
    *("early_close,rate=0.02", "reset_keepalive,rate=0.02", "stream_cut=before,rate=0.01", "rejected=422,rate=0.01"),
    *("slow_body=0.2,rate=0.02", "empty_choices,rate=0.01", "bad_gateway,rate=0.01"),
)
OUTAGE = "down,until=2"
# What may be open once all is over: a kept connection to the provider and the timer that closes it, the thread that
# read the input.
# Of the files some are those of two engines' leases, which are opened as keys are taken.
LEFT = {"files": 32, "threads": 2, "tasks": 0, "timers": 4}
PROGRAM = Path(__file__).parent.parent / "support" / "soaked.py"


class Soaking:
    """The clients of a gateway in a process of its own, and what that process said it holds."""

    def __init__(self, process: asyncio.subprocess.Process, port: int) -> None:
        self.said = list[Held]()
        self.ends: Counter[str] = Counter()
        self.port = port
        self._process = process
        self._until = time.monotonic() + SECONDS

    async def listen(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            self.said.append(Held(*json.loads(line)))

    async def ask(self, random: Random) -> None:
        """One client: patient, impatient, streaming, garbled, in turn."""
        while time.monotonic() < self._until:
            kind = random.choice(("whole", "whole", "streamed", "hung up", "cut off", "garbage", "idle"))
            try:
                async with asyncio.timeout(20), Client(self.port) as client:
                    await self._ask(client, kind, random)
                self.ends[kind] += 1
            except (OSError, EOFError, ValueError):
                self.ends[f"{kind}, broken"] += 1

    async def _ask(self, client: Client, kind: str, random: Random) -> None:
        text = f"question {random.randrange(QUESTIONS)} of a client: A or B?"
        match kind:
            case "garbage":
                client.send(random.randbytes(random.randrange(1, 4_000)) + b"\r\n\r\n")
                await client.answer()
            case "idle":
                await asyncio.sleep(random.uniform(0.0, 0.5))
            case "cut off":
                client.send(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 400\r\n\r\n{")
            case _:
                client.post(question(text, stream=kind != "whole"))
                if kind == "hung up":
                    await asyncio.sleep(random.uniform(0.0, 0.05))
                else:
                    await client.answer()


async def soak(provider: Provider, home: Path) -> Soaking:
    """Returns what was said, after the time has passed and the process has ended."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", str(PROGRAM), provider.base_url, str(home)),
        env=environment(home, PYTHONPATH=":".join(path for path in sys.path if path), LAB_KEY="sk-lab"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None and process.stdin is not None
    first = Held(*json.loads(await process.stdout.readline()))
    soaking = Soaking(process, first.port)
    soaking.said.append(first)
    heard = asyncio.create_task(soaking.listen())
    random = Random(SEED)
    async with asyncio.TaskGroup() as clients:
        outages = clients.create_task(_break_often(provider))
        await asyncio.gather(*(soaking.ask(Random(random.random())) for _ in range(CLIENTS)))
        outages.cancel()
    process.stdin.close()
    assert await asyncio.wait_for(process.wait(), 60) == 0
    await heard
    return soaking


async def _break_often(provider: Provider) -> None:
    """Faults of every kind at random, and an outage of two seconds in every minute of the long form."""
    while True:
        if IS_LONG:
            await asyncio.to_thread(provider.set_faults, OUTAGE, *FAULTS)
        else:
            await asyncio.to_thread(provider.set_faults, *FAULTS)
        await asyncio.sleep(60)


def quarter(said: list[Held], number: int) -> list[Held]:
    size = len(said) // 4
    return said[size * (number - 1) : size * number]


@pytest.mark.timeout(SECONDS + 120)
def test_a_gateway_and_a_run_hold_no_more_after_hours_of_faults_than_after_minutes(
    provider: Provider, tmp_path: Path
) -> None:
    try:
        soaking = asyncio.run(soak(provider, tmp_path))
    finally:
        provider.reset()  # not all tests after this one do
    first, *said, last = soaking.said
    assert last.answered > 5 * SECONDS and last.failed, "the run was under way, and faults struck it"
    assert soaking.ends["whole"] > SECONDS and soaking.ends["hung up"] > SECONDS // 2, soaking.ends
    early, late = quarter(said, 2), quarter(said, 4)
    # Half a percent of an hour's calls with a kilobyte each would be more.
    grown = (median(held.memory for held in late) - median(held.memory for held in early)) / 1024
    assert grown <= times(8, 4), f"{grown:.1f} MiB more"
    for name in ("files", "threads", "tasks", "timers"):
        before, after = (max(getattr(held, name) for held in part) for part in (early, late))
        assert after <= before + max(8, before // 4), f"{name}: {before} early, {after} late"
        assert getattr(last, name) <= getattr(first, name) + LEFT[name], f"{name}: {first} at first, {last} at last"
    asked = soaking.ends.total()
    calls = f"{last.answered + last.failed:,} calls of a run, {asked:,} clients of a gateway"
    worst = f"{SECONDS:,} s, {calls}: {grown:+.1f} MiB from the second quarter to the last"
    record("10", 1, 1, worst, f"{SEED}")
