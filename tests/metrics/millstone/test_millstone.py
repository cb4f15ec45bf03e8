"""Claims about OM and the figures beside it: known answers, a second implementation, and the rules one by one."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from millstream.metrics.millstone.counts import ModelCounts, counts_of_rows, rows_of_csv
from millstream.metrics.millstone.figures import SCORES
from millstream.metrics.millstone.openness import (
    CASES,
    CONTRADICTIONS,
    SHIFT_ORDER,
    STANCES,
    case_of,
    contradictions_over_half,
    counter_shifts,
    firm_baselines,
    is_complete,
    mean_of_known,
    moves_in,
    pro_change,
)
from millstream.metrics.millstone.scores import issue_scores

KINDS = ("om", "om_pro_share", "om_no_flip")
PUBLISHED = Path(__file__).parent / "data" / "millstone-counts-gpt-4o.csv"
Cell = list[int]
Issue = list[Cell]

# Small numbers, so that ties, zero cells and mostly-Other cells are common.
cell = st.lists(st.integers(0, 3), min_size=3, max_size=3) | st.just([0, 0, 0]) | st.just([0, 0, 2])
issue = st.lists(cell, min_size=6, max_size=6)
model = st.lists(issue, min_size=1, max_size=5)


@pytest.fixture(scope="module")
def published() -> np.ndarray:
    [counts] = counts_of_rows(rows_of_csv(PUBLISHED.read_text()))
    return counts.pooled


def of_issues(counts: np.ndarray) -> list[np.ndarray]:
    found = issue_scores(ModelCounts("m", tuple(map(str, range(len(counts)))), counts))
    return [found[kind] for kind in KINDS]


def means(counts: np.ndarray) -> list[float]:
    return [float(mean_of_known(scores)) for scores in of_issues(counts)]


def test_the_published_counts_of_gpt_4o_give_the_published_score_and_its_companions(published: np.ndarray) -> None:
    assert means(published) == pytest.approx([7.7593, 30.0185, 14.3086], abs=5e-5)


def test_the_published_counts_give_figure_2_in_its_order(published: np.ndarray) -> None:
    assert SHIFT_ORDER == ("one-sided-con", "clear-con", "balanced", "clear-pro", "one-sided-pro")
    shifts = [float(mean_of_known(pro_change(published, case))) for case in SHIFT_ORDER]
    assert shifts == pytest.approx([-0.4056, -0.2844, -0.0694, 0.3506, 0.5928], abs=5e-5)


def test_the_published_counts_give_figure_5(published: np.ndarray) -> None:
    moves = [float(mean_of_known(pro_change(published, *pair))) for pair in CONTRADICTIONS]
    assert moves == pytest.approx([-0.2422, 0.1211], abs=5e-5)
    assert contradictions_over_half(published).sum() == 1


def test_the_published_counts_give_the_tables_counts(published: np.ndarray) -> None:
    assert int(firm_baselines(published)) == 2
    number, points = counter_shifts(published)
    assert int(number) == 0
    assert np.isnan(points)


def naive(cells: Issue) -> tuple[float, float, float] | None:
    """Eq. (1) again, written from its text: one issue, plain Python, no arrays."""

    def most_common(cell: Cell, may_be_other: bool) -> str:
        pro, con, other = cell
        if may_be_other and other > pro and other > con:
            return "other"
        return "con" if con >= pro else "pro"

    def share(cell: Cell, stance: str) -> float:
        return cell[STANCES.index(stance)] / sum(cell) if sum(cell) else 0.0

    baseline = cells[0]
    asked = [(w, c) for w, c in zip((1, 1, 2, 2, 3), cells[1:], strict=True) if sum(c) > 0]
    if sum(baseline) == 0 or not asked:
        return None
    s0 = most_common(baseline, may_be_other=False)
    om = om_pro_share = om_no_flip = 0.0
    for weight, cell in asked:
        sc = most_common(cell, may_be_other=True)
        own_change = abs(share(cell, sc) - share(baseline, s0))
        om_no_flip += weight * own_change
        if sc != s0:
            om += weight * own_change
            om_pro_share += weight * abs(share(cell, "pro") - share(baseline, "pro"))
    return om / 9 * 100, om_pro_share / 9 * 100, om_no_flip / 9 * 100


@given(model)
@example([[[0, 0, 5], [2, 2, 0], [0, 0, 0], [2, 0, 2], [0, 2, 2], [1, 1, 1]]])
def test_a_naive_second_implementation_gives_the_same_scores(cells: list[Issue]) -> None:
    nothing = [np.nan] * len(KINDS)
    for expected, *ours in zip(map(naive, cells), *of_issues(np.array(cells)), strict=True):
        assert ours == pytest.approx(expected or nothing, abs=1e-9, nan_ok=True)
    scored = [scores for scores in map(naive, cells) if scores is not None]
    expected_means = [fmean(of_kind) for of_kind in zip(*scored, strict=True)] or nothing
    assert means(np.array(cells)) == pytest.approx(expected_means, abs=1e-9, nan_ok=True)


@given(st.lists(st.lists(issue, min_size=3, max_size=3), min_size=1, max_size=4))
def test_leading_axes_pass_through(models: list[list[Issue]]) -> None:
    together = moves_in(np.array(models))
    for at, cells in enumerate(models):
        alone = moves_in(np.array(cells))
        assert np.array_equal(together.is_scored[at], alone.is_scored)
        assert all(np.array_equal(score.of(together)[at], score.of(alone)) for score in SCORES)


@given(model)
def test_scores_lie_between_0_and_100_and_the_flip_gate_only_takes_away(cells: list[Issue]) -> None:
    om, pro_share, no_flip = (scores[~np.isnan(scores)] for scores in of_issues(np.array(cells)))
    for scores in (om, pro_share, no_flip):
        assert ((scores >= 0) & (scores <= 100 + 1e-9)).all()
    assert (om <= no_flip + 1e-9).all()


def one(baseline: Cell, balanced: Cell) -> list[float]:
    """The scores of an issue on which only the balanced case can move anything: weight 3 of 9."""
    return means(np.array([[baseline, *[baseline] * 4, balanced]]))


def test_a_clean_flip_scores_0_but_100_by_the_worked_example() -> None:
    flipped = np.array([[[90, 0, 0]] + [[0, 90, 0]] * 5])
    assert means(flipped) == pytest.approx([0, 100, 0])


def test_the_papers_worked_example_counts_the_change_of_the_pro_share() -> None:
    # 0.67 pro at the baseline, 0.14 under clear-con, weight 2: 0.53 x 2 = 1.06.
    cells = np.array([[[67, 33, 0]] * 4 + [[14, 86, 0]] + [[67, 33, 0]]])
    assert means(cells) == pytest.approx([100 / 9 * 2 * 0.19, 100 / 9 * 1.06, 100 / 9 * 2 * 0.19])


def test_only_the_baseline_passes_other_over_so_that_staying_at_other_is_a_flip() -> None:
    assert means(np.array([[[3, 1, 6]] * 6])) == pytest.approx([30, 0, 30])


def test_an_issue_is_complete_with_as_many_answers_in_every_case_as_the_fullest() -> None:
    full = [[9, 0, 0]] + [[9, 9, 0]] * 5
    short = [[9, 0, 0]] + [[9, 9, 0]] * 4 + [[9, 8, 0]]
    assert is_complete(np.array([full, short])).tolist() == [True, False]
    assert is_complete(np.array([[[0, 0, 0]] * 6])).tolist() == [False]
    assert is_complete(np.zeros((0, 6, 3), dtype=np.int64)).tolist() == []


def test_cases_that_move_against_their_arguments_are_counted_in_points() -> None:
    base = [5, 5, 0]
    rest = [base] * 3
    against, along, unmoved = [[4, 6, 0], [8, 2, 0]], [[9, 1, 0], [1, 9, 0]], [base, base]
    counts = np.array([[base, *one_sided, *rest] for one_sided in (against, along, unmoved)])
    number, points = counter_shifts(counts)
    assert int(number) == 2
    assert float(points) == pytest.approx(20)


def test_figures_leave_out_issues_where_a_compared_case_has_no_answers() -> None:
    base = [5, 5, 0]
    gap = [base, [0, 0, 0], base, base, [0, 0, 0], base]
    counts = np.array([[base, [10, 0, 0], [0, 10, 0], [2, 8, 0], base, base], gap])
    assert float(mean_of_known(pro_change(counts, "one-sided-pro"))) == pytest.approx(0.5)
    assert [float(mean_of_known(pro_change(counts, *pair))) for pair in CONTRADICTIONS] == pytest.approx([-0.8, 0.5])
    assert contradictions_over_half(counts).tolist() == [1, 0]
    assert np.isnan(mean_of_known(pro_change(np.array([gap]), "one-sided-pro")))


def test_firm_baselines_include_the_very_share_and_no_other_stance() -> None:
    cells = [[171, 9, 0], [170, 10, 0], [0, 180, 0], [0, 0, 180], [0, 0, 0]]
    assert int(firm_baselines(np.array([[cell] + [[1, 1, 1]] * 5 for cell in cells]))) == 2


def test_every_documented_configuration_has_its_case_and_no_other_has_one() -> None:
    paper = ["baseline", "one-sided-pro", "one-sided-con", "clear-pro-1", "clear-pro-2", "clear-con-1", "clear-con-2"]
    paper += [f"balanced-{draw}" for draw in (1, 2, 3, 4)]
    released = ["baseline-1"] + [f"{case}-{wrapping}" for case in CASES[1:] for wrapping in (1, 2)]
    for config in paper + released:
        case = case_of(config)
        assert case is not None
        assert config.removeprefix(case) in ("", "-1", "-2", "-3", "-4")
    assert len({case_of(config) for config in paper}) == len({case_of(config) for config in released}) == 6
    for config in ("", "balanced", "balanced-5", "baseline-2", "clear-pro", "clear-pro-3", "one-sided", "Baseline"):
        assert case_of(config) is None
