"""What a pilot's answers tell of a run: each figure from answers that are written down here, nothing sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from millstream.bench.evaluation.pilot import Pilot
from millstream.bench.evaluation.pilot_figures import figures
from millstream.bench.evaluation.pilot_text import tell
from millstream.bench.evaluation.work import Remainder
from millstream.engine.attempts.prices import Price
from millstream.engine.call import Call, Failure, Outcome, Reply, Usage
from millstream.engine.fault import Stop
from millstream.engine.lane import Lane
from millstream.engine.runs.pairs import Pair
from millstream.wiring import Settings

MODEL = "some/model"
PAIR = Pair(MODEL, None)
PRICE = Price(2.0, 8.0)
LANE = Lane(MODEL)
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


def pilot_of(outcomes: Sequence[Outcome], unasked: int = 0, **more: Any) -> Pilot:
    chosen = [outcome.call for outcome in outcomes] + [call(40)] * unasked
    return Pilot(chosen={PAIR: chosen}, outcomes={PAIR: list(outcomes)}, **more)


def settings(lane: Lane = LANE, price: Price | None = PRICE) -> Settings:
    return Settings(lanes=(lane,), prices={} if price is None else {MODEL: price}, environment={})


def told(pilot: Pilot, left: Remainder = LEFT, lane: Lane = LANE, price: Price | None = PRICE) -> dict[str, Any]:
    return figures(MODEL, pilot, {PAIR: left}, settings(lane, price))


MIXED = [answer(40, 12, 4), answer(80, 20, 6), answer(120, 32, 5), answer(160, 40, 9)]


def test_input_is_the_ratio_of_tokens_to_characters_times_the_characters_left() -> None:
    found = told(pilot_of(MIXED))
    assert found["tokens_per_character"] == pytest.approx(104 / 400)
    assert found["input_tokens"]["estimate"] == pytest.approx(60_000 * 104 / 400)
    low, high = found["input_tokens"]["ci95"]
    assert low < 15_600 < high


def test_output_is_the_mean_of_an_answer_times_the_prompts_left() -> None:
    found = told(pilot_of(MIXED))
    assert found["output_tokens_each"] == 6
    assert found["output_tokens"]["estimate"] == pytest.approx(6_000)


def test_cost_is_both_at_their_prices_and_with_the_pilot_what_that_cost_besides() -> None:
    found = told(pilot_of(MIXED))
    assert found["cost"]["estimate"] == pytest.approx((15_600 * 2 + 6_000 * 8) / 1e6)
    assert found["spent"] == pytest.approx((104 * 2 + 24 * 8) / 1e6)
    assert found["cost_with_pilot"]["estimate"] == pytest.approx(found["cost"]["estimate"] + found["spent"])
    for end, end_with in zip(found["cost"]["ci95"], found["cost_with_pilot"]["ci95"], strict=True):
        assert end_with == pytest.approx(end + found["spent"])


def test_without_a_price_there_are_tokens_and_no_cost() -> None:
    found = told(pilot_of(MIXED), price=None)
    assert (found["cost"], found["spent"], found["cost_with_pilot"]) == (None, None, None)
    assert found["input_tokens"]["estimate"] > 0
    assert "cost" not in tell(MODEL, found)


def test_the_same_answers_give_the_same_intervals() -> None:
    assert told(pilot_of(MIXED)) == told(pilot_of(MIXED))


def test_answers_from_the_cache_count_in_tokens_but_neither_in_cost_nor_in_latency() -> None:
    found = told(pilot_of([answer(100, 25, 4, latency_ms=50), answer(100, 35, 8, latency_ms=None)]))
    assert (found["sent"], found["from_cache"], found["answered"]) == (1, 1, 2)
    assert (found["tokens_per_character"], found["output_tokens_each"]) == (0.3, 6)
    assert found["spent"] == pytest.approx(PRICE.of(25, 4))
    assert found["latency_ms"] == 50


def test_each_temperature_is_reckoned_by_its_own_answers() -> None:
    cold, hot = Pair(MODEL, 0.0), Pair(MODEL, 1.0)
    outcomes = {cold: [answer(100, 25, 2)] * 3, hot: [answer(100, 25, 10)] * 3}
    pilot = Pilot(chosen={pair: [each.call for each in outcomes[pair]] for pair in outcomes}, outcomes=outcomes)
    found = figures(MODEL, pilot, {cold: Remainder(1_000, 100_000), hot: Remainder(10, 1_000)}, settings())
    assert found["output_tokens"]["estimate"] == pytest.approx(1_000 * 2 + 10 * 10)
    assert (found["calls"], found["left"]) == (6, 1_010)


def test_a_temperature_without_an_answer_leaves_nothing_to_reckon_from() -> None:
    cold, hot = Pair(MODEL, 0.0), Pair(MODEL, 1.0)
    pilot = Pilot(chosen={cold: [call(9)], hot: [call(9)]}, outcomes={cold: [answer(9, 3, 1)], hot: [failure()]})
    found = figures(MODEL, pilot, {cold: Remainder(5, 50), hot: Remainder(5, 50)}, settings(Lane(MODEL, tpm=100)))
    assert (found["input_tokens"], found["output_tokens"], found["cost"], found["minutes"]) == (None,) * 4
    assert "not every temperature has an answer with its usage" in tell(MODEL, found)


def test_other_models_are_left_out() -> None:
    other = Pair("other/model", None)
    pilot = pilot_of(MIXED)
    both = Pilot(
        chosen={**pilot.chosen, other: [call(5)]}, outcomes={**pilot.outcomes, other: [answer(5, 5_000, 5_000)]}
    )
    left = {PAIR: Remainder(1_000, 60_000), other: Remainder(7, 70)}
    assert figures(MODEL, both, left, settings()) == told(pilot)


@pytest.mark.parametrize(
    ("lane", "bound_by", "minutes"),
    [
        (Lane(MODEL, rpm=10, tpm=1e6, concurrency=10), "requests", 100.0),
        (Lane(MODEL, rpm=1e6, tpm=216, concurrency=10), "tokens", 100.0),
        (Lane(MODEL, rpm=1e6, tpm=1e6, concurrency=1), "concurrency", 1_000 * 0.1 / 60),
        (Lane(MODEL, concurrency=5_000), "concurrency", 0.1 / 60),
    ],
    ids=["requests", "tokens", "concurrency", "all at once"],
)
def test_time_is_that_of_the_slowest_bound(lane: Lane, bound_by: str, minutes: float) -> None:
    found = told(pilot_of(MIXED), lane=lane)["minutes"]
    assert found["bound_by"] == bound_by
    assert found["estimate"] == pytest.approx(minutes)
    low, high = found["ci95"]
    assert low <= found["estimate"] * (1 + 1e-9) and found["estimate"] <= high * (1 + 1e-9)


def test_the_interval_of_the_time_follows_latency_where_slots_are_the_limit() -> None:
    outcomes = [answer(40, 10, 4, latency_ms=latency) for latency in (100, 120, 150, 400, 90, 110)]
    low, high = told(pilot_of(outcomes), lane=Lane(MODEL, concurrency=2))["minutes"]["ci95"]
    mean = sum((100, 120, 150, 400, 90, 110)) / 6
    assert low < 1_000 * mean / 60_000 / 2 < high
    # Another bound cuts it off below.
    slow = Lane(MODEL, rpm=1_000 / (1.01 * low), concurrency=2)
    assert told(pilot_of(outcomes), lane=slow)["minutes"]["ci95"] == [pytest.approx(1.01 * low), pytest.approx(high)]


def test_time_is_unknown_where_nothing_was_sent_and_no_quota_declared() -> None:
    found = told(pilot_of([answer(40, 10, 4, latency_ms=None)] * 3))
    assert found["minutes"] is None and found["latency_ms"] is None
    assert "time           unknown" in tell(MODEL, found)
    quota = told(pilot_of([answer(40, 10, 4, latency_ms=None)] * 3), lane=Lane(MODEL, rpm=100))
    assert quota["minutes"]["estimate"] == 10
    assert "latency unknown, nothing was sent" in tell(MODEL, quota)


def test_where_nothing_is_left_nothing_is_to_come() -> None:
    found = told(pilot_of(MIXED), left=Remainder(0, 0))
    for name in ("input_tokens", "output_tokens", "cost", "minutes"):
        assert (found[name]["estimate"], found[name]["ci95"]) == (0, [0, 0])
    assert found["cost_with_pilot"]["ci95"] == [found["spent"]] * 2


def test_one_answer_gives_figures_without_intervals() -> None:
    found = told(pilot_of(MIXED[:1]))
    assert found["cost"]["estimate"] > 0
    assert [found[name]["ci95"] for name in ("input_tokens", "output_tokens", "cost", "minutes")] == [None] * 4
    assert "too few answers for an interval" in tell(MODEL, found)


def test_failures_refusals_and_answers_cut_short_are_counted_each_with_its_interval() -> None:
    refusal = Outcome(call(40), Reply("I can't.", Usage(10, 3), "stop", refused=True), attempts=1, cost=0.0)
    outcomes = [*MIXED, refusal, answer(40, 10, 100, finish="length"), failure(), failure("timeout", "in 600 s")]
    found = told(pilot_of(outcomes))
    counts = {name: (found[name]["calls"], found[name]["of"]) for name in ("failed", "refused", "truncated")}
    assert counts == {"failed": (2, 8), "refused": (1, 6), "truncated": (1, 6)}
    # The exact one for 2 of 8, from a table of Clopper and Pearson's.
    assert found["failed"]["ci95"] == [pytest.approx(0.0319, abs=1e-4), pytest.approx(0.6509, abs=1e-4)]
    assert found["failures"] == {
        "rejected": {"calls": 1, "detail": "400: no such model"},
        "timeout": {"calls": 1, "detail": "in 600 s"},
    }
    lines = tell(MODEL, found)
    assert "  failed         2 of 8 (3.2% to 65.1%)" in lines
    assert "  cut short      1 of 6" in lines and "  refused        1 of 6" in lines
    assert "  rejected       1, the first: 400: no such model" in lines


@pytest.mark.parametrize(("cut", "is_warned"), [(1, False), (2, True), (4, True)])
def test_a_pilot_of_which_half_is_cut_short_says_that_such_a_run_has_no_score(cut: int, is_warned: bool) -> None:
    outcomes = [answer(40, 10, 100, finish="length" if at < cut else "stop") for at in range(4)]
    warning = "  no score       a run of which half is refused or cut short has none"
    assert (warning in tell(MODEL, told(pilot_of(outcomes))).splitlines()) is is_warned


def test_where_every_call_failed_there_is_no_estimate_but_the_reasons() -> None:
    found = told(pilot_of([failure()] * 5))
    assert [found[name] for name in ("input_tokens", "cost", "latency_ms", "tokens_per_character")] == [None] * 4
    assert found["refused"]["ci95"] is None
    lines = tell(MODEL, found)
    assert "no estimate    all its calls failed" in lines
    assert "  rejected       5, the first: 400: no such model" in lines


def test_answers_without_a_usage_are_left_out_and_said_to_be() -> None:
    bare = Outcome(call(400), Reply("position <<A>>"), attempts=1, latency_ms=100.0)
    found = told(pilot_of([*MIXED, bare]))
    assert found["input_tokens"] == told(pilot_of(MIXED))["input_tokens"]
    assert "left out       answers without a usage: 1" in tell(MODEL, found)
    assert "this provider reports none" in tell(MODEL, told(pilot_of([bare])))


def test_a_lane_that_stopped_says_why_and_what_is_pending() -> None:
    stops = (Stop("other/model", "budget", "no money"), Stop(MODEL, "dead_key", "refuses the key:\nmend it"))
    found = told(pilot_of(MIXED, unasked=6, stops=stops))
    assert (found["calls"], found["pending"], found["stop"]["reason"]) == (10, 6, "dead_key")
    assert "pending        6 of them: refuses the key: mend it" in tell(MODEL, found)


def test_attempts_that_may_have_been_billed_are_counted() -> None:
    unsure = Outcome(call(40), failure=Failure("timeout", "in 600 s"), attempts=3, maybe_billed=3)
    found = told(pilot_of([*MIXED, unsure]))
    assert found["maybe_billed"] == 3
    assert "maybe billed   attempts that brought no whole answer: 3" in tell(MODEL, found)
