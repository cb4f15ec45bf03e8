"""Load tests as they are asked for, and carried out in virtual time against a server whose law is known."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from random import Random
from typing import NamedTuple

from virtual_time import run_virtually

from millstream.bench.load.arrivals import Arrivals, at_rate
from millstream.bench.load.goal import Goal, Search
from millstream.bench.load.meter import Promise
from millstream.bench.load.plan import Limits, LoadPlan
from millstream.bench.load.run import ModelRun, SendCall
from millstream.bench.load.session import LoadSession
from millstream.bench.load.spec import LoadSpec
from millstream.bench.load.timing import CallTimes
from millstream.bench.made_prompts.lengths import FixedLength
from millstream.bench.made_prompts.prompts import CallParameters, by_length, calls
from millstream.engine.attempts.prices import Price
from millstream.engine.call import Call
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
    goal: Goal | None = None,
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
        goal=goal,
        goal_text="" if goal is None else "the goal's words",
        search=search,
        said={"rate": 10},
    )


class Ended(NamedTuple):
    """One call as its witness saw it."""

    model: str
    timed: CallTimes
    step: int
    begins_s: float
    cost: float
    measured: bool


class Seen:
    """A witness that forgets nothing."""

    def __init__(self) -> None:
        self.runs: list[tuple[LoadPlan, tuple[str, ...], float]] = []
        self.calls: list[Ended] = []
        self.begun = 0

    def run_opened(self, plan: LoadPlan, models: Mapping[str, ModelRun], begins_s: float) -> None:
        self.runs.append((plan, tuple(models), begins_s))

    def call_began(self, model: str) -> None:
        self.begun += 1

    def call_ended(
        self, model: str, timed: CallTimes, step: int, begins_s: float, cost: float, *, measured: bool
    ) -> None:
        self.calls.append(Ended(model, timed, step, begins_s, cost, measured))


def carried(
    spec: LoadSpec, ask: Callable[[], SendCall], meanwhile: Callable[[LoadSession], None] | None = None
) -> tuple[LoadSession, Seen]:
    """`meanwhile` is called with the session just before it begins, inside the loop. Idle processors: in virtual time
    there is nothing to measure."""

    async def scenario() -> tuple[LoadSession, Seen]:
        seen = Seen()
        clock = asyncio.get_running_loop().time
        session = LoadSession(spec, ask(), PRICES, (seen,), clock=clock, cpu=lambda: 0.0)
        if meanwhile is not None:
            meanwhile(session)
        await session.run()
        return session, seen

    return run_virtually(scenario())
