"""What one call costs inside `ms.Engine`, counted: `python -m … URL` prints Python frames, tasks and futures a call.

Counts 500 calls, after as many to warm up, of `run` and of `ask`. The program's own frames, tasks and futures don't
count.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import orjson
import uvloop
from msgspec import Struct
from msgspec.structs import asdict

from ..engine.call import Call
from .clients import MODEL, Program, prompts
from .floor import IN_FLIGHT

CALLS = 500
_OURS = str(Path(__file__).parent)
_ROOT = Path(__file__).parent.parent


class CallCost(Struct, frozen=True):
    """Means of a call; `modules` are the frames of each module, the most first."""

    frames: float
    tasks: float
    futures: float
    modules: dict[str, float]


class CountingLoop(uvloop.Loop):
    """uvloop's loop, which counts the frames of its thread, and its tasks and futures, from `begin` to `end`."""

    def __init__(self) -> None:
        self.is_counting = False
        self.tasks = self.futures = 0
        self.files: Counter[str] = Counter()

    def begin(self) -> None:
        if not self.is_counting:
            self.is_counting = True
            sys.setprofile(self._enter)

    def end(self, calls: int) -> CallCost:
        sys.setprofile(None)
        self.is_counting = False
        files = {name: count for name, count in self.files.items() if not name.startswith(_OURS)}
        ranked = sorted(files.items(), key=lambda item: -item[1])
        modules = {_short(name): count / calls for name, count in ranked}
        return CallCost(sum(files.values()) / calls, self.tasks / calls, self.futures / calls, modules)

    def _enter(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            self.files[frame.f_code.co_filename] += 1

    def create_task(self, coro: Coroutine[Any, Any, Any], **options: Any) -> asyncio.Task[Any]:  # type: ignore[override]
        self.tasks += self.is_counting
        return super().create_task(coro, **options)

    def create_future(self) -> asyncio.Future[Any]:
        self.futures += self.is_counting
        return super().create_future()


async def counted_run(url: str, folder: Path) -> CallCost:
    loop = _counting()
    program, waiting = Program(url, folder), _calls()
    async with program:
        for is_counted in (False, True):
            if is_counted:
                loop.begin()
            async for _ in program.engine.run((next(waiting) for _ in range(CALLS)), program):
                pass
        return loop.end(CALLS)


async def counted_ask(url: str, folder: Path) -> CallCost:
    loop = _counting()
    program, waiting = Program(url, folder), _calls()

    async def work(calls: Iterator[Call], *, is_counted: bool) -> None:
        if is_counted:
            loop.begin()
        for call in calls:
            await program.engine.ask(call)

    async with program:
        for is_counted in (False, True):
            calls = (next(waiting) for _ in range(CALLS))
            await asyncio.gather(*(work(calls, is_counted=is_counted) for _ in range(IN_FLIGHT)))
        return loop.end(CALLS)


def _counting() -> CountingLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, CountingLoop)
    return loop


def _calls() -> Iterator[Call]:
    return (Call(MODEL, prompt, tag=number) for number, prompt in enumerate(prompts(2 * CALLS)))


def _short(name: str) -> str:
    path = Path(name)
    return str(path.relative_to(_ROOT)) if path.is_relative_to(_ROOT) else f"{path.parent.name}/{path.name}"


def cost_of(count: Callable[[str, Path], Awaitable[CallCost]], url: str) -> CallCost:
    """Counts in a loop of its own. Nothing else may run in this thread."""

    async def counted() -> CallCost:
        with tempfile.TemporaryDirectory(prefix="millstream-bench-") as name:
            return await count(url, Path(name))

    with asyncio.Runner(loop_factory=CountingLoop) as runner:
        return runner.run(counted())


def main() -> int:
    costs = {"run": cost_of(counted_run, sys.argv[1]), "ask": cost_of(counted_ask, sys.argv[1])}
    sys.stdout.buffer.write(orjson.dumps({name: asdict(cost) for name, cost in costs.items()}) + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
