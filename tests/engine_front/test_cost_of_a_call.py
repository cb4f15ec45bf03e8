"""What a call costs inside: tasks, futures, frames of this program and objects that only the garbage collector frees,
counted over many calls of one warm engine.

A frame counts each time it is entered: a function that is called, a coroutine that begins or goes on. The figures are
ceilings, for frames 5% above what was counted. Whoever makes a call cheaper writes down the new ones.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from chat_server import MODEL, PRICE, ChatServer, settings_for

import millstream as ms

COUNT = 200
# Calls are alike, so an average differs from a whole number by what is made once for all, or now and then.
SLACK = 0.2
ROOT = str(Path(ms.__file__).parent)
OUTSIDE = (f"{ROOT}/tests/", f"{ROOT}/.venv/")


class CountingLoop(asyncio.SelectorEventLoop):
    """Counts the futures and tasks that are made in it."""

    def __init__(self) -> None:
        super().__init__()
        self.futures = 0
        self.tasks = 0
        self.set_task_factory(self._task)

    def create_future(self) -> asyncio.Future[Any]:
        self.futures += 1
        return super().create_future()

    def _task(self, loop: asyncio.AbstractEventLoop, work: Any, **more: Any) -> asyncio.Task[Any]:
        self.tasks += 1
        return asyncio.Task(work, loop=loop, **more)


class Counted:
    """What was made in the loop for each call, on the average."""

    def __init__(self) -> None:
        self.tasks = 0.0
        self.futures = 0.0
        self.frames = 0.0
        self.garbage = 0.0

    @contextmanager
    def counting(self, loop: CountingLoop, calls: int) -> Iterator[None]:
        frames = 0
        ours: dict[Any, bool] = {}

        def note(frame: FrameType, event: str, argument: object) -> None:
            nonlocal frames
            if event == "call":
                code = frame.f_code
                if (is_ours := ours.get(code)) is None:
                    name = code.co_filename
                    is_ours = ours[code] = name.startswith(ROOT) and not name.startswith(OUTSIDE)
                frames += is_ours

        tasks, futures = loop.tasks, loop.futures
        gc.collect()
        gc.disable()
        sys.setprofile(note)
        try:
            yield
        finally:
            sys.setprofile(None)
            self.garbage = gc.collect() / calls
            gc.enable()
            self.tasks = (loop.tasks - tasks) / calls
            self.futures = (loop.futures - futures) / calls
            self.frames = frames / calls


@contextmanager
def server_elsewhere() -> Iterator[str]:
    """The address of a server in a thread of its own, whose tasks and frames are nobody's here."""
    started, over = threading.Event(), asyncio.Event()
    address, loop = "", asyncio.new_event_loop()

    async def serve() -> None:
        nonlocal address
        async with ChatServer() as server:
            address = server.base_url
            started.set()
            await over.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    try:
        assert started.wait(10)
        yield address
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(10)
        loop.close()


def calls(word: str) -> list[ms.Call]:
    return [ms.Call(MODEL, f"{word} {number}", max_tokens=20) for number in range(COUNT)]


Way = Callable[[ms.Engine, list[ms.Call]], Coroutine[Any, Any, None]]


async def by_run(engine: ms.Engine, wanted: list[ms.Call]) -> None:
    async for outcome in engine.run(wanted):
        assert outcome.reply is not None


async def by_ask(engine: ms.Engine, wanted: list[ms.Call]) -> None:
    for call in wanted:
        assert (await engine.ask(call)).reply is not None


def counted(folder: Path, way: Way, *, concurrency: int = 1, is_stored: bool = False, is_warm: bool = True) -> Counted:
    """Calls with a declared quota and a limit of cost, as a careful program has them."""
    count = Counted()

    async def main(address: str) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, CountingLoop)
        lane = ms.Lane(MODEL, rpm=1e6, tpm=1e9, concurrency=concurrency)
        made = settings_for(address, folder, lane, prices={MODEL: PRICE}, max_cost=1e6)
        async with ms.Engine(settings=made) as engine:
            if is_warm:
                await way(engine, calls("warm"))
            wanted = calls("warm" if is_stored else "counted")
            with count.counting(loop, COUNT):
                await way(engine, wanted)

    with server_elsewhere() as address, asyncio.Runner(loop_factory=CountingLoop) as runner:
        runner.run(main(address))
    return count


class Ceiling(NamedTuple):
    """The most that a call may make."""

    tasks: int
    futures: int
    frames: int

    def check(self, count: Counted) -> None:
        assert count.tasks <= self.tasks + SLACK
        assert count.futures <= self.futures + SLACK
        assert count.garbage <= SLACK
        assert count.frames <= self.frames


def test_a_call_of_a_run(tmp_path: Path) -> None:
    # One after another, and the consumer waits for each; 153.8 frames were counted.
    Ceiling(0, 1, 161).check(counted(tmp_path, by_run))


def test_a_call_of_a_run_of_many_at_once(tmp_path: Path) -> None:
    # 135.2 frames were counted.
    Ceiling(0, 0, 142).check(counted(tmp_path, by_run, concurrency=16))


def test_first_calls_which_wait_for_a_connection_leave_no_garbage(tmp_path: Path) -> None:
    assert counted(tmp_path, by_run, concurrency=COUNT, is_warm=False).garbage <= SLACK


def test_a_call_that_is_asked(tmp_path: Path) -> None:
    # 150.5 frames were counted.
    Ceiling(0, 1, 158).check(counted(tmp_path, by_ask))


def test_a_stored_call_of_a_run(tmp_path: Path) -> None:
    # 24.2 frames were counted.
    Ceiling(0, 0, 25).check(counted(tmp_path, by_run, is_stored=True))


def test_a_stored_call_that_is_asked(tmp_path: Path) -> None:
    # 25 frames were counted.
    Ceiling(0, 0, 26).check(counted(tmp_path, by_ask, is_stored=True))
