"""The one way in which a call is sent: cache, lease, lane, transport, then cache and journal.

Owns the order of these steps and the retries. It is given endpoints and lanes; it knows no provider and no benchmark.
Who waits for which call that is under way: shared_calls. Workers, iterator and results of a whole run: run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from random import Random

from msgspec import MsgspecError, structs

from .attempts.retry import RetryPolicy, Tries
from .call import Call, Failure, Outcome, Reply
from .call_lookup import CallEncoding as CallEncoding
from .call_lookup import CallLookup
from .endpoint import Fault, Hear, Request, Response, SendError, Withdrawn, send
from .events import Events
from .fault import LocalFault, Stop, Stopped, StopReason
from .lanes.key_gate import Permit
from .lanes.lane_queue import LaneStopped
from .lease_wait import take_lease
from .own_machine import own_fault_of
from .routes import Route as Route
from .routes import Routes
from .shared_calls import CallWaiter, PendingCall, SharedCall, SharedCalls, Waiter, shared_outcome
from .sink import Sink, SinkLine
from .store.cache import Cache, Mode
from .store.cache_policy import CachePolicy
from .store.leases import KeyLeases
from .verdict import verdict

# Stops that the host did not cause: calls that were not sent stay pending.
_OUR_OWN: tuple[StopReason, ...] = ("budget", "interrupted", "local_fault")
# A waiter that gets its answer before it is stored sends its next call within this time.
_STORED_AFTER_S = 0.002
# What the encoder raises for an entry that can't become bytes, such as half a character in a header.
_NOT_ENCODED = (ValueError, TypeError, OverflowError, MsgspecError)


class Scheduler:
    """The way of all calls to their outcomes. `route` makes a lane's route from its name, when it is first used;
    `leases` None: no other engine shares this one's answers."""

    def __init__(
        self,
        route: Callable[[str], Route],
        *,
        cache: Cache,
        mode: Mode,
        policy: RetryPolicy,
        events: Events,
        random: Random,
        recall: CachePolicy | None = None,
        leases: KeyLeases | None = None,
    ) -> None:
        self.events = events
        self.cache = cache
        self._leases = leases
        self.recall = recall if recall is not None else CachePolicy(cache, mode)
        self.ways = Routes(route, policy.reopened_s)
        # Those of models and searches, by lane; those of hosts come and go.
        self.routes: Mapping[str, Route] = self.ways.lasting
        self.hosts: Mapping[str, Route] = self.ways.hosts
        self._mode = mode
        self._lookup = CallLookup(self.ways, self.recall, events, mode)
        self.encoded, self.look_up = self._lookup.encoded, self._lookup.look_up
        self._policy = policy
        self._random = random
        self.maybe_billed_pending = 0
        self._out = 0
        self._shared = SharedCalls(self._carry)
        self._is_closed = False
        self.on_halt: set[Callable[[], None]] = set()
        self.on_end: set[Callable[[], Awaitable[None]]] = set()

    def __repr__(self) -> str:
        in_flight = sum(route.lane.in_flight for route in self.ways)
        hosts = f"{len(self.ways.hosts)} hosts, " if self.ways.hosts else ""
        return f"<Scheduler [{len(self.routes)} lanes, {hosts}{in_flight} in flight, mode {self._mode}]>"

    @property
    def halted(self) -> tuple[StopReason, str] | None:
        return self.ways.halted

    @property
    def under_way(self) -> int:
        """The number of calls that are being sent or stored, however many wait for each."""
        return len(self._shared)

    def resume(self) -> None:
        """Ends a halt: each lane is opened anew when it is next used."""
        self.ways.resume()

    def route_of(self, lane: str) -> Route:
        return self.ways.of(lane)

    async def end(self) -> None:
        """Ends all runs (those that still wait get an error) and all calls, since the engine is about to be closed."""
        self._is_closed = True
        for listener in tuple(self.on_end):
            await listener()
        await self._shared.close()

    def close(self) -> None:
        self.ways.close()

    async def ask(self, call: Call, sink: Sink | None = None, hear: Hear | None = None) -> Outcome:
        """Returns the outcome of one call, after it was written to `sink`, if there is one. Raises Stopped if its lane
        sends nothing more. `hear` receives the streamed text of a call that is sent; nothing for one that is stored
        or was begun without a listener."""
        found = self.look_up(call)
        if isinstance(found, Outcome):
            self._write(found, sink)
            return found
        try:
            return await self.fetch(found, sink, hear)
        except LaneStopped as error:
            raise Stopped([error.stop]) from error

    def halt(self, reason: StopReason, detail: str) -> None:
        """Stops sending on all lanes; calls in flight are finished."""
        self.ways.halt(reason, detail)
        for listener in tuple(self.on_halt):
            listener()

    def begin(self, waiter: Waiter) -> None:
        """Sends a call for a waiter, or joins it to the identical call that is under way."""
        self._shared.join(waiter)

    async def fetch(self, pending: PendingCall, sink: Sink | None, hear: Hear | None = None) -> Outcome:
        """Sends a call, or joins an identical one that is under way, and returns the outcome. If the only caller is
        cancelled, it goes on when slot and connection are free."""
        waiter = CallWaiter(pending, hear=hear, sink=sink)
        self._shared.join(waiter)
        try:
            outcome = await waiter.outcome()
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._is_closed and task is not None and not task.cancelling():
                raise RuntimeError("the engine was closed while this call was under way") from None
            await waiter.wait_until_free()
            raise
        return self.joined(waiter, outcome) if waiter.is_joining else outcome

    def joined(self, waiter: Waiter, outcome: Outcome) -> Outcome:
        """Returns the outcome of a call that another caller began as this waiter's own, and writes it to its sink."""
        kind = None if outcome.failure is None else outcome.failure.kind
        self.events.tell("cached" if kind is None else "unsent", waiter.pending.call.model, detail=kind or "")
        outcome = shared_outcome(waiter.pending.call, outcome)
        self._write(outcome, waiter.sink)
        return outcome

    async def _carry(self, shared: SharedCall) -> Outcome | None:
        """Returns the outcome of a call, once its payer has admitted it. None: its waiters now wait for another."""
        pending, payer = shared.pending, shared.pending.payer
        if payer is None:
            return await self._send(shared)
        outcome = None
        try:
            if payer.is_limited:
                await payer.admit(pending.tokens, pending.reckoned_cost)
                # Another payer's call may have been answered meanwhile, and the lane may have been opened anew.
                found = self._lookup.find(pending.call, self.ways.of(pending.call.lane), pending.request, pending.key)
                if isinstance(found, Outcome):
                    return found
                pending.route = found.route
                if not self._shared.open_to_all(shared):
                    return None
            outcome = await self._send(shared)
            return outcome
        finally:
            usage = None if outcome is None or outcome.reply is None else outcome.reply.usage
            payer.end(pending.tokens.settled(usage))

    async def _send(self, shared: SharedCall) -> Outcome:
        pending = shared.pending
        tries = Tries(pending.route.policy or self._policy)
        leases = self._leases if pending.route.is_kept else None
        try:
            try:
                if leases is not None:
                    stored = await take_lease(leases, shared, self._lookup, tries.policy.patience_s)
                    if stored is not None:
                        self._write_first(shared, stored)
                        return stored
                return await self._send_until_final(shared, tries)
            except LaneStopped as error:
                self.ways.note_stop(pending.route)
                if not pending.route.is_page or error.stop.reason in _OUR_OWN:
                    raise
                fault = pending.route.latest_fault
                if fault is not None and verdict(fault).learns == "rest":
                    ours = Stop(error.stop.lane, "local_fault", f"{fault.detail}: make room for it, then start again")
                    self.halt(ours.reason, ours.detail)
                    raise LaneStopped(ours) from error
                # The host is given up and this page fails; the run goes on.
                kind, status = ("connect", None) if fault is None else (fault.kind, fault.status)
                return await self._failed(shared, Failure(kind, error.stop.detail, status), None, tries)
        except BaseException:
            # The call stays pending, so no record will tell of what was sent for it.
            self.maybe_billed_pending += tries.maybe_billed
            raise
        finally:
            if leases is not None and shared.is_leased:
                leases.release(pending.key)

    async def _send_until_final(self, shared: SharedCall, tries: Tries) -> Outcome:
        pending, payer = shared.pending, shared.pending.payer
        call, route, lane = pending.call, pending.route, pending.route.lane
        request = structs.replace(pending.request, hear=shared.hear) if shared.is_heard else pending.request
        loop = asyncio.get_running_loop()
        while True:
            worst = pending.reckoned_cost
            if payer is not None:
                payer.reserve(worst)
            permit = await lane.admit(pending.tokens, worst, tries.refused_by)
            permit.payer = payer
            try:
                self.events.tell("sent", call.model)
                try:
                    result, response = await self._attempt(route, permit, request)
                except Withdrawn:
                    permit.lane.withdraw(permit, loop.time())
                    continue
                except BaseException:
                    tries.maybe_billed += 1  # cancelled in flight: the provider may finish it all the same
                    raise
                if response is not None and isinstance(result, Reply):
                    tries.sent += 1
                    outcome = _outcome(pending, result, response, tries)
                    # First, since a waiter's next call must find the money gone.
                    route.settle(permit, call, result, outcome.cost)
                    await self._tell_early(shared, outcome)
                    await self._store(shared, response, outcome)
                    self.events.tell("answered", call.model, response.latency_ms, outcome.status)
                    return outcome
                assert isinstance(result, Fault)
                route.latest_fault = result
                decided = verdict(result, lane.history(permit, tries, request))
                lane.failed(permit, result, decided, loop.time())
                tries.note(decided, permit.lane.number)
                if decided.again == "never" or (decided.again == "pending" and lane.stopped is None):
                    failure = Failure(result.kind, result.detail, result.status)
                    return await self._failed(shared, failure, response, tries)
            finally:
                lane.release(permit, loop.time())
            self.events.tell("retried", call.model, detail=result.kind)
            request = request.after(decided.again)
            await lane.wait_to_repeat(permit, decided.again, tries, self._random)
            if self._leases is not None and route.is_kept:
                # An engine that has waited too long for this key's lease may have sent the call too.
                stored = self._lookup.stored(call, route, pending.key)
                if stored is not None:
                    outcome = structs.replace(stored, attempts=tries.sent, maybe_billed=tries.maybe_billed)
                    self._write_first(shared, outcome)
                    return outcome

    async def _tell_early(self, shared: SharedCall, outcome: Outcome) -> None:
        """Passes an answer to the waiters that don't wait for the store, and lets them run before it is stored."""
        payer, lane = shared.pending.payer, shared.pending.route.lane
        if payer is not None:
            payer.note_answer(outcome)
        if not shared.note_outcome(outcome):
            return
        # Making an entry and committing it take as long as a call's whole way through a gateway, so a waiter and what
        # it asks next go before. A place in the lane or at the payer that others may want is not kept longer for it;
        # uvloop writes at the end of a turn of its loop. Nobody cancels from here.
        if lane.in_flight < lane.concurrency and (payer is None or not payer.is_limited):
            await asyncio.sleep(_STORED_AFTER_S)
        else:
            await asyncio.sleep(0)
            await asyncio.sleep(0)

    async def _attempt(self, route: Route, permit: Permit, request: Request) -> tuple[Reply | Fault, Response | None]:
        """Makes one attempt; returns its result and response (None: none was received). Any error becomes a fault."""
        endpoint = route.endpoints[permit.lane.number]
        self._out += 1
        try:
            if request.hear is not None:
                request.hear(None)
            response = await send(endpoint, request, partial(permit.lane.clear, permit))
            result = endpoint.decode(response)
            if response.headers and (limits := endpoint.limits(response)):
                permit.limits = limits
                permit.lane.learn(limits, asyncio.get_running_loop().time())
            return result, response
        except SendError as error:
            return error.fault, None
        except Withdrawn:
            raise
        except Exception as error:  # noqa: BLE001
            # The one broad except: an attempt that broke unforeseen may be billed, and must not end the others.
            if (own := own_fault_of(error)) is not None:
                if own.is_lasting:
                    self.halt("local_fault", own.fault.detail)
                return own.fault, None
            detail = f"{type(error).__name__}: {error}"
            return Fault("incomplete", detail, "retry", is_billed_maybe=True), None
        finally:
            self._out -= 1

    async def _store(self, shared: SharedCall, response: Response, outcome: Outcome) -> None:
        """Stores an answer, then writes its journal line: the line follows the commit, so one write serves many."""
        pending, first = shared.pending, shared.first
        if not pending.route.is_kept:
            self._write_first(shared, outcome)
            return
        if response.headers and not pending.route.is_page:
            # These headers are about quotas at this moment; a page's describe the page.
            response = structs.replace(response, headers={})
        try:
            # With no other call in flight there is nothing to wait for: a lane of one call at a time has no pause after
            # each.
            is_last = self._out == 0
            url = pending.request.url if pending.route.is_page else ""
            trial, sink = pending.call.trial, None if first is None else first.sink
            line = shared.line = None if sink is None else SinkLine(sink, outcome)
            stored = self.cache.put(pending.key, pending.request, trial, response, is_last=is_last, url=url, line=line)
        except _NOT_ENCODED:
            # The answer reaches its caller but is not stored: the next identical call is sent again.
            self._write_first(shared, outcome)
            return
        try:
            await stored
        except LocalFault as fault:
            # The answer still reaches the journal; nothing more is sent.
            self.halt("local_fault", str(fault))
            self._write_first(shared, outcome)
            return
        except Exception as error:  # noqa: BLE001 (the first waiter's sink; the others have their answer)
            shared.fail_first(error)
        if sink is not None and sink.fault is not None:
            self.halt("local_fault", str(sink.fault))

    async def _keep_failure(self, pending: PendingCall, failure: Failure, response: Response | None) -> None:
        """Stores a failed search or page, so that a resumed run gets the same failure."""
        url = pending.request.url if pending.route.is_page else ""
        try:
            await self.cache.put_failure(pending.key, pending.request, failure, response, url=url)
        except LocalFault as fault:
            self.halt("local_fault", str(fault))
        except _NOT_ENCODED:
            pass

    def _write_first(self, shared: SharedCall, outcome: Outcome) -> None:
        """Writes an outcome to the sink of the waiter that began its call; the others write it to their own."""
        if (first := shared.first) is not None:
            try:
                self._write(outcome, first.sink)
            except Exception as error:  # noqa: BLE001 (as above)
                first.fail(error)

    def _write(self, outcome: Outcome, sink: Sink | None) -> None:
        if sink is None:
            return
        sink.write(outcome)
        sink.flush()
        if sink.fault is not None:
            self.halt("local_fault", str(sink.fault))

    async def _failed(self, shared: SharedCall, failure: Failure, response: Response | None, tries: Tries) -> Outcome:
        """Returns the outcome of a call that is not sent again, when it has been stored and written."""
        pending, route = shared.pending, shared.pending.route
        self.events.tell("failed", pending.call.model, detail=failure.kind)
        outcome = _outcome(pending, failure, response if route.is_page else None, tries)
        if route.is_retrieval:
            await self._keep_failure(pending, failure, response)
        self._write_first(shared, outcome)
        return outcome


def _outcome(pending: PendingCall, result: Reply | Failure, response: Response | None, tries: Tries) -> Outcome:
    reply, failure = (result, None) if isinstance(result, Reply) else (None, result)
    return Outcome(
        pending.call,
        reply=reply,
        failure=failure,
        key=pending.key.hex(),
        attempts=tries.sent,
        maybe_billed=tries.maybe_billed,
        cost=None if reply is None else pending.route.cost_of(pending.call, reply),
        latency_ms=None if response is None else response.latency_ms,
    )
