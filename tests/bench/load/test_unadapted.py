"""Load tests through the real engine: nothing is sent again, waited for or slowed down, and quotas and money hold."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from random import Random

from scripted import ScriptedProvider, engine_over, worst_minute
from virtual_time import run_virtually

from millstream.bench.load.arrivals import at_rate
from millstream.bench.load.budget import Budget
from millstream.bench.load.plan import Limits, LoadPlan
from millstream.bench.load.run import LoadResult, run_load
from millstream.bench.made_prompts.lengths import FixedLength
from millstream.bench.made_prompts.prompts import CallParameters, by_length, calls
from millstream.engine.call import Call, Outcome, Reply
from millstream.engine.endpoint import Attempt, Fault, Hear, Receiver, Request, Response
from millstream.engine.lane import Lane
from millstream.engine.limits import Limit
from millstream.providers.transport.no_retry_endpoint import NoRetryEndpoint

MODEL = "script/m"
REFUSED = Fault("rate_limited", "slow down", "throttle", status=429, retry_after_s=20.0)
BROKEN = Fault("server_error", "broken", "retry", status=503)
CUTTING = Fault("rate_limited", "slow down", "throttle", status=429, cuts_rate=True)
DEAD = Fault("rejected", "no such key", "stop", status=401)


class Bare(ScriptedProvider):
    """The scripted provider behind what load tests put before it."""

    def __init__(self, fault: Fault | None, every: int = 2) -> None:
        super().__init__(lambda prompt, at: fault if len(self.arrivals) % every == 0 else None, 0.1)
        self._before = NoRetryEndpoint(_Sending(self, super().begin))

    def begin(self, request: Request, receiver: Receiver) -> Attempt:
        return self._before.begin(request, receiver)


class _Sending:
    """The provider's own way to send, as an endpoint of its own."""

    base_url = "script://"

    def __init__(self, provider: ScriptedProvider, begin: Callable[[Request, Receiver], Attempt]) -> None:
        self._provider = provider
        self.begin = begin

    def encode(self, call: Call) -> Request:
        return self._provider.encode(call)

    def decode(self, response: Response) -> Reply | Fault:
        return REFUSED if response.status == 429 else self._provider.decode(response)

    def limits(self, response: Response) -> tuple[Limit, ...]:
        return (Limit("requests", 60.0, 10.0, 0.0, 60.0),)


def loaded(provider: ScriptedProvider, folder: Path, lane: Lane, rate: float, seconds: float) -> LoadResult:
    async def scenario() -> LoadResult:
        loop = asyncio.get_running_loop()
        async with engine_over({MODEL: provider}, folder, lane, mode="live") as bench:

            async def ask(call: Call, *, hear: Hear | None = None) -> Outcome:
                return await bench.scheduler.ask(call, hear=hear)

            own = {MODEL: calls(MODEL, by_length(FixedLength(16), Random(1)), CallParameters(stream=False), Random(1))}
            plan = LoadPlan(at_rate(rate, "constant"), Limits(duration_s=seconds))
            return await run_load(plan, own, ask, Budget(plan.limits, own, {}), clock=loop.time, cpu=lambda: 0.0)

    return run_virtually(scenario())


def test_a_refusal_is_the_calls_own_end_and_slows_nothing_down(tmp_path: Path) -> None:
    for number, fault in enumerate((REFUSED, BROKEN, CUTTING)):
        provider = Bare(fault)
        result = loaded(provider, tmp_path / str(number), Lane(MODEL, concurrency=500), 50.0, 20.0)
        meter = result.models[MODEL].meter
        assert meter.calls == len(provider.arrivals) == meter.attempts == 1_000
        assert meter.failures == {fault.kind: 500}
        held = meter.held.percentile(99)
        assert held is not None and held.value_s < 0.001


def test_without_it_the_engine_would_send_again_and_hide_what_the_server_does(tmp_path: Path) -> None:
    provider = ScriptedProvider(lambda prompt, at: REFUSED if len(provider.arrivals) % 2 == 0 else None, 0.1)
    meter = loaded(provider, tmp_path, Lane(MODEL, concurrency=500), 5.0, 20.0).models[MODEL].meter
    held = meter.held.percentile(99)
    assert meter.attempts > meter.calls or (held is not None and held.value_s > 1)


def test_a_declared_quota_holds_and_its_wait_is_told_apart_from_our_own(tmp_path: Path) -> None:
    provider = Bare(None)
    result = loaded(provider, tmp_path, Lane(MODEL, rpm=120, concurrency=500), 4.0, 60.0)
    assert worst_minute([(at, 1) for at, _ in provider.arrivals]) <= 120
    meter = result.models[MODEL].meter
    held, latency = meter.held.percentile(90), meter.latency.percentile(90)
    assert held is not None and latency is not None and 20 < held.value_s < latency.value_s
    assert not result.verdicts[MODEL].is_client_bound


def test_what_stops_a_lane_still_stops_the_test(tmp_path: Path) -> None:
    result = loaded(Bare(DEAD, every=10), tmp_path, Lane(MODEL, concurrency=500), 50.0, 1e5)
    assert result.ending.reason == "stopped" and "no such key" in result.ending.detail


def test_headers_that_tell_limits_are_not_told_to_the_lane_and_faults_in_answers_are_final() -> None:
    provider = ScriptedProvider()
    before = NoRetryEndpoint(_Sending(provider, provider.begin))
    assert before.limits(Response(200, b"")) == ()
    decoded = before.decode(Response(429, b""))
    assert isinstance(decoded, Fault) and (decoded.action, decoded.retry_after_s) == ("never", None)
    assert isinstance(before.decode(Response(200, b"A")), Reply)
    assert before.base_url == "script://" and before.encode(Call(MODEL, "A")).body == b"A"
