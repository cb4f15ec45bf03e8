"""Crowds, an hour of refusals, ten minutes of outage: the promises on quotas and recovery, in virtual time."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from pathlib import Path

import pytest
from permits import admit
from scripted import ScriptedProvider, engine_over, prompts, worst_minute
from virtual_time import run_virtually

from millstream.engine.attempts.money import CostBudget
from millstream.engine.attempts.retry import RetryPolicy
from millstream.engine.call import Outcome
from millstream.engine.endpoint import Cleared, Fault, Request, Response
from millstream.engine.events import Events
from millstream.engine.fault import Stopped
from millstream.engine.lane import Lane
from millstream.engine.lanes.key_gate import KeyGate
from millstream.engine.lanes.lane_queue import LaneQueue
from millstream.engine.lanes.ledger import Ledger
from millstream.engine.limits import Tokens, declared_quota
from millstream.engine.run import run_calls

M = "script/m"
HOUR_S = 3_600.0


async def crowd(lane: Lane, sizes: list[Tokens], chance: random.Random) -> list[tuple[float, int]]:
    """Everyone asks at once; when each was let go, in the order they were, and which one it was."""
    events, budget = Events(), CostBudget()
    key = KeyGate(lane, ledger=Ledger(declared_quota(lane)), budget=budget, policy=RetryPolicy(), events=events)
    group, loop = LaneQueue([key]), asyncio.get_running_loop()
    sends: list[tuple[float, int]] = []

    async def one(number: int) -> None:
        permit = await admit(group, sizes[number])
        sends.append((loop.time(), number))
        await asyncio.sleep(chance.uniform(0.1, 2))
        key.succeeded(permit, sizes[number], 0.0)
        group.release(permit, loop.time())

    await asyncio.gather(*(one(number) for number in range(len(sizes))))
    assert group.in_flight == 0
    return sends


def test_five_thousand_waiters_on_500_a_minute_use_98_percent_and_no_sliding_minute_exceeds_it() -> None:
    sends = run_virtually(crowd(Lane(M, rpm=500, concurrency=64), [Tokens()] * 5_000, random.Random(1)))
    assert [number for _, number in sends] == list(range(5_000))
    times = [(at, 1) for at, _ in sends]
    assert worst_minute(times) <= 500
    assert len([at for at, _ in times if at < 60]) >= 0.98 * 500
    assert len(times) >= 0.98 * 500 * times[-1][0] / 60


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in (2, 3))])
def test_five_thousand_tiny_and_huge_prompts_starve_none(seed: int) -> None:
    chance = random.Random(seed)
    is_huge = [chance.random() < 0.02 for _ in range(5_000)]
    bounds = [((5_000, 20_000), (1, 4_000)) if huge else ((1, 50), (1, 50)) for huge in is_huge]
    sizes = [Tokens(chance.randint(*read), chance.randint(*written)) for read, written in bounds]
    lane = Lane(M, rpm=3_000, tpm=100_000, itpm=90_000, otpm=30_000, concurrency=64)
    sends = run_virtually(crowd(lane, sizes, chance))
    # First come, first served, whatever the size: nobody is overtaken, so nobody waits for ever.
    assert [number for _, number in sends] == list(range(5_000))
    for most, size in ((100_000, "total"), (90_000, "input"), (30_000, "output")):
        assert worst_minute([(at, getattr(sizes[number], size)) for at, number in sends]) <= most
    used = sum(size.total for size in sizes)
    assert sends[-1][0] <= used / (100_000 - 24_000) * 60 + 60


REFUSALS = {
    "429 without a word": Fault("rate_limited", "429", "throttle", 429, cuts_rate=True),
    "429 for twenty seconds": Fault("rate_limited", "429", "throttle", 429, retry_after_s=20.0),
    "429 for half a second": Fault("rate_limited", "429", "throttle", 429, retry_after_s=0.5),
    "529": Fault("server_error", "529", "retry", 529, cuts_rate=True),
}
# A lane without a quota has nothing but its own rate, whoever tells it to wait.
CASES = (("429 without a word", 200), ("429 for twenty seconds", 200), ("529", None))
MORE = (("429 for half a second", 200), ("529", 200), ("429 without a word", None))


@pytest.mark.parametrize(
    ("kind", "rpm"),
    [*CASES, *(pytest.param(*each, marks=pytest.mark.long) for each in MORE)],
)
def test_after_an_hour_of_refusals_nine_tenths_of_the_rate_are_back_within_five_minutes(
    kind: str, rpm: int | None, tmp_path: Path
) -> None:
    fault, begin = REFUSALS[kind], 60.0
    end = begin + HOUR_S
    provider = ScriptedProvider(lambda prompt, at: fault if begin <= at < end else None, latency_s=2.0)
    kinds: Counter[str] = Counter()
    cuts: list[float] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        policy = RetryPolicy(patience_s=2 * HOUR_S)
        async with engine_over({M: provider}, tmp_path, Lane(M, rpm, concurrency=8), policy=policy) as bench:
            bench.events.subscribe(lambda event: cuts.append(loop.time()) if event.kind == "cut" else None)
            async for outcome in run_calls(bench.scheduler, prompts(10**9)):
                kinds[outcome.status] += 1
                if provider.arrivals[-1][0] > end + 360:
                    break

    run_virtually(main())

    def sent(since: float, until: float) -> int:
        return sum(since <= at < until for at, _ in provider.arrivals)

    assert sent(end + 300, end + 360) >= 0.9 * sent(0, 60) > 0
    # While it lasts, hardly more than a probe every ten seconds.
    assert sent(begin, end) <= HOUR_S / 7
    if fault.retry_after_s is None:
        assert len([at for at in cuts if at < end]) == 1
    else:
        # A pause that was told spends no attempt, so no call is lost.
        assert set(kinds) == {"ok"}


DOWN = Fault("server_error", "503", "retry", 503)


def in_an_outage(patience_s: float, folder: Path) -> tuple[ScriptedProvider, list[Outcome], list[str]]:
    """Ten minutes without an answer in a run of 3,000 calls."""
    chance = random.Random(4)
    provider = ScriptedProvider(lambda p, at: DOWN if 120 <= at < 720 else None, lambda: chance.uniform(0.5, 1.5))
    found: list[Outcome] = []
    stops: list[str] = []

    async def main() -> None:
        policy = RetryPolicy(patience_s=patience_s)
        async with engine_over({M: provider}, folder, Lane(M, rpm=300, concurrency=16), policy=policy) as bench:
            try:
                async for outcome in run_calls(bench.scheduler, prompts(3_000)):
                    found.append(outcome)
            except Stopped as stopped:
                stops.extend(stop.reason for stop in stopped.stops)
            assert bench.lane(M).in_flight == 0

    run_virtually(main())
    return provider, found, stops


def test_ten_minutes_of_outage_cost_a_tenth_in_retries_and_the_rest_no_attempt(tmp_path: Path) -> None:
    provider, found, stops = in_an_outage(900.0, tmp_path)
    assert stops == [] and len(found) == 3_000
    sends = provider.counts()
    assert sum(sends.values()) - len(sends) <= 0.1 * sum(sends.values())
    # Those that were sent until twenty had failed, and then one probe every ten seconds.
    assert len([at for at, _ in provider.arrivals if 125 <= at < 720]) <= 62
    assert sum(outcome.attempts > 1 for outcome in found) <= 16 + 62
    assert sum(outcome.failure is not None for outcome in found) <= 62 / 5
    assert sum(outcome.attempts == 1 for outcome in found) >= 3_000 - 100


def test_an_outage_beyond_patience_stops_the_lane_and_the_rest_stays_pending(tmp_path: Path) -> None:
    provider, found, stops = in_an_outage(300.0, tmp_path)
    assert stops == ["patience"]
    assert 415 <= provider.arrivals[-1][0] <= 440
    assert sum(outcome.failure is not None for outcome in found) <= 16 / 5
    assert len({outcome.call.input for outcome in found}) == len(found) < 650


def repeats(provider: ScriptedProvider, begin: float, end: float) -> tuple[int, int]:
    """Sends between two times, and how many of them were not the first of their prompt."""
    seen: set[str] = set()
    sends = again = 0
    for at, prompt in provider.arrivals:
        if begin <= at < end:
            sends += 1
            again += prompt in seen
        seen.add(prompt)
    return sends, again


@pytest.mark.slow
def test_with_most_calls_failing_retries_are_held_to_the_budget_and_the_run_goes_on_afterwards(tmp_path: Path) -> None:
    chance = random.Random(9)
    provider = ScriptedProvider(
        lambda prompt, at: DOWN if 120 <= at < 720 and chance.random() < 0.6 else None,
        latency_s=lambda: chance.uniform(0.5, 1.5),
    )
    found: list[Outcome] = []

    async def main() -> float:
        async with engine_over({M: provider}, tmp_path, Lane(M, rpm=300, concurrency=16)) as bench:
            found.extend([outcome async for outcome in run_calls(bench.scheduler, prompts(3_000))])
            return asyncio.get_running_loop().time()

    ended = run_virtually(main())
    assert len(found) == 3_000
    sends, again = repeats(provider, 120, 720)
    policy = RetryPolicy()
    # A tenth of the attempts, what was saved up before, and one every ten seconds so that every run ends.
    assert again <= policy.budget_share * sends + 10 * policy.budget_floor + 600 / policy.probe_every_s
    assert repeats(provider, 720 + 300, 720 + 360)[0] >= 0.9 * 300 or ended < 720 + 360


def test_an_attempt_that_breaks_in_an_unforeseen_way_harms_no_other_call(tmp_path: Path) -> None:
    class Broken(ScriptedProvider):
        async def send(self, request: Request, cleared: Cleared) -> Response:
            response = await super().send(request, cleared)
            if request.body == b"prompt 3":
                raise ZeroDivisionError("in a provider's code")
            return response

    provider = Broken()

    async def main() -> list[Outcome]:
        async with engine_over({M: provider}, tmp_path) as bench:
            return [outcome async for outcome in run_calls(bench.scheduler, prompts(20))]

    found = {outcome.call.input: outcome for outcome in run_virtually(main())}
    assert Counter(outcome.status for outcome in found.values()) == {"ok": 19, "incomplete": 1}
    failure = found["prompt 3"].failure
    assert failure is not None and failure.detail == "ZeroDivisionError: in a provider's code"
