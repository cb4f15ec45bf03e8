"""The one queue to a model, and the API keys that serve it: first come, first served, by the first API key that can
send.

Owns who waits and for how long. Whether an API key may send, its key gate decides. One that stops leaves its calls to
the others; the lane has stopped when all its API keys have.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from random import Random

from ..attempts.money import over_budget
from ..attempts.retry import EarlyStop
from ..call import WEB, Reply
from ..endpoint import Fault, Request
from ..fault import LocalFault, Stop, StopReason
from ..lane import Lane
from ..limits import Quota, Tokens, declared_quota, pause_of, summed
from ..verdict import History, Tries, Verdict
from .growth import Found
from .key_gate import FULL, Hold, KeyGate, Payer, Permit
from .waiting_line import Waiting, WaitingLine

_NO_TOKENS = Tokens()
_FOR_EVER = float("inf")
# None of those who could pay for a call can do so now.
_UNPAID = Hold(_FOR_EVER, "payer")
# How many waiting calls are looked at, behind one that waits for a key, for calls that another key can take.
_LOOKED_AT = 64


class LaneStopped(Exception):
    """Raised to callers that wait for a lane which has stopped: their call was not sent."""

    def __init__(self, stop: Stop) -> None:
        super().__init__(stop.detail)
        self.stop = stop


class LaneQueue:
    """The queue of calls that wait for one lane, served by the gates of all its API keys (`keys`)."""

    def __init__(self, keys: Sequence[KeyGate]) -> None:
        self.keys = tuple(keys)
        self.lane: Lane = keys[0].lane
        self.declared = declared_quota(self.lane)
        self.least_tokens = self.declared.least_tokens
        self.budget = keys[0].budget
        self.stopped: Stop | None = None
        self.stopped_at = 0.0
        self.waiting_for = ""
        self.is_paused = False
        self._events = keys[0].events
        self._line = WaitingLine()
        # The payers for whom all in the queue wait; None: one waits for a key.
        self._unpaid: set[Payer] | None = set()
        self._resting: dict[Waiting, asyncio.TimerHandle] = {}
        # For each key an earlier call waits, so one that comes now can't be served.
        self._is_full = False
        self._turn = 0
        self._holds_since = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._is_slot_wanted = False
        self._is_serving = False
        self._must_serve_again = False
        self._early = EarlyStop(keys[0].policy, is_of_pages=self.lane.model.startswith(f"{WEB}/"))
        for number, key in enumerate(self.keys):
            key.number = number
            key.on_change, key.on_stop = self._changed, self._key_stopped

    def __repr__(self) -> str:
        state = self.stopped.reason if self.stopped else (self.waiting_for or "open")
        keys = f"{len(self.keys)} keys, " if len(self.keys) > 1 else ""
        return f"<Lane {self.lane.model} [{keys}{self.in_flight} in flight, {self.queued} queued, {state}]>"

    @property
    def queued(self) -> int:
        return len(self._line)

    @property
    def in_flight(self) -> int:
        return sum(key.in_flight for key in self.keys)

    @property
    def concurrency(self) -> int:
        """The most calls that all API keys together may have in flight now."""
        return sum(key.growth.ceiling for key in self.keys)

    @property
    def found(self) -> tuple[Found, float]:
        """Why the calls in flight grow no more by themselves: answers get slower beyond so many, or the provider
        refuses more than so many a second. Empty: they grow, or something else decides."""
        why: Found = next((key.growth.found for key in self.keys if key.growth.found), "")
        most: float = self.concurrency
        return why, sum(key.adaptive.found or 0.0 for key in self.keys) if why == "refused" else most

    @property
    def grows(self) -> bool:
        """Whether more calls may be in flight later."""
        return any(key.growth.ceiling < key.growth.most for key in self.keys)

    @property
    def in_work_most(self) -> int:
        """How many calls a run may have in work: while calls in flight grow, some have to wait for a place."""
        return sum(min(key.growth.most, 2 * key.growth.ceiling) for key in self.keys)

    @property
    def quota(self) -> Quota:
        """The sum of the quotas of all API keys that have not stopped."""
        return summed([key.quota for key in self.keys if key.stopped is None])

    @property
    def stopped_keys(self) -> tuple[tuple[str, Stop], ...]:
        """The API keys that have stopped: each one's environment variable, and why."""
        return tuple((key.key, key.stopped) for key in self.keys if key.stopped is not None)

    def admit(self, waiter: Waiting) -> Permit | None:
        """Returns a permit for one attempt, which must come back through `release`; None: `waiter` is called back
        later, and may `leave`. Raises LaneStopped."""
        if self.stopped is None and self._unpaid is not None and self._unpaid.isdisjoint(waiter.payers):
            permit = self._place(asyncio.get_running_loop().time(), waiter, set(), set())
            if isinstance(permit, Permit):
                return permit
        if self.stopped is not None:
            raise LaneStopped(self.stopped)
        self._line.add(waiter)
        if not self._is_full:
            self.serve()
        return None

    def regroup(self, waiter: object) -> None:
        """Looks anew who may pay for a waiting call, since its payers have changed; it keeps its place in the queue."""
        self._line.regroup(waiter)
        self.serve()

    def rest(self, waiter: Waiting, seconds: float, reason: str = "retry") -> None:
        """Lets `waiter` rest for `seconds`, before a retry or for another `reason`. Raises LaneStopped."""
        if self.stopped is not None:
            raise LaneStopped(self.stopped)
        loop = asyncio.get_running_loop()
        self._resting[waiter] = loop.call_later(seconds, self._end_rest, waiter, loop.time(), reason)

    def _end_rest(self, waiter: Waiting, began: float, reason: str) -> None:
        del self._resting[waiter]
        self._events.tell("waited", self.lane.model, asyncio.get_running_loop().time() - began, reason)
        waiter.rested()

    def leave(self, waiter: Waiting) -> None:
        """Forgets who waits here; it is not called back any more."""
        if (timer := self._resting.pop(waiter, None)) is not None:
            timer.cancel()
        elif self._line.remove(waiter):
            self.serve()

    def release(self, permit: Permit, now: float) -> None:
        permit.gate.release(permit, now)
        if self._early.is_doubted:
            self._stop_if_useless()
        if self._is_slot_wanted:
            self.serve()

    def history(self, permit: Permit, tries: Tries, request: Request) -> History:
        """Returns what counts beside the fault of an attempt that has just failed."""
        key, bit = permit.gate, 1 << permit.gate.number
        is_paused = key.trouble_since is not None and permit.sent_at > key.trouble_since
        return History(
            tries.attempts,
            tries.maybe_billed,
            tries.policy,
            is_refused=bool(tries.refused_by & bit),
            is_doubted=bool(tries.doubted_by & bit),
            has_another=bool(_sound(self.keys, tries.refused_by | bit)),
            has_instead=request.instead is not None,
            is_suspect=key.is_suspect,
            is_probe=permit.is_probe,
            is_again=is_paused and (self.in_flight > 1 or bool(self._line)),
            pause_s=pause_of(permit.limits),
        )

    def failed(self, permit: Permit, fault: Fault, verdict: Verdict, now: float) -> None:
        if verdict.learns == "redirect":
            # The address itself leads elsewhere, whatever the key.
            self.stop("redirect", fault.detail)
        if verdict.learns == "rejection":
            self._early.add_rejection(fault)
        permit.gate.failed(permit, fault, verdict, now)

    def stop(self, reason: StopReason, detail: str) -> None:
        """Stops sending. Calls in flight go on; every waiting caller gets LaneStopped."""
        if self.stopped is not None:
            return
        self.stopped, self.stopped_at = Stop(self.lane.model, reason, detail), asyncio.get_running_loop().time()
        for key in self.keys:
            key.stop(reason, detail)
        waiting = (*(waiter for _, waiter in self._line.in_order(set())), *self._resting)
        for timer in self._resting.values():
            timer.cancel()
        self._line, self._resting = WaitingLine(), {}
        for waiter in waiting:
            # Not at once: the code that stops the lane has not finished, and they begin other calls.
            asyncio.get_running_loop().call_soon(waiter.stopped, self.stopped)
        self.serve()

    def note_answer(self, reply: Reply | None = None) -> None:
        """Notes an answer, received now or found in the cache. None: useful ones of an earlier session of the run."""
        if self._early.has_answered:
            return
        if reply is not None and reply.is_cut_empty:
            self.note_cut()
        elif self._early.end():
            self.serve()

    def note_cut(self, count: int = 1) -> None:
        """Notes `count` answers that were cut off before the first word, now or in an earlier session."""
        self._early.add_cut(count)
        self._stop_if_useless()

    def _stop_if_useless(self) -> None:
        """Stops a doubted lane as soon as no call is in flight that could still have a useful answer."""
        if self._early.is_doubted and self.in_flight == 0:
            self.stop(*self._early.why(self.lane.model))

    def wait_to_repeat(self, waiter: Waiting, permit: Permit, verdict: Verdict, tries: Tries, random: Random) -> bool:
        """Lets a call rest before a repeat, without a slot, as long as its verdict says; returns False if it need not.
        Pauses and the breaker are waited for in the queue. Raises LaneStopped."""
        seconds = 0.0
        if verdict.again == "later":
            seconds = tries.policy.wait_s(tries.attempts, random)
        elif verdict.again == "soon":
            seconds = permit.gate.breaker.repeat_in_s(asyncio.get_running_loop().time())
        if seconds > 0 or verdict.again == "later":
            self.rest(waiter, seconds)
            return True
        return False

    def used(self, now: float) -> tuple[int, Tokens]:
        """Returns the requests and tokens of the last minute, over all API keys."""
        used = [key.ledger.used(now) for key in self.keys]
        tokens = Tokens(sum(one.input for _, one in used), sum(one.output for _, one in used))
        return sum(requests for requests, _ in used), tokens

    def close(self) -> None:
        for key in self.keys:
            key.close()

    # Who is next

    def _place(self, now: float, waiter: Waiting, taken: set[KeyGate], unpaid: set[Payer]) -> Permit | Hold:
        """Returns a permit from the first key gate that can send this call now, else the shortest hold. `taken` and
        `unpaid`: gates and payers for which an earlier call waits."""
        if self.is_paused:
            return Hold(_FOR_EVER, "paused")
        if self._early.is_doubted:
            return Hold(_FOR_EVER, "breaker")
        if self.budget.limit is not None and not self._can_pay(waiter.cost):
            return Hold(_FOR_EVER, "budget")
        payer = self._payer_of(now, waiter, unpaid) if waiter.payers else None
        if payer is None and waiter.payers:
            return _UNPAID
        best = FULL
        for key in self.keys if len(self.keys) == 1 else self._in_turn(waiter):
            if key in taken:
                continue
            permit = key.try_take(now, waiter.tokens, waiter.cost)
            if isinstance(permit, Permit):
                if payer is not None and not payer.take(permit):
                    key.withdraw(permit, now)
                    key.release(permit, now)
                    return self._place(now, waiter, taken, unpaid)
                self._turn = key.number + 1
                return permit
            self._is_slot_wanted |= permit is FULL
            if permit.seconds < best.seconds or (permit.seconds == best.seconds and not best.reason):
                best = permit
        return best

    def _payer_of(self, now: float, waiter: Waiting, unpaid: set[Payer]) -> Payer | None:
        """Returns the first payer that can pay for an attempt now; each of the others wakes the queue when it may."""
        for payer in waiter.payers:
            if payer in unpaid:
                continue
            hold = payer.hold(now, waiter.tokens, waiter.cost, self.serve)
            if hold is None:
                return payer
            if isinstance(hold, Exception):
                asyncio.get_running_loop().call_soon(waiter.refused, payer, hold)
            else:
                unpaid.add(payer)
        return None

    def _can_pay(self, cost: float) -> bool:
        """Whether the budget can bear `cost` dollars. If it can't, and no call in flight could give money back, it
        stops the lane."""
        try:
            if self.budget.fits(cost):
                return True
        except LocalFault as fault:
            self.stop("local_fault", str(fault))
            return False
        if self.budget.is_idle:
            self.budget.is_exhausted = True
            self.stop("budget", over_budget(f"the next call to {self.lane.model}", cost, self.budget))
        else:
            self.budget.watch(self.serve)
        return False

    def _in_turn(self, waiter: Waiting) -> Sequence[KeyGate]:
        """Returns the key gates that a call may go to, beginning with the one whose turn it is. Leaves out API keys
        that refused the call if a healthy one has not, and those with too small a quota if another's is large
        enough."""
        turn, refused_by = self._turn % len(self.keys), waiter.refused_by
        keys = [key for key in (*self.keys[turn:], *self.keys[:turn]) if key.stopped is None]
        if refused_by:
            keys = _sound(keys, refused_by) or keys
        return [key for key in keys if key.quota.lacks(waiter.tokens) is None] or keys

    def serve(self) -> None:
        """Hands out all permits that can be had now, first come, first served."""
        self._must_serve_again = True
        if self._is_serving:
            return
        self._is_serving = True
        try:
            while self._must_serve_again:
                self._must_serve_again = False
                # They may do anything, also wait here again: the queue is not being looked at meanwhile.
                for waiter, permit in self._served().items():
                    waiter.admitted(permit)
        finally:
            self._is_serving = False

    def _served(self) -> dict[Waiting, Permit]:
        """Takes those out of the queue who can be served now, each with its permit, and sets a timer for the next."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._is_slot_wanted = False
        served: dict[Waiting, Permit] = {}
        now = asyncio.get_running_loop().time()
        wait, why = _FOR_EVER, ""
        # Keys and payers that an earlier call waits for: later calls don't get them.
        taken: set[KeyGate] = set()
        unpaid: set[Payer] = set()
        looked_at = 0
        for _, waiter in self._line.in_order(unpaid):
            if self.stopped is not None or len(taken) == len(self.keys) or looked_at == _LOOKED_AT:
                break
            if unpaid and waiter.payers and unpaid.issuperset(waiter.payers):
                continue
            place = self._place(now, waiter, taken, unpaid)
            if isinstance(place, Permit):
                served[waiter] = place
            elif place is not _UNPAID:
                why = why if looked_at else place.reason
                wait = min(wait, place.seconds)
                looked_at += 1
                taken.update(self.keys if place.reason == "budget" else self._in_turn(waiter))
                taken.update(key for key in self.keys if key.stopped is not None)
        for waiter in served:
            self._line.remove(waiter)
        self._unpaid = None if looked_at else unpaid
        self._is_full = len(taken) == len(self.keys)
        self._note_hold(why if self._line else "", now, is_served=bool(served))
        if self._line and wait != _FOR_EVER:
            self._timer = asyncio.get_running_loop().call_later(wait, self.serve)
        return served

    def _key_stopped(self) -> None:
        """Stops the lane if all its API keys have stopped."""
        stops = self.stopped_keys
        if len(stops) == len(self.keys):
            details = "; ".join(f"{key}: {stop.detail}" for key, stop in stops)
            detail = f"all {len(stops)} keys of {self.lane.model} stopped: {details}"
            self.stop(stops[-1][1].reason, detail if len(stops) > 1 else stops[0][1].detail)

    def _changed(self) -> None:
        if self._unpaid is None:
            self.serve()

    # What the head of the queue waits for

    def _note_hold(self, why: str, now: float, *, is_served: bool) -> None:
        if is_served or why != self.waiting_for:
            if self.waiting_for and now > self._holds_since:
                self._events.tell("waited", self.lane.model, now - self._holds_since, self.waiting_for)
            self.waiting_for, self._holds_since = why, now


def _sound(keys: Iterable[KeyGate], refused_by: int) -> list[KeyGate]:
    """Returns the healthy keys that have not refused the call."""
    return [key for key in keys if key.is_healthy and not refused_by >> key.number & 1]
