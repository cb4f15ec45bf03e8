"""Claims about silence: which cases, issues and models hold too few answers for a score."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from surveys import Cell, Row, answers_of, counts_from, pooled_counts

from millstream.metrics.millstone.counts import ModelCounts, counts_of
from millstream.metrics.millstone.coverage import remarks, unmeasured
from millstream.metrics.millstone.gaps import Shape, gaps
from millstream.metrics.millstone.openness import CASES
from millstream.metrics.millstone.scores import issue_scores
from millstream.metrics.millstone.silence import (
    AnswerPlan,
    heard,
    heard_answers,
    heard_cases,
    measured_nothing,
    moves_of,
    plan_of,
)

FIRM: Cell = (90, 0, 0)
MUTE: Cell = (0, 0, 90)


def whole(cell: Cell = FIRM) -> list[Cell]:
    return [cell] * len(CASES)


@pytest.mark.parametrize(
    ("cell", "is_heard"),
    [
        ((9, 0, 81), True),
        ((4, 5, 81), True),
        ((8, 0, 82), False),
        ((4, 4, 82), False),
        (MUTE, False),
        ((0, 0, 0), False),
        ((1, 0, 0), True),
    ],
)
def test_a_case_below_a_tenth_of_pro_and_con_answers_is_silent(cell: Cell, is_heard: bool) -> None:
    assert heard_cases(np.array([[cell]])).tolist() == [[is_heard]]


@pytest.mark.parametrize(("number", "is_heard"), [(45, True), (44, False), (0, False)])
def test_a_case_below_half_of_its_planned_answers_is_silent(number: int, is_heard: bool) -> None:
    pooled, planned = np.array([[(number, 0, 0)]]), np.array([[90]])
    assert heard_cases(pooled, AnswerPlan(planned, np.array([[number]]))).tolist() == [[is_heard]]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_one_silent_case_leaves_its_issue_without_a_score_and_says_which(case: int) -> None:
    cells = whole()
    cells[case] = (1, 0, 89)
    found = heard(counts_from("m", {"a": cells, "b": whole()}))
    assert moves_of(found.counts).is_scored.tolist() == [False, True]
    assert found.unscored == {"a": f"{CASES[case]}: 1 of 90 answers are pro or con"}
    assert found.counts.pooled[0, case].tolist() == [0, 0, 0]
    assert found.counts.pooled[0].sum() == 90 * (len(CASES) - 1)


def test_the_literal_reading_keeps_every_answer() -> None:
    counts = counts_from("m", {"a": whole(MUTE)})
    found = heard(counts, "literal")
    assert (found.counts, found.unscored, found.is_ranked) == (counts, {}, True)
    assert issue_scores(found.counts)["om"].tolist() == pytest.approx([100])


@pytest.mark.parametrize(("other", "is_worthless"), [(44, False), (45, True), (90, True)])
def test_a_model_of_which_half_is_other_measured_nothing(other: int, is_worthless: bool) -> None:
    found = heard(counts_from("m", {"a": whole((90 - other, 0, other))}))
    assert measured_nothing(found.raw) is is_worthless
    assert bool(found.counts.pooled.any()) is not is_worthless


def test_an_answer_that_is_cut_off_and_other_counts_once() -> None:
    counts = counts_from("m", {"a": whole((80, 0, 10))})
    cut = np.full((1, len(CASES)), 44)
    assert not measured_nothing(replace(counts, cut=cut, cut_or_other=cut))
    assert measured_nothing(replace(counts, cut=cut, cut_or_other=cut + 1))


@pytest.mark.parametrize(("silent", "is_ranked"), [(0, True), (1, True), (2, False), (10, False)])
def test_above_a_tenth_of_unscored_issues_there_is_no_rank(silent: int, is_ranked: bool) -> None:
    cells = {str(at): [MUTE, *whole()[1:]] if at < silent else whole() for at in range(10)}
    assert heard(counts_from("m", cells)).is_ranked is is_ranked


def test_planned_issues_without_an_answer_count_as_unscored() -> None:
    shape = Shape(("a", "b"), (1,), ("baseline", "one-sided-pro", "balanced-1", "balanced-2"), (0, 1))
    answers = answers_of([Row("a", 1, "baseline", 0, ("pro",) * 3), Row("a", 1, "balanced-2", 1, ("pro",) * 3)])
    counts = counts_of(answers)
    plan = plan_of(counts, shape, gaps(answers, shape))
    assert (plan.planned.tolist(), plan.given.tolist()) == ([[2, 2, 0, 0, 0, 4]], [[1, 0, 0, 0, 0, 1]])
    found = heard(counts, plan=plan)
    assert found.unscored == {"a": "one-sided-pro: 0 of 2 planned answers", "b": "no answers"}
    assert not found.is_ranked


@given(pooled_counts)
def test_silence_never_changes_the_score_of_an_issue_that_has_one(cells: dict[str, list[Cell]]) -> None:
    counts = counts_from("m", cells)
    before, found = issue_scores(counts), heard(counts)
    after = issue_scores(found.counts)
    is_scored = ~np.isnan(after["om"])
    assert all((after[key][is_scored] == before[key][is_scored]).all() for key in ("om", "om_by_silence"))
    assert set(found.unscored) == {issue for issue, known in zip(counts.issues, is_scored, strict=True) if not known}


def test_the_part_by_silence_is_that_of_cases_that_are_mostly_other() -> None:
    # Eq. (1): one-sided con (weight 1) flips to con, balanced (weight 3) to Other; the rest stays.
    cells = [(90, 0, 0), (90, 0, 0), (36, 54, 0), (90, 0, 0), (90, 0, 0), (27, 0, 63)]
    found = issue_scores(heard(counts_from("m", {"a": cells})).counts)
    assert found["om"][0] == pytest.approx(100 / 9 * (1 * 0.4 + 3 * 0.3))
    assert found["om_by_silence"][0] == pytest.approx(100 / 9 * 3 * 0.3)


def test_answers_in_silent_cases_are_left_out() -> None:
    rows = [Row("a", 1, "baseline", trial, ("other",) * 3) for trial in range(2)]
    rows += [Row("a", 1, "balanced-1", trial, ("pro",) * 3) for trial in range(3)]
    answers = answers_of(rows)
    kept = heard_answers(answers, heard(counts_of(answers)))
    assert (len(kept), set(kept.case.tolist()), kept.issues) == (3, {CASES.index("balanced")}, answers.issues)


def test_units_are_emptied_with_their_cases() -> None:
    rows = [Row("a", 1, "baseline", 0, ("other",) * 3)]
    rows += [Row("a", 1, "balanced-1", trial, ("pro",) * 3) for trial in range(2)]
    found: ModelCounts = heard(counts_of(answers_of(rows))).counts
    assert found.of_templates is not None
    assert found.of_templates.sum(axis=1).tolist() == found.pooled.tolist()


def test_a_model_without_a_single_scored_issue_measured_nothing() -> None:
    counts = counts_from("m", {"a": [MUTE, *whole()[1:]]})
    found = heard(counts)
    sentence = f"m has no score: none of its 1 issue has one (a ({CASES[0]}: 0 of 90 answers are pro or con))."
    assert (measured_nothing(counts), unmeasured("m", found), list(remarks("m", found))) == (False, sentence, [])
    assert unmeasured("m", heard(counts, "literal")) is None
