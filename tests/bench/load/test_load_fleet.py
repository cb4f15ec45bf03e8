"""A load test over several workers, in virtual time: calls keep their due times whatever a worker's clock says, and the
figures are those of one process."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable
from functools import partial
from itertools import islice
from random import Random
from types import TracebackType
from typing import Any, cast

import pytest
from load_orders import MODEL, PRICES, Ended, order_of
from load_server import LoadServer
from virtual_time import run_virtually

from millstream.bench.load.arrivals import ClosedLoop, OpenLoop, Stretch, at_rate
from millstream.bench.load.fleet import LoadFleet
from millstream.bench.load.goal import Search, parse_goal
from millstream.bench.load.histogram import Histogram
from millstream.bench.load.plan import Limits, LoadPlan
from millstream.bench.load.session import LoadSession
from millstream.bench.load.spec import LoadSpec
from millstream.bench.load.timing import CallTimes, Clock
from millstream.bench.load.worker import LoadWorker
from millstream.engine.attempts.money import CostBudget
from millstream.engine.fleet.batches import WorkerDied
from millstream.engine.scheduler import Scheduler
from millstream.engine.version import VERSION
from millstream.wiring import Settings

AHEAD_S = (3_600.0, -7.5, 0.25)


class ServingEngine:
    """The engine of a worker whose calls a server in its own loop answers."""

    budget = CostBudget(None)
    scheduler = cast("Scheduler", None)

    def __init__(self, server: LoadServer) -> None:
        self.ask = server.ask

    async def __aenter__(self) -> object:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def forget_run(self) -> None:
        pass


def _engine_of(engine: ServingEngine, settings: Settings) -> ServingEngine:
    return engine


def _ahead_of(clock: Clock, seconds: float) -> float:
    return clock() + seconds


class SlowLink:
    """The way to a worker that takes some milliseconds there and others back; `dies_s` later it is dead. What is sent
    is pickled, as on its way to another process."""

    def __init__(self, number: int, worker: LoadWorker, dies_s: float) -> None:
        self.name = self.node = f"worker {number}"
        self.worker = worker
        self.random = Random(number)
        self.dies_s = dies_s

    async def ask(self, method: str, *arguments: Any, **options: Any) -> Any:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(self.random.uniform(0.001, 0.004))
        if loop.time() > self.dies_s:
            raise WorkerDied("killed")
        try:
            async with asyncio.timeout_at(self.dies_s):
                result = await getattr(self.worker, method)(*arguments, **options)
        except TimeoutError:
            raise WorkerDied("killed") from None
        await asyncio.sleep(self.random.uniform(0.001, 0.004))
        return pickle.loads(pickle.dumps(result))

    async def close(self) -> None:
        pass


class Carried:
    def __init__(self) -> None:
        self.calls: list[Ended] = []
        self.server: LoadServer
        self.session: LoadSession
        self.fleet: LoadFleet

    def note(self, model: str, timed: CallTimes, step: int, *, measured: bool) -> None:
        self.calls.append(Ended(model, timed, step, measured))


def carried(
    spec: LoadSpec,
    server: Callable[[], LoadServer],
    *,
    ahead_s: tuple[float, ...] = AHEAD_S,
    dies_s: float = float("inf"),
    meanwhile: Callable[[LoadSession], None] = lambda session: None,
) -> Carried:
    """Carries out a load test over a worker for each clock, which is so many seconds ahead; `dies_s`: when the first
    one dies. Without any worker this process sends."""

    async def scenario() -> Carried:
        clock, result = asyncio.get_running_loop().time, Carried()
        result.server = server()
        links = []
        for number, ahead in enumerate(ahead_s):
            engine = ServingEngine(result.server)
            worker = LoadWorker(partial(_engine_of, engine), partial(_ahead_of, clock, ahead), lambda: 0.0)
            await worker.open(Settings(measures=True), VERSION)
            await worker.prepare(spec, PRICES, number, len(ahead_s))
            links.append(SlowLink(number, worker, dies_s if number == 0 else float("inf")))
        result.fleet = LoadFleet(links, clock)
        fleet = result.fleet if links else None
        ask = result.server.ask
        result.session = LoadSession(spec, ask, PRICES, result.note, clock=clock, cpu=lambda: 0.0, fleet=fleet)
        meanwhile(result.session)
        await result.session.run()
        return result

    return run_virtually(scenario())


def server() -> LoadServer:
    latencies = Random(3)
    return LoadServer(lambda: latencies.uniform(0.05, 0.15))


def test_calls_are_due_when_those_of_one_process_are_whatever_the_clocks_of_workers_say() -> None:
    spec = order_of(Limits(duration_s=60.0), at_rate(20.0))
    alone, shared = carried(spec, server, ahead_s=()), carried(spec, server)
    assert len(shared.server.arrivals) == len(alone.server.arrivals) > 1_000
    first = alone.server.arrivals[0]
    # All of them later by the second in which workers get their shares: none by what its clock is ahead.
    late = [after - before for before, after in zip(alone.server.arrivals, shared.server.arrivals, strict=True)]
    assert first > 0 and min(late) > 1.0
    assert max(late) - min(late) < 0.004
    whole = shared.session.wholes[MODEL]
    # A worker's calls are due by its own clock, within what the comparison of clocks may be wrong.
    due = sorted(each.timed.due - whole.runs[0].zero_s for each in shared.calls)
    times = spec.plan.times(at_rate(20.0), MODEL)
    assert due == pytest.approx([*islice(times, len(due))], abs=1e-6)


def test_offsets_of_clocks_are_measured_and_bounded() -> None:
    shared = carried(order_of(Limits(duration_s=5.0), at_rate(20.0)), server)
    for client, ahead in zip(shared.fleet.figures, AHEAD_S, strict=True):
        assert 0.001 <= client.clock_error_s < 0.003
        assert abs(client.clock_offset_s - ahead) <= client.clock_error_s
        assert client.calls > 20 and client.late_p99_s < 0.001 and not client.is_bottleneck


def test_merged_figures_are_those_of_all_calls() -> None:
    spec = order_of(Limits(), OpenLoop((Stretch(30.0, 20.0), Stretch(30.0, 40.0))), warm_up_s=5.0, cool_down_s=5.0)
    shared = carried(spec, server)
    whole = shared.session.wholes[MODEL]
    counted = [each for each in shared.calls if each.measured]
    assert whole.measured.meter.calls == len(counted) < whole.measured.begun == len(shared.calls)
    by_hand = Histogram()
    for each in counted:
        by_hand.record(each.timed.latency_s)
    merged = whole.measured.meter.latency
    assert [merged.percentile(each) for each in (50, 99, 99.9)] == [by_hand.percentile(each) for each in (50, 99, 99.9)]
    assert [step.rate for step in whole.steps] == [20.0, 40.0]
    assert [step.seconds for step in whole.steps] == pytest.approx([25.0, 25.0])
    assert [step.counted.calls for step in whole.steps] == [
        sum(each.step == number for each in counted) for number in (0, 1)
    ]
    assert shared.session.ending is not None and shared.session.ending.reason == "arrivals"


def test_a_server_that_stalls_gets_every_call_when_it_is_due() -> None:
    spec = order_of(Limits(duration_s=30.0), at_rate(50.0, "constant"))
    shared = carried(spec, lambda: LoadServer(lambda: 0.02, stalls=(10.0, 12.0)))
    assert len(shared.server.arrivals) == 1_500
    assert all(each.timed.begun - each.timed.due < 0.001 for each in shared.calls)
    # 100 of 1,500 calls were due meanwhile, and the slowest hundredth of all waited for 1.7 s or more.
    p99 = shared.session.wholes[MODEL].measured.meter.latency.value(99)
    assert p99 is not None and p99 > 1.7


@pytest.mark.parametrize("in_flight", [3, 7])
def test_calls_in_flight_are_shared_out(in_flight: int) -> None:
    spec = order_of(Limits(duration_s=10.0), ClosedLoop(in_flight))
    shared = carried(spec, lambda: LoadServer(lambda: 0.1))
    assert shared.server.in_flight_max == in_flight
    assert len(shared.calls) == pytest.approx(100 * in_flight, rel=0.03)


def test_limits_are_shared_out() -> None:
    plan = LoadPlan(at_rate(10.0), Limits(calls=10, max_cost=3.0, in_flight=2))
    parts = [plan.shared(number, 3).limits for number in range(3)]
    assert [part.calls for part in parts] == [4, 3, 3]
    assert [part.max_cost for part in parts] == [1.0] * 3
    assert [part.in_flight for part in parts] == [1, 1, 1]


def test_a_number_of_calls_ends_the_test_when_one_process_would() -> None:
    spec = order_of(Limits(calls=100), at_rate(10.0, "constant"))
    shared = carried(spec, server)
    assert len(shared.calls) == 100
    assert shared.session.ending is not None and shared.session.ending.reason == "calls"
    assert shared.session.wholes[MODEL].seconds == pytest.approx(10.0, abs=0.01)


def test_a_cap_that_one_worker_reaches_ends_the_test_for_all() -> None:
    spec = order_of(Limits(duration_s=60.0, max_cost=0.3), at_rate(10.0, "constant"))
    shared = carried(spec, lambda: LoadServer(lambda: 0.1, cost=0.01))
    assert shared.session.ending is not None and shared.session.ending.reason == "cost"
    assert 20 <= len(shared.calls) <= 30
    assert shared.session.money.spent == pytest.approx(0.01 * len(shared.calls))


def test_an_interruption_reaches_every_worker() -> None:
    def interrupt(session: LoadSession) -> None:
        asyncio.get_running_loop().call_later(10.0, session.end, "interrupted", "by a test")

    shared = carried(order_of(Limits(duration_s=60.0), at_rate(20.0, "constant")), server, meanwhile=interrupt)
    assert shared.session.ending is not None and shared.session.ending.reason == "interrupted"
    assert len(shared.calls) == len(shared.server.arrivals) == pytest.approx(180, abs=8)


def test_searches_for_two_models_at_once_are_both_reported() -> None:
    begun: dict[str, int] = {}

    def look(session: LoadSession) -> None:
        def note() -> None:
            begun.update({model: run.models[model].begun for model, run in session.under_way.items()})
            session.end("interrupted", "by a test")

        asyncio.get_running_loop().call_later(5.0, note)

    search = Search(parse_goal("p99 latency <= 1 s"), 10.0, 20.0, 0.5)
    carried(order_of(Limits(), models=(MODEL, "sim/other"), search=search), server, meanwhile=look)
    assert begun == {MODEL: pytest.approx(40, abs=20), "sim/other": pytest.approx(40, abs=20)}


def test_a_worker_that_dies_ends_the_test_and_the_others_figures_stand() -> None:
    shared = carried(order_of(Limits(duration_s=60.0), at_rate(30.0, "constant")), server, dies_s=21.0)
    ending = shared.session.ending
    assert ending is not None and ending.reason == "fault"
    assert ending.detail == "worker 0 has ended (killed): its calls are in no figure"
    meter = shared.session.wholes[MODEL].measured.meter
    assert meter.calls == pytest.approx(400, abs=12)
    assert len(shared.calls) == pytest.approx(600, abs=18)
