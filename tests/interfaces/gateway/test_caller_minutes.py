"""A caller's minute counts what is written, though its calls may wait long for the model's lane. In virtual time."""

from __future__ import annotations

import asyncio
from pathlib import Path

from scripted import ScriptedProvider, engine_over, prompts, worst_minute
from virtual_time import run_virtually

from millstream.configuration.gateway_settings import CallerSettings
from millstream.engine.call import Call, Outcome
from millstream.engine.lane import Lane
from millstream.interfaces.gateway.callers import Caller, CallPayment

M = "script/m"
RPM = 30


def test_calls_that_waited_together_for_the_model_are_not_written_together(tmp_path: Path) -> None:
    """The model's first answer takes 150 s, the others a tenth of a second, one at a time."""
    latencies = iter([150.0])
    provider = ScriptedProvider(latency_s=lambda: next(latencies, 0.1))

    async def main() -> list[Outcome]:
        caller = Caller(CallerSettings("ann", "ANN", rpm=RPM), tmp_path)
        async with engine_over({M: provider}, tmp_path / "cache", Lane(M, concurrency=1)) as bench:
            bench.scheduler.route_of(M).is_kept = False  # a thread that stores would wait in real time

            async def ask(call: Call) -> Outcome:
                pending = bench.scheduler.look_up(call)
                assert not isinstance(pending, Outcome)
                pending.payer = CallPayment(
                    caller, reckons_worst=False, spent=lambda name, cost: None, used=lambda name, outcome: None
                )
                return await bench.scheduler.fetch(pending, None)

            outcomes = await asyncio.gather(*map(ask, prompts(120)))
        caller.close()
        return outcomes

    assert {outcome.status for outcome in run_virtually(main())} == {"ok"}
    sent = [at for at, _ in provider.arrivals]
    assert len(sent) == 120 and worst_minute([(at, 1) for at in sent]) <= RPM
    # The quota is used when the lane is free again.
    assert sent[-1] - sent[1] <= 118 / RPM * 60 * 1.05
