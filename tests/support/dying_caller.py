"""A program that asks calls through the public names, and dies where it is told to.

    python dying_caller.py ADDRESS FOLDER PLACE COUNT CONCURRENCY

Its sink writes a line for each outcome to FOLDER/lines, as a journal would. PLACE is where it kills itself, when it is
there for the third time: `paid` (the answer has come, and is not stored), `write` (it is stored, and not in the sink),
`flush` (it is in the sink, and nobody has seen it), `seen` (its outcome was taken). Or it is killed from outside; with
`quota` it may send one call a minute.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from chat_server import MODEL, settings_for

import millstream as ms


class Death:
    """Kills this process at its third time at a place."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._count = 0

    def at(self, place: str) -> None:
        self._count += place == self._place
        if self._count == 3:
            os.kill(os.getpid(), signal.SIGKILL)


class Lines:
    """A journal without anything but the prompts."""

    fault: ms.LocalFault | None = None

    def __init__(self, path: Path, death: Death) -> None:
        self._file = path.open("a")
        self._death = death

    def write(self, outcome: ms.Outcome) -> None:
        self._death.at("write")
        if outcome.status == "ok":
            self._file.write(f"{outcome.call.input}\n")

    def flush(self) -> None:
        self._file.flush()
        self._death.at("flush")


async def main(address: str, folder: Path, place: str, count: int, concurrency: int) -> None:
    death = Death(place)
    lane = ms.Lane(MODEL, concurrency=concurrency, rpm=1 if place == "quota" else None)
    price = ms.Price(1e5, 1e5)
    async with ms.Engine(settings=settings_for(address, folder / "cache", lane, prices={MODEL: price})) as engine:
        engine.events.subscribe(lambda event: death.at("paid") if event.kind == "spent" else None)
        calls = (ms.Call(MODEL, f"prompt {number}", max_tokens=20) for number in range(count))
        async for _ in engine.run(calls, Lines(folder / "lines", death)):
            death.at("seen")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5])))
