"""The driver's end of a fleet: a scheduler whose calls are carried by workers, in batches.

Owns which worker has which call, and what becomes of the calls of a worker that died. All that makes a run a run stays
in this process: items, journal, stops. How a call is answered is its worker's; how a worker is reached, the link's.
"""

from __future__ import annotations

import asyncio
import pickle
import zlib
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial

from msgspec import field, structs

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
from .batches import CallLink, Given, Taken, WorkerDied
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
    place of one whose worker died, or raises LocalFault."""

    budget: CostBudget
    is_shared: bool
    revive: Callable[[], Awaitable[CallLink]]
    workers: list[FleetWorker] = field(default_factory=list)
    _backlogs: dict[str, deque[FleetCall]] = field(default_factory=dict)
    _under_way: dict[int, FleetCall] = field(default_factory=dict)
    _number: int = 0
    _is_due: bool = False
    _maybe_billed_by_dead: int = 0
    _deaths_in_a_row: int = 0

    def __repr__(self) -> str:
        backlog = sum(map(len, self._backlogs.values()))
        return f"<FleetScheduler [{len(self.workers)} workers, {self.under_way} calls under way, {backlog} not given]>"

    @property
    def under_way(self) -> int:
        return len(self._under_way) + super().under_way

    def in_work_most(self, lane: str) -> int:
        # The driver sends nothing itself, so it never sees how far calls in flight have grown.
        most = sum(key.growth.most for key in self.routes.of(lane).lane.keys)
        return max(most, super().in_work_most(lane)) + AHEAD * len(self.workers)

    def add(self, link: CallLink) -> None:
        """Begins to hand calls to a worker."""
        self.workers.append(worker := FleetWorker(link))
        self._begin_with(worker)

    def _begin_with(self, worker: FleetWorker) -> None:
        worker.is_alive = worker.is_ready = True
        self._settle_places()
        worker.next = Given(stops=[route.lane.stopped for route in self.routes if route.lane.stopped is not None])
        if self.routes.halted is not None:
            worker.next.stops.append(Stop("", *self.routes.halted))
        worker.serving = self.loop.create_task(self._serve(worker))

    def look_up(self, call: Call, encoded: CallEncoding | None = None) -> Outcome | PendingCall:
        """Returns the call as pending: its worker looks it up. One that is answered here is looked up here."""
        route = self.routes.lasting.get(call.model) or self.routes.of(call.lane)
        if route.is_local:
            return super().look_up(call, encoded)
        return PendingCall(call, route, _UNENCODED, b"", 0, _NO_TOKENS, 0)

    def begin(self, waiter: Waiter) -> None:
        if waiter.pending.route.is_local:
            super().begin(waiter)
            return
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
            worker.next.left.append(call.number)

    def halt(self, reason: StopReason, detail: str) -> None:
        super().halt(reason, detail)
        self._pass_on(Stop("", reason, detail))

    async def end(self) -> None:
        await super().end()
        for call in tuple(self._under_way.values()):
            self._end(call, asyncio.CancelledError())
            self.leave(call)
        serving = [worker.serving for worker in self.workers if worker.serving is not None]
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
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
            if worker.is_ready:
                self._give(worker)

    def _give(self, worker: FleetWorker, *, is_owed: bool = False) -> None:
        """Hands a worker what there is for it. `is_owed`: also if that is nothing."""
        batch, grant, share = worker.next, self._grant(worker), self._share()
        batch.grant, backlog = grant, self._backlogs[self._place_of(worker)]
        while len(batch.calls) < _BATCH_MOST and (worker.own or (backlog and len(worker.given) < share)):
            call = (worker.own or backlog).popleft()
            if call.waiter is not None:  # else it has left, or its lane stopped
                call.worker = worker
                worker.given[call.number] = call
                batch.calls.append((call.number, call.pending.call))
        if not (is_owed or batch.calls or batch.left or batch.stops or grant.dollars or grant.is_last):
            return
        worker.next = Given()
        if len(batch.calls) == _BATCH_MOST:
            self._give_soon()
        try:
            data = pickle.dumps(batch, pickle.HIGHEST_PROTOCOL)
        except Exception as error:  # noqa: BLE001 (raised where the calls are waited for)
            for number, _ in batch.calls:
                self._end(worker.given.pop(number), error)
            batch.calls = []
            data = pickle.dumps(batch, pickle.HIGHEST_PROTOCOL)
        worker.link.send(data)

    def _share(self) -> int:
        """Returns how many calls one worker may have: none has a heap while another waits."""
        return -(-len(self._under_way) // sum(worker.is_alive for worker in self.workers))

    def _grant(self, worker: FleetWorker) -> Grant:
        """Returns what the budget allows a worker now, which is reserved for it. Nothing once all sending ends, as it
        does if the budget's file can't be written."""
        if self.routes.halted is None:
            purse = worker.purse
            # Whether no worker has money that it may return.
            is_settled = purse.latest.needed > 0.0 and all(each.purse.open < 1e-12 for each in self.workers)
            try:
                return purse.grant(self.budget, is_settled=is_settled)
            except LocalFault as fault:
                self.halt("local_fault", str(fault))
        return Grant()

    async def _serve(self, worker: FleetWorker) -> None:
        """Takes what a worker hands back as long as it lives."""
        try:
            while True:
                self._received(worker, pickle.loads(await worker.link.receive()))
                worker.is_ready = False
                await asyncio.sleep(0)  # what follows the outcomes goes with one batch
                worker.is_ready = True
                self._give(worker, is_owed=True)
        except WorkerDied as death:
            await self._bury(worker, death)
        except Exception as error:  # noqa: BLE001 (else its calls would wait for ever)
            await worker.link.close()
            await self._bury(worker, WorkerDied(f"{type(error).__name__}: {error}"))

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
        rows, others = [], []
        for number, end in taken.ended:
            call = self._ended(worker, number)
            if not isinstance(end, Outcome):
                others.append((call, end))
            elif call is not None and call.waiter is not None:
                outcome, sink = call.outcome_of(end), call.waiter.sink
                line = None if sink is None else SinkLine(sink, outcome, call.context)
                rows.append(StoreRow(None, b"", b"", partial(call.done, outcome), line))
        if rows:
            self._deaths_in_a_row = 0
            CommitGroup(rows, {}, {}).end(None)
            for fault in {row.line.sink.fault for row in rows if row.line is not None and row.line.sink is not None}:
                if fault is not None:
                    self.halt("local_fault", str(fault))
        for call, end in others:
            if isinstance(end, Stop):
                self._stop_lane(worker, end)
                if call is not None:
                    self._end(call, LaneStopped(call.pending.route.lane.stopped or end))
            elif call is not None:
                self._end(call, end if isinstance(end, LocalFault) else RuntimeError(f"{worker.link.name}: {end}"))

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
        self._pass_on(stop)

    def _pass_on(self, stop: Stop) -> None:
        """Tells all workers of a stop, and ends the calls of stopped lanes that none has."""
        for worker in self.workers:
            worker.next.stops.append(stop)
        for call in tuple(self._under_way.values()):
            if call.worker is None and stop.lane in ("", call.pending.call.lane):
                self._end(call, LaneStopped(structs.replace(stop, lane=stop.lane or call.pending.call.model)))
        self._give_soon()

    # Deaths

    async def _bury(self, worker: FleetWorker, death: WorkerDied) -> None:
        """Gives the calls of a dead worker to others: each may have been sent, unless its answer is found stored. Then
        starts another in its place."""
        remark(f"{worker.link.name} has ended ({death}): its {len(worker.given):,} calls go to other workers")
        worker.is_alive = worker.is_ready = False
        self._maybe_billed_by_dead += worker.maybe_billed
        worker.maybe_billed, worker.in_flight = 0, {}
        worker.purse.bury(self.budget)
        orphans = list(worker.given.values())
        worker.given = {}
        for call in orphans:
            call.worker = None
            call.deaths += 1
        self._return(orphans)
        self._deaths_in_a_row += 1
        if self._deaths_in_a_row >= _DEATHS_MAX:
            ended = f"{self._deaths_in_a_row} workers have ended one after the other, and not one call with them"
            self.halt("local_fault", f"{ended}; the last was {worker.link.name} ({death}): see the cluster's logs")
        try:
            worker.link = await self.revive()
        except Exception as error:  # noqa: BLE001 (else the calls of this worker would wait for ever)
            remark(str(error) if isinstance(error, LocalFault) else f"no other worker starts: {error!r}")
        else:
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
        self._give_soon()


def _number_of(text: str, count: int) -> int:
    return zlib.crc32(text.encode("utf-8", "surrogatepass")) % count
