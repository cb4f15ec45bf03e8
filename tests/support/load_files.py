"""Load tests measured in virtual time against a server whose law is known, as `load.json` tells of them."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

import msgspec
from load_server import LoadServer
from once import once
from virtual_time import run_virtually

from millstream.bench.load.arrivals import ClosedLoop, OpenLoop, Stretch
from millstream.bench.load.figures import load_of
from millstream.bench.load.goal import Search, parse_goal
from millstream.bench.load.meter import Promise
from millstream.bench.load.plan import Limits, LoadPlan
from millstream.bench.load.session import LoadSession
from millstream.bench.load.spec import LoadSpec
from millstream.bench.made_prompts.lengths import FixedLength
from millstream.bench.made_prompts.prompts import CallParameters, by_length, calls
from millstream.engine.call import Call, FailureKind, Outcome
from millstream.engine.endpoint import Hear
from millstream.engine.prices import Price
from millstream.metrics.load.load_json import LoadFigures
from millstream.wiring import Settings

BEGAN = 1_790_000_000.0
STEPS = (5.0, 10.0, 20.0, 30.0, 40.0, 60.0)
Serve = Callable[[str], LoadServer]


def measured(
    plan: LoadPlan,
    serve: Serve,
    *models: str,
    stream: bool = True,
    search: Search | None = None,
    said: Mapping[str, Any] | None = None,
) -> LoadFigures:
    """`serve` makes the server of each model. Processors are idle: in virtual time there is nothing to measure."""

    def source(model: str, number: int) -> Iterator[Call]:
        own = Random(f"{model} {number}")
        return calls(model, by_length(FixedLength(16), own), CallParameters(max_tokens=8, stream=stream), own)

    spec = LoadSpec(
        models=models,
        settings=Settings(),
        plan=plan,
        calls=source,
        out=Path(),
        search=search,
        said=said or {},
    )
    prices = {model: Price(1.0, 4.0) for model in models}

    async def scenario() -> LoadFigures:
        servers = {model: serve(model) for model in models}

        async def ask(call: Call, *, hear: Hear | None = None) -> Outcome:
            return await servers[call.model].ask(call, hear=hear)

        loop = asyncio.get_running_loop()
        session = LoadSession(spec, ask, prices, clock=loop.time, cpu=lambda: 0.0)
        await session.run()
        assert session.ending is not None
        return load_of(spec, session.wholes, session.ending, prices, began=BEGAN, left_out=session.left_out)

    return run_virtually(scenario())


def server(
    *,
    median_s: float = 0.2,
    spread: float = 0.4,
    places: int | None = None,
    pieces: int = 6,
    stalls: tuple[float, float] | None = None,
    fails: Callable[[int], FailureKind | None] = lambda number: None,
) -> LoadServer:
    random = Random(9)
    return LoadServer(
        lambda: median_s * math.exp(random.gauss(0, spread)),
        pieces=pieces,
        gap_s=0.02,
        places=places,
        stalls=stalls,
        fails=fails,
        cost=0.001,
    )


def now_and_then(number: int) -> FailureKind | None:
    """Three in a hundred fail, and more later."""
    if number % 50 == 7:
        return "rate_limited"
    if number > 600 and number % 40 == 3:
        return "server_error"
    return "timeout" if number % 97 == 5 else None


@once(LoadFigures)
def steady(model: str = "sim/steady") -> LoadFigures:
    """One rate with warm-up and cool-down, a stall of two seconds while few places are free, and a promise."""
    stretch = Stretch(60.0, 20.0)
    plan = LoadPlan(
        OpenLoop((stretch,)), Limits(in_flight=10), 5.0, 5.0, Promise(first_token_s=0.5, latency_s=1.0), seed=1
    )
    said = {"rate": 20, "arrivals": "poisson", "duration": 60, "warm-up": 5, "cool-down": 5}
    return measured(plan, lambda name: server(stalls=(30.0, 32.0), fails=now_and_then), model, said=said)


@once(LoadFigures)
def swept(model: str = "sim/steady", places: int = 12, *, stream: bool = True) -> LoadFigures:
    """Rates up to what the server can't bear: with 12 places and 0.32 s a call some 37 a second."""
    arrivals = OpenLoop(tuple(Stretch(30.0, rate) for rate in STEPS))
    plan = LoadPlan(arrivals, Limits(drain_s=120.0), seed=2)
    return measured(plan, lambda name: server(places=places), model, stream=stream, said={"steps": list(STEPS)})


@once(LoadFigures)
def searched(model: str = "sim/steady") -> LoadFigures:
    goal = "p95 first token <= 1 s and errors <= 1%"
    plan = LoadPlan(OpenLoop((Stretch(math.inf, 1.0),)), Limits(calls=1_000_000), 2.0, seed=3)
    search = Search(parse_goal(goal), 5.0, 200.0, 0.1, repeats_max=1)
    return measured(plan, lambda name: server(places=12), model, search=search, said={"goal": goal})


@once(LoadFigures)
def closed(model: str = "sim/steady") -> LoadFigures:
    plan = LoadPlan(ClosedLoop(8), Limits(duration_s=30.0))
    return measured(plan, lambda name: server(), model, stream=False, said={"in-flight": 8, "duration": 30})


def written(load: LoadFigures, folder: Path) -> Path:
    """A folder as a load test leaves it, without its calls."""
    folder.mkdir(parents=True)
    (folder / "load.json").write_bytes(msgspec.json.encode(load))
    return folder
