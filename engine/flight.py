"""A call on its way, for all who wait for it: one object a cache key, from the claim on its key to its stored outcome.

Its stations are plain methods. Each one advances the flight or parks it: where another engine, its lane, its provider,
a pause or the store has to go on first, and calls it back. Nothing here awaits, so the last waiter that leaves can end
it at any station, in one place. What follows from a fault: verdict.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from msgspec import structs

from .call import Failure, Outcome, Reply
from .claims import look_again_in_s
from .endpoint import Attempt, Fault, Response, SendError, Withdrawn
from .fault import Stop, StopReason
from .lanes.key_gate import Payer, Permit
from .lanes.lane_queue import LaneStopped
from .limits import Tokens
from .own_machine import own_fault_of
from .shared_calls import LANDED_MOST, At, SharedCall
from .verdict import RESTED, Verdict, verdict

if TYPE_CHECKING:
    from .shared.answers import Claim

# Stops that the host did not cause: calls that were not sent stay pending.
_OUR_OWN: tuple[StopReason, ...] = ("budget", "interrupted", "local_fault")
# A waiter that gets its answer before it is stored sends its next call within this time.
_STORED_AFTER_S = 0.002
# A call that waits for the shared cache says so each time that this long has passed.
_SHARED_LOOK_S = 1.0


class Flight(SharedCall, eq=False, kw_only=True):
    """One call on its way. `tokens`, `cost` and `refused_by` are what its lane reads; `is_written`: its attempt has
    been sent; `failed_permit`: that of the latest attempt that failed."""

    tokens: Tokens
    cost: float = 0.0
    refused_by: int = 0
    is_written: bool = False
    attempt: Attempt | None = None
    failed_permit: Permit | None = None

    def __repr__(self) -> str:
        seconds = self.parts.loop.time() - self.since
        what = f"{self.pending.key.hex()[:12]} to {self.pending.call.model}"
        place = f"{self.at.value} for {seconds:.1f} s, attempt {self.tries.sent + 1}"
        return f"<Flight {what} [{place}, {len(self.waiters)} waiting]>"

    # Its stations, in their order

    def begin(self) -> None:
        """Begins the flight. Never raises, and tells its waiter nothing before it returns."""
        self.pending.route.under_way += 1  # a route that is in use is not forgotten
        if self.first is not None and self.first.hear is not None:
            self.request = structs.replace(self.request, hear=self.hear)
        try:
            self._claim()
        except BaseException as error:  # noqa: BLE001 (raised to those who wait)
            self._crash(error)
        self.has_begun = True

    def _claim(self) -> None:
        """Takes the key, or waits for the engine that has it, which stores, then lets go. A holder that was stopped
        keeps its lease, so patience has an end: then the call is sent without one."""
        assert self.at in (At.BEGUN, At.CLAIM), self
        pending, claims, is_first = self.pending, self.parts.claims, self.at is At.BEGUN
        if not pending.route.is_kept:
            self._admit()
            return
        self.lease = claims.take(pending.key)
        if not self.lease:
            waited_s, patience_s = self.parts.loop.time() - self.since, self.tries.policy.patience_s
            if is_first or waited_s < patience_s:
                self.at = At.CLAIM
                pending.route.lane.rest(self, look_again_in_s(waited_s, patience_s), "lease")
                return
        if (is_first and claims.changes == pending.changes) or not self._is_stored():
            self._ask_machines()

    def _ask_machines(self) -> None:
        """Asks the cache that several machines share: it has the outcome, or lets one machine at a time send the
        call."""
        assert self.at in (At.BEGUN, At.CLAIM, At.SHARED), self
        shared = self.parts.shared
        if shared is None:
            self._admit()
            return
        self.at = At.SHARED
        self.pending.route.lane.rest(self, _SHARED_LOOK_S, "shared cache")
        shared.claim(self.pending.key, self._claimed)

    def _claimed(self, claim: Claim | BaseException) -> None:
        self._fly(self._go_on, claim)

    def _go_on(self, claim: Claim | BaseException) -> None:
        """Goes on as the shared cache says. Here too patience has an end, as with another engine of this machine."""
        assert self.at is At.SHARED, self
        pending, parts = self.pending, self.parts
        pending.route.lane.leave(self)
        if isinstance(claim, BaseException):
            parts.halt("local_fault", str(claim))
            raise claim
        waited_s, patience_s = parts.loop.time() - self.since, self.tries.policy.patience_s
        if claim == "taken" and waited_s < patience_s:
            pending.route.lane.rest(self, look_again_in_s(waited_s, patience_s), "lease")
        elif claim == "stored":
            if not self._is_stored():
                self._ask_machines()
        elif claim == "nothing":
            outcome = parts.not_cached(pending.call, pending.key)
            self._write_first(outcome)
            self._end(outcome)
        else:
            self._admit()

    def _is_stored(self) -> bool:
        """Returns whether another engine has stored the outcome meanwhile, which ends the flight."""
        pending, tries = self.pending, self.tries
        stored = self.parts.stored(pending.call, pending.route, pending.key)
        if stored is None:
            return False
        if tries.sent:
            stored = structs.replace(stored, attempts=tries.sent, maybe_billed=tries.maybe_billed)
        self._write_first(stored)
        self._end(stored)
        return True

    def _admit(self) -> None:
        assert self.at not in (At.LANE, At.KEPT, At.OVER), self
        pending = self.pending
        self.cost = pending.reckoned_cost
        self.at, self.since = At.LANE, self.parts.loop.time()
        permit = pending.route.lane.admit(self)
        if permit is not None:
            self._send(permit)

    def admitted(self, permit: Permit) -> None:
        if self.at is At.LANE:
            self._fly(self._send, permit)
        else:
            permit.gate.release(permit, self.parts.loop.time())  # it has left in the same instant

    def refused(self, payer: Payer, error: Exception) -> None:
        for waiter in [waiter for waiter in self.waiters if waiter.pending.payer is payer]:
            self.remove(waiter)
            waiter.end(error)

    def stopped(self, stop: Stop) -> None:
        if self.at in (At.LANE, At.PAUSE, At.CLAIM, At.SHARED):
            self._fly(self._stop, stop)

    def _send(self, permit: Permit) -> None:
        assert self.at is At.LANE, self
        pending, parts, request = self.pending, self.parts, self.request
        self.permit, self.is_written = permit, False
        parts.events.tell("sent", pending.call.model)
        self.at, self.since = At.SENT, permit.sent_at
        parts.out += 1
        try:
            if request.hear is not None:
                request.hear(None)
            if self.at is At.SENT:  # who listens may have left
                attempt = self.context.run(pending.route.endpoints[permit.gate.number].begin, request, self)
                if self.permit is permit and self.at is At.SENT:
                    self.attempt = attempt
        except Exception as error:  # noqa: BLE001 (it may be billed, and must not end the others)
            self._broken(error)
        except BaseException:
            parts.out -= 1
            raise

    def clear(self) -> float:
        assert self.permit is not None
        wait_s = self.permit.gate.clear(self.permit)
        self.is_written = wait_s == 0.0
        return wait_s

    def received(self, response: Response) -> None:
        parts = self.parts
        if parts.landed == LANDED_MOST:
            parts.late.append((self, response))
            return
        if not parts.landed:
            parts.loop.call_soon(parts.land_late)
        parts.landed += 1
        self.land(response)

    def land(self, response: Response) -> None:
        if self.at is not At.SENT:
            return
        permit, parts, endpoints = self.permit, self.parts, self.pending.route.endpoints
        assert permit is not None
        try:
            try:
                endpoint = endpoints[permit.gate.number]
                result = endpoint.decode(response)
                if response.headers and (limits := endpoint.limits(response)):
                    permit.limits = limits
                    permit.gate.learn(limits, parts.loop.time())
            except Exception as error:  # noqa: BLE001 (as in _send)
                self._broken(error)
                return
            parts.out -= 1
            self.attempt = None
            if isinstance(result, Reply):
                self._land(permit, result, response)
            else:
                self._fail(permit, result, response)
        except BaseException as error:  # noqa: BLE001 (raised to those who wait)
            self._crash(error)

    def broke(self, error: Exception) -> None:
        if self.at is At.SENT:
            self._fly(self._broken, error)

    def _broken(self, error: Exception) -> None:
        """Ends an attempt without a response. Any error becomes a fault."""
        permit, parts = self.permit, self.parts
        assert permit is not None
        parts.out -= 1
        self.attempt = None
        if isinstance(error, Withdrawn):
            permit.gate.withdraw(permit, parts.loop.time())
            parts.events.tell("retried", self.pending.call.model, detail="withdrawn")
            self._release()
            self._admit()
        elif isinstance(error, SendError):
            self._fail(permit, error.fault, None)
        elif (local_fault := own_fault_of(error)) is not None:
            if local_fault.is_lasting:
                parts.halt("local_fault", local_fault.fault.detail)
            self._fail(permit, local_fault.fault, None)
        else:
            detail = f"{type(error).__name__}: {error}"
            self._fail(permit, Fault("incomplete", detail, "retry", is_billed_maybe=True), None)

    def _fail(self, permit: Permit, fault: Fault, response: Response | None) -> None:
        assert self.at is At.SENT, self
        parts, route, tries, now = self.parts, self.pending.route, self.tries, self.parts.loop.time()
        lane, route.latest_fault = route.lane, fault
        decided = verdict(fault, lane.history(permit, tries, self.request))
        lane.failed(permit, fault, decided, now)
        tries.note(decided, permit.gate.number)
        self.refused_by = tries.refused_by
        if decided.again == "never" or (decided.again == "pending" and lane.stopped is None):
            self._give_up(Failure(fault.kind, fault.detail, fault.status), response)
            return
        self._release()
        parts.events.tell("retried", lane.lane.model, detail=fault.kind)
        self.request = self.request.after(decided.again)
        self.at, self.since = At.PAUSE, now
        self.failed_permit = permit
        self._repeat(decided)

    def rested(self) -> None:
        if self.at is At.CLAIM:
            self._fly(self._claim)
        elif self.at is At.SHARED:
            self._fly(self._ask_machines)
        elif self.at is At.PAUSE:
            self._fly(self._repeat, RESTED)

    def _repeat(self, decided: Verdict) -> None:
        assert self.at is At.PAUSE and self.failed_permit is not None, self
        if self.pending.route.lane.wait_to_repeat(self, self.failed_permit, decided, self.tries, self.parts.random):
            return
        # An engine that has waited too long for the lease of this cache key may have sent the call too.
        if not self.pending.route.is_kept or not self._is_stored():
            self._admit()

    def _stop(self, stop: Stop) -> None:
        """Ends the flight because its lane has stopped. A page whose host was given up fails; the run goes on."""
        pending, parts = self.pending, self.parts
        if pending.route.is_page and stop.reason not in _OUR_OWN:
            fault = pending.route.latest_fault
            if fault is None or verdict(fault).learns != "rest":
                kind, status = ("connect", None) if fault is None else (fault.kind, fault.status)
                self._give_up(Failure(kind, stop.detail, status), None)
                return
            stop = Stop(stop.lane, "local_fault", f"{fault.detail}: make room for it, then start again")
            parts.halt(stop.reason, stop.detail)
        self._end(LaneStopped(stop))

    # Its outcome

    def _land(self, permit: Permit, reply: Reply, response: Response) -> None:
        assert self.at is At.SENT, self
        pending, tries = self.pending, self.tries
        route, payer = pending.route, permit.payer
        tries.sent += 1
        # First, since a waiter's next call must find the money gone.
        cost = route.settle(permit, pending.call, pending.weight, reply)
        outcome = Outcome(
            pending.call,
            reply=reply,
            key=pending.key.hex(),
            attempts=tries.sent,
            maybe_billed=tries.maybe_billed,
            cost=cost,
            latency_ms=response.latency_ms,
        )
        if payer is not None:
            payer.note_answer(outcome)
        self.outcome, is_early = outcome, False
        for waiter in tuple(self.waiters):
            if waiter.is_early:
                is_early = True
                waiter.end(outcome)
        if not is_early:
            self._keep(outcome, response)
            return
        # Making an entry and committing it take as long as a call's whole way through a gateway, so a waiter and what
        # it asks next go before. Until then the call counts as one in flight: the waiter has its answer, and after a
        # kill, a caller that asks again pays again. A place in the lane or at the payer that others may want is not
        # kept longer for it; uvloop writes at the end of a turn of its loop.
        self.at = At.KEPT
        lane, loop, keep = route.lane, self.parts.loop, partial(self._fly, self._keep, outcome, response)
        if lane.in_flight < lane.concurrency and (payer is None or not payer.is_limited):
            loop.call_later(_STORED_AFTER_S, keep)
        else:
            loop.call_soon(loop.call_soon, keep)

    def _give_up(self, failure: Failure, response: Response | None) -> None:
        """Ends the call with a failure; that of a search or page is stored, so that a resumed run gets the same."""
        pending, tries = self.pending, self.tries
        self.parts.events.tell("failed", pending.call.model, detail=failure.kind)
        outcome = Outcome(
            pending.call,
            failure=failure,
            key=pending.key.hex(),
            attempts=tries.sent,
            maybe_billed=tries.maybe_billed,
            latency_ms=response.latency_ms if response is not None and pending.route.is_page else None,
        )
        if pending.route.is_retrieval:
            self._keep(outcome, response)
        else:
            self._write_first(outcome)
            self._end(outcome)

    # Its end

    def abort(self) -> None:
        """Ends the flight without an outcome, wherever it is."""
        if self.at is At.SENT:
            permit = self.permit
            assert permit is not None
            self.parts.out -= 1
            if self.attempt is not None:
                self.attempt.abort()
            if self.is_written:
                self.tries.maybe_billed += 1  # the provider may finish it all the same
            else:
                permit.gate.withdraw(permit, self.parts.loop.time())
        elif self.at in (At.LANE, At.PAUSE, At.CLAIM, At.SHARED):
            self.pending.route.lane.leave(self)
        self._end(asyncio.CancelledError())

    def _fly(self, step: Callable[..., None], *arguments: object) -> None:
        """Takes a step. What it raises ends the flight, and nothing else."""
        try:
            step(*arguments)
        except BaseException as error:  # noqa: BLE001 (raised to those who wait)
            self._crash(error)

    def _crash(self, error: BaseException) -> None:
        if isinstance(error, LaneStopped):
            self._fly(self._stop, error.stop)
        else:
            self._end(error)
