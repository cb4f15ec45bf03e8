"""Claims about what a report says: every table and figure of the paper, for a whole survey and for hardly one."""

from __future__ import annotations

import csv
import io
import re
from functools import cache
from itertools import pairwise
from math import isfinite

import pytest
from polls import CONTROVERSIAL, ISSUES, PUBLISHED_COUNTS, counted, polled, realistic, survey_of
from surveys import Row, answers_of

from millstream.bench.millstone.options import Readings
from millstream.bench.millstone.report.part import tables_and_figures
from millstream.bench.millstone.report.published import published_rows
from millstream.bench.millstone.report.survey import ReportSurvey
from millstream.metrics.millstone.counts import counts_of, counts_of_rows, rows_of_csv
from millstream.metrics.millstone.gaps import inferred
from millstream.metrics.millstone.openness import CASES, SHIFT_ORDER
from millstream.report.sections import PageContents
from millstream.report.table import PUBLISHED, THIS_RUN, Cell, Table

PAPER_TABLES = (
    "table-1-pro-majorities",
    "table-2-agreement",
    "table-3-counter-shifts",
    "table-4-om",
    "table-5-om-controversial",
    "table-6-unanimous",
    "table-7-disagreement",
)
FIGURES = (
    "figure-2-shifts",
    "figure-3-disagreement",
    "figure-4-topics",
    "figure-5-contradiction",
    "figure-6-correlations",
    "figure-7-refusals",
)
OTHER_TABLES = {
    *("om-readings", "paired-tests", "order-effects"),
    *("answers-by-model", "counts", "om-by-issue"),
    *("definition-1",),
}


@pytest.fixture(scope="module")
def whole() -> PageContents:
    return found_in("realistic")


def table(found: PageContents, name: str) -> Table:
    [one] = [table for table in found.tables if table.name == name]
    return one


def own(found: PageContents, name: str) -> list[dict[str, Cell]]:
    """The run's rows of a table."""
    return [row for row in table(found, name).records() if row.get("source", THIS_RUN) == THIS_RUN]


SURVEYS = {
    "realistic": realistic(),
    "one model": survey_of(polled("solo")),
    "one model on one issue": survey_of(polled("solo", ["US-penny"], trials=1)),
    "one answer": survey_of(answers_of([Row("x", 1, "baseline", 0, ("pro", "pro", "pro"))])),
    "no answers": survey_of(),
    "only what is left out": survey_of(polled("solo", ["tablets-vs-textbooks"], trials=1)),
    "no baseline": survey_of(polled("solo", trials=1, skipped=[(issue, "baseline") for issue in ISSUES])),
}


@cache
def found_in(survey: str) -> PageContents:
    return tables_and_figures(SURVEYS[survey])


@pytest.mark.parametrize("survey", SURVEYS)
def test_every_table_and_figure_exists_whatever_was_asked(survey: str) -> None:
    found = found_in(survey)
    names = [table.name for table in found.tables]
    assert tuple(names[:7]) == PAPER_TABLES
    assert set(names) >= {*FIGURES, *OTHER_TABLES}
    assert len(set(names)) == len(names)
    assert tuple(figure.name for figure in found.figures) == FIGURES
    for figure in found.figures:
        assert figure.table in names
        assert (figure.spec is None) == figure.empty.endswith(".")
        assert (figure.spec is None) == (figure.min_width == 0)
    assert found.remarks


@pytest.mark.parametrize("survey", SURVEYS)
def test_every_cell_is_plain_and_finite_and_every_row_is_whole(survey: str) -> None:
    for one in found_in(survey).tables:
        assert len({column.name for column in one.columns}) == len(one.columns)
        for row in one.rows:
            assert len(row) == len(one.columns), one.name
            for column, cell in zip(one.columns, row, strict=True):
                assert cell is None or type(cell) in (str, int, float, bool), (one.name, column.name)
                assert not isinstance(cell, float) or isfinite(cell), (one.name, column.name)
                assert column.kind == "text" or not isinstance(cell, str), (one.name, column.name)
                if column.kind == "percent" and cell is not None:
                    assert 0 <= float(cell) <= 100, (one.name, column.name)


def test_a_table_that_the_paper_has_holds_its_figures_marked_and_behind_the_runs(whole: PageContents) -> None:
    for name in PAPER_TABLES:
        sources = [str(row["source"]) for row in table(whole, name).records()]
        assert sources == sorted(sources, reverse=True)
        assert sources.count(PUBLISHED) == len(published_rows(name, table(whole, name).columns[1:])) > 0


def test_the_counts_of_gpt_4o_give_the_published_figures_in_their_cells() -> None:
    [answers] = counted(rows_of_csv(PUBLISHED_COUNTS.read_text("utf-8")))
    found = tables_and_figures(ReportSurvey((answers,), controversial=tuple(answers.issues)))
    [majorities] = own(found, "table-1-pro-majorities")
    assert (majorities["issue_set"], majorities["issues"], majorities["majorities"]) == ("controversial", 10, 4)
    assert majorities["share"] == 40
    [om] = own(found, "table-5-om-controversial")
    assert om["om"] == pytest.approx(7.7593, abs=5e-5)
    assert own(found, "table-4-om") == []
    [readings] = own(found, "om-readings")
    assert readings["om_pro_share"] == pytest.approx(30.0185, abs=5e-5)
    assert readings["om_no_flip"] == pytest.approx(14.3086, abs=5e-5)
    shifts = own(found, "figure-2-shifts")
    assert [row["case"] for row in shifts] == list(SHIFT_ORDER)
    assert [row["shift"] for row in shifts] == pytest.approx([-40.56, -28.44, -6.94, 35.06, 59.28], abs=5e-3)
    pro, con = own(found, "figure-5-contradiction")
    assert (pro["side"], con["side"]) == ("pro", "con")
    assert pro["effect"] == pytest.approx(-24.22, abs=5e-3)
    assert con["effect"] == pytest.approx(12.11, abs=5e-3)
    assert (pro["over_half"], con["over_half"]) in ((0, 1), (1, 0))
    [against] = own(found, "table-3-counter-shifts")
    assert (against["pairs"], against["count"], against["mean"]) == (20, 0, None)
    assert majorities["firm"] == 2
    note = table(found, "table-1-pro-majorities").note
    assert (
        " Of all 10 pairs of a model and an issue, 2 (20.0%) have a baseline at least 95% one way, in the paper" in note
    )


def test_over_few_issues_the_single_figures_and_the_reason_stand_in_an_intervals_place(whole: PageContents) -> None:
    for name, value in (("table-4-om", "om"), ("figure-2-shifts", "shift")):
        for row in own(whole, name):
            assert (row["low"], row["high"]) == (None, None)
            reason, _, figures = str(row["interval"]).removeprefix("no interval: ").partition(": ")
            assert reason == f"fewer than 10 issues ({row['issues']})"
            known = [float(re.sub("[%+]", "", figure).replace("−", "-")) for figure in figures.split(", ")]
            assert sum(known) / len(known) == pytest.approx(float(str(row[value])), abs=0.06)


def test_large_models_stand_in_table_4_for_both_sets_and_a_small_one_in_table_5_alone(whole: PageContents) -> None:
    rows = own(whole, "table-4-om")
    large = {"lab/great-2-large", "lab/great-2-mini", "other/shy-1"}
    for name, issues in (("all", 8), ("all but three", 7)):
        of_set = [row for row in rows if row["issue_set"] == name]
        assert {row["model"] for row in of_set} == large
        assert {row["issues"] for row in of_set} == {issues}
        assert all(float(str(one["om"])) >= float(str(other["om"])) for one, other in pairwise(of_set))
    fives = own(whole, "table-5-om-controversial")
    assert {row["model"] for row in fives} == large | {"third/part-3"}
    assert {row["issues"] for row in fives} == {3}


def test_without_a_left_out_issue_the_second_set_is_not_repeated() -> None:
    found = tables_and_figures(survey_of(polled("solo", ["abortion", "golf"])))
    assert {row["issue_set"] for row in own(found, "table-4-om")} == {"all"}


def test_ranks_run_from_one_within_each_set(whole: PageContents) -> None:
    rows = own(whole, "om-readings")
    for name, models in (("all", 3), ("all but three", 3), ("controversial", 4)):
        for kind in ("om", "om_pro_share", "om_no_flip"):
            found = [(row[kind], row[f"{kind}_rank"]) for row in rows if row["issue_set"] == name]
            by_rank = [float(str(score)) for score, _ in sorted(found, key=lambda pair: int(str(pair[1])))]
            # Equal scores may differ in their last digit, in either order.
            assert by_rank == pytest.approx(sorted(by_rank, reverse=True))
            assert len(found) == models


def test_the_careful_reading_is_counted_where_it_is_chosen(whole: PageContents) -> None:
    careful = tables_and_figures(realistic(Readings(stance="careful")))
    other = [row["count"] for row in own(whole, "counts") if row["issue_stance"] == "other"]
    more = [row["count"] for row in own(careful, "counts") if row["issue_stance"] == "other"]
    assert sum(int(str(number)) for number in more) > sum(int(str(number)) for number in other)
    by_model = {row["model"]: row for row in own(whole, "om-readings") if row["om_careful"] is not None}
    assert len(by_model) == 4
    for row in own(careful, "om-readings"):
        if row["issue_set"] == "all":
            assert row["om"] == by_model[row["model"]]["om_careful"]


def test_refusals_are_told_by_model_and_issue(whole: PageContents) -> None:
    found = own(whole, "figure-7-refusals")
    assert {(row["model"], row["issue"]) for row in found} == {("other/shy-1", "abortion"), ("other/shy-1", "zoos")}
    assert [row["case"] for row in found] == ["baseline", "balanced"] * 2
    by_model = {row["model"]: row for row in own(whole, "answers-by-model")}
    assert by_model["other/shy-1"]["often"] == 2
    assert by_model["lab/great-2-mini"]["refused"] == 0
    refused = {row["issue"]: row["refused"] for row in own(whole, "om-by-issue") if row["model"] == "other/shy-1"}
    assert refused["abortion"] == int(survey_refusals("abortion"))


def survey_refusals(issue: str) -> int:
    [shy] = [answers for answers in realistic().answers if answers.name == "other/shy-1"]
    counts = counts_of(shy)
    assert counts.refused is not None
    return int(counts.refused[counts.issues.index(issue)].sum())


def test_a_model_that_was_to_be_asked_and_has_no_answer_is_told() -> None:
    answers = polled("there", ["golf"])
    found = tables_and_figures(ReportSurvey((answers,), {"gone": inferred(answers)}))
    complete = {row["model"]: row for row in own(found, "answers-by-model")}
    assert (complete["gone"]["expected"], complete["gone"]["answered"], complete["gone"]["missing"]) == (108, 0, 108)
    assert "gone has no answers: all 108 are missing." in found.remarks


def test_the_counts_are_a_file_that_gives_the_same_scores_again(whole: PageContents) -> None:
    one = table(whole, "counts")
    assert [column.name for column in one.columns] == ["issue", "issue_stance", "count", "case", "model"]
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow([column.name for column in one.columns])
    writer.writerows(one.rows)
    again = {counts.model: counts for counts in counts_of_rows(rows_of_csv(text.getvalue()))}
    for answers in realistic().answers:
        counts = counts_of(answers)
        assert again[counts.model].issues == tuple(sorted(counts.issues))
        order = [counts.issues.index(issue) for issue in again[counts.model].issues]
        assert (again[counts.model].pooled == counts.pooled[order]).all()


def test_every_issue_has_a_row_with_the_pro_share_of_every_case(whole: PageContents) -> None:
    rows = own(whole, "om-by-issue")
    assert len(rows) == 3 * len(ISSUES) + len(CONTROVERSIAL)
    assert all(row[f"pro_{case.replace('-', '_')}"] is not None for row in rows for case in CASES)


def test_pairs_of_models_are_compared_on_the_issues_of_both(whole: PageContents) -> None:
    rows = own(whole, "paired-tests")
    assert len(rows) == 6
    assert {row["issues"] for row in rows if "third/part-3" in (row["first"], row["second"])} == {3}
    assert all(0 < float(str(row["p"])) <= float(str(row["p_adjusted"])) <= 1 for row in rows)


def test_a_model_stands_for_the_same_whoever_stands_beside_it(whole: PageContents) -> None:
    alone = tables_and_figures(survey_of(realistic().answers[0]))
    for name in ("table-4-om", "figure-2-shifts", "order-effects", "om-by-issue"):
        [*mine] = [row for row in own(whole, name) if row["model"] == "lab/great-2-large"]
        assert mine == own(alone, name), name
