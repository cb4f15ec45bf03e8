"""Runs a probe: one model after the other, of each first its requests a minute and then its tokens.

Owns the order, what is noted of each search, signals and the budget file. `search` decides what is sent, `calls` sends
it, `lanes_file` says what is written. Prints nothing.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from random import Random

from msgspec import structs

from ...engine.limits import Amount
from ...engine.remarks import remark
from ...wiring.budgets import attach_new_budget
from ...wiring.engine import Engine
from ...wiring.event_loop import run_in_loop
from ...wiring.running import running
from .answers import SMALL, reports, window_of
from .calls import Bounds, Caps, ModelCalls, ModelEnd, Outside, Watcher
from .lanes_file import FoundQuota, Report
from .provider import EngineProvider
from .ranges import MINUTE_S
from .search import APART_S, Search
from .spec import ProbeSpec
from .units import Requests, Tokens

Show = Callable[[Callable[[], tuple[int, float | None]]], Watcher]
"""Opens the display. Its argument returns the calls sent and the dollars spent so far (None: unknown)."""
# A minute and the way of a call.
_REST_S = MINUTE_S + 1.0
# More tokens than these of each request are no limit in practice.
_WORTH, _WORTH_A_REQUEST = 500_000, 6_000


class Probe:
    """A probe of several models, one after the other, under one cap of calls and one of cost. `lanes`, `calls` and
    `cost` are right at any instant."""

    def __init__(self, outside: Outside, bounds: Bounds, watcher: Watcher | None = None) -> None:
        self._outside, self._bounds = outside, bounds
        self._watcher = Watcher() if watcher is None else watcher
        self._caps = Caps(bounds)
        self.budget = self._caps.budget
        self.lanes: dict[str, FoundQuota] = {}

    @property
    def calls(self) -> int:
        return self._caps.calls

    @property
    def cost(self) -> float:
        return self.budget.spent

    async def run(self, models: Iterable[str]) -> None:
        rested_s = self._outside.now() + _REST_S
        for model in models:
            quota = self.lanes[model] = FoundQuota()
            self._watcher.begins(model)
            calls = ModelCalls(model, self._outside, self._caps, self._watcher)
            try:
                await self._search(quota, calls, rested_s)
            except ModelEnd as why:
                quota.ended = str(why)
            finally:
                await calls.close()
                quota.has_usage = calls.has_usage

    async def _search(self, quota: FoundQuota, calls: ModelCalls, rested_s: float) -> None:
        bounds = self._bounds
        await calls.await_quiet()
        await calls.send([SMALL])
        await calls.answers()
        header, left = _reported("requests", calls)
        quota.header_rpm, (quota.header_tpm, _) = header, _reported("tokens", calls)
        calls.check([SMALL])
        if header is None or left is None or left < header - 1:
            # What others sent before the probe no longer counts then.
            await calls.wait(rested_s - (APART_S if header is None else 0.0))
        requests = Search(calls, Requests(), header, left, bounds.requests)
        quota.rpm = await requests.run()
        quota.tested_rpm = int(requests.ranges.sliding.least)
        quota.burst = None if quota.rpm is None else requests.burst
        quota.window = window_of(calls.seen)
        if not calls.has_usage or (quota.rpm is None and requests.is_refused):
            # A refusal of tokens could not be told from one of requests.
            return
        at_once = requests.burst if requests.ranges.is_bucket else None
        unit = Tokens(calls, bounds.tokens_a_call, requests.limit, at_once)
        await calls.wait(unit.free_s())
        most = max(_WORTH, _WORTH_A_REQUEST * requests.limit) if math.isinf(bounds.tokens) else bounds.tokens
        tokens = Search(calls, unit, quota.header_tpm, _reported("tokens", calls)[1], most)
        quota.tpm = await tokens.run()
        quota.tested_tpm = int(tokens.ranges.sliding.least)
        if quota.rpm is not None and quota.tpm is not None and quota.tpm <= unit.of_size(SMALL) * quota.rpm:
            # The small calls that found the limit of requests used these tokens: they were refused for that.
            quota.rpm = quota.burst = None


def _reported(of: Amount, calls: ModelCalls) -> tuple[float | None, float | None]:
    """Returns the limit a minute that the last headers report, and what is left of it; None: not reported."""
    last = [limit for _, limit in reports(of, calls.seen)][-1:]
    return (last[0].limit, last[0].remaining) if last else (None, None)


def carry_out(spec: ProbeSpec, show: Show) -> Report:
    """Probes one model after the other and returns what was found, also after a signal or a local fault. Raises
    LocalFault if nothing could be sent."""
    return run_in_loop(_carry_out(spec, show))


async def _carry_out(spec: ProbeSpec, show: Show) -> Report:
    task = asyncio.current_task()
    assert task is not None
    engine = Engine(settings=spec.settings)
    is_priced = all(spec.costs.price(model) is not None for model in spec.models)

    def stop(name: str) -> None:
        display.close()
        remark(f"{name}: calls in flight are dropped")
        task.cancel()

    def spent() -> tuple[int, float | None]:
        return probe.calls, probe.cost if is_priced else None

    async with running(engine, stop) as end:
        # Known only here: the engine has raised the limit of open files.
        in_flight = min(map(spec.settings.concurrency_of, spec.models))
        bounds = structs.replace(spec.bounds, in_flight=min(spec.bounds.in_flight, in_flight))
        display = show(spent)
        probe = Probe(EngineProvider(engine, spec.costs, Random()), bounds, display)
        try:
            for left in attach_new_budget(probe.budget, spec.settings):
                remark(f"a probe that was killed after {left.written} may have spent up to ${left.granted:,.4f}")
            await probe.run(spec.models)
        finally:
            display.close()
            probe.budget.detach()
    if end.fault is not None and not probe.lanes:
        raise end.fault
    ended = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    calls, cost = spent()
    return Report(lanes=probe.lanes, calls=calls, cost=cost, ways=spec.ways, end=end, ended=ended)
