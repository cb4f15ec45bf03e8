"""One lazy iterator of calls, shared by the workers of all lanes.

A worker takes the next call of its own lane. Calls of other lanes that it reads wait in a bounded look-ahead; when that
is full the worker waits instead of reading on, so a million calls need no memory. Short-lived lanes (web hosts) share
one bound and one reader; their workers leave instead of waiting.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator

from .call import Call

LOOK_AHEAD = 256
# Calls of short-lived lanes, read ahead and in work together: each may be of another lane.
PASSING_MAX = 1024
# Stands for all short-lived lanes among the lanes whose look-ahead is full.
_PASSING = "\0"
# An endless iterator of a dead lane's calls must come to an end too.
PASSED_OVER_MAX = 1_000_000


class Intake:
    """The shared reader of a run's calls. `lane_of` names a call's lane; `begin_lane` is called with a lane
    at every call that is read ahead for it. The workers of a short-lived lane (`is_passing`) leave when no call is at
    hand."""

    def __init__(
        self,
        calls: Iterable[Call] | AsyncIterable[Call],
        lane_of: Callable[[Call], str],
        begin_lane: Callable[[str], None],
        is_passing: Callable[[str], bool] = lambda lane: False,
    ) -> None:
        self._iterator: Iterator[Call] | None = None
        self._async_iterator: AsyncIterator[Call] | None = None
        if isinstance(calls, AsyncIterable):
            self._async_iterator = aiter(calls)
        else:
            self._iterator = iter(calls)
        self._lane_of = lane_of
        self._begin_lane = begin_lane
        self._is_passing = is_passing
        self._passing = 0
        self._ahead: dict[str, deque[Call]] = {}
        self._dropped: set[str] = set()
        self._full: set[str] = set()
        self._is_exhausted = False
        self._unbroken = 0
        self._reading = asyncio.Lock()
        self._reader: asyncio.Task[object] | None = None
        self._changed = asyncio.Event()

    def close(self) -> None:
        """Ends the intake: no more calls are handed out, those read ahead included."""
        self._is_exhausted = True
        self._ahead = {lane: deque() for lane in self._ahead}
        self._full.clear()
        if self._reader is not None:
            self._reader.cancel()
        self._stir()

    def drop(self, lane: str) -> None:
        """Skips all calls of a lane that has stopped, so that they never block another lane's."""
        self._dropped.add(lane)
        self._full.discard(lane)
        self._ahead[lane].clear()
        self._stir()

    async def begin(self) -> None:
        """Reads the first call, so that its lane's workers start."""
        call = await self._read()
        if call is not None:
            self._keep(self._lane_of(call), call)
        else:
            self._is_exhausted = True

    def take_kept(self, lane: str) -> Call | None:
        """Returns the lane's next call among those read ahead; None if there is none."""
        ahead = self._ahead[lane]
        if not ahead:
            return None
        call = ahead.popleft()
        if len(ahead) == LOOK_AHEAD - 1:
            self._full.discard(lane)
            self._stir()
        return call

    def take_now(self, lane: str) -> Call | None:
        """Returns the lane's next call if it is at hand, else None; never awaits, so no call is taken twice."""
        if self._ahead[lane]:
            return self.take_kept(lane)
        if self._iterator is None or self._is_exhausted or self._full:
            return None
        for passed, call in enumerate(self._iterator, 1):
            own = self._lane_of(call)
            if own == lane:
                return call
            # Where a look-ahead is full, reading on would need memory without bound; and calls of a dropped lane may
            # follow each other for ever.
            if self._keep(own, call) or passed == LOOK_AHEAD:
                return None
        self._is_exhausted = True
        self._stir()
        return None

    async def take(self, lane: str) -> Call | None:
        """Waits for the lane's next call and returns it; None when there are no more, or the lane has stopped."""
        while True:
            call = self.take_now(lane)
            if call is not None:
                return call
            if lane in self._dropped or (self._is_exhausted and not self._ahead[lane]):
                return None
            if self._full:
                self._changed.clear()
                await self._changed.wait()
            elif self._async_iterator is not None:
                await self._read_one(lane)
                await self._let_others()
            else:
                await asyncio.sleep(0)

    async def read_on(self) -> None:
        """Reads calls ahead to the end, as far as there is room; for short-lived lanes, whose workers don't read."""
        while not self._is_exhausted:
            if self._full:
                self._changed.clear()
                await self._changed.wait()
            elif self._iterator is not None:
                call = next(self._iterator, None)
                if call is not None:
                    self._keep(self._lane_of(call), call)
                else:
                    self._is_exhausted = True
                    self._stir()
            else:
                await self._read_one(None)
            await self._let_others()

    def end_passing(self) -> None:
        """Notes that a call of a short-lived lane is finished, so that another may be read."""
        self._passing -= 1
        if self._passing == PASSING_MAX - 1:
            self._full.discard(_PASSING)
            self._stir()

    def leave(self, lane: str) -> None:
        """Forgets a short-lived lane that its last worker has left, unless it has calls."""
        if not self._ahead[lane]:
            del self._ahead[lane]

    async def pass_over(self) -> None:
        """Reads on to the first call of a new lane, so that its workers start, if every lane so far has stopped."""
        async with self._reading:
            for _ in range(PASSED_OVER_MAX):
                if self._is_exhausted or not self._ahead.keys() <= self._dropped:
                    return
                call = await self._read()
                if call is None:
                    self._is_exhausted = True
                else:
                    self._keep(self._lane_of(call), call)
                await self._let_others()

    async def _let_others(self) -> None:
        """Lets the loop go on after some reads: an iterator of calls may never do so itself."""
        self._unbroken += 1
        if self._unbroken >= LOOK_AHEAD:
            self._unbroken = 0
            await asyncio.sleep(0)

    async def _read_one(self, lane: str | None) -> None:
        async with self._reading:
            # The worker that read before may have read this lane's call, or filled another's look-ahead.
            if self._is_exhausted or self._full or (lane is not None and self._ahead[lane]):
                return
            call = await self._read()
            if call is None:
                self._is_exhausted = True
            else:
                self._keep(self._lane_of(call), call)
        self._stir()

    async def _read(self) -> Call | None:
        if self._iterator is not None:
            return next(self._iterator, None)
        assert self._async_iterator is not None
        reader = self._reader = asyncio.current_task()
        try:
            return await anext(self._async_iterator, None)
        except asyncio.CancelledError:
            # `close` cancels the read of a call that may never arrive; any other cancellation passes.
            if not self._is_exhausted or reader is None or reader.uncancel() > 0:
                raise
            return None
        finally:
            self._reader = None

    def _keep(self, lane: str, call: Call) -> bool:
        """Adds a call to its lane's look-ahead; returns whether that is now full."""
        is_passing = self._is_passing(lane)
        if lane not in self._ahead:
            self._ahead[lane] = deque()
        if lane in self._dropped:
            return False
        self._ahead[lane].append(call)
        self._begin_lane(lane)
        if is_passing:
            self._passing += 1
            if self._passing == PASSING_MAX:
                self._full.add(_PASSING)
        self._stir()
        if len(self._ahead[lane]) >= LOOK_AHEAD:
            self._full.add(lane)
        return lane in self._full or (is_passing and _PASSING in self._full)

    def _stir(self) -> None:
        self._changed.set()
