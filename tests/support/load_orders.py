"""Load tests as they are asked for, and carried out in virtual time against a server whose law is known."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

from virtual_time import run_virtually

from millstream.bench.load.arrivals import Arrivals, at_rate
from millstream.bench.load.goal import Search
from millstream.bench.load.meter import Promise
from millstream.bench.load.plan import Limits, LoadPlan
from millstream.bench.load.run import RunUnderWay, SendCall
from millstream.bench.load.session import LoadSession
from millstream.bench.load.spec import LoadSpec
from millstream.bench.load.timing import CallTimes
from millstream.bench.made_prompts.lengths import FixedLength
from millstream.bench.made_prompts.prompts import CallParameters, by_length, calls
from millstream.engine.call import Call
from millstream.engine.prices import Price
from millstream.wiring import Settings

MODEL = "sim/steady"
PRICES = {MODEL: Price(1.0, 4.0), "sim/other": Price(1.0, 4.0)}


def source(model: str, step: int) -> Iterator[Call]:
    texts = by_length(FixedLength(16), Random(f"{model} {step}"))
    return calls(model, texts, CallParameters(max_tokens=8, stream=False), Random(f"{step} {model}"))


def order_of(
    limits: Limits,
    arrivals: Arrivals | None = None,
    *,
    models: tuple[str, ...] = (MODEL,),
    search: Search | None = None,
    warm_up_s: float = 0.0,
    cool_down_s: float = 0.0,
    promise: Promise | None = None,
) -> LoadSpec:
    return LoadSpec(
        models=models,
        settings=Settings(measures=True),
        plan=LoadPlan(arrivals or at_rate(10.0), limits, warm_up_s, cool_down_s, promise),
        calls=source,
        out=Path("unused"),
        search=search,
        said={"rate": 10},
    )


class Ended(NamedTuple):
    """One call as its witness saw it."""

    model: str
    timed: CallTimes
    step: int
    measured: bool


class Seen(LoadSession):
    """A session that remembers its runs and its calls."""

    def watch(self) -> None:
        self.runs: list[tuple[RunUnderWay, tuple[str, ...]]] = []
        self.calls: list[Ended] = []
        self.on_end.append(self._note)

    def _note(self, model: str, timed: CallTimes, step: int, *, measured: bool) -> None:
        self.calls.append(Ended(model, timed, step, measured))
        run = self.under_way[model]
        if all(run is not begun for begun, _ in self.runs):
            self.runs.append((run, tuple(run.models)))


def carried(
    spec: LoadSpec, ask: Callable[[], SendCall], meanwhile: Callable[[LoadSession], None] | None = None
) -> tuple[LoadSession, Seen]:
    """`meanwhile` is called with the session just before it begins, inside the loop. Idle processors: in virtual time
    there is nothing to measure."""

    async def scenario() -> tuple[LoadSession, Seen]:
        clock = asyncio.get_running_loop().time
        session = Seen(spec, ask(), PRICES, clock=clock, cpu=lambda: 0.0)
        session.watch()
        if meanwhile is not None:
            meanwhile(session)
        await session.run()
        return session, session

    return run_virtually(scenario())
