"""The queue to one quota, and its one decision: may this attempt be sent now?

Slot, then (first come, first served) breaker, pause, adaptive rate, money, pacing and the last minute's
ledger. Learns from every answer. Knows no call's content: only tokens and dollars.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Literal

from aiolimiter import AsyncLimiter
from msgspec import Struct

from .adaptive import AdaptiveRate
from .endpoint import Fault
from .events import Events
from .lane import Lane
from .ledger import BURST_SHARE, REQUESTS_SHARE, Ledger
from .money import Purse
from .retry import Breaker, RetryBudget, RetryPolicy

StopReason = Literal["dead_key", "empty_account", "redirect", "budget", "patience", "interrupted", "local_fault"]


class Stop(Struct, frozen=True):
    """Why a lane sends nothing more. What was not sent stays pending."""

    lane: str
    reason: StopReason
    detail: str


class LaneStopped(Exception):
    """Raised to whoever waits for a lane that has stopped: the call was not sent."""

    def __init__(self, stop: Stop) -> None:
        super().__init__(stop.detail)
        self.stop = stop


class Permit:
    """The right to make one attempt. Held from admission until the answer is safe on disk."""

    __slots__ = ("cost", "is_probe", "is_settled", "sent_at", "tokens")

    def __init__(self, tokens: int, cost: float, sent_at: float, *, is_probe: bool = False) -> None:
        self.tokens = tokens
        self.cost = cost
        self.sent_at = sent_at
        self.is_probe = is_probe
        self.is_settled = False


class Admission:
    """One lane at work. `repr` tells its state."""

    def __init__(self, lane: Lane, *, ledger: Ledger | None, purse: Purse, policy: RetryPolicy, events: Events) -> None:
        self.lane = lane
        self.purse = purse
        self.in_flight = 0
        self.waiting_for = ""
        self.stopped: Stop | None = None
        self.budget = RetryBudget(policy)
        self.breaker = Breaker(policy)
        self._policy = policy
        self._ledger = ledger
        self._events = events
        self._limiter = _pacer(lane.rpm)
        self._adaptive = AdaptiveRate(lane.rpm / 60 if lane.rpm else None)
        self._gate = asyncio.Lock()
        self._at_gate = 0
        self._slot_waiters: deque[asyncio.Future[None]] = deque()
        self._sleeper: asyncio.Future[None] | None = None
        self._stop_signal = asyncio.Event()
        self._paused_until = 0.0
        self._trouble_since: float | None = None
        self._is_suspect = False
        self._latest_fault = ""
        purse.watch(self._wake)

    def __repr__(self) -> str:
        state = self.stopped.reason if self.stopped else (self.waiting_for or "open")
        return f"<Lane {self.lane.model} [{self.in_flight} in flight, {len(self._slot_waiters)} queued, {state}]>"

    async def admit(self, tokens: int = 0, cost: float = 0.0) -> Permit:
        """Wait until one attempt may be sent. Every permit must come back through `release`."""
        if self.in_flight < self.lane.concurrency and self.stopped is None:
            self.in_flight += 1
        else:
            await self._wait_for_slot()
        try:
            loop = asyncio.get_running_loop()
            now = loop.time()
            if self._may_pass_at_once(now, tokens):
                if self._limiter is not None:
                    await self._limiter.acquire()  # has room, so this never suspends
                self._adaptive.note_send(now)
                return Permit(tokens, cost, now)
            # Counted before the lock is asked for: between its release and the next one's turn nobody may slip in.
            self._at_gate += 1
            try:
                async with self._gate:
                    return await self._pass_gate(tokens, cost, loop)
            finally:
                self._at_gate -= 1
        except BaseException:
            self._free_slot()
            raise

    def release(self, permit: Permit, now: float) -> None:
        """Free the slot. A permit never settled was cancelled: what was taken stays taken."""
        if not permit.is_settled:
            if permit.is_probe:
                self.breaker.abandon_probe(now)
            self._pay(permit, permit.cost)
        self._free_slot()

    def succeeded(self, permit: Permit, now: float, *, tokens: int, cost: float) -> None:
        self._trouble_since = None
        self._is_suspect = False
        if self.breaker.record_success():
            self._wake()
        self.budget.record(success=True)
        self._settle_tokens(permit, tokens)
        self._pay(permit, cost)

    def failed(self, permit: Permit, fault: Fault, now: float) -> None:
        """Learn from a fault: give back what it gives back, pause, cut, open the breaker or stop."""
        if fault.quota == "refund" and self._ledger is not None:
            self._ledger.settle(permit.sent_at, permit.tokens, 0, requests=0)
        elif fault.quota == "settle":
            self._settle_tokens(permit, fault.usage_tokens)
        if fault.action == "never":
            self._trouble_since = None
            self.breaker.record_success()
            self.budget.record(success=True)
        elif fault.action == "stop":
            self.stop("redirect" if fault.kind == "redirect" else "empty_account", fault.detail)
        elif fault.action == "confirm":
            self._confirm(permit, fault, now)
        elif fault.action == "wait" or (fault.action == "throttle" and fault.retry_after_s is not None):
            self._pause(permit, fault.retry_after_s or 1.0, fault, now)
        else:
            self._count_failure(permit, fault, now)
        if permit.is_probe and fault.action in ("wait", "throttle", "never"):
            self.breaker.abandon_probe(now)
        self._pay(permit, permit.cost if fault.is_billed_maybe else 0.0)
        self._wake()

    def stop(self, reason: StopReason, detail: str) -> None:
        """Send nothing more. Calls in flight go on; everyone waiting is told."""
        if self.stopped is not None:
            return
        self.stopped = Stop(self.lane.model, reason, detail)
        self._events.tell("stopped", self.lane.model, detail=reason)
        self._stop_signal.set()
        while self._slot_waiters:
            waiter = self._slot_waiters.popleft()
            if not waiter.done():
                waiter.set_exception(LaneStopped(self.stopped))
        self._wake()

    async def back_off(self, seconds: float) -> None:
        """Sleep before a retry, or until the lane stops."""
        began = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(seconds):
                await self._stop_signal.wait()
        except TimeoutError:
            self._events.tell("waited", self.lane.model, asyncio.get_running_loop().time() - began, "retry")
        if self.stopped is not None:
            raise LaneStopped(self.stopped)

    def used(self, now: float) -> tuple[int, int]:
        """Requests and tokens of the last minute under a declared quota."""
        return self._ledger.used(now) if self._ledger is not None else (0, 0)

    def close(self) -> None:
        if self._ledger is not None:
            self._ledger.close()
            self._ledger = None

    # The decision

    def _may_pass_at_once(self, now: float, tokens: int) -> bool:
        """The whole decision where nobody waits, nothing is wrong and there is room. Takes from the ledger last,
        since that can't be undone."""
        if self._trouble_since is not None or self.purse.limit is not None or self._at_gate:
            return False
        if self._adaptive.is_limiting or self.stopped is not None or now < self._paused_until:
            return False
        if self._limiter is not None and not self._limiter.has_capacity():
            return False
        return self._ledger is None or self._ledger.take(now, tokens)[0] <= 0

    async def _pass_gate(self, tokens: int, cost: float, loop: asyncio.AbstractEventLoop) -> Permit:
        # Only the head of the queue stands here, so the largest call is never overtaken by smaller ones.
        is_paced = self._limiter is None
        while True:
            now = loop.time()
            wait, why = self._held(now, cost)
            if self.stopped is not None:
                raise LaneStopped(self.stopped)
            if wait <= 0 and not is_paced and self._limiter is not None:
                await self._limiter.acquire()
                self._tell_wait(loop.time() - now, "requests")
                is_paced = True
                continue
            # Nothing awaits between the last check and the record in the ledger.
            if wait <= 0 and self._ledger is not None:
                wait, why = self._ledger.take(now, tokens)
            if wait <= 0:
                break
            await self._sleep(wait, why, loop)
        self.purse.reserve(cost)
        self._adaptive.note_send(now)
        is_probe = self.breaker.is_open
        if is_probe:
            self.breaker.begin_probe()
        return Permit(tokens, cost, now, is_probe=is_probe)

    def _held(self, now: float, cost: float) -> tuple[float, str]:
        """Seconds to wait for what, before quotas are asked. Ends the lane where waiting can't help."""
        wait, why = max(
            (self.breaker.wait_s(now), "breaker"),
            (self._paused_until - now, "pause"),
            (self._adaptive.wait_s(now), "back-off"),
        )
        if wait > 0 and self._trouble_since is not None and why != "back-off":
            left = self._trouble_since + self._policy.patience_s - now
            if left <= 0:
                return self._give_up()
            return min(wait, left), why
        if wait <= 0 and not self.purse.fits(cost):
            if self.purse.is_idle:
                self.stop("budget", self._budget_detail(cost))
            return float("inf"), "budget"
        return wait, why

    def _give_up(self) -> tuple[float, str]:
        minutes = self._policy.patience_s / 60
        what = "gave no valid answer" if self.breaker.is_open else "kept refusing calls"
        said = f"; the latest: {self._latest_fault}" if self._latest_fault else ""
        detail = f"{self.lane.model} {what} for {minutes:.2g} min (--patience): resume when it is back{said}"
        self.stop("patience", detail)
        return float("inf"), "pause"

    def _budget_detail(self, cost: float) -> str:
        return (
            f"the next call to {self.lane.model} may cost ${cost:.4f}; ${self.purse.spent:.4f} of "
            f"--max-cost ${self.purse.limit or 0:.4f} is spent: raise --max-cost and resume"
        )

    # What was learned

    def _pause(self, permit: Permit, seconds: float, fault: Fault, now: float) -> None:
        # A second pause with no answer since the first: the many that were let go after it were too many, so fewer go
        # next time. One alone comes back as it was told.
        is_again = self._trouble_since is not None and permit.sent_at >= self._paused_until and self.in_flight > 1
        if is_again and fault.action == "throttle" and self._adaptive.cut(now, permit.sent_at):
            self._events.tell("cut", self.lane.model, self._adaptive.rate or 0.0, fault.kind)
        self._paused_until = max(self._paused_until, now + seconds)
        if self._trouble_since is None:
            self._trouble_since = now
        self._latest_fault = f"{fault.kind}: {fault.detail}"
        self._events.tell("throttled", self.lane.model, seconds, fault.kind)
        if self._paused_until - self._trouble_since > self._policy.patience_s:
            asked = f"asks for a pause of {seconds / 60:.2g} min after {(now - self._trouble_since) / 60:.2g} min"
            self.stop(
                "patience",
                f"{self.lane.model} {asked} without a valid answer, more than --patience "
                f"({self._policy.patience_s / 60:g} min) in all: resume later. It said: {fault.detail}",
            )

    def _count_failure(self, permit: Permit, fault: Fault, now: float) -> None:
        self.budget.record(success=False)
        self._latest_fault = f"{fault.kind}: {fault.detail}"
        if fault.cuts_rate and self._adaptive.cut(now, permit.sent_at):
            self._events.tell("cut", self.lane.model, self._adaptive.rate or 0.0, fault.kind)
        if self.breaker.record_failure(now, was_probe=permit.is_probe) and self._trouble_since is None:
            self._trouble_since = now

    def _confirm(self, permit: Permit, fault: Fault, now: float) -> None:
        if self._is_suspect and permit.is_probe:
            self.stop("dead_key", f"{self.lane.model} refuses the key ({fault.detail}): mend it and resume")
        elif not self._is_suspect:
            self._is_suspect = True
            self._trouble_since = now if self._trouble_since is None else self._trouble_since
            self.breaker.open(now, probe_in_s=0.0)
        elif permit.is_probe:
            self.breaker.abandon_probe(now)

    def _settle_tokens(self, permit: Permit, tokens: int) -> None:
        if self._ledger is not None and tokens != permit.tokens:
            self._ledger.settle(permit.sent_at, permit.tokens, tokens)
            if tokens < permit.tokens:
                self._wake()

    def _pay(self, permit: Permit, cost: float) -> None:
        if not permit.is_settled:
            permit.is_settled = True
            if permit.cost or cost:
                self.purse.settle(permit.cost, cost)
                self._events.tell("spent", self.lane.model, cost)

    # Waiting

    async def _wait_for_slot(self) -> None:
        if self.stopped is not None:
            raise LaneStopped(self.stopped)
        waiter = asyncio.get_running_loop().create_future()
        self._slot_waiters.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            # A slot handed over in the same instant as the cancellation must be handed on, or it is lost.
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self._free_slot()
            raise

    def _free_slot(self) -> None:
        while self._slot_waiters:
            waiter = self._slot_waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
        self.in_flight -= 1

    async def _sleep(self, seconds: float, why: str, loop: asyncio.AbstractEventLoop) -> None:
        began = loop.time()
        sleeper = self._sleeper = loop.create_future()
        timer = loop.call_later(seconds, self._wake) if seconds != float("inf") else None
        self.waiting_for = why
        try:
            await sleeper
        finally:
            self._sleeper = None
            self.waiting_for = ""
            if timer is not None:
                timer.cancel()
            self._tell_wait(loop.time() - began, why)

    def _wake(self) -> None:
        if self._sleeper is not None and not self._sleeper.done():
            self._sleeper.set_result(None)

    def _tell_wait(self, seconds: float, why: str) -> None:
        if seconds > 0:
            self._events.tell("waited", self.lane.model, seconds, why)


def _pacer(rpm: float | None) -> AsyncLimiter | None:
    if rpm is None:
        return None
    burst = 1 + rpm * BURST_SHARE
    return AsyncLimiter(burst, burst / (rpm * REQUESTS_SHARE))
