"""A waiter that gets its answer before it is stored finds the money of that answer gone. In virtual time."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripted import ScriptedProvider, engine_over
from virtual_time import run_virtually

from millstream.engine.call import Call, Outcome, Reply, Usage
from millstream.engine.endpoint import Fault, Response
from millstream.engine.lane import Lane
from millstream.engine.lanes.lane_queue import LaneStopped
from millstream.engine.prices import Price
from millstream.engine.shared_calls import Waiter

M = "script/m"


class Overcharging(ScriptedProvider):
    """Counts a thousand tokens each way, whatever it is asked."""

    def decode(self, response: Response) -> Reply | Fault:
        return Reply(response.body.decode(), Usage(1_000, 1_000), "stop")


def test_the_call_after_one_that_passed_the_limit_is_not_sent(tmp_path: Path) -> None:
    provider = Overcharging(latency_s=0.1)

    async def main() -> None:
        price = Price(1_000.0, 1_000.0)
        async with engine_over({M: provider}, tmp_path, Lane(M), max_cost=1.0, price=price) as bench:

            async def ask(prompt: str) -> Outcome:
                pending = bench.scheduler.look_up(Call(M, prompt, max_tokens=1))
                assert not isinstance(pending, Outcome)
                waiter = Waiter(pending, is_early=True)
                bench.scheduler.begin(waiter)
                return await waiter.outcome()

            assert (await ask("first")).cost == 2.0
            # Begun in the turn of the loop in which the first answer was passed on.
            with pytest.raises(LaneStopped):
                await ask("second")

    run_virtually(main())
    assert len(provider.arrivals) == 1
