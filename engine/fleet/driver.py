"""The driver's end of a fleet: a scheduler whose calls are carried by workers, in batches.

Owns which worker has which call, and what becomes of the calls of a worker that died. All that makes a run a run stays
in this process: items, journal, stops. How a call is answered is its worker's; how a worker is reached, the link's.
"""

from __future__ import annotations

import asyncio
import zlib
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial

from msgspec import field

from ..attempts.money import CostBudget, over_budget
from ..call import Call, Outcome
from ..call_lookup import CallEncoding, PendingCall
from ..endpoint import Hear, Request
from ..fault import LocalFault, Stop, StopReason
from ..lanes.lane_queue import LaneStopped
from ..limits import Tokens
from ..remarks import remark
from ..scheduler import AHEAD, Scheduler
from ..shared_calls import Waiter
from ..sink import Sink, SinkLine
from ..store.commit import CommitGroup, StoreRow
from .batches import Given, Link, Taken, WorkerDied, packed, taken_of
from .given import FleetCall, FleetWorker
from .grants import Grant

_BATCH_MOST = 1024
# A call that ends every worker that gets it, or a cluster that can't keep one, must not be tried for ever.
_DEATHS_MAX = 10
# The driver encodes nothing.
_UNENCODED = Request("", "", b"", b"", b"", b"")
_NO_TOKENS = Tokens()


class FleetScheduler(Scheduler, eq=False, kw_only=True):
    """The way of all calls over workers. `is_shared`: all workers have one cache, so that any may carry any call; else
    those of one machine share theirs, and a call always goes to the same machine. `revive` returns another link in
    place of one whose worker died; None: there is no room for another."""

    budget: CostBudget
    is_shared: bool
    revive: Callable[[Link], Awaitable[Link | None]]
    workers: list[FleetWorker] = field(default_factory=list)
    _backlogs: dict[str, deque[FleetCall]] = field(default_factory=dict)
    _under_way: dict[int, FleetCall] = field(default_factory=dict)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _number: int = 0
    _is_due: bool = False
    _maybe_billed_by_dead: int = 0
    _deaths_in_a_row: int = 0

    def __repr__(self) -> str:
        backlog = sum(map(len, self._backlogs.values()))
        return f"<FleetScheduler [{len(self.workers)} workers, {self.under_way} calls under way, {backlog} not given]>"

    @property
    def under_way(self) -> int:
        return len(self._under_way)

    def in_work_most(self, lane: str) -> int:
        return super().in_work_most(lane) + AHEAD * len(self.workers)

    def add(self, link: Link) -> None:
        """Begins to hand calls to a worker."""
        self.workers.append(worker := FleetWorker(link))
        self._begin_with(worker)

    def _begin_with(self, worker: FleetWorker) -> None:
        worker.is_alive, worker.is_halted = True, False
        self._settle_places()
        worker.stops = [route.lane.stopped for route in self.routes if route.lane.stopped is not None]
        self._start(self._serve(worker))

    def look_up(self, call: Call, encoded: CallEncoding | None = None) -> PendingCall:
        """Returns the call as pending: its worker looks it up."""
        route = self.routes.lasting.get(call.model) or self.routes.of(call.lane)
        return PendingCall(call, route, _UNENCODED, b"", 0, _NO_TOKENS, 0)

    def begin(self, waiter: Waiter) -> None:
        self._number += 1
        call = self._under_way[self._number] = FleetCall(self._number, waiter.pending, waiter, self.leave)
        waiter.call = call
        stop = waiter.pending.route.lane.stopped
        if stop is not None:
            self.loop.call_soon(self._end, call, LaneStopped(stop))
            return
        self._backlog_of(call).append(call)
        if not self._is_due:
            self._give_soon()

    async def fetch(self, pending: PendingCall, sink: Sink | None, hear: Hear | None = None) -> Outcome:
        outcome = await super().fetch(pending, sink)
        if hear is not None and outcome.reply is not None and not outcome.cached:
            hear(None)
            hear(outcome.reply.text)
        return outcome

    def leave(self, call: FleetCall) -> None:
        """Forgets a call that nobody waits for any more."""
        self._under_way.pop(call.number, None)
        worker = call.worker
        if worker is not None and worker.given.pop(call.number, None) is not None:
            worker.left.append(call.number)

    def halt(self, reason: StopReason, detail: str) -> None:
        super().halt(reason, detail)
        for call in [call for call in self._under_way.values() if call.worker is None]:
            self._end(call, LaneStopped(Stop(call.pending.call.model, reason, detail)))
        self._give_all()

    async def end(self) -> None:
        self._is_closed = True
        for listener in tuple(self.on_end):
            await listener()
        for call in tuple(self._under_way.values()):
            self._end(call, asyncio.CancelledError())
            self.leave(call)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(
            *(worker.link.close() for worker in self.workers if worker.is_alive), return_exceptions=True
        )

    # Calls to workers

    def _place_of(self, worker: FleetWorker) -> str:
        return "" if self.is_shared else worker.link.node

    def _backlog_of(self, call: FleetCall) -> deque[FleetCall]:
        if call.pending.route.is_page:
            # One worker at a time reads the pages of a host, so that its pace is kept.
            return self.workers[_number_of(call.pending.call.lane, len(self.workers))].own
        if len(self._backlogs) == 1:
            return next(iter(self._backlogs.values()))
        places = sorted(self._backlogs)
        return self._backlogs[places[_number_of(repr(call.pending.call.input), len(places))]]

    def _give_soon(self) -> None:
        if not self._is_due:
            self._is_due = True
            self.loop.call_soon(self._give_all)

    def _give_all(self) -> None:
        """Hands what waits to the workers that have room for it, also while they have nothing to hand back."""
        self._is_due = False
        for worker in self.workers:
            if worker.is_waiting and self._has_news(worker):
                self._start(self._exchange(worker, waits=False))

    def _has_news(self, worker: FleetWorker) -> bool:
        if worker.own or worker.left or worker.stops or (self.routes.halted is not None and not worker.is_halted):
            return True
        if worker.purse.latest.needed:
            grant = self._grant(worker, is_offer=True)
            if grant.dollars or grant.is_last:
                return True
        return bool(self._backlogs[self._place_of(worker)]) and len(worker.given) < self._share()

    @property
    def _is_settled(self) -> bool:
        """Whether no worker has money that it may return."""
        return all(worker.purse.open < 1e-12 for worker in self.workers)

    def _share(self) -> int:
        """Returns how many calls one worker may have: none has a heap while another waits."""
        return -(-len(self._under_way) // sum(worker.is_alive for worker in self.workers))

    def _given_to(self, worker: FleetWorker, *, waits: bool) -> Given:
        calls: list[tuple[int, Call]] = []
        share, backlog = self._share(), self._backlogs[self._place_of(worker)]
        while len(calls) < _BATCH_MOST and (worker.own or (backlog and len(worker.given) < share)):
            call = (worker.own or backlog).popleft()
            if call.waiter is not None:  # else it has left, or its lane stopped
                call.worker = worker
                worker.given[call.number] = call
                calls.append((call.number, call.pending.call))
        left, worker.left = worker.left, []
        stops, worker.stops = worker.stops, []
        worker.is_halted = self.routes.halted is not None
        grant = self._grant(worker)
        return Given(calls, left, stops, self.routes.halted, waits, grant)

    def _grant(self, worker: FleetWorker, *, is_offer: bool = False) -> Grant:
        """Returns what the budget allows a worker now; with `is_offer` nothing is reserved. Nothing once all sending
        ends, as it does if the budget's file can't be written."""
        if self.routes.halted is None:
            try:
                purse = worker.purse
                return (purse.offer if is_offer else purse.grant)(self.budget, is_settled=self._is_settled)
            except LocalFault as fault:
                self.halt("local_fault", str(fault))
        return Grant()

    async def _serve(self, worker: FleetWorker) -> None:
        """Exchanges with a worker as long as it lives."""
        try:
            while True:
                worker.is_waiting = True
                await self._exchange(worker, waits=True)
                worker.is_waiting = False
                await asyncio.sleep(0)  # what follows the outcomes goes with the next exchange
        except WorkerDied as death:
            await self._bury(worker, death)
        except Exception as error:  # noqa: BLE001 (else its calls would wait for ever)
            await worker.link.close()
            await self._bury(worker, WorkerDied(f"{type(error).__name__}: {error}"))

    async def _exchange(self, worker: FleetWorker, *, waits: bool) -> None:
        given, link = self._given_to(worker, waits=waits), worker.link
        try:
            data = await link.exchange(packed(given))
        except WorkerDied:
            if waits:
                raise
            return  # the exchange that waits meets it too
        if worker.link is link and worker.is_alive:  # else its calls have gone to others
            self._received(worker, taken_of(data))

    # Outcomes of workers

    def _received(self, worker: FleetWorker, taken: Taken) -> None:
        worker.maybe_billed = taken.maybe_billed
        worker.purse.note(taken.spending, self.budget)
        if any(each.purse.latest.needed for each in self.workers):
            self._give_soon()
        self.maybe_billed_pending = self._maybe_billed_by_dead + sum(each.maybe_billed for each in self.workers)
        worker.in_flight = taken.in_flight
        for lane, route in self.routes.lasting.items():
            # The first key stands for all keys of all workers.
            route.lane.keys[0].in_flight = sum(each.in_flight.get(lane, 0) for each in self.workers)
        for event in taken.events:
            self.events.tell(event.kind, event.lane, event.value, event.detail)
        rows = []
        for carried in taken.carried:
            call = self._ended(worker, carried.number)
            if call is not None and call.waiter is not None:
                outcome, sink = call.outcome_of(carried), call.waiter.sink
                line = None if sink is None else SinkLine(sink, outcome, call.context)
                rows.append(StoreRow(None, b"", b"", partial(call.done, outcome), line))
        if rows:
            self._deaths_in_a_row = 0
            CommitGroup(rows, {}, {}).end(None)
            for fault in {row.line.sink.fault for row in rows if row.line is not None and row.line.sink is not None}:
                if fault is not None:
                    self.halt("local_fault", str(fault))
        for number, stop in taken.stopped:
            self._stop_lane(worker, stop)
            if (call := self._ended(worker, number)) is not None:
                self._end(call, LaneStopped(call.pending.route.lane.stopped or stop))
        for number, text, is_local in taken.broken:
            if (call := self._ended(worker, number)) is not None:
                self._end(call, LocalFault(text) if is_local else RuntimeError(f"{worker.link.name}: {text}"))

    def _ended(self, worker: FleetWorker, number: int) -> FleetCall | None:
        call = worker.given.pop(number, None)
        if call is not None:
            del self._under_way[number]
        return call

    def _end(self, call: FleetCall, end: BaseException) -> None:
        """Ends a call without an outcome."""
        self._under_way.pop(call.number, None)
        self._maybe_billed_by_dead += call.deaths
        waiter, call.waiter = call.waiter, None
        if waiter is not None:
            waiter.end(end)

    def _stop_lane(self, worker: FleetWorker, stop: Stop) -> None:
        """Stops a lane for all workers, since one of them has met the reason."""
        if stop.reason == "local_fault":
            self.halt(stop.reason, stop.detail)
            return
        route = self.routes.of(stop.lane)
        if route.lane.stopped is not None or route.is_page:
            return
        if stop.reason == "budget":  # a worker knows only what it spent itself
            self.budget.is_exhausted = True
            needed = worker.purse.latest.needed
            stop = Stop(stop.lane, "budget", over_budget(f"the next call to {stop.lane}", needed, self.budget))
        route.lane.stop(stop.reason, stop.detail)
        for worker in self.workers:
            worker.stops.append(stop)
        for call in [call for call in self._under_way.values() if call.worker is None and call.pending.route is route]:
            self._end(call, LaneStopped(stop))
        self._give_all()

    # Deaths

    async def _bury(self, worker: FleetWorker, death: WorkerDied) -> None:
        """Gives the calls of a dead worker to others: each may have been sent, unless its answer is found stored. Then
        starts another in its place."""
        remark(f"{worker.link.name} has ended ({death}): its {len(worker.given):,} calls go to other workers")
        worker.is_alive = worker.is_waiting = False
        self._maybe_billed_by_dead += worker.maybe_billed
        worker.maybe_billed, worker.in_flight = 0, {}
        worker.purse.bury(self.budget)
        orphans = list(worker.given.values())
        worker.given, worker.left = {}, []
        for call in orphans:
            call.worker = None
            call.deaths += 1
        self._return(orphans)
        self._deaths_in_a_row += 1
        if self._deaths_in_a_row >= _DEATHS_MAX:
            ended = f"{self._deaths_in_a_row} workers have ended one after the other, and not one call with them"
            self.halt("local_fault", f"{ended}; the last was {worker.link.name} ({death}): see the cluster's logs")
        try:
            link = await self.revive(worker.link)
        except LocalFault as fault:
            remark(str(fault))
            link = None
        if link is not None:
            worker.link = link
            self._begin_with(worker)
            return
        self.workers.remove(worker)
        if not self.workers:
            self.halt("local_fault", f"no worker is left: the last one, {worker.link.name}, has ended ({death})")
            return
        self._settle_places()
        self._return(list(worker.own))

    def _settle_places(self) -> None:
        """Gives the calls of places that have no worker any more to the others."""
        places = {self._place_of(worker) for worker in self.workers}
        lost = [self._backlogs.pop(place) for place in self._backlogs.keys() - places]
        for place in places:
            self._backlogs.setdefault(place, deque())
        self._return([call for backlog in lost for call in backlog])

    def _return(self, calls: list[FleetCall]) -> None:
        """Puts calls that a worker had before those that none has had."""
        for call in reversed(calls):
            if call.waiter is not None:
                self._backlog_of(call).appendleft(call)
        self._give_all()

    def _start(self, steps: Coroutine[None, None, None]) -> None:
        task = self.loop.create_task(steps)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _number_of(text: str, count: int) -> int:
    return zlib.crc32(text.encode("utf-8", "surrogatepass")) % count
