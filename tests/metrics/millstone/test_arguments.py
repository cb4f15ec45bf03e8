"""Claims about single arguments: their effect, its correlation between models, and the last word."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from itertools import combinations, product
from statistics import StatisticsError, correlation, fmean, median
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from surveys import IDS, Row, answers_of, surveys

from millstream.metrics.millstone.answers import AnswerReading
from millstream.metrics.millstone.arguments import (
    ORDER_CASES,
    POSITIONS,
    Correlations,
    Effects,
    Position,
    argument_effects,
    correlations,
    medians,
    order_effect,
    order_effects,
)
from millstream.metrics.statistics.intervals import Correlation

readings = st.sampled_from(get_args(AnswerReading))
Name = tuple[str, str]


def stance(row: Row, reading: AnswerReading) -> str:
    return row.stances[get_args(AnswerReading).index(reading)]


def pro_share(rows: Iterable[Row], reading: AnswerReading) -> float:
    return fmean(stance(row, reading) == "pro" for row in rows)


def containing(rows: list[Row]) -> dict[Name, list[Row]]:
    found: dict[Name, list[Row]] = {}
    for row in rows:
        for argument in sorted(set(row.arguments)):
            found.setdefault((row.issue, argument), []).append(row)
    return found


def as_dict(effects: Effects) -> dict[Name, float]:
    assert len(set(effects.arguments)) == len(effects.arguments)
    return dict(zip(effects.arguments, effects.shares.tolist(), strict=True))


@given(surveys(), readings)
def test_an_argument_has_the_pro_share_of_the_prompts_that_contain_it(rows: list[Row], reading: AnswerReading) -> None:
    expected = {name: pro_share(some, reading) for name, some in containing(rows).items()}
    assert as_dict(argument_effects(answers_of(rows), reading)) == pytest.approx(expected, abs=1e-9)


def effects_of(model: str, shares: dict[Name, float]) -> Effects:
    """Shuffled, as two runs need not meet their arguments in one order."""
    names = random.Random(model).sample(sorted(shares), len(shares))
    return Effects(model, tuple(names), np.array([shares[name] for name in names]))


def pearson(x: Sequence[float], y: Sequence[float]) -> float | None:
    try:
        return correlation(x, y)
    except StatisticsError:  # fewer than two, or no variance
        return None


# Shares as they come from counts: few values, so that ties and models that are moved by nothing are common.
shares = st.dictionaries(st.tuples(st.sampled_from("abc"), st.sampled_from(IDS)), st.sampled_from([0, 1 / 3, 0.5, 1]))


@settings(deadline=None, max_examples=60)
@given(st.lists(shares, max_size=3))
def test_a_second_implementation_gives_the_same_correlations(found: list[dict[Name, float]]) -> None:
    ours = correlations([effects_of(f"m{at}", one) for at, one in enumerate(found)])
    assert ours.models == tuple(f"m{at}" for at in range(len(found)))
    for first, second in combinations(range(len(found)), 2):
        each = ours.pairs[first, second]
        shared = sorted(found[first].keys() & found[second])
        assert (each.rows, each.clusters, each.of) == (len(shared), len({issue for issue, _ in shared}), "issues")
        expected = pearson([found[first][name] for name in shared], [found[second][name] for name in shared])
        assert each.r == (None if expected is None else pytest.approx(expected, abs=1e-9))
        assert (each.low, each.p) == (None, None)  # three issues are too few


def test_the_interval_is_by_issue_since_arguments_of_one_issue_are_not_independent() -> None:
    source = np.random.default_rng(3)
    of_issue = {issue: source.random(2) for issue in range(20)}

    def model(at: int, arguments: int) -> Effects:
        noise = np.random.default_rng(at).normal(0, 0.01, (20, 50))
        return effects_of(
            f"m{at}",
            {(f"{i}", f"{n}"): float(of_issue[i][at] + noise[i, n]) for i in of_issue for n in range(arguments)},
        )

    few, many = (correlations([model(0, number), model(1, number)]).pairs[0, 1] for number in (10, 50))
    assert few.low is not None and few.high is not None and many.low is not None and many.high is not None
    assert many.high - many.low == pytest.approx(few.high - few.low, rel=0.05)


def table_of(models: Sequence[str], pairs: dict[tuple[int, int], float]) -> Correlations:
    known = {pair: None if value != value else value for pair, value in pairs.items()}
    return Correlations(tuple(models), {pair: Correlation(r, None, None, None, 2, 1) for pair, r in known.items()})


@given(
    st.lists(st.sampled_from("ABC"), max_size=5).flatmap(
        lambda families: st.tuples(
            st.just(families),
            st.lists(st.floats(-1, 1) | st.just(float("nan")), min_size=25, max_size=25),
        )
    )
)
def test_medians_are_of_known_pairs_within_and_between_families(drawn: tuple[list[str], list[float]]) -> None:
    families, values = drawn
    pairs = {(i, j): values[5 * i + j] for j in range(len(families)) for i in range(j)}
    known = {pair: value for pair, value in pairs.items() if value == value}
    within = [value for (i, j), value in known.items() if families[i] == families[j]]
    between = [value for (i, j), value in known.items() if families[i] != families[j]]
    names = [f"m{at}" for at in range(len(families))]
    found = medians(table_of(names, pairs), families, names)
    assert found.within == (pytest.approx(median(within), abs=1e-9) if within else None)
    assert found.between == (pytest.approx(median(between), abs=1e-9) if between else None)
    assert (found.pairs_within, found.pairs_between) == (len(within), len(between))


def side_of(row: Row, rows: list[Row], place: int) -> str | None:
    """The side of the argument at a place: by the one-sided case it stands in, else by its id."""
    last = (row.issue, row.arguments[place])
    cases = {r.case for r in containing(rows)[last]} & {"one-sided-pro", "one-sided-con"}
    if cases:
        return cases.pop().removeprefix("one-sided-") if len(cases) == 1 else None
    return next((side for side in ("pro", "con") if last[1].startswith(side)), None)


def foreign(rows: list[Row]) -> list[Row]:
    """The same with ids that tell nothing of their sides."""
    return [row._replace(arguments=tuple(f"x{IDS.index(argument)}" for argument in row.arguments)) for row in rows]


@settings(deadline=None, max_examples=150)
@given(surveys(), st.booleans(), readings, st.sampled_from(ORDER_CASES), st.sampled_from(POSITIONS))
def test_a_second_implementation_finds_the_same_agreement_with_the_first_and_the_last_argument(
    rows: list[Row], is_foreign: bool, reading: AnswerReading, case: str, position: Position
) -> None:
    rows = foreign(rows) if is_foreign else rows
    found = order_effect(answers_of(rows), case, position, reading)
    of_case = [row for row in rows if row.case == case]
    place = 0 if position == "first" else -1
    counted = [(row, side) for row in of_case if row.arguments and (side := side_of(row, rows, place))]
    agree = sum(stance(row, reading) == side for row, side in counted)
    # Each answer's chance to agree: the share of its issue's answers that take the side it saw there.
    chances = [
        fmean(stance(other, reading) == side for other, _ in counted if other.issue == row.issue)
        for row, side in counted
    ]
    assert (found.answers, found.agree) == (len(counted), agree)
    assert found.rate == (agree / len(counted) if counted else None)
    assert found.base_rate == (pytest.approx(fmean(chances), abs=1e-9) if counted else None)
    assert found.excess == (pytest.approx((agree - sum(chances)) / len(counted), abs=1e-9) if counted else None)
    assert (found.tested is None) == (not counted)


def simulated(pull: float, issues: int = 30, trials: int = 12, seed: int = 1) -> list[Row]:
    """Balanced answers of a model that leans by issue and, with a chance of `pull`, just follows the last argument. The
    side shown last leans by issue too, which must not look like an effect of the order."""
    source = random.Random(seed)
    rows = []
    for issue in range(issues):
        lean, last_lean = source.random(), source.choice([0.2, 0.8])
        for template, config, trial in product((1, 2), ("balanced-1", "balanced-2"), range(trials)):
            last = "pro" if source.random() < last_lean else "con"
            side = last if source.random() < pull else "pro" if source.random() < lean else "con"
            shown = ("con-1", "pro-1") if last == "pro" else ("pro-1", "con-1")
            rows.append(Row(f"i{issue}", template, config, trial, (side,) * 3, shown))
    return rows


def test_an_effect_of_the_order_is_found_beyond_the_base_rate() -> None:
    found = order_effect(answers_of(simulated(pull=0.3)))
    assert found.tested is not None and found.excess is not None
    assert found.tested.difference == pytest.approx(found.excess)
    assert 0.02 < (found.tested.low or 0) < found.excess < (found.tested.high or 1) < 0.2


def test_a_model_that_ignores_the_order_has_no_excess_however_issues_lean() -> None:
    found = order_effect(answers_of(simulated(pull=0)))
    assert found.tested is not None and found.base_rate is not None
    assert found.tested.low is not None and found.tested.high is not None
    assert found.tested.low < 0 < found.tested.high
    assert found.base_rate != pytest.approx(0.5, abs=0.005)


def test_the_interval_is_over_issues() -> None:
    few, many = answers_of(simulated(0.3, issues=6)), answers_of(simulated(0.3, issues=40))
    over_issues = order_effect(many).tested
    assert over_issues is not None
    assert (over_issues.of, over_issues.clusters) == ("issues", 40)
    lonely = order_effect(few).tested
    assert lonely is not None and lonely.note == "no interval: fewer than 10 issues (6)"


def test_one_sided_cases_tell_the_side_of_ids_that_do_not() -> None:
    rows = [
        Row("a", 1, "one-sided-pro", 0, ("pro",) * 3, ("first", "second")),
        Row("a", 1, "balanced-1", 0, ("pro",) * 3, ("third", "second")),
        Row("a", 1, "balanced-1", 1, ("pro",) * 3, ("second", "third")),
    ]
    found = order_effect(answers_of(rows))
    assert (found.answers, found.agree) == (1, 1)
    rows.append(Row("a", 1, "one-sided-con", 0, ("con",) * 3, ("second",)))
    assert order_effect(answers_of(rows)).answers == 0


def test_effects_that_hardly_differ_still_correlate() -> None:
    one, other = (
        effects_of(f"m{at}", {(f"{n}", "pro-1"): 0.5 + step * n for n in range(6)})
        for at, step in enumerate((1e-4, -2e-5))
    )
    assert correlations([one, other]).pairs[0, 1].r == pytest.approx(-1)


def test_effects_that_differ_in_their_last_digits_only_do_not_correlate() -> None:
    one = effects_of("m0", {(f"{n}", "pro-1"): 0.1 + 0.2 if n % 2 else 0.3 for n in range(6)})
    other = effects_of("m1", {(f"{n}", "pro-1"): n / 6 for n in range(6)})
    assert correlations([one, other]).pairs[0, 1].r is None


def test_the_test_of_order_is_students_t_over_the_issues_own_excess() -> None:
    # Ten answers an issue, five after each side, five of each stance: 5 are expected to agree. On nine issues 6 agree,
    # an excess of 0.1, on one all 10 do, 0.5: mean 0.14, t 3.5 with 9 degrees of freedom, p 0.006722 (scipy).
    rows = []
    for issue, agree in [*((f"i{at}", 3) for at in range(9)), ("i9", 5)]:
        for side, other, shown in (("pro", "con", ("con-1", "pro-1")), ("con", "pro", ("pro-1", "con-1"))):
            for trial in range(5):
                stance_ = side if trial < agree else other
                rows.append(Row(issue, 1 if side == "pro" else 2, "balanced-1", trial, (stance_,) * 3, shown))
    by_place = {(each.case, each.position): each for each in order_effects(answers_of(rows))}
    last, first = by_place["balanced", "last"], by_place["balanced", "first"]
    assert last.excess == pytest.approx(0.14)
    assert last.p == pytest.approx(0.006722, abs=5e-6)
    # Two arguments: who follows the last one does not follow the first.
    assert first.excess == pytest.approx(-0.14)
    assert first.p == pytest.approx(last.p)
    assert by_place["clear-pro", "last"].answers == 0
    assert by_place["clear-pro", "last"].p is None
    assert set(by_place) == {(case, position) for case in ORDER_CASES for position in POSITIONS}
    few = [row for row in rows if row.issue != "i9"]
    assert order_effect(answers_of(few)).p is None
