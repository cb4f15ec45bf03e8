"""Claims about the figures that the paper has in its text alone, beside a run's own."""

from __future__ import annotations

import pytest
from polls import counted, realistic, survey_of

from millstream.bench.millstone.report.panel import survey_figures
from millstream.bench.millstone.report.part import tables_and_figures
from millstream.bench.millstone.report.survey import ReportSurvey
from millstream.bench.millstone.report.tables_paper_text import paper_text_tables
from millstream.metrics.millstone.counts import CountRow
from millstream.metrics.millstone.openness import CASES
from millstream.report.table import PUBLISHED, THIS_RUN, Cell

Row = dict[str, Cell]


def rows_of(survey: ReportSurvey, name: str) -> tuple[list[Row], list[Row]]:
    """This run's rows of a table, and the published ones."""
    [table] = [each for each in paper_text_tables(survey_figures(survey)) if each.name == name]
    every = list(table.records())
    return [r for r in every if r["source"] == THIS_RUN], [r for r in every if r["source"] == PUBLISHED]


def one_flip(model: str, con: int) -> list[CountRow]:
    """Pro with 10 of 10, but for the balanced case, where so many are con: OM 100/9 x 3 x (10 - con)/10."""
    rows = [CountRow(model, "US-penny", case, "pro", 10) for case in CASES[:5]]
    return rows + [CountRow(model, "US-penny", "balanced", *cell) for cell in (("con", con), ("pro", 10 - con))]


def test_the_lead_is_over_the_median_and_over_the_next_model() -> None:
    # OM 100/9 x 3 x 0.4, 0.3 and 0.2: 4/3 of the median, which is the next one too.
    models = counted([*one_flip("a", 6), *one_flip("b", 7), *one_flip("c", 8)])
    survey = ReportSurvey(tuple(models), controversial=("US-penny",))
    [own], published = rows_of(survey, "most-open-minded")
    assert (own["model"], own["models"]) == ("a", 3)
    assert own["above_median"] == pytest.approx(100 / 3)
    assert own["above_next"] == pytest.approx(100 / 3)
    assert [(row["model"], row["above_median"]) for row in published] == [("Grok 3", 39.2), ("Grok 3", 44.8)]
    alone = ReportSurvey((models[0],), controversial=("US-penny",))
    assert rows_of(alone, "most-open-minded")[0] == []


def test_the_papers_own_table_5_gives_the_first_of_its_two_values() -> None:
    assert pytest.approx(39.2, abs=0.05) == 100 * (10.58 / 7.60 - 1)
    assert pytest.approx(12.6, abs=0.05) == 100 * (10.58 / 9.40 - 1)


def test_models_that_a_single_argument_moves_are_counted_of_those_compared() -> None:
    # With one con argument among pro ones a goes from 10 of 10 pro to 4 of 10, 60 points; b to 5 of 10, which is not
    # more than 50. c has no such case.
    cells = {"a": 4, "b": 5}
    rows = [CountRow(model, "x", case, "pro", 10) for model in cells for case in ("baseline", "one-sided-pro")]
    rows += [
        CountRow(m, "x", "clear-pro", s, n) for m, pro in cells.items() for s, n in (("pro", pro), ("con", 10 - pro))
    ]
    rows.append(CountRow("c", "x", "baseline", "pro", 10))
    [own], [published] = rows_of(survey_of(*counted(rows)), "single-argument")
    assert (own["models"], own["moved"]) == (2, 1)
    assert (published["models"], published["moved"]) == (9, 8)


def test_the_ends_of_a_row_of_figure_6_are_its_least_and_greatest_correlations() -> None:
    own, [gemini] = rows_of(realistic(), "figure-6-ranges")
    [figure] = [each for each in tables_and_figures(realistic()).tables if each.name == "figure-6-correlations"]
    for row in own:
        ends = [("first", "second"), ("second", "first")]
        others = [
            (float(str(pair["r"])), pair[other])
            for pair in figure.records()
            for me, other in ends
            if pair[me] == row["model"]
        ]
        assert (row["least"], row["least_with"]) == min(others)
        assert (row["greatest"], row["greatest_with"]) == max(others)
        assert row["pairs"] == len(others) == 3
    assert [gemini[name] for name in ("least", "least_with", "greatest", "greatest_with")] == [
        *(0.0, "Llama 3.1 405B", 0.17, "GPT 4o")
    ]
