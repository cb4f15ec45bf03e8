"""The report's section on judges: its tables by hand, and what it says where there is nothing to show."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from panels import graded, panel

from millstream.bench.evaluation.door.judging import JudgeScore
from millstream.bench.evaluation.page.readers import with_panels
from millstream.bench.evaluation.reading.judging.panel import Panel
from millstream.engine.pairs import Pair
from millstream.report.sections import PageContents, Section
from millstream.report.table import Table

PART = PageContents(sections=(Section("first", "First", ""), Section("last", "Last", "")))


def told(*panels: Panel) -> PageContents:
    names = [""] if len(panels) == 1 else [f"run-{number}" for number in range(len(panels))]
    return with_panels(PART, "b", dict(zip(names, panels, strict=True)))


def tables(contents: PageContents) -> dict[str, Table]:
    return {table.name: table for table in contents.tables}


def test_a_part_without_judgements_stays_as_it_is() -> None:
    assert with_panels(PART, "b", {}) is PART


def test_four_tables_stand_in_a_section_before_the_last() -> None:
    contents = told(panel("aaa", "aab", "ab-", "b--", "a?b", "bbb"))
    assert [section.name for section in contents.sections] == ["first", "b-judges", "last"]
    assert list(tables(contents)) == ["b-judges-agreement", "b-judges-pairs", "b-judges-bias", "b-judges-scores"]
    body = contents.sections[1].body
    assert "The run’s own judge is own. The same answers were judged anew by two, three." in body
    assert "two: 1 of its 5 replies (20.0%) were unreadable and count as no verdict." in body


def test_agreement_and_pairs_and_bias_are_those_of_the_panel() -> None:
    found = tables(told(panel("aaa", "aab", "ab-", "b--", "a?b", "bbb")))
    (row,) = found["b-judges-agreement"].records()
    # Compared are aaa, aab, ab-, a?b and bbb. Within: 0, (9-5)/2 = 2, 2, 2, 0: 6. Of their 13 verdicts 7 are a and 6
    # are b: (169 - 49 - 36) / 12 = 7; alpha = 1 - 6/7.
    assert (row["answers"], row["compared"], row["by_all"], row["majority"], row["ties"]) == (6, 5, 3, 3, 2)
    assert row["alpha"] == pytest.approx(1 / 7) and row["note"] is None
    first = next(found["b-judges-pairs"].records())
    # own and two: aa, aa, ab, bb: 3 of 4; by chance 3/4 x 2/4 + 1/4 x 2/4 = 1/2; kappa = (3/4 - 1/2) / (1/2).
    assert (first["first"], first["second"], first["answers"]) == ("own", "two", 4)
    assert (first["share"], first["kappa"]) == (0.75, 0.5)
    biases = {(row["judge"], row["label"]): row for row in found["b-judges-bias"].records()}
    # aaa, aab and bbb have all verdicts: shares of a are 2/3, 2/3 and 1/3; of three: 1/3 - 2/3, in points.
    assert biases["three", "a"]["answers"] == 3
    assert biases["three", "a"]["bias"] == pytest.approx(-100 / 3)
    assert biases["own", "a"]["bias"] == pytest.approx(100 * (2 / 3 - 1 / 2))


def test_scores_stand_side_by_side_with_the_answers_that_all_judges_judged() -> None:
    rows = list(tables(told(panel("aaa", "aab", "ab-")))["b-judges-scores"].records())
    assert [row["judge"] for row in rows] == ["own", "two", "three", "majority"]
    score = {"value": 0.5, "low": 0.25, "high": 0.75, "scored": 4, "answers": 2}
    assert all({name: row[name] for name in score} == score for row in rows)


def test_a_score_that_one_judge_lacks_is_missing_and_no_nought() -> None:
    made = panel("aaa")
    rubbish = {Pair("lab/m", None): {"score": JudgeScore(None, None, None, 0)}}
    rows = tables(told(replace(made, scores={**made.scores, "two": rubbish, "three": {}})))["b-judges-scores"].records()
    values = {row["judge"]: (row["value"], row["scored"]) for row in rows}
    assert values == {"own": (0.5, 4), "two": (None, 0), "three": (None, None), "majority": (0.5, 4)}


def test_grades_have_columns_of_their_own() -> None:
    found = tables(told(graded((1, 2, 3), (5, 5, 4), (2, None, 3))))
    (row,) = found["b-judges-agreement"].records()
    assert (row["majority"], row["ties"]) == (None, None)
    differences = [row["difference"] for row in found["b-judges-pairs"].records()]
    # own less two over two answers: (-1 + 0) / 2; own less three: (-2 + 1 - 1) / 3; two less three: (-1 + 1) / 2.
    assert differences == pytest.approx([-0.5, -2 / 3, 0])
    own = next(found["b-judges-bias"].records())
    # Over the two answers with all grades: own 3, two 3.5 and three 3.5.
    assert (own["grade"], own["others_grade"], own["grade_bias"]) == (3, 3.5, -0.5)
    assert "share" not in own and own["label"] is None


def test_runs_of_labels_and_of_grades_share_the_tables() -> None:
    contents = told(panel("aaa", "abb"), graded((1, 2, 3)))
    rows = list(tables(contents)["b-judges-pairs"].records())
    assert [(row["run"], row["share"] is None, row["difference"] is None) for row in rows] == [
        *[("run-0", False, True)] * 3,
        *[("run-1", True, False)] * 3,
    ]
    assert "run-0: The run’s own judge is own." in contents.sections[1].body


def test_nothing_to_compare_is_said_and_has_no_tables() -> None:
    alone = told(panel("a", "b", judges=("own",)))
    assert not alone.tables and "No judge but the run’s own, own, has judged these answers" in alone.sections[1].body


def test_tables_without_rows_are_written_over_older_ones() -> None:
    contents = told(panel("aa-", "ab-", "-bb"))
    assert tables(contents)["b-judges-bias"].rows == tables(contents)["b-judges-scores"].rows == ()
    body = contents.sections[1].body
    assert "No answer has a verdict of every judge" in body and "No answer was judged by all judges" in body


def test_an_undefined_alpha_is_missing_with_its_reason() -> None:
    (row,) = tables(told(panel("aaa", "aa-")))["b-judges-agreement"].records()
    assert row["alpha"] is None and "all judgements are the same" in str(row["note"])
