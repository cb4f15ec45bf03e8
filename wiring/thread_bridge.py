"""A bounded exchange between a thread that takes outcomes and the loop that makes them: calls one way, outcomes the
other.

The thread that takes the outcomes also reads the input, and no other does. There is no lock: each side appends where
the other takes from the opposite end, so that even a garbage collection in between can't cause a deadlock.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, suppress
from queue import SimpleQueue
from typing import cast

from ..engine.call import Call, Outcome
from ..engine.sink import Sink
from .engine import Engine

CALLS_AHEAD = 256
OUTCOMES_AHEAD = 256
_CALLS_FEW = CALLS_AHEAD // 2
# An input that takes longer to give a call doesn't hold up outcomes that are there.
_PATIENCE_S = 0.02


class _Sign:
    """A mark in the queue of outcomes that is no outcome: more calls are needed, or the run has ended."""


_HUNGRY, _ENDED = _Sign(), _Sign()
CLOSED_MEANWHILE = "the engine was closed while this was under way: what had been answered is in the cache"


class Flow:
    """One run between the thread that takes its outcomes (the taker) and the loop that makes them. `ended` is set when
    the loop's side is over."""

    def __init__(self, calls: Iterator[Call], loop: asyncio.AbstractEventLoop) -> None:
        self.ended = threading.Event()
        self._task: asyncio.Task[None] | None = None
        self._input = calls
        self._loop = loop
        self._calls: deque[Call] = deque()
        self._is_exhausted = False
        self._input_error: Exception | None = None
        self._error: BaseException | None = None
        self._outcomes: SimpleQueue[Outcome | _Sign] = SimpleQueue()
        self._fed = asyncio.Event()
        self._room = asyncio.Event()
        self._is_starving = False
        self._is_full = False

    def __repr__(self) -> str:
        return f"<Flow [{len(self._calls)} calls ahead, {self._outcomes.qsize()} outcomes to be taken]>"

    # In the taker's thread

    def outcomes(self) -> Iterator[Outcome]:
        """Yields outcomes. At the end it raises the run's error, else the input's."""
        while True:
            # Never waits for outcomes while there is room for calls: no other thread would add them.
            self._read_ahead()
            item = self._outcomes.get()
            if self._is_full and self._outcomes.qsize() < OUTCOMES_AHEAD // 2:
                self._is_full = False
                self._tell(self._room.set)
            if item is _ENDED:
                break
            if item is not _HUNGRY:
                yield cast(Outcome, item)
        error = self._error or self._input_error
        if error is not None:
            raise error

    def cut(self) -> None:
        """Cancels the run in the loop, unless it has ended."""
        if not self.ended.is_set():
            self._tell(self._cancel)

    def _tell(self, callback: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # the loop is closed, and so is the run
            self._loop.call_soon_threadsafe(callback)

    def _read_ahead(self) -> None:
        began = time.monotonic()
        while not self._is_exhausted and len(self._calls) < CALLS_AHEAD:
            if not self._outcomes.empty() and time.monotonic() - began > _PATIENCE_S:
                return
            try:
                call = next(self._input)
            except StopIteration:
                self._is_exhausted = True
            except Exception as error:  # noqa: BLE001
                # The input is over. Calls in flight have been paid for: their outcomes are yielded before the error is
                # raised.
                self._input_error = error
                self._is_exhausted = True
            else:
                self._calls.append(call)
            # The loop looks once more after it has set `_is_starving`, so no call is missed.
            if self._is_starving:
                self._is_starving = False
                self._tell(self._fed.set)

    # In the loop's thread

    def begin(self, engine: Engine, sink: Sink | None) -> asyncio.Task[None]:
        self._task = self._loop.create_task(self._pump(engine, sink))
        # A task that is cancelled before its first step never runs: its end is reported from outside.
        self._task.add_done_callback(self._end)
        return self._task

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _end(self, task: asyncio.Task[None]) -> None:
        """Ends the loop's side. Its error goes to the taker only."""
        self._error = RuntimeError(CLOSED_MEANWHILE) if task.cancelled() else task.exception()
        self._outcomes.put(_ENDED)
        self.ended.set()

    async def _pump(self, engine: Engine, sink: Sink | None) -> None:
        async with aclosing(self._feed()) as feed, aclosing(engine.run(feed, sink)) as run:
            async for outcome in run:
                self._outcomes.put(outcome)
                if self._outcomes.qsize() >= OUTCOMES_AHEAD:
                    await self._wait_for_room()

    async def _feed(self) -> AsyncGenerator[Call, None]:
        while True:
            while self._calls:
                call = self._calls.popleft()
                if len(self._calls) == _CALLS_FEW:
                    self._outcomes.put(_HUNGRY)
                yield call
            self._fed.clear()
            # Asked before the calls are looked at again: later ones set `_fed`.
            self._is_starving = True
            is_exhausted = self._is_exhausted
            if self._calls:
                continue
            if is_exhausted:
                return
            await self._fed.wait()

    async def _wait_for_room(self) -> None:
        self._room.clear()
        self._is_full = True
        # The taker may have made room before `_is_full` was set.
        if self._outcomes.qsize() >= OUTCOMES_AHEAD:
            await self._room.wait()
        self._is_full = False
