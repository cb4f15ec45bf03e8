"""All pages of one engine together: a quota for their sum, and still a pause for each host."""

from __future__ import annotations

import asyncio

import pytest
from scripted import ScriptedProvider, worst_minute
from virtual_time import run_virtually

from millstream.engine.call import WEB, Call
from millstream.providers.pages.page_limits import PageLimits


async def cleared() -> None:
    return None


async def send(provider: ScriptedProvider, together: PageLimits, url: str) -> None:
    await together.send(provider.send, provider.encode(Call(WEB, url)), cleared)


@pytest.mark.parametrize("rpm", [60, 1800])
def test_no_sliding_minute_holds_more_than_the_quota_and_nearly_all_of_it_is_used(rpm: int) -> None:
    provider = ScriptedProvider(latency_s=0.1)

    async def main() -> None:
        together = PageLimits(64, rpm)
        await asyncio.gather(*(send(provider, together, f"http://h{n % 50}/{n}") for n in range(rpm * 3)))

    run_virtually(main())
    times = [(at, 1) for at, _ in provider.arrivals]
    assert worst_minute(times) <= rpm
    assert times[-1][0] < 3 * 60 * 1.03


def test_who_leaves_while_waiting_takes_no_place() -> None:
    provider = ScriptedProvider(latency_s=1.0)

    async def main() -> None:
        together = PageLimits(2)
        tasks = [asyncio.create_task(send(provider, together, f"http://h/{n}")) for n in range(20)]
        await asyncio.sleep(0.5)
        for task in tasks[:15]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert not together.slots.locked() and provider.in_flight == 0

    run_virtually(main())
    assert provider.peak == 2 and len(provider.arrivals) == 7
