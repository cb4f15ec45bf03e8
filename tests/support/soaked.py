"""A gateway and a run in one process, which says twice a second what it holds: `python soaked.py ADDRESS FOLDER`.

It ends when its standard input does. Each line of its output is a `Held`; the first and the last are those of a process
that does nothing, before its first call and after its last.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import re
import sys
import threading
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path
from typing import NamedTuple

from gateways import MODEL, QUICK, gateway_before, settings_to
from msgspec import structs
from open_files import open_files

import millstream as ms

INTERVAL_S = 0.5
# An outage is to be outlived.
PATIENT = structs.replace(QUICK, patience_s=60.0)
# Of the run, so that the clients of the gateway get a share of one processor.
CALLS_A_MINUTE = 6_000


class Held(NamedTuple):
    """What a process holds: memory of its own in KiB (not that of mapped files), descriptors, threads, and tasks and
    timers of its loop. `answered` and `failed` count the run's calls, `port` is the gateway's."""

    memory: int
    files: int
    threads: int
    tasks: int
    timers: int
    answered: int
    failed: int
    port: int


class Soaked:
    """The run's counts, and what the process holds beside them."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.answered = self.failed = 0
        self.is_over = False

    def say(self) -> None:
        status = Path("/proc/self/status").read_text()
        memory = re.search(r"^RssAnon:\s+(\d+) kB", status, re.MULTILINE)
        assert memory is not None, status
        loop = asyncio.get_running_loop()
        timers = [timer for timer in loop._scheduled if not timer.cancelled()]  # type: ignore[attr-defined]
        tasks = len(asyncio.all_tasks())
        own = Held(
            *(int(memory[1]), open_files(), threading.active_count(), tasks, len(timers)),
            *(self.answered, self.failed, self.port),
        )
        print(json.dumps(own), flush=True)

    async def calls(self) -> AsyncIterator[ms.Call]:
        """New questions until the input ends."""
        for number in count():
            if self.is_over:
                return
            yield ms.Call(MODEL, f"question {number} of the run: A or B?", max_tokens=100)


async def soak(base_url: str, folder: Path) -> None:
    async with gateway_before(base_url, folder, policy=PATIENT) as running:
        soaked = Soaked(running.port)
        lane = ms.Lane(MODEL, concurrency=8, rpm=CALLS_A_MINUTE)
        async with ms.Engine(settings=settings_to(base_url, folder / "run", policy=PATIENT, lanes=(lane,))) as engine:
            soaked.say()
            over = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
            said = asyncio.create_task(_say_often(soaked))
            over.add_done_callback(lambda _: setattr(soaked, "is_over", True))
            async for outcome in engine.run(soaked.calls()):
                soaked.answered += outcome.status == "ok"
                soaked.failed += outcome.status != "ok"
            said.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await said
            await asyncio.sleep(1.0)
            gc.collect()
            soaked.say()


async def _say_often(soaked: Soaked) -> None:
    while True:
        await asyncio.sleep(INTERVAL_S)
        soaked.say()


if __name__ == "__main__":
    asyncio.run(soak(sys.argv[1], Path(sys.argv[2])))
