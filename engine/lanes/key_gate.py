"""Decides when one API key may send the next attempt.

Asks in this order: slot, breaker, pause, adaptive rate, then the last minute's ledger, which paces. Learns from every
answer. Never waits: it returns for how long and for what. Who waits, and with which key: lane_queue.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple, Protocol

from msgspec import Struct

from ..attempts.money import CostBudget
from ..attempts.retry import Breaker, RetryPolicy
from ..call import Outcome
from ..endpoint import Fault, Withdrawn
from ..events import Events
from ..fault import Stop, StopReason
from ..lane import CONCURRENCY_DEFAULT, Lane
from ..limits import Doubts, Limit, Tokens, declared_quota, quota_of
from ..verdict import Verdict
from .adaptive import AdaptiveRate
from .growth import START, Found, Growth
from .lane_files import LaneMemory, LaneNote
from .ledger import SPACED_BURST_S, Ledger

_NO_TOKENS = Tokens()
# Within this time of its admission a request is written or its slot given back: after a minute the ledger has forgotten
# the slot.
_GRANTED_S = 50.0


class Hold(NamedTuple):
    """Why an attempt can't be sent now: the seconds to wait, and for what. Infinite: until something changes; an empty
    reason: all slots are taken."""

    seconds: float
    reason: str


FULL = Hold(float("inf"), "")
STOPPED = Hold(float("inf"), "stopped")


class Permit(Struct, eq=False):
    """The right to make one attempt, held from admission until the answer is safe on disk. `tokens` and `cost`
    (dollars) are reserved for it; `sent_at` is when it was admitted and, once its request is written, when that was, in
    seconds of the clock that its gate reads; `counted_at`: the time under which its ledger counts it; `is_probe`: it
    tests a lane that its breaker holds back. `payer`: the budget that pays for the attempt beside the engine's; None:
    there is none. `limits`: those that its answer reported."""

    gate: KeyGate
    tokens: Tokens
    cost: float
    sent_at: float
    counted_at: float
    is_probe: bool = False
    is_settled: bool = False
    payer: Payer | None = None
    limits: tuple[Limit, ...] = ()


class Payer(Protocol):
    """Who pays for attempts beside the engine, and how many it may have sent. `is_limited`: it has a bound at all;
    `reckons_worst`: the most that an attempt may cost is computed for it, else 0.0 is passed."""

    @property
    def is_limited(self) -> bool: ...

    @property
    def reckons_worst(self) -> bool: ...

    def hold(self, now: float, tokens: Tokens, cost: float, wake: Callable[[], None]) -> str | Exception | None:
        """Returns None if `take` would grant an attempt now, else what it has to wait for, and calls `wake` once when
        that may have changed. If it never will, returns the error for those who wait at this payer's expense."""

    def take(self, permit: Permit) -> bool:
        """Takes what an attempt needs and makes it this payer's. Returns False, with nothing taken, if another process
        was faster. It must come back through `release`."""

    def clear(self, permit: Permit, now: float) -> None:
        """Counts the send of an attempt now, as it is about to be written. Raises Withdrawn if the budget is
        overdrawn."""

    def settle(self, permit: Permit, used: Tokens | None, cost: float, *, is_sure: bool) -> None:
        """Replaces what is reserved by the tokens that the attempt used (None: not even the request counts) and its
        cost in dollars; called once for each. `is_sure` False: the cost is not confirmed by an answer (assumed, or the
        attempt failed)."""

    def release(self) -> None:
        """Frees an attempt's place."""

    def note_answer(self, outcome: Outcome) -> None:
        """Takes the outcome of an attempt that was answered, before it is stored."""


class KeyGate:
    """The gate of one API key to one lane's quota. `key` is the environment variable that holds the API key, `proof`
    the words for it in messages, `number` its place among the lane's keys, from 0. Without a `ledger` its last minute
    is only in memory, without a `budget` nothing bounds the cost. `grows`: while no quota is known, its calls in flight
    grow by themselves; False: all that the lane allows may be in flight from the beginning."""

    def __init__(
        self,
        lane: Lane,
        policy: RetryPolicy,
        *,
        ledger: Ledger | None = None,
        budget: CostBudget | None = None,
        events: Events | None = None,
        key: str = "",
        proof: str = "",
        memory: LaneMemory | None = None,
        grows: bool = True,
    ) -> None:
        self.lane = lane
        self.key = key
        self.proof = proof or (f"the key in {key}" if key else "the key")
        self.number = 0
        self.in_flight = 0
        self.stopped: Stop | None = None
        self.breaker = Breaker(policy)
        self.on_change: Callable[[], None] = lambda: None
        self.on_stop: Callable[[], None] = lambda: None
        self.policy = policy
        self.budget = CostBudget() if budget is None else budget
        self.events = Events() if events is None else events
        self.ledger = Ledger(declared_quota(lane)) if ledger is None else ledger
        self._memory = memory if memory is not None else LaneMemory(LaneNote(lane.model, key, "", lane))
        self.quota = declared_quota(lane)
        self._doubts = Doubts()
        self._grows = grows
        reached = self._memory.reached
        reason: Found = "refused" if reached.per_s else ""
        self.growth = Growth(lane.in_flight_most, max(START, reached.in_flight), reason)
        self.adaptive = AdaptiveRate(None, is_hidden=True, begin=reached.per_s, is_old=self._memory.is_old)
        self._paused_until = 0.0
        self._next_write_at = 0.0
        self.trouble_since: float | None = None
        self.is_suspect = False
        self._latest_fault = ""
        self._is_own_trouble = False
        self._least_tokens = self.quota.least_tokens
        self._obey(self._memory.limits)

    def __repr__(self) -> str:
        state = self.stopped.reason if self.stopped else ("in trouble" if self.trouble_since is not None else "open")
        return f"<Key {self.key or 'none'} of {self.lane.model} [{self.in_flight} in flight, {state}]>"

    @property
    def is_healthy(self) -> bool:
        """Whether nothing but the quota holds back attempts here: not stopped, not in trouble, breaker closed."""
        return self.stopped is None and self.trouble_since is None and not self.breaker.is_open

    # The decision

    def try_take(self, now: float, tokens: Tokens = _NO_TOKENS, cost: float = 0.0) -> Permit | Hold:
        """Returns a permit for one attempt, or why it has to wait. Every permit must come back through `release`."""
        if self.stopped is not None:
            return STOPPED
        if self.in_flight >= self.growth.ceiling:
            self.growth.is_full = True
            return FULL
        if self.trouble_since is not None or self.adaptive.cut_at is not None or now < self._paused_until:
            hold = self._held(now)
            if hold.seconds > 0:
                return hold
        if tokens.input + tokens.output > self._least_tokens:
            tokens = self.quota.cut_to_fit(tokens)
        # The ledger comes last, since what it grants can't be undone.
        seconds, reason = self.ledger.take(now, tokens)
        if seconds > 0:
            return Hold(seconds, reason)
        self.in_flight += 1
        if cost:
            self.budget.reserve(cost)
        if self.adaptive.cut_at is not None:
            self.adaptive.note_send(now)
        if self.breaker.is_open:
            self.breaker.begin_probe()
        return Permit(self, tokens, cost, now, self.ledger.counted_at, self.breaker.is_open)

    def _held(self, now: float) -> Hold:
        """Returns how long breaker, pause and back-off hold an attempt back (0 seconds: not at all). Stops the gate if
        its patience has run out."""
        wait, why = max(
            (self.breaker.wait_s(now), "breaker"),
            (self._paused_until - now, "pause"),
            (self.adaptive.wait_s(now), "back-off"),
        )
        if wait > 0 and self.trouble_since is not None and why != "back-off":
            left = self.trouble_since + self._patience_s - now
            if left <= 0:
                return self._give_up()
            wait = min(wait, left)
        return Hold(wait, why)

    @property
    def _patience_s(self) -> float:
        patience_s = self.policy.own_patience_s
        return patience_s if patience_s is not None and self._is_own_trouble else self.policy.patience_s

    def _give_up(self) -> Hold:
        patience = self._patience_s
        length = f"{patience:.2g} s" if patience < 60 else f"{patience / 60:.2g} min"
        what = "gave no valid answer" if self.breaker.is_open else "kept refusing calls"
        latest = f"; the latest: {self._latest_fault}" if self._latest_fault else ""
        detail = f"{self.lane.model} {what} for {length} (--patience): try again when it is back{latest}"
        self.stop("patience", detail)
        return STOPPED

    def clear(self, permit: Permit) -> float:
        """Counts the send of a permit now, as its request is about to be written; see `Receiver.clear`. Connecting may
        have taken long, so that many permits, granted one after the other, are used at one moment."""
        now = asyncio.get_running_loop().time()
        if now - permit.sent_at > _GRANTED_S or (self.budget.limit is not None and self.budget.is_overdrawn):
            raise Withdrawn
        if (spacing_s := self.quota.spacing_s) > 0:
            if self._next_write_at > now:
                return self._next_write_at - now
            self._next_write_at = now + spacing_s - SPACED_BURST_S
        if permit.payer is not None:
            permit.payer.clear(permit, now)
        permit.counted_at = self.ledger.move(permit.counted_at, now, permit.tokens)
        permit.sent_at = now
        return 0.0

    def withdraw(self, permit: Permit, now: float) -> None:
        """Gives back all that was reserved for an attempt that was not written."""
        if permit.is_probe:
            self.breaker.abandon_probe(now)
        self._settle(permit, None, 0.0, is_sure=True)
        self.on_change()

    # What becomes of an attempt

    def release(self, permit: Permit, now: float) -> None:
        """Frees the slot. A permit that was never settled was cancelled: its tokens and its cost stay counted."""
        self.in_flight -= 1
        if not permit.is_settled:
            self._settle(permit, permit.tokens, None, is_sure=False)
            if permit.is_probe:
                self.breaker.abandon_probe(now)
                self.on_change()
        if self.growth.answers >= self.growth.turn_at:
            self.growth.turn(now, permit.sent_at)
        if permit.payer is not None:
            permit.payer.release()

    def succeeded(self, permit: Permit, tokens: Tokens, cost: float | None, *, is_reported: bool = True) -> None:
        """Records a success. `cost` is in dollars; None: it is not known, so what was reserved counts. `is_reported`
        False: the provider reported only a part of the tokens, and the others count at their worst."""
        self.trouble_since = None
        self.is_suspect = False
        is_closed = self.breaker.record_success()
        self.growth.answers += 1
        if self.adaptive.cut_at is not None:
            self.adaptive.note_answer(permit.sent_at)
        self._settle(permit, tokens, cost, is_sure=cost is not None, is_reported=is_reported)
        if is_closed or tokens.input + tokens.output < permit.tokens.input + permit.tokens.output:
            self.on_change()

    def failed(self, permit: Permit, fault: Fault, verdict: Verdict, now: float) -> None:
        """Carries out a verdict: returns reserved tokens, pauses, cuts the rate, opens the breaker or stops."""
        learns, is_pause = verdict.learns, verdict.learns in ("pause", "rest")
        if learns in ("refusal", "pause"):
            self.ledger.make_up_less()
        used = None if verdict.quota == "refund" else permit.tokens
        if verdict.quota == "settle" and fault.usage_tokens is not None:
            # A fault reports one sum of tokens: the reserved input is taken from it first, the rest is output.
            read = min(permit.tokens.input, fault.usage_tokens)
            used = Tokens(read, fault.usage_tokens - read)
        if verdict.cuts_rate or (learns == "pause" and self.adaptive.is_hidden and self.growth.has_answers):
            self._cut(permit, fault, verdict, now)
        if is_pause or learns in ("failure", "refusal"):
            self._latest_fault = f"{fault.kind}: {fault.detail}"
            self._is_own_trouble = learns == "rest"
        match learns:
            case "success" | "rejection":
                self.trouble_since = None
                self.is_suspect = False
                self.breaker.record_success()
            case "failure" | "refusal":
                if self.breaker.record_failure(now, was_probe=permit.is_probe):
                    self._begin_trouble(now)
            case "pause" | "rest":
                self.events.tell("throttled", self.lane.model, verdict.pause_s, fault.kind)
                self.pause(verdict.pause_s, fault.detail, now)
            case "doubt":
                self.is_suspect = True
                self._begin_trouble(now)
                self.breaker.open(now, probe_in_s=0.0)
            case "dead_key":
                self.stop("dead_key", f"{self.lane.model} refuses {self.proof} ({fault.detail}): correct it")
            case "empty_account" | "redirect":
                self.stop(learns, fault.detail)
        if learns == "pause":
            self.ledger.tell(pause_s=verdict.pause_s)
        elif learns in ("dead_key", "empty_account"):
            self.ledger.tell(stop=self.stopped)
        if permit.is_probe and (is_pause or learns == "nothing"):
            self.breaker.abandon_probe(now)  # it showed nothing; a pause decides when the next one goes
        self._settle(permit, used, 0.0 if verdict.money == "none" else None, is_sure=False)
        self.on_change()

    def stop(self, reason: StopReason, detail: str) -> None:
        """Stops sending with this key. Calls in flight go on."""
        if self.stopped is None:
            self.stopped = Stop(self.lane.model, reason, detail)
            self.events.tell("stopped", self.lane.model, detail=reason)
            self.on_stop()
            self.on_change()

    def learn(self, limits: tuple[Limit, ...], now: float) -> None:
        """Takes in the provider's limits that an answer reported, and pauses if nothing is left of one."""
        if self.adopt(self._doubts.settle(limits, self._memory.limits, now)):
            self.ledger.tell(limits=self._memory.limits)
        wait_s = max((limit.wait_s for limit in limits), default=0.0)
        if wait_s > 0:
            # At most as long as patience: the next answer shows whether the limit is right.
            self._paused_until = max(self._paused_until, now + min(wait_s, self.policy.patience_s))

    def adopt(self, limits: tuple[Limit, ...]) -> bool:
        """Keeps to the provider's limits, reported to this process or another. Returns whether any of them is new."""
        is_new = self._memory.see(limits)
        self._obey(self._memory.limits)
        return is_new

    def pause(self, seconds: float, detail: str, now: float) -> None:
        """Sends nothing for so long, since the provider asked for it, here or in another process; stops the gate if
        that is longer than its patience."""
        self._paused_until = max(self._paused_until, now + seconds)
        since = self._begin_trouble(now)
        if self._paused_until - since > self._patience_s:
            request = f"asks for a pause of {seconds / 60:.2g} min after {(now - since) / 60:.2g} min"
            self.stop(
                "patience",
                f"{self.lane.model} {request} without a valid answer, more than --patience "
                f"({self._patience_s / 60:g} min) in all: try again later. It said: {detail}",
            )

    def close(self) -> None:
        self._remember()
        self._memory.close()
        self.ledger.close()

    # What was learned

    def _obey(self, limits: tuple[Limit, ...]) -> None:
        """Sets the quota to the smaller of what was declared and what answers reported."""
        quota = declared_quota(self.lane).lowered_by(quota_of(limits))
        self.adaptive.declared = None if quota.rpm is None else quota.rpm / 60
        if self.adaptive.is_hidden and not (self._grows and quota.is_unknown):
            self.adaptive.know()
            self.growth.fix(self.lane.concurrency or CONCURRENCY_DEFAULT)
        if quota != self.quota:
            self.quota = quota
            self._least_tokens = quota.least_tokens
            self.ledger.set_quota(quota)
            self.events.tell("learned", self.lane.model, detail=self.key)
            self.on_change()

    def _cut(self, permit: Permit, fault: Fault, verdict: Verdict, now: float) -> None:
        """Lowers the rate after a refusal, and ends the growth. What is only a pause for a verdict is told as one."""
        growth, adaptive = self.growth, self.adaptive
        accepted = max(growth.accepted(now, permit.sent_at), growth.per_s if adaptive.cut_at is None else 0.0)
        is_cut = adaptive.cut(now, permit.sent_at, accepted, is_again=verdict.cuts_rate and verdict.learns == "pause")
        if adaptive.is_hidden:
            growth.refused(now, is_cut=is_cut)
            self._remember()
        if is_cut and verdict.cuts_rate:
            self.events.tell("cut", self.lane.model, adaptive.rate or 0.0, fault.kind)

    def _remember(self) -> None:
        """Notes for the next process how far the calls in flight grew, and the rate that refusals showed."""
        if (per_s := self.adaptive.found) is not None or (self.adaptive.is_hidden and self.growth.proven > START):
            self._memory.remember(self.growth.proven, per_s)

    def _begin_trouble(self, now: float) -> float:
        """Returns since when there is trouble: from now on, if there was none."""
        self.trouble_since = now if self.trouble_since is None else self.trouble_since
        return self.trouble_since

    def _settle(
        self, permit: Permit, used: Tokens | None, cost: float | None, *, is_sure: bool, is_reported: bool = True
    ) -> None:
        """Replaces the tokens that were reserved by those that were used (None: not even the request counts), and the
        money by the cost in dollars (None: all of it counts)."""
        permit.is_settled = True
        if used != permit.tokens:
            self.ledger.settle(permit.counted_at, permit.tokens, used or _NO_TOKENS, requests=int(used is not None))
        cost = permit.cost * self.budget.overrun if cost is None else cost
        if permit.cost or cost:
            unsure, at_worst = 0.0 if is_sure else cost, 0.0 if is_reported else cost
            self.budget.settle(permit.cost, cost, unsure=unsure, at_worst=at_worst)
            self.events.tell("spent", self.lane.model, cost, "" if is_sure else "unsure")
        if permit.payer is not None:
            permit.payer.settle(permit, used, cost, is_sure=is_sure)
