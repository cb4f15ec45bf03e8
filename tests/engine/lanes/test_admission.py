"""One decision over all quotas, in virtual time."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from scripted import ScriptedProvider, engine_over, prompts, worst_minute
from torture import SEED, record, times
from virtual_time import run_virtually

from millstream.engine.call import Call, Message, Outcome
from millstream.engine.endpoint import Fault
from millstream.engine.estimate import TokenEstimate, call_weight
from millstream.engine.events import Event
from millstream.engine.lane import Lane
from millstream.engine.limits import Tokens
from millstream.engine.run import run_calls

THROTTLE = Fault("rate_limited", "429", "throttle", 429, cuts_rate=True)


async def send_for(seconds: float, lane: Lane, folder: Path, latency_s: float = 0.3) -> list[tuple[float, int]]:
    provider = ScriptedProvider(latency_s=latency_s)
    async with engine_over({"script/m": provider}, folder, lane) as bench:
        async for _ in run_calls(bench.scheduler, prompts(10**9)):
            if provider.arrivals[-1][0] > seconds:
                break
    return [(at, 1) for at, _ in provider.arrivals if at <= seconds]


@pytest.mark.parametrize("rpm", [1, 7, 60, 240, pytest.param(3000, marks=pytest.mark.long)])
def test_no_sliding_minute_exceeds_the_declared_requests_and_98_percent_are_used(rpm: int, tmp_path: Path) -> None:
    minutes = 10
    sends = run_virtually(send_for(minutes * 60, Lane("script/m", rpm=rpm, concurrency=64), tmp_path))
    assert worst_minute(sends) <= rpm
    assert len(sends) >= 0.98 * rpm * minutes - 1


def test_the_quota_is_used_from_the_first_second(tmp_path: Path) -> None:
    sends = run_virtually(send_for(60, Lane("script/m", rpm=600, concurrency=64), tmp_path))
    assert len([at for at, _ in sends if at < 1.0]) >= 9
    assert len(sends) >= 0.98 * 600


def test_an_undeclared_quota_is_found_without_losing_a_call(tmp_path: Path) -> None:
    """A provider that takes five a second and says no more than 429 about it."""
    window: list[float] = []

    def script(prompt: str, at: float) -> Fault | None:
        window[:] = [then for then in window if then > at - 1.0]
        if len(window) >= 5:
            return THROTTLE
        window.append(at)
        return None

    provider = ScriptedProvider(script, latency_s=0.1)
    found: list[Outcome] = []

    async def main() -> None:
        async with engine_over({"script/m": provider}, tmp_path, Lane("script/m", concurrency=16)) as bench:
            found.extend([outcome async for outcome in run_calls(bench.scheduler, prompts(1500))])

    run_virtually(main())
    good = [outcome for outcome in found if outcome.reply is not None]
    assert len(found) == 1500
    assert len(good) >= 1490
    assert provider.arrivals[-1][0] < 1500 / 5 * 3


def test_a_cancelled_caller_gives_its_slot_back_wherever_it_waits(tmp_path: Path) -> None:
    """Cancelled at a random instant: in the queue, at the gate, in flight, backing off."""
    import asyncio
    import contextlib

    chance, rounds = random.Random(SEED), times(40, 1000)
    flaky = Fault("server_error", "500", "retry", 500)
    provider = ScriptedProvider(
        lambda prompt, at: flaky if chance.random() < 0.3 else None, latency_s=lambda: chance.uniform(0.01, 0.5)
    )

    async def main() -> None:
        lane = Lane("script/m", rpm=3000, tpm=1_000_000, concurrency=8)
        async with engine_over({"script/m": provider}, tmp_path, lane) as bench:
            for round_number in range(rounds):
                tasks = [
                    asyncio.create_task(bench.scheduler.ask(Call("script/m", f"{round_number} {n}"))) for n in range(20)
                ]
                for task in tasks:
                    await asyncio.sleep(chance.uniform(0, 0.05))
                    task.cancel()
                for task in tasks:
                    with contextlib.suppress(asyncio.CancelledError):
                        await task
            admission = bench.lane("script/m")
            assert admission.in_flight == 0
            assert provider.in_flight == 0
            assert repr(admission) == "<Lane script/m [0 in flight, 0 queued, open]>"
            assert (await bench.scheduler.ask(Call("script/m", "after all that"))).reply is not None

    run_virtually(main())
    record("10", rounds * 20, rounds * 20, "no slot and no request was left behind", f"{SEED}")


def test_an_estimate_learns_from_the_reported_usage() -> None:
    from millstream.engine.call import Usage

    estimate = TokenEstimate()
    call = Call("script/m", "x" * 4000)
    assert estimate.tokens_of(call, call_weight(call)) == Tokens(1000, 256)
    for _ in range(64):
        estimate.observe(call_weight(call), Usage(2000, 40))
    tokens = estimate.tokens_of(call, call_weight(call))
    assert tokens.input == pytest.approx(2000, rel=0.05) and tokens.output == 40
    assert estimate.tokens_of(Call("script/m", "x", max_tokens=7), 1).output == 7


def test_a_prompt_in_a_script_of_a_token_a_character_is_reserved_as_such() -> None:
    salt = "\u98df\u76d0"
    for call in (Call("script/m", salt * 500), Call("script/m", (Message("user", salt * 500), Message("user", "")))):
        assert call_weight(call) == 4_000
    assert call_weight(Call("script/m", "\u201cx\u201d \u2013 " * 500)) == 3_000


def test_a_provider_that_refuses_after_every_pause_is_asked_ever_more_seldom(tmp_path: Path) -> None:
    """Ten minutes of "come back in a second": the whole lane must not come back each time."""
    from millstream.engine.fault import Stopped

    refused = Fault("rate_limited", "429", "throttle", 429, retry_after_s=1.0)
    provider = ScriptedProvider(lambda prompt, at: refused if at > 1 else None, latency_s=0.05)

    async def main() -> float:
        import asyncio

        async with engine_over({"script/m": provider}, tmp_path, Lane("script/m", concurrency=64)) as bench:
            with pytest.raises(Stopped) as stopped:
                async for _ in run_calls(bench.scheduler, prompts(100_000)):
                    pass
            assert [stop.reason for stop in stopped.value.stops] == ["patience"]
            return asyncio.get_running_loop().time()

    ended = run_virtually(main())
    assert 590 <= ended <= 620
    in_vain = len([at for at, _ in provider.arrivals if at > 1])
    assert in_vain <= 64 * 20
    assert len([at for at, _ in provider.arrivals if at > 300]) <= 100


def test_one_pause_cuts_nothing(tmp_path: Path) -> None:
    refused = Fault("rate_limited", "429", "throttle", 429, retry_after_s=5.0)
    provider = ScriptedProvider(lambda prompt, at: refused if 10 <= at < 10.05 else None, latency_s=0.1)
    cuts: list[Event] = []

    async def main() -> None:
        async with engine_over({"script/m": provider}, tmp_path, Lane("script/m", rpm=600, concurrency=16)) as bench:
            bench.events.subscribe(lambda event: cuts.append(event) if event.kind == "cut" else None)
            async for _ in run_calls(bench.scheduler, prompts(400)):
                pass

    run_virtually(main())
    assert cuts == []
