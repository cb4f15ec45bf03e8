"""Providers that say nothing of their limits, and endless calls to them through one key's gate, in virtual time."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, Protocol

from virtual_time import run_virtually

from millstream.engine.attempts.retry import RetryPolicy
from millstream.engine.endpoint import Fault
from millstream.engine.fault import Stop
from millstream.engine.lane import Lane
from millstream.engine.lanes.key_gate import KeyGate, Payer, Permit
from millstream.engine.lanes.lane_files import LaneMemory
from millstream.engine.lanes.lane_queue import LaneQueue
from millstream.engine.limits import Tokens
from millstream.engine.verdict import Tries, verdict

REFUSED = Fault("rate_limited", "429", "throttle", 429, cuts_rate=True)
_REQUEST: Any = SimpleNamespace(instead=None)
# Calls that wait, so that the lane never lacks any.
_WAITING = 32
_ON_THE_WAY_S = 0.02

Draw = Callable[[random.Random], float]


class Limiter(Protocol):
    def admits(self, now: float) -> bool: ...


class Bucket:
    """Admits so many a second, and as many at once as one second brings."""

    def __init__(self, per_s: float) -> None:
        self.per_s = per_s
        self._most = self._left = max(1.0, per_s)
        self._at = 0.0

    def admits(self, now: float) -> bool:
        self._left, self._at = min(self._most, self._left + (now - self._at) * self.per_s), now
        if self._left < 1 - 1e-9:
            return False
        self._left -= 1
        return True


class SlidingWindow:
    """Admits a whole number of calls in any so many seconds, which make up about `per_s` a second."""

    def __init__(self, per_s: float, window_s: float) -> None:
        self._most, self._window_s = max(1, round(per_s * window_s)), window_s
        self.per_s = self._most / window_s
        self._admitted: deque[float] = deque()

    def admits(self, now: float) -> bool:
        while self._admitted and self._admitted[0] <= now - self._window_s:
            self._admitted.popleft()
        if len(self._admitted) == self._most:
            return False
        self._admitted.append(now)
        return True


class Endless:
    """Endless calls through one key's gate to a provider whose answers take as long as `latency` draws. `limiter`
    refuses calls, after `refusing` seconds; `servers` calls are worked on at a time, and the others wait. Keeps when
    calls were sent, and with how many in flight, refused and answered."""

    def __init__(
        self,
        latency: Draw,
        *,
        limiter: Limiter | None = None,
        refusing: Draw | None = None,
        servers: int | None = None,
        lane: Lane | None = None,
        memory: LaneMemory | None = None,
        seed: int = 1,
        fault: Fault = REFUSED,
    ) -> None:
        self.gate = KeyGate(lane or Lane("hidden/m"), RetryPolicy(), memory=memory)
        self.lane = LaneQueue([self.gate])
        self.latency, self.refusing = latency, refusing or latency
        self.limiter, self._free = limiter, servers
        self.fault = fault
        self.sent: list[tuple[float, int]] = []
        self.refused: list[float] = []
        self.answered: list[float] = []
        self.failed = 0
        self._random = random.Random(seed)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._queue: deque[_Call] = deque()

    def run(self, length_s: float) -> Endless:
        run_together([self], length_s)
        return self

    def begin(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._fill()

    def end(self) -> None:
        """Begins no more calls, and writes down what is remembered."""
        self._loop = None
        self.gate.close()

    def rate(self, since: float, until: float) -> float:
        """Returns the answers a second between two times."""
        return sum(since <= at < until for at in self.answered) / (until - since)

    def refused_share(self, since: float, until: float) -> float:
        """Returns the share of all sends between two times that were refused."""
        sent = sum(since <= at < until for at, _ in self.sent)
        return sum(since <= at < until for at in self.refused) / max(1, sent)

    def in_flight(self, since: float) -> list[int]:
        return [count for at, count in self.sent if at >= since]

    def _fill(self) -> None:
        while self._loop is not None and self.lane.queued < _WAITING and self.lane.stopped is None:
            self.ask(_Call(self))

    def ask(self, call: _Call) -> None:
        if self._loop is not None and (permit := self.lane.admit(call)) is not None:
            self.send(call, permit)

    def send(self, call: _Call, permit: Permit) -> None:
        if self._loop is not None:
            call.permit = permit
            self._loop.call_later(self._random.uniform(0, _ON_THE_WAY_S), self._arrive, call)

    def _arrive(self, call: _Call) -> None:
        now = self._now()
        assert call.permit is not None and self.gate.clear(call.permit) == 0.0
        self.sent.append((now, self.gate.in_flight))
        if self.limiter is not None and not self.limiter.admits(now):
            self.refused.append(now)
            self._later(self.refusing, self._refuse, call)
        elif self._free == 0:
            self._queue.append(call)
        else:
            self._free = self._free and self._free - 1
            self._later(self.latency, self._answer, call)

    def _later(self, seconds: Draw, step: Callable[[_Call], None], call: _Call) -> None:
        if self._loop is not None:
            self._loop.call_later(seconds(self._random), step, call)

    def _answer(self, call: _Call) -> None:
        if self._queue:
            self._later(self.latency, self._answer, self._queue.popleft())
        elif self._free is not None:
            self._free += 1
        assert call.permit is not None
        self.answered.append(self._now())
        self.gate.succeeded(call.permit, Tokens(), 0.0)
        self.lane.release(call.permit, self._now())
        self._fill()

    def _refuse(self, call: _Call) -> None:
        permit, now = call.permit, self._now()
        assert permit is not None
        decided = verdict(self.fault, self.lane.history(permit, call.tries, _REQUEST))
        self.lane.failed(permit, self.fault, decided, now)
        call.tries.note(decided, 0)
        self.lane.release(permit, now)
        if decided.again == "never":
            self.failed += 1
        elif not self.lane.wait_to_repeat(call, permit, decided, call.tries, self._random):
            self.ask(call)
        self._fill()

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


def run_together(all_traffic: Sequence[Endless], length_s: float) -> None:
    """Runs several gates side by side, each as another process."""

    async def main() -> None:
        for traffic in all_traffic:
            traffic.begin()
        await asyncio.sleep(length_s)
        for traffic in all_traffic:
            traffic.end()

    run_virtually(main())


class _Call:
    """One of the endless calls, as it waits in the lane's queue."""

    tokens, cost, payers, refused_by = Tokens(), 0.0, (), 0

    def __init__(self, traffic: Endless) -> None:
        self._traffic = traffic
        self.tries = Tries(RetryPolicy())
        self.permit: Permit | None = None

    def admitted(self, permit: Permit) -> None:
        self._traffic.send(self, permit)

    def refused(self, payer: Payer, error: Exception) -> None:
        raise AssertionError("it has no payer")

    def rested(self) -> None:
        self._traffic.ask(self)

    def stopped(self, stop: Stop) -> None:
        raise AssertionError(stop.detail)
