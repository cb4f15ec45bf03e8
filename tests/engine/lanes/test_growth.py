"""Calls in flight where nobody says how many there may be: against hidden rates and full servers, in virtual time."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import NamedTuple

import pytest
from hidden_limits import Bucket, Draw, Endless, SlidingWindow, run_together
from scripted import ScriptedProvider, engine_over, prompts
from torture import IS_LONG, SEED, times
from virtual_time import run_virtually

from millstream.engine.endpoint import Fault
from millstream.engine.lane import CONCURRENCY_DEFAULT, GROWN_MOST, Lane
from millstream.engine.lanes.growth import START
from millstream.engine.lanes.lane_files import FORGOTTEN_AFTER_S, LaneMemory, LaneNote, Reached, read_note
from millstream.engine.limits import Limit
from millstream.engine.run import run_calls

FOUND_S = 120.0
HIDDEN = Lane("hidden/m")


def spread(mean_s: float, sigma: float) -> Draw:
    return lambda chance: mean_s * math.exp(chance.gauss(0, sigma) - sigma * sigma / 2)


class World(NamedTuple):
    """A drawn provider. `length_s`: how long it is asked: at low rates longer, since a refusal counts for more."""

    per_s: float
    latency: Draw
    refusing: Draw
    length_s: float
    words: str

    @classmethod
    def drawn(cls, seed: int, most_per_s: float) -> World:
        chance = random.Random(seed)
        per_s = math.exp(chance.uniform(math.log(0.5 if IS_LONG else 2.0), math.log(most_per_s)))
        # No more than the lane may have in flight by itself.
        mean_s = math.exp(chance.uniform(math.log(0.2), math.log(min(4.0, 0.7 * GROWN_MOST / per_s))))
        sigma, share = chance.choice([0.1, 0.5, 0.9]), chance.choice([0.1, 1.0])
        length_s = max(420.0, min(1_320.0, 100_000 / per_s)) if IS_LONG else 600.0
        words = f"seed {seed}: {per_s:.2f}/s, {mean_s:.2f} s, spread {sigma}, refusals after {share} of that"
        return cls(per_s, spread(mean_s, sigma), spread(share * mean_s, sigma), length_s, words)


def limiter(kind: str, per_s: float) -> Bucket | SlidingWindow:
    return Bucket(per_s) if kind == "bucket" else SlidingWindow(per_s, 10.0)


@pytest.mark.parametrize("kind", ["bucket", "window"])
def test_a_hidden_rate_is_found_used_hardly_exceeded_and_remembered(kind: str) -> None:
    for seed in range(SEED, SEED + times(2, 25)):
        world, memory = World.drawn(seed, times(20, 500)), LaneMemory(LaneNote("hidden/m", "", "", HIDDEN))
        hidden = limiter(kind, world.per_s)
        traffic = Endless(world.latency, limiter=hidden, refusing=world.refusing, memory=memory, seed=seed)
        traffic.run(world.length_s)
        assert traffic.rate(FOUND_S, world.length_s) >= 0.95 * hidden.per_s, world.words
        assert traffic.refused_share(FOUND_S, world.length_s) <= 0.01, world.words
        assert traffic.failed == 0
        # The next run begins there.
        hidden = limiter(kind, world.per_s)
        again = Endless(world.latency, limiter=hidden, refusing=world.refusing, memory=memory, seed=seed + 1)
        sent = [at for at, _ in again.run(60.0).sent]
        assert 0.85 * hidden.per_s * 60 <= len(sent) <= 1.1 * hidden.per_s * 60, world.words
        assert len(again.refused) <= 0.02 * len(sent) + 2, world.words


def test_two_processes_never_double_a_hidden_rate_for_long() -> None:
    shared = Bucket(20.0)
    both = [Endless(spread(1.0, 0.5), limiter=shared, seed=seed) for seed in (1, 2)]
    run_together(both, 420.0)
    assert sum(each.rate(FOUND_S, 420.0) for each in both) >= 0.93 * shared.per_s
    assert all(each.refused_share(FOUND_S, 420.0) <= 0.02 for each in both)


@pytest.mark.parametrize("servers", [20, 45, 90])
def test_a_full_server_is_used_without_a_crowd_in_front_of_it(servers: int) -> None:
    traffic = Endless(spread(1.0, 0.5), servers=servers).run(400.0)
    assert traffic.rate(60.0, 400.0) >= 0.95 * servers
    in_flight = traffic.in_flight(60.0)
    assert sum(in_flight) / len(in_flight) <= 2 * servers
    assert max(in_flight) <= 5 * servers
    assert traffic.lane.found == ("slow", traffic.gate.growth.ceiling)


def test_an_unlimited_server_gets_two_thousand_calls_within_ten_seconds_where_they_are_allowed() -> None:
    traffic = Endless(spread(0.5, 0.0), lane=Lane("hidden/m", concurrency=2_000)).run(11.0)
    assert max(count for at, count in traffic.sent if at < 10.0) >= 1_990
    assert traffic.lane.found == ("", 2_000)


def test_calls_in_flight_begin_with_few_and_end_at_the_default() -> None:
    traffic = Endless(spread(0.5, 0.0)).run(9.0)
    assert [count for at, count in traffic.sent if at < 0.4] == [START] * START
    assert traffic.gate.growth.ceiling == GROWN_MOST


@pytest.mark.parametrize(
    "fault",
    [
        Fault("server_error", "529", "retry", 529, cuts_rate=True),
        Fault("rate_limited", "429", "throttle", 429, retry_after_s=1.0),
    ],
)
def test_an_overloaded_provider_and_one_that_names_a_pause_are_limits_too(fault: Fault) -> None:
    traffic = Endless(spread(0.5, 0.1), limiter=Bucket(10.0), fault=fault).run(420.0)
    assert traffic.rate(FOUND_S, 420.0) >= 9.0
    assert traffic.refused_share(FOUND_S, 420.0) <= 0.02


def test_a_declared_quota_has_all_its_calls_in_flight_from_the_beginning() -> None:
    assert Endless(spread(5.0, 0.0), lane=Lane("hidden/m", rpm=60_000)).gate.growth.ceiling == CONCURRENCY_DEFAULT
    assert Endless(spread(5.0, 0.0), lane=Lane("hidden/m", tpm=9_000, concurrency=300)).gate.growth.ceiling == 300


def test_a_quota_that_an_answer_reports_ends_the_growth() -> None:
    traffic = Endless(spread(5.0, 0.0))
    assert traffic.gate.growth.ceiling == START
    traffic.gate.learn((Limit("requests", 60.0, 6_000.0),), 1.0)
    assert traffic.gate.growth.ceiling == CONCURRENCY_DEFAULT and not traffic.lane.grows


def test_what_was_reached_is_kept_beside_the_ledger_with_its_age(tmp_path: Path) -> None:
    path, now = tmp_path / "lane", 1_000_000.0

    def memory() -> LaneMemory:
        return LaneMemory(LaneNote("hidden/m", "", "", HIDDEN), path, clock=lambda: now)

    traffic = Endless(spread(0.5, 0.1), limiter=Bucket(50.0), memory=memory()).run(200.0)
    note = read_note(path)
    assert note is not None and note.reached.at == now and note.reached.in_flight == traffic.gate.growth.ceiling
    assert note.reached.per_s == pytest.approx(50.0, rel=0.1)
    # A process that learns nothing new does not make it younger.
    now += FORGOTTEN_AFTER_S + 1
    assert memory().is_old
    Endless(spread(0.5, 0.1), memory=memory()).gate.close()
    assert memory().is_old and memory().reached == note.reached
    path.write_bytes(path.read_bytes()[:-20])
    assert memory().reached == Reached()


@pytest.mark.parametrize("most", [None, 100])
def test_a_run_has_as_many_calls_in_work_as_may_be_in_flight_by_then(most: int | None, tmp_path: Path) -> None:
    provider = ScriptedProvider(latency_s=0.5)

    async def main() -> int:
        async with engine_over({"script/m": provider}, tmp_path, Lane("script/m", concurrency=most)) as bench:
            run = run_calls(bench.scheduler, prompts(2_000))
            assert len([outcome async for outcome in run]) == 2_000
            return bench.lane("script/m").concurrency

    ceiling = run_virtually(main())
    assert sum(at < 0.4 for at, _ in provider.arrivals) == START
    assert provider.peak == ceiling == 100 if most else 256 <= provider.peak <= ceiling <= GROWN_MOST
