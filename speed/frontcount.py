"""What one call costs inside `ms.Engine`, counted: `python -m … URL` prints Python frames, tasks and futures a call.

Counts 500 calls, after as many to warm up, of `run` and of `ask`. The program's own frames, tasks and futures don't
count.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
import uvloop
from msgspec import Struct

from ..engine.call import Call
from .clients import Program, calls_of
from .floor import IN_FLIGHT

CALLS = 500
_SPEED = Path(__file__).parent


class CallCost(Struct, frozen=True):
    """Means of a call. `modules` has the frames of each module, the most first."""

    frames: float
    tasks: float
    futures: float
    modules: dict[str, float]


class CountingLoop(uvloop.Loop):
    """uvloop's loop, which counts the frames of its thread, and its tasks and futures, while `is_counting`."""

    is_counting = False
    tasks = futures = 0

    def create_task(self, *arguments: Any, **options: Any) -> asyncio.Task[Any]:
        self.tasks += self.is_counting
        return super().create_task(*arguments, **options)

    def create_future(self) -> asyncio.Future[Any]:
        self.futures += self.is_counting
        return super().create_future()


async def run(program: Program, calls: Iterator[Call]) -> None:
    async for _ in program.engine.run(calls, program):
        pass


async def ask(program: Program, calls: Iterator[Call]) -> None:
    async def work() -> None:
        for call in calls:
            await program.engine.ask(call)

    await asyncio.gather(*(work() for _ in range(IN_FLIGHT)))


VERBS: dict[str, Callable[[Program, Iterator[Call]], Awaitable[None]]] = {"run": run, "ask": ask}


def cost_of(verb: str, url: str) -> CallCost:
    """Counts in a loop of its own. Nothing else may run in this thread."""
    files: Counter[str] = Counter()

    def enter(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            files[frame.f_code.co_filename] += 1

    def counted(calls: Iterator[Call]) -> Iterator[Call]:
        """Begins to count when the first call is taken: the tasks that take them exist by then."""
        loop.is_counting = True
        sys.setprofile(enter)
        yield from calls

    async def send_all() -> None:
        with tempfile.TemporaryDirectory(prefix="millstream-bench-") as name:
            calls = calls_of(2 * CALLS)
            async with Program(url, Path(name)) as program:
                await VERBS[verb](program, islice(calls, CALLS))
                await VERBS[verb](program, counted(calls))
                sys.setprofile(None)
                loop.is_counting = False

    with asyncio.Runner(loop_factory=CountingLoop) as runner:
        loop: Any = runner.get_loop()
        runner.run(send_all())
    modules = {_module(Path(file)): count / CALLS for file, count in files.most_common() if Path(file).parent != _SPEED}
    return CallCost(sum(modules.values()), loop.tasks / CALLS, loop.futures / CALLS, modules)


def _module(file: Path) -> str:
    return str(file.relative_to(_SPEED.parent) if file.is_relative_to(_SPEED.parent) else file)


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.json.encode({verb: cost_of(verb, sys.argv[1]) for verb in VERBS}))
