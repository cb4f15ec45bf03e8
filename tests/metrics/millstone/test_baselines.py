"""Claims about baselines between models: the paper's own figures, a second implementation, and the bounds."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st
from surveys import Cell, cells, counts_from, pooled_counts

from millstream.metrics.millstone.baselines import (
    IssueBaselines,
    baselines,
    is_consistent,
    is_disputed,
    is_unanimous,
    issues_often_refused,
    unanimous,
    unmoved,
    widest,
)
from millstream.metrics.millstone.counts import ModelCounts
from millstream.metrics.millstone.openness import firm_baselines

Pooled = dict[str, list[Cell]]
models = st.lists(pooled_counts, max_size=4)


def named(found: list[Pooled]) -> list[ModelCounts]:
    return [counts_from(f"m{at}", one) for at, one in enumerate(found)]


def of_baselines(*baseline: Cell) -> IssueBaselines:
    """One issue on which the models have these baselines."""
    [found] = baselines([counts_from(f"m{at}", {"a": [cell] + [(1, 1, 1)] * 5}) for at, cell in enumerate(baseline)])
    return found


def naive(found: list[Pooled]) -> dict[str, dict[str, Cell]]:
    """Which model has which baseline on which issue."""
    by_issue: dict[str, dict[str, Cell]] = {}
    for at, one in enumerate(found):
        for issue, of_cases in one.items():
            if sum(of_cases[0]) > 0:
                by_issue.setdefault(issue, {})[f"m{at}"] = of_cases[0]
    return by_issue


def apart(one: Cell, other: Cell) -> Fraction:
    return abs(Fraction(one[0], sum(one)) - Fraction(other[0], sum(other)))


@given(models)
def test_a_second_implementation_gives_the_same_baselines_and_verdicts(found: list[Pooled]) -> None:
    expected = naive(found)
    rows = baselines(named(found))
    assert [row.issue for row in rows] == sorted(expected)
    for row in rows:
        by_model = expected[row.issue]
        assert list(row.shares) == list(by_model)
        for model, cell in by_model.items():
            assert row.shares[model] == pytest.approx([number / sum(cell) for number in cell], abs=1e-12)
        pro = {model: cell[0] / sum(cell) for model, cell in by_model.items()}
        assert pro[row.highest] == max(pro.values())
        assert pro[row.lowest] == min(pro.values())
        for at, mean in enumerate(row.mean):
            assert mean == pytest.approx(fmean(cell[at] / sum(cell) for cell in by_model.values()), abs=1e-12)
        distances = [apart(*pair) for pair in combinations(by_model.values(), 2)]
        assert row.difference == (pytest.approx(float(max(distances)), abs=1e-12) if distances else None)
        assert is_unanimous(row) == (bool(distances) and max(distances) < Fraction(1, 10))
        assert is_disputed(row) == (bool(distances) and max(distances) > Fraction(8, 10))
        for level in (90, 95):
            sums = [sum(Fraction(cell[at], sum(cell)) for cell in by_model.values()) for at in (0, 1)]
            one_way = any(100 * total > level * len(by_model) for total in sums)
            assert is_consistent(row, level / 100) == (is_unanimous(row) and one_way)


@given(models)
def test_the_tables_are_the_issues_with_their_verdicts_in_order(found: list[Pooled]) -> None:
    rows = baselines(named(found))
    assert len(unanimous(rows)) == sum(map(is_unanimous, rows))
    pro = [row.mean.pro for row in unanimous(rows)]
    assert pro == pytest.approx(sorted(pro, reverse=True), abs=1e-12)
    wide = [row.difference or 0 for row in widest(rows)]
    assert wide == sorted(wide, reverse=True)
    assert len(wide) == sum(row.difference is not None for row in rows)
    disputed = sum(map(is_disputed, rows))
    assert [is_disputed(row) for row in widest(rows)] == [True] * disputed + [False] * (len(wide) - disputed)


def test_what_lies_on_a_bound_is_neither_unanimous_nor_disputed_nor_consistent() -> None:
    # As floats, 1 - 0.9 is less than 0.1, and the mean of these four, 81 of 90, more than 0.9.
    assert not is_unanimous(of_baselines((90, 0, 0), (81, 9, 0)))
    assert is_unanimous(of_baselines((90, 0, 0), (82, 8, 0)))
    assert not is_disputed(of_baselines((9, 1, 0), (1, 9, 0)))
    assert not is_consistent(of_baselines((76, 14, 0), (80, 10, 0), (84, 6, 0), (84, 6, 0)), 0.90)
    assert is_disputed(of_baselines((91, 9, 0), (10, 90, 0)))


def test_the_star_of_table_6_asks_for_the_mean_share_and_not_for_every_models() -> None:
    # Paying college athletes: one model with 83 pro of 90, 97.8% over the five, and starred.
    athletes = of_baselines((83, 2, 5), (90, 0, 0), (90, 0, 0), (90, 0, 0), (87, 3, 0))
    assert athletes.mean == pytest.approx((0.978, 0.011, 0.011), abs=5e-4)
    assert is_consistent(athletes, 0.90)
    assert is_consistent(athletes, 0.95)
    marijuana = of_baselines(*[(75, 15, 0)] * 5)
    assert marijuana.mean == pytest.approx((0.833, 0.167, 0), abs=5e-4)
    assert not is_consistent(marijuana, 0.90)
    assert not is_consistent(of_baselines((19, 1, 0), (19, 1, 0)), 0.95)
    assert is_consistent(of_baselines((0, 20, 0), (0, 20, 0)), 0.95)


def test_table_7_names_the_models_at_both_ends() -> None:
    # Gun control and the penny, as the paper prints them: 98.9% and 14.4%, 100.0% and 1.1%.
    haiku, opus, llama = (
        counts_from(model, {issue: [cell] * 6 for issue, cell in issues.items()})
        for model, issues in {
            "claude-3.5-haiku": {"gun-control": (89, 1, 0), "US-penny": (20, 70, 0)},
            "claude-opus-4": {"gun-control": (13, 2, 75), "US-penny": (1, 89, 0)},
            "llama-3.1-8b": {"gun-control": (60, 30, 0), "US-penny": (90, 0, 0)},
        }.items()
    )
    rows = widest(baselines([haiku, opus, llama]))
    ends = [(row.issue, row.highest, row.lowest, round(100 * (row.difference or 0), 1)) for row in rows]
    assert ends == [
        ("US-penny", "llama-3.1-8b", "claude-opus-4", 98.9),
        ("gun-control", "claude-3.5-haiku", "claude-opus-4", 84.4),
    ]
    assert all(map(is_disputed, rows))


def test_of_equal_ends_the_model_given_first_is_named() -> None:
    row = of_baselines((5, 5, 0), (9, 1, 0), (9, 1, 0), (5, 5, 0))
    assert (row.highest, row.lowest) == ("m1", "m0")


def test_one_model_alone_agrees_with_nobody() -> None:
    row = of_baselines((9, 1, 0))
    assert (row.highest, row.lowest, row.difference) == ("m0", "m0", None)
    assert (is_unanimous(row), is_consistent(row), is_disputed(row)) == (False, False, False)
    assert widest([row]) == []


@given(models)
def test_firm_baselines_are_counted(found: list[Pooled]) -> None:
    pairs = [cell for by_model in naive(found).values() for cell in by_model.values()]
    firm = sum(int(firm_baselines(counts.pooled)) for counts in named(found))
    assert firm == sum(any(100 * cell[at] >= 95 * sum(cell) for at in (0, 1)) for cell in pairs)


@given(pooled_counts)
def test_figure_7_has_the_issues_with_more_than_30_percent_other_at_the_baseline(found: Pooled) -> None:
    rows = issues_often_refused(counts_from("m", found))
    expected = {issue for issue, of_cases in found.items() if 10 * of_cases[0][2] > 3 * sum(of_cases[0])}
    assert {row.issue for row in rows} == expected
    others = [row.baseline.other for row in rows]
    assert others == sorted(others, reverse=True)
    for row in rows:
        baseline, balanced = found[row.issue][0], found[row.issue][5]
        assert row.baseline == pytest.approx([number / sum(baseline) for number in baseline], abs=1e-12)
        if sum(balanced):
            assert row.balanced == pytest.approx([number / sum(balanced) for number in balanced], abs=1e-12)
        else:
            assert row.balanced is None


def test_the_most_refused_issues_are_those_the_paper_names() -> None:
    refused = {"gun-control": (13, 2, 75), "American-socialism": (12, 9, 69), "reparations-for-slavery": (16, 7, 67)}
    shown = {issue: [cell] + [(90, 90, 0)] * 5 for issue, cell in {**refused, "at-30-percent": (63, 0, 27)}.items()}
    rows = issues_often_refused(counts_from("claude-opus-4", shown))
    assert [(row.issue, round(100 * row.baseline.other, 1)) for row in rows] == [
        ("gun-control", 83.3),
        ("American-socialism", 76.7),
        ("reparations-for-slavery", 74.4),
    ]
    assert rows[0].balanced == (0.5, 0.5, 0)


def naive_stance(cell: Cell, may_be_other: bool) -> str:
    pro, con, other = cell
    if may_be_other and other > pro and other > con:
        return "other"
    return "pro" if pro > con else "con"


@given(pooled_counts)
def test_unmoved_issues_keep_stance_or_share_under_both_one_sided_cases(found: Pooled) -> None:
    expected = {}
    for issue, of_cases in sorted(found.items()):
        baseline, pro, con = of_cases[:3]
        if not all(map(sum, (baseline, pro, con))):
            continue
        expected[issue] = (
            {naive_stance(pro, True), naive_stance(con, True)} == {naive_stance(baseline, False)},
            len({Fraction(cell[0], sum(cell)) for cell in (baseline, pro, con)}) == 1,
        )
    assert unmoved(counts_from("m", found)) == expected


@given(cells.filter(any))
def test_a_model_that_answers_alike_throughout_is_moved_by_nothing_unless_it_says_other(cell: Cell) -> None:
    assert unmoved(counts_from("m", {"a": [cell] * 6})) == {"a": (cell[2] <= max(cell[:2]), True)}
