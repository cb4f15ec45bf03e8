"""Claims about what is said of many conversations at once."""

from __future__ import annotations

from itertools import pairwise
from statistics import mean, stdev, variance
from typing import Any

import numpy as np
import pytest
from chameleon_records import PERSONAS, SWAYING, as_lines, run_records, talk, turn_record, url
from conversation_traces import traces_of

import millstream as ms
from millstream.metrics.chameleon.readings import Readings
from millstream.metrics.chameleon.sample import PairSample, by_model, joined, samples
from millstream.metrics.chameleon.summary import (
    bands,
    binned,
    by_domain,
    by_temperature,
    by_turn,
    related,
    share_over,
    spread,
    spread_of,
)
from millstream.metrics.statistics.density import density


def sampled(lines: list[bytes], **chosen: Any) -> tuple[PairSample, ...]:
    return samples(traces_of(lines), Readings(**chosen))


@pytest.fixture(scope="module")
def run() -> tuple[PairSample, ...]:
    return sampled(as_lines(run_records(PERSONAS, conversations=16, turns=8)))


def test_the_standard_deviation_is_the_samples() -> None:
    found = spread(["a", "b", "c"], np.array([0.2, 0.4, 0.9]))
    assert found.n == 3
    assert [found.mean, found.std] == pytest.approx([0.5, stdev([0.2, 0.4, 0.9])])
    assert spread(["a", "b"], np.array([0.2, np.nan])).std is None
    assert spread([], np.empty(0)).mean is None


def test_incomplete_conversations_enter_no_mean() -> None:
    [one, two] = sampled([*talk("SSSS"), *talk("SCSC", conversation="d"), *talk("SC", conversation="d", model="n")])
    assert spread_of([one], "changes").mean == 1.5
    assert (two.incomplete, two.missing, two.unanswered) == (2, 6, ("c",))
    assert spread_of([two], "changes").n == 0
    assert two.others[0][1].changes == 1


def test_bands_have_their_bounds_in_the_middle() -> None:
    values = np.array([0.0, 0.29, 0.3, 0.4, 0.5, 0.51, 1.0, np.nan])
    assert bands(values, (0.3, 0.5)) == (2, 3, 2)


def test_a_share_counts_what_is_strictly_above() -> None:
    found = share_over(["a", "b", "c", "d"], np.array([0.6, 0.61, 0.7, np.nan]), 0.6)
    assert found.n == 3
    assert found.mean == pytest.approx(2 / 3)


def test_models_that_sway_more_and_cite_again_correlate(run: tuple[PairSample, ...]) -> None:
    for found in related(run).values():
        assert (found.rows, found.clusters, found.of) == (16 * 9, 16, "conversations")
        assert found.r is not None and found.p is not None
        assert found.low is not None and found.high is not None
        assert found.r > 0.4 and found.p < 0.001
        assert 0 < found.low <= found.r <= found.high


def test_within_models_what_differs_between_them_is_left_out(run: tuple[PairSample, ...]) -> None:
    models = by_model(run).values()
    srr, changes = ([joined(own, kind) for own in models] for kind in ("srr", "changes"))
    apart = [np.concatenate([own - own.mean() for own in side]) for side in (srr, changes)]
    pooled, within = (related(run, is_within=each)["changes"] for each in (False, True))
    assert within.r == pytest.approx(float(np.corrcoef(apart[0], apart[1])[0, 1]))
    assert pooled.r is not None and within.r is not None and pooled.r > 0.4 > abs(within.r)
    assert (within.rows, within.clusters) == (16 * 9, 16)
    assert all(related(own, is_within=True) == related(own) for own in models)


def test_intervals_are_over_conversations_however_often_each_was_held() -> None:
    source = np.random.default_rng(2)
    own, names = source.uniform(0.2, 0.8, 40), [f"c{number}" for number in range(40)]
    once, thrice = spread(names, own).interval, spread(names * 3, np.tile(own, 3)).interval
    assert once == ms.interval(own, within=(0, 1), of="conversations")
    assert once is not None and thrice is not None and thrice.clusters == 40
    assert (thrice.low, thrice.high) == pytest.approx((once.low, once.high))


def test_where_conversations_have_different_numbers_of_rows_the_interval_is_around_the_mean_of_the_rows() -> None:
    source = np.random.default_rng(3)
    names = [f"c{number}" for number in range(30) for _ in range(1 + number % 3)]
    found = spread(names, source.uniform(0, 1, len(names)))
    assert found.interval is not None and found.interval.mean == pytest.approx(found.mean)
    few = spread(["a", "a", "b"], np.array([0.2, 0.4, 0.9])).interval
    assert few is not None and few.low is None
    assert few.figures == pytest.approx((0.3, 0.9))
    assert few.note == "no interval: fewer than 10 conversations (2)"


def test_bins_of_reuse_hold_every_conversation_once(run: tuple[PairSample, ...]) -> None:
    found = binned(run)
    assert sum(each.score.n for each in found) == 16 * 9
    srr = np.concatenate([sample.column("srr") for sample in run])
    score = np.concatenate([sample.column("score") for sample in run])
    for each in found:
        own = score[(srr >= each.low) & ((srr < each.high) | (each.high == 1.0))]
        assert each.score.mean == pytest.approx(own.mean())
    assert all(one.high <= other.low for one, other in pairwise(found))


def test_a_rate_on_a_bound_belongs_to_the_bin_above() -> None:
    a = url(1, 1)
    # Ten terms, three of them whole: 0.3, which in floats is a little less.
    cited = [[a], [a], [a], [a], *[[url(2, number)] for number in range(7)]]
    [found] = binned(sampled(talk("S" * 11, cited)))
    assert (found.low, found.high) == (0.3, 0.4)


def test_turn_by_turn_the_terms_of_srr_average_to_it() -> None:
    for sample in sampled(as_lines(run_records(PERSONAS, conversations=16, turns=8)), uncited="literal"):
        turns = by_turn([sample])
        assert [turn.turn for turn in turns] == list(range(1, 9))
        assert turns[0].reuse.n == 0 and turns[0].change_rate is None
        reuse = mean(turn.reuse.mean or 0 for turn in turns[1:])
        assert reuse == pytest.approx(spread_of([sample], "srr").mean)
        changes = sum(turn.change_rate or 0 for turn in turns)
        assert changes == pytest.approx(spread_of([sample], "changes").mean)
        assert mean(turn.confidence or 0 for turn in turns) == pytest.approx(spread_of([sample], "confidence").mean)
        assert all(sum(turn.stances) == pytest.approx(1) for turn in turns)


def test_means_correlations_and_densities_leave_out_turns_that_no_judge_read() -> None:
    def said(conversation: str, *confidences: float | None) -> list[bytes]:
        stances = ["unclear" if each is None else "supportive" for each in confidences]
        return as_lines(
            turn_record(conversation=conversation, turn=at + 1, stance=stance, confidence=each)
            for at, (stance, each) in enumerate(zip(stances, confidences, strict=True))
        )

    found = sampled([*said("a", 1.0, None, 1.0), *said("b", 0.33, 0.67, 0.5), *said("c", None, None, 0.67)])
    assert joined(found, "confidence").tolist() == pytest.approx([1.0, 0.5])
    assert spread_of(found, "confidence").n == 2
    assert density(joined(found, "confidence")).n == 2
    assert related(found)["confidence"].rows == 2
    assert [turn.confidence for turn in by_turn(found)] == pytest.approx([(1 + 0.33) / 2, 0.67, 0.75])


def test_a_turn_counts_the_conversations_that_reach_it() -> None:
    turns = by_turn(sampled([*talk("SCSC"), *talk("SUS", conversation="d")]))
    assert [turn.conversations for turn in turns] == [2, 2, 2, 1]
    assert [turn.change_rate for turn in turns] == [None, 0.5, 0.5, 1.0]
    assert turns[1].stances == (0, 0.5, 0, 0.5)


def test_across_temperatures_means_and_conversations_are_compared(run: tuple[PairSample, ...]) -> None:
    for own in by_model(run).values():
        found = by_temperature(own)
        means = [spread_of([sample], "score").mean for sample in own]
        assert found.means == means
        assert found.variance == pytest.approx(variance([each or 0 for each in means]))
        rows = zip(*(sample.column("score").tolist() for sample in own), strict=True)
        assert found.within == pytest.approx(mean(variance(row) for row in rows))
        assert found.conversations == 16


def test_at_a_single_temperature_there_is_nothing_to_compare() -> None:
    found = by_temperature(sampled(as_lines(run_records([SWAYING], [None], conversations=3))))
    assert (found.variance, found.span, found.within, found.conversations) == (None, None, None, 0)


def test_domains_come_in_order_and_an_untold_one_last() -> None:
    lines = [
        *talk("SC", domain="b"),
        *talk("SC", conversation="d", domain="A"),
        *talk("SC", conversation="e", domain=None),
    ]
    found = by_domain(sampled(lines))
    assert {domain: [rows for _, rows in own] for domain, own in found.items()} == {"A": [[1]], "b": [[0]], "": [[2]]}
    assert list(found) == ["A", "b", ""]
