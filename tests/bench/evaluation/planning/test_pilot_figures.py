"""What a pilot's answers tell of a run: each figure from answers that are written down here, nothing sent."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec import Struct, structs

from millstream.bench.evaluation.door.benchmark import ItemBenchmark
from millstream.bench.evaluation.door.expected import Remainder
from millstream.bench.evaluation.door.item import Item
from millstream.bench.evaluation.door.item_line import ItemLine, StepTotals
from millstream.bench.evaluation.door.item_set import ItemSet
from millstream.bench.evaluation.door.prepared_run import PreparedRun
from millstream.bench.evaluation.door.record import Record
from millstream.bench.evaluation.planning import pilot_text
from millstream.bench.evaluation.planning.pilot import ItemUse, LaneUse, Pilot, begin, outcome_noter
from millstream.bench.evaluation.planning.pilot_figures import Figure, PilotFigures, figures_of
from millstream.bench.evaluation.running.steps import UnderWay
from millstream.engine.call import Call, Failure, Outcome, Reply, Usage
from millstream.engine.fault import Stop
from millstream.engine.lane import Lane
from millstream.engine.limits import Quota
from millstream.engine.pairs import Pair
from millstream.engine.prices import Price
from millstream.wiring import Settings

MODEL = "some/model"
PAIR = Pair(MODEL, None)
PRICE = Price(2.0, 8.0)
LANE = Lane(MODEL, concurrency=128)
LEFT = Remainder(1_000, 60_000)


def call(chars: int) -> Call:
    return Call(MODEL, "x" * chars)


def answer(chars: int, tokens: int, output: int, latency_ms: float | None = 100.0, finish: str = "stop") -> Outcome:
    """An answer that was sent, or, without a latency, one from the cache."""
    usage = Usage(tokens, output)
    cost = None if latency_ms is None else PRICE.of(tokens, output)
    return Outcome(
        call(chars),
        Reply("position <<A>>", usage, finish),
        cached=latency_ms is None,
        attempts=0 if latency_ms is None else 1,
        cost=0.0 if cost is None else cost,
        latency_ms=latency_ms,
    )


def failure(kind: Any = "rejected", detail: str = "400: no such model") -> Outcome:
    return Outcome(call(40), failure=Failure(kind, detail), attempts=1)


class Once(ItemBenchmark[Record]):
    """As much of a benchmark as its figures need."""

    title = "once"

    def call(self, item: Item, options: Any, pair: Pair) -> Call:
        return Call(pair.model, "x", max_tokens=options.max_tokens)


class Limited(Struct):
    max_tokens: int | None = None


def settings(lane: Lane = LANE, price: Price | None = PRICE) -> Settings:
    return Settings(lanes=(lane,), prices={} if price is None else {MODEL: price}, environment={})


def pilot_among(
    outcomes: Mapping[Pair, Sequence[Outcome]],
    unasked: int = 0,
    using: Settings | None = None,
    stops: Sequence[Stop] = (),
) -> Pilot:
    """A pilot of these outcomes, noted as a run's are."""
    using = settings() if using is None else using
    run = PreparedRun(
        benchmark=Once(),
        out=Path("-"),
        settings=using,
        items=ItemSet([Item(str(number)) for number in range(1_010)]),
        limits=dict.fromkeys(outcomes),
        options=Limited(),
    )
    pilot = begin(run, max(map(len, outcomes.values())) + unasked)
    note = outcome_noter(pilot)
    for stratum, (pair, each) in zip(pilot.strata, outcomes.items(), strict=True):
        totals = StepTotals()
        for number, outcome in enumerate(each):
            asked = structs.replace(outcome.call, temperature=pair.temperature)
            note(structs.replace(outcome, call=asked))
            totals.add(pair, line_of(outcome, str(number)))
        stratum.ended = list(totals.pairs.values())
    pilot.end.stops = stops
    return pilot


def line_of(outcome: Outcome, name: str) -> ItemLine:
    """As much of the journal line of an outcome as a pilot counts."""
    error = "" if outcome.failure is None else outcome.failure.detail
    cut = outcome.reply is not None and outcome.reply.truncated
    return ItemLine(
        id=name, model=MODEL, status=outcome.status, truncated=cut, error=error, maybe_billed=outcome.maybe_billed
    )


def pilot_of(outcomes: Sequence[Outcome], unasked: int = 0, stops: Sequence[Stop] = ()) -> Pilot:
    return pilot_among({PAIR: outcomes}, unasked, stops=stops)


def told(pilot: Pilot, left: Remainder = LEFT, lane: Lane = LANE, price: Price | None = PRICE) -> PilotFigures:
    pilot.run = structs.replace(pilot.run, settings=settings(lane, price))
    (found,) = figures_of(pilot, {PAIR: (left, 0)})
    return found


def tokens(found: PilotFigures, direction: str) -> Figure:
    """The only lane's."""
    assert found.lanes is not None
    figure: Figure = getattr(found.lanes[0], f"{direction}_tokens")
    return figure


def tell(found: PilotFigures) -> str:
    return pilot_text.tell(pilot_of([]), [found])


MIXED = [answer(40, 12, 4), answer(80, 20, 6), answer(120, 32, 5), answer(160, 40, 9)]


def test_cost_is_both_at_their_prices() -> None:
    found = told(pilot_of(MIXED))
    assert found.cost is not None and found.cost.ci95 is not None
    assert found.cost.estimate == pytest.approx((15_600 * 2 + 6_000 * 8) / 1e6)
    assert found.spent == pytest.approx((104 * 2 + 24 * 8) / 1e6)
    # By hand: what each answer is off, in proportion to its characters and beside the mean of 6 tokens.
    off = [(tokens - 0.26 * chars) / 100 * 60_000 * 2 for chars, tokens in ((40, 12), (80, 20), (120, 32), (160, 40))]
    each = [one + (output - 6) * 1_000 * 8 for one, output in zip(off, (4, 6, 5, 9), strict=True)]
    variance = sum(one * one for one in each) / 12 * 1.004
    half = 3.182446 * variance**0.5
    # The skewness of the four moves the upper end alone.
    moved = sum(one**3 for one in each) / 4 * (1 / 16 - 1e-6) / variance * (1 + 2 * 3.182446**2) / 6
    assert moved > 0
    low, high = found.cost.estimate - half / 1e6, found.cost.estimate + (half + moved) / 1e6
    assert found.cost.ci95 == pytest.approx((low, high))


@pytest.mark.long
@pytest.mark.parametrize(("seen", "left"), [(30, 300), (40, 2_000), (100, 150), (200, 5_000)])
def test_a_95_percent_interval_of_skewed_answers_covers_what_comes(seen: int, left: int) -> None:
    rng = np.random.default_rng(seen)
    covered = 0
    pilots = 300
    for _ in range(pilots):
        # Prompts of very different length, and answers of which some are ten times as long as most.
        chars = rng.lognormal(7, 0.6, seen + left)
        inputs, outputs = 8 + chars / 4 * rng.normal(1, 0.05, seen + left), rng.lognormal(3, 0.9, seen + left)
        pilot = pilot_of([])
        for number, (size, read, written) in enumerate(zip(chars, inputs, outputs, strict=True)):
            use = LaneUse(1, size, read, written, read * 2e-6, written * 8e-6)
            state = UnderWay(PAIR, "", has_ended=True)
            if number < seen:
                pilot.strata[0].items[str(number)] = ItemUse({PAIR: state}, {MODEL: use})
        cost = told(pilot, left=Remainder(left, chars[seen:].sum())).cost
        assert cost is not None and cost.ci95 is not None
        covered += cost.ci95[0] <= (inputs[seen:] * 2e-6 + outputs[seen:] * 8e-6).sum() <= cost.ci95[1]
    # Above 99% it would be so wide that it says little.
    assert 0.90 <= covered / pilots <= 0.99


def test_without_a_price_there_are_tokens_and_no_cost() -> None:
    found = told(pilot_of(MIXED), price=None)
    assert (found.cost, found.spent) == (None, None)
    assert tokens(found, "input").estimate > 0
    assert "cost           not known: no price for some/model" in tell(found)


def test_answers_from_the_cache_count_in_tokens_but_neither_in_cost_nor_in_latency() -> None:
    seen = [answer(100, 25, 4, latency_ms=50), answer(100, 35, 8, latency_ms=None)]
    found = told(pilot_of(seen), lane=Lane(MODEL, rpm=1e9, concurrency=128))
    assert (found.sent, found.from_cache, found.whole) == (1, 1, 2)
    assert (tokens(found, "input").estimate, tokens(found, "output").estimate) == pytest.approx((0.3 * 60_000, 6_000))
    assert found.spent == pytest.approx(PRICE.of(25, 4))
    assert found.minutes is not None and found.minutes.estimate == pytest.approx(1_000 * 0.05 / 128 / 60)


def test_a_temperature_without_an_answer_leaves_nothing_to_reckon_from() -> None:
    cold, hot = Pair(MODEL, 0.0), Pair(MODEL, 1.0)
    pilot = pilot_among({cold: [answer(9, 3, 1)], hot: [failure()]}, using=settings(Lane(MODEL, tpm=100)))
    (found,) = figures_of(pilot, {cold: (Remainder(5, 50), 0), hot: (Remainder(5, 50), 0)})
    assert (found.lanes, found.cost, found.minutes) == (None,) * 3
    assert "not every temperature has an answer with its usage" in tell(found)


@pytest.mark.parametrize(
    ("lane", "bound_by", "minutes"),
    [
        (Lane(MODEL, rpm=10, tpm=1e6, concurrency=10), "requests", 100.0),
        (Lane(MODEL, rpm=1e6, tpm=216, concurrency=10), "tokens", 100.0),
        (Lane(MODEL, rpm=1e6, tpm=1e6, concurrency=1), "concurrency", 1_000 * 0.1 / 60),
        (Lane(MODEL, rpm=1e9, concurrency=5_000), "concurrency", 0.1 / 60),
        # 16 to 256 in flight answer 48, 64, 128, 256 and the other 504, and the last call ends it.
        (Lane(MODEL, concurrency=5_000), "concurrency", (3 + 2 + 2 + 2 + 504 / 256 + 1) * 0.1 / 60),
    ],
    ids=["requests", "tokens", "concurrency", "all at once", "growing"],
)
def test_time_is_that_of_the_slowest_bound(lane: Lane, bound_by: str, minutes: float) -> None:
    found = told(pilot_of(MIXED), lane=lane).minutes
    assert found is not None and (found.bound_by, found.lane) == (bound_by, MODEL)
    assert found.estimate == pytest.approx(minutes)
    low, high = found.ci95 or (1, 0)
    assert low <= found.estimate * (1 + 1e-9) and found.estimate <= high * (1 + 1e-9)


def test_the_interval_of_the_time_follows_latency_where_slots_are_the_limit() -> None:
    outcomes = [answer(40, 10, 4, latency_ms=latency) for latency in (100, 120, 150, 400, 90, 110)]

    def interval(lane: Lane) -> tuple[float, float]:
        minutes = told(pilot_of(outcomes), lane=lane).minutes
        assert minutes is not None and minutes.ci95 is not None
        return minutes.ci95

    low, high = interval(Lane(MODEL, concurrency=2))
    mean = sum((100, 120, 150, 400, 90, 110)) / 6
    assert low < 1_000 * mean / 60_000 / 2 < high
    # Another bound cuts it off below.
    slow = Lane(MODEL, rpm=1_000 / (1.01 * low), concurrency=2)
    assert interval(slow) == pytest.approx((1.01 * low, high))


def with_limit(pilot: Pilot, limit: int) -> Pilot:
    pilot.run = structs.replace(pilot.run, limits={PAIR: limit})
    return pilot


def minutes_of(found: PilotFigures) -> tuple[str, float]:
    assert found.minutes is not None and found.minutes.bound_by is not None
    return found.minutes.bound_by, found.minutes.estimate


def test_a_quota_that_answers_reported_counts_like_a_declared_one() -> None:
    reported = pilot_of(MIXED)
    reported.quotas = {MODEL: Quota(rpm=20)}
    assert minutes_of(told(reported)) == ("requests", 50)


def test_a_long_call_holds_its_longest_answer_until_it_has_its_own() -> None:
    slow = [answer(40, 10, 5, latency_ms=30_000) for _ in range(4)]
    lane = Lane(MODEL, tpm=1_000, concurrency=1_000)
    # 15,000 tokens of input, 5,000 of output; half of the 95 unused ones of each answer are held at any time.
    found = told(with_limit(pilot_of(slow), 100), lane=lane)
    bound_by, minutes = minutes_of(found)
    assert bound_by == "tokens" and minutes == pytest.approx((15_000 + 5_000 + 1_000 * 95 / 2) / 1_000)


def test_few_calls_are_in_flight_at_once_under_a_cost_limit() -> None:
    slow = [answer(40, 10, 5, latency_ms=6_000) for _ in range(4)]
    # Of 60,000 tokens a call costs 48 cents at worst.
    pilot = with_limit(pilot_of(slow), 60_000)
    using = structs.replace(settings(Lane(MODEL, concurrency=100)), max_cost=2.0)
    pilot.run = structs.replace(pilot.run, settings=using)
    (found,) = figures_of(pilot, {PAIR: (LEFT, 0)})
    bound_by, minutes = minutes_of(found)
    assert bound_by == "concurrency" and minutes == pytest.approx(1_000 * 0.1 / 4)


# Thirty seconds say little about the slowest of hundreds where they differ much.
@pytest.mark.parametrize(
    ("spread", "left", "places", "least"),
    [(0.3, 400, 64, 18), (0.6, 60, 64, 15), (0.6, 5_000, 64, 18)],
)
def test_the_time_of_calls_side_by_side_holds_also_where_the_last_one_takes_long(
    spread: float, left: int, places: int, least: int
) -> None:
    good = 0
    for seed in range(20):
        law = np.random.default_rng(seed)
        seen = [answer(40, 10, 4, latency_ms=float(ms)) for ms in 1_000 * law.lognormal(0, spread, 30)]
        free = [0.0] * places
        for duration in law.lognormal(0, spread, left):
            heapq.heapreplace(free, free[0] + float(duration))
        found = told(pilot_of(seen), left=Remainder(left, 40 * left), lane=Lane(MODEL, rpm=1e9, concurrency=places))
        bound_by, minutes = minutes_of(found)
        assert bound_by == "concurrency"
        good += 1 / 1.5 < 60 * minutes / max(free) < 1.5
    assert good >= least, good


def test_seconds_of_two_kinds_give_no_time_beyond_what_they_can_take() -> None:
    # Most answers come at once, some after ten seconds: their logarithms differ widely.
    seen = [answer(40, 10, 4, latency_ms=10_000 if number % 3 == 0 else 1) for number in range(30)]
    found = told(pilot_of(seen), left=Remainder(64, 64 * 40), lane=Lane(MODEL, concurrency=64))
    assert found.minutes is not None and found.minutes.ci95 is not None
    assert 10 / 60 <= found.minutes.estimate <= found.minutes.ci95[1] <= 20 / 60 + 1e-9


def test_time_is_unknown_where_nothing_was_sent_and_no_quota_declared() -> None:
    stored = [answer(40, 10, 4, latency_ms=None) for _ in range(3)]
    found = told(pilot_of(stored))
    assert found.minutes is None
    assert "time           unknown" in tell(found)
    quota = told(pilot_of(stored), lane=Lane(MODEL, rpm=100))
    assert quota.minutes is not None and quota.minutes.estimate == 10


def test_where_nothing_is_left_nothing_is_to_come() -> None:
    found = told(pilot_of(MIXED), left=Remainder(0, 0))
    for figure in (tokens(found, "input"), tokens(found, "output"), found.cost, found.minutes):
        assert figure is not None and (figure.estimate, figure.ci95) == (0, (0, 0))
    assert "bound by" not in tell(found)


def test_one_answer_gives_figures_without_intervals() -> None:
    found = told(pilot_of(MIXED[:1]))
    assert found.cost is not None and found.cost.estimate > 0
    for figure in (tokens(found, "input"), tokens(found, "output"), found.cost, found.minutes):
        assert figure is not None and figure.ci95 is None
    assert "too few for an interval" in tell(found)


def test_failures_refusals_and_answers_cut_short_are_counted_each_with_its_interval() -> None:
    refusal = Outcome(call(40), Reply("I can't.", Usage(10, 3), "stop", refused=True), attempts=1, cost=0.0)
    outcomes = [*MIXED, refusal, answer(40, 10, 100, finish="length"), failure(), failure("timeout", "in 600 s")]
    found = told(pilot_of(outcomes))
    counts = [(share.count, share.of) for share in (found.failed, found.refused, found.truncated)]
    assert counts == [(2, 8), (1, 6), (1, 6)]
    # The exact one for 2 of 8, from a table of Clopper and Pearson's.
    assert found.failed.ci95 == pytest.approx((0.0319, 0.6509), abs=1e-4)
    assert {kind: (number, reason and reason.said) for kind, (number, reason) in found.failures.items()} == {
        "rejected": (1, "400: no such model"),
        "timeout": (1, "in 600 s"),
    }
    lines = tell(found)
    assert "  failed         2 of 8 prompts (3.2% to 65.1%)" in lines
    assert "  cut short      1 of 6 prompts" in lines and "  refused        1 of 6 prompts" in lines
    assert "  rejected, 1: 400: no such model" in lines


@pytest.mark.parametrize(("cut", "is_warned"), [(1, False), (2, True), (4, True)])
def test_a_pilot_of_which_half_is_cut_short_says_that_such_a_run_has_no_score(cut: int, is_warned: bool) -> None:
    outcomes = [answer(40, 10, 100, finish="length" if at < cut else "stop") for at in range(4)]
    pilot = pilot_of(outcomes)
    warning = "  no score       a run of which half is refused or cut short has none"
    assert (warning in pilot_text.tell(pilot, [told(pilot)]).splitlines()) is is_warned


def test_where_every_call_failed_there_is_no_estimate_but_the_reasons() -> None:
    found = told(pilot_of([failure() for _ in range(5)]))
    assert (found.lanes, found.cost, found.minutes) == (None,) * 3
    assert found.refused.ci95 is None
    lines = tell(found)
    assert "no estimate    no prompt ran to its end" in lines
    assert "  rejected, all 5: 400: no such model" in lines


def test_answers_without_a_usage_are_left_out_and_said_to_be() -> None:
    bare = Outcome(call(400), Reply("position <<A>>"), attempts=1, latency_ms=100.0)
    found = told(pilot_of([*MIXED, bare]))
    assert tokens(found, "input") == tokens(told(pilot_of(MIXED)), "input")
    assert "left out       prompts without the usage of every answer: 1" in tell(found)
    assert "this provider reports none" in tell(told(pilot_of([bare])))


def test_a_lane_that_stopped_says_why_and_what_is_pending() -> None:
    stops = (Stop("other/model", "budget", "no money"), Stop(MODEL, "dead_key", "refuses the key:\nmend it"))
    pilot = pilot_of(MIXED, unasked=6, stops=stops)
    found = told(pilot)
    assert (found.items, found.pending) == (10, 6)
    assert "pending        6 of them: no money; refuses the key: mend it" in pilot_text.tell(pilot, [found])


def test_attempts_that_may_have_been_billed_are_counted() -> None:
    unsure = Outcome(call(40), failure=Failure("timeout", "in 600 s"), attempts=3, maybe_billed=3)
    pilot = pilot_of([*MIXED, unsure])
    text = pilot_text.tell(pilot, [told(pilot)])
    assert "3 attempts brought no whole answer and may have been billed all the same" in text


def test_without_a_search_of_the_cache_the_pilots_answers_are_taken_from_what_is_left() -> None:
    (found,) = figures_of(pilot_of([*MIXED, failure()]), {PAIR: (Remainder(10, 1_000), None)})
    assert found.left == 6
    assert tokens(found, "input").estimate == pytest.approx((1_000 - 400) * 104 / 400)


def test_two_items_that_make_the_same_call_are_two() -> None:
    same = structs.replace(answer(60, 20, 5), key="the same")
    assert len(pilot_of([same, same]).strata[0].done) == 2
