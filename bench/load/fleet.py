"""The driver's end of a load test that workers send: shares out the calls, compares clocks, merges what was measured.

A due time is a moment of the driver's clock. It reaches a worker as a moment of the worker's own clock, by which all
times of a call are taken: an error of the comparison shifts one worker's calls against those of others, and is in no
latency. How a worker is reached is the link's.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

import msgspec
from msgspec import Struct, field

from ...engine.fleet.batches import Link, WorkerDied
from ...metrics.load.load_json import LoadClient
from .budget import Budget, LoadEnd
from .histogram import Histogram
from .meter import LoadMeter
from .plan import LoadPlan
from .run import CallEnd, LoadResult, ModelRun, RunUnderWay
from .timing import CallTimes, Clock
from .watch import ClientVerdict

_ROUND_TRIPS = 20
# From the last comparison of clocks to the beginning of a run: until every worker has its share.
_LEAD_S = 1.0
_REPORT_S = 0.2
_ORDINARY_ENDS = ("arrivals", "duration", "calls")
# What is to be run: a plan, its models, the number of the run, which selects the calls, and the step that the whole run
# is (None: it has several).
Part = tuple[LoadPlan, tuple[str, ...], int, int | None]


class Progress(Struct, array_like=True):
    """What a worker reports: the calls begun and the verdict so far in each model's latest run, dollars spent in all
    runs and the part of them that may not have been billed, why a run ends, and the calls that ended since the last
    report, as listeners hear of them: the model, its times, its step, whether it was measured."""

    models: dict[str, tuple[int, ClientVerdict]] = {}
    spent: float = 0.0
    unsure: float = 0.0
    ending: LoadEnd | None = None
    calls: list[tuple[str, CallTimes, int, bool]] = field(default_factory=list)


_progress_of = msgspec.msgpack.Decoder(Progress).decode


class _Client:
    """A worker as the driver knows it."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.offset_s = self.error_s = 0.0
        self.calls = 0
        self.late = Histogram()
        self.verdicts: list[ClientVerdict] = []
        self.latest = Progress()

    async def compare(self, clock: Clock) -> None:
        """Measures by how much the worker's clock is ahead, by the shortest of some round trips: it was read between
        the two ends of one."""
        trips = []
        for _ in range(_ROUND_TRIPS):
            before = clock()
            there = await self.link.ask("now")
            after = clock()
            trips.append(((after - before) / 2, there - (before + after) / 2))
        self.error_s, self.offset_s = min(trips)

    def take(self, result: LoadResult) -> None:
        for model, run in result.models.items():
            self.calls += run.begun
            self.late.merge(run.meter.own_delay)
            self.verdicts.append(result.verdicts[model])

    @property
    def figures(self) -> LoadClient:
        verdict = _joined([("", each) for each in self.verdicts])
        return LoadClient(
            name=self.link.name,
            calls=self.calls,
            late_p99_s=self.late.value(99) or 0.0,
            lag_p99_s=verdict.lag_p99_s,
            cpu_peak=round(verdict.cpu_peak, 4),
            cpu_mean=round(verdict.cpu_mean, 4),
            clock_offset_s=round(self.offset_s, 6),
            clock_error_s=round(self.error_s, 6),
            is_bottleneck=verdict.is_client_bound,
        )


class LoadFleet:
    """The workers of one load test."""

    def __init__(self, links: Sequence[Link], clock: Clock = time.perf_counter) -> None:
        self._clients = [_Client(link) for link in links]
        self._clock = clock

    def __repr__(self) -> str:
        return f"<LoadFleet [{len(self._clients)} workers]>"

    @property
    def figures(self) -> tuple[LoadClient, ...]:
        return tuple(client.figures for client in self._clients)

    async def run(
        self,
        part: Part,
        budget: Budget,
        zero: float,
        *,
        on_begin: Callable[[RunUnderWay], None],
        on_end: Sequence[CallEnd],
    ) -> LoadResult:
        """Runs one part of the test over all workers and returns their results as one. A worker that dies ends the
        test: its calls are in no figure."""
        clients, (plan, names, *_) = self._clients, part
        try:
            await asyncio.gather(*(client.compare(self._clock) for client in clients))
        except WorkerDied as death:
            budget.end("fault", f"a worker has ended before it was sent anything ({death})")
        begins_s = self._clock() - zero + _LEAD_S
        models = {model: ModelRun(LoadMeter(plan.promise)) for model in names}

        def verdict(model: str) -> ClientVerdict:
            reports = [(each.link.name, each.latest.models) for each in clients]
            return _joined([(name, report[model][1]) for name, report in reports if model in report])

        run = RunUnderWay(plan, budget, begins_s, models, verdict)
        on_begin(run)
        if budget.ending is not None:
            return _merged(run, [])
        results = await asyncio.gather(*(self._share(client, run, part, zero, on_end) for client in clients))
        return _merged(run, [(each, result) for each, result in zip(clients, results, strict=True) if result])

    async def _share(
        self, client: _Client, run: RunUnderWay, part: Part, zero: float, on_end: Sequence[CallEnd]
    ) -> LoadResult | None:
        """Returns the result of one worker; None: it has died."""
        task = asyncio.ensure_future(client.link.ask("run", *part, zero + client.offset_s, run.begins_s))
        try:
            while not task.done():
                await asyncio.wait((task,), timeout=_REPORT_S)
                await self._hear(client, run, on_end)
            result: LoadResult = task.result()
        except WorkerDied as death:
            task.cancel()
            run.budget.end("fault", f"{client.link.name} has ended ({death}): its calls are in no figure")
            return None
        client.take(result)
        return result

    async def _hear(self, client: _Client, run: RunUnderWay, on_end: Sequence[CallEnd]) -> None:
        """Takes a worker's progress, and lets it know if the test is to end."""
        budget = run.budget
        report = await client.link.ask("report", budget.ending, drops=budget.is_dropped)
        before, client.latest = client.latest, _progress_of(report)
        progress = client.latest
        for model, each in run.models.items():
            each.begun = sum(every.latest.models[model][0] for every in self._clients if model in every.latest.models)
        budget.money.settle(0.0, progress.spent - before.spent, unsure=progress.unsure - before.unsure)
        for model, timed, step, measured in progress.calls:
            for tell in on_end:
                tell(model, timed, step, measured=measured)
        ending = progress.ending
        if ending is not None and ending.reason not in _ORDINARY_ENDS and budget.ending is None:
            budget.end(ending.reason, ending.detail)


def _joined(verdicts: Sequence[tuple[str, ClientVerdict]]) -> ClientVerdict:
    """Returns one verdict on several workers, each by its name: the highest lag and peak, and the mean of the means."""
    every = [verdict for _, verdict in verdicts]
    return ClientVerdict(
        max((each.lag_p99_s for each in every), default=0.0),
        max((each.cpu_peak for each in every), default=0.0),
        sum(each.cpu_mean for each in every) / max(1, len(every)),
        tuple(f"{name}: {reason}" for name, each in verdicts for reason in each.reasons),
    )


def _merged(run: RunUnderWay, ended: Sequence[tuple[_Client, LoadResult]]) -> LoadResult:
    plan, results = run.plan, [result for _, result in ended]
    models = {model: ModelRun(LoadMeter(plan.promise)) for model in run.models}
    for model, whole in models.items():
        for result in results:
            whole.merge(result.models[model])
        # Their peaks need not coincide: this is an upper bound.
        whole.in_flight_max = sum(result.models[model].in_flight_max for result in results)
    ending = run.budget.ending or next((result.ending for result in results), LoadEnd("error"))
    # The worker whose call was the first beyond --calls ends where one process would.
    last = min if ending.reason == "calls" else max
    ended_s = last((result.ended_s for result in results), default=0.0)
    return LoadResult(
        plan,
        run.begins_s,
        models,
        {model: _joined([(client.link.name, each.verdicts[model]) for client, each in ended]) for model in models},
        {model: frozenset().union(*(result.bound_steps[model] for result in results)) for model in models},
        ending,
        plan.measured_s(ended_s),
        ended_s,
    )
