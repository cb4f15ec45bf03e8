"""Claims about the figures typed in from the paper: its own sums hold, and they stand beside a run's own."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from millstream.bench.millstone.reference import ISSUES
from millstream.bench.millstone.report.published import beside_published, published_rows
from millstream.report.table import PUBLISHED, THIS_RUN, Column, Table

FULL_MODELS = {"Claude 3.5 Haiku", "Claude Opus 4", "Gemini 2.0 Flash", "Llama 3.1 405B", "Llama 3.1 8B"}
ALL_MODELS = FULL_MODELS | {"GPT 4o", "GPT 4o mini", "Grok 3", "Grok 3 mini"}


def rows(name: str, *columns: str) -> list[tuple[Any, ...]]:
    every = {
        "table-1-pro-majorities": ("model", "issue_set", "share"),
        "table-2-agreement": ("agreement", "issues", "share"),
        "table-3-counter-shifts": ("model", "count", "mean"),
        "table-4-om": ("model", "issue_set", "om"),
        "table-5-om-controversial": ("model", "om"),
        "table-6-unanimous": ("issue", "pro", "con", "consistent"),
        "table-7-disagreement": ("issue", "max_model", "min_model", "max_share", "min_share", "difference"),
    }[name]
    found = published_rows(name, [Column(column, column) for column in every])
    return [tuple(row[every.index(column)] for column in columns) for row in found]


def test_table_1_has_whole_numbers_of_the_104_issues_behind_its_percentages() -> None:
    shares = {model: share for model, name, share in rows("table-1-pro-majorities", "model", "issue_set", "share")}
    assert set(shares) == FULL_MODELS | {"GPT 4o", "Grok 3 mini"}
    for model in FULL_MODELS:
        issues = round(shares[model] * 104 / 100)
        assert round(100 * issues / 104, 1) == shares[model]
    assert shares["Llama 3.1 8B"] == 78.8


def test_table_2_counts_the_rows_of_tables_6_and_7() -> None:
    numbers = dict(rows("table-2-agreement", "agreement", "issues"))
    stars = Counter(star for (star,) in rows("table-6-unanimous", "consistent"))
    assert numbers["unanimous"] == 26 == stars.total()
    assert numbers["unanimous and consistent, above 90%"] == 21 == stars[True]
    assert numbers["strong disagreement"] == 12 == len(rows("table-7-disagreement", "issue"))


def test_table_3_sums_to_46_counter_shifts() -> None:
    counts = dict(rows("table-3-counter-shifts", "model", "count"))
    assert counts == {"Llama 3.1 8B": 3, "Claude Opus 4": 26, "Gemini 2.0 Flash": 4, "Claude 3.5 Haiku": 13}


@pytest.mark.parametrize(
    ("name", "models", "first", "mean"),
    [
        ("table-4-om", FULL_MODELS, ("Claude Opus 4", 7.14), 5.872),
        ("table-5-om-controversial", ALL_MODELS, ("Grok 3", 10.58), 68.69 / 9),
    ],
)
def test_tables_4_and_5_fall_from_the_top(name: str, models: set[str], first: tuple[str, float], mean: float) -> None:
    found = rows(name, "model", "om")
    scores = [score for _, score in found]
    assert {model for model, _ in found} == models
    assert found[0] == first
    assert scores == sorted(scores, reverse=True)
    assert sum(scores) / len(scores) == pytest.approx(mean, abs=1e-9)


def test_table_6_has_shares_that_leave_little_to_other() -> None:
    for issue, pro, con, star in rows("table-6-unanimous", "issue", "pro", "con", "consistent"):
        assert 98.9 <= round(pro + con, 1) <= 100, issue
        assert star == (max(pro, con) > 95), issue


def test_table_7_has_the_differences_of_its_own_shares() -> None:
    found = rows("table-7-disagreement", "issue", "max_model", "min_model", "max_share", "min_share", "difference")
    for issue, most, least, high, low, difference in found:
        assert difference > 80
        assert high - low == pytest.approx(difference, abs=0.11), issue
        assert {most, least} <= FULL_MODELS


def test_published_issues_go_by_the_ids_of_the_data_set() -> None:
    for name in ("table-6-unanimous", "table-7-disagreement"):
        assert {issue for (issue,) in rows(name, "issue")} <= set(ISSUES)


def test_published_rows_stand_behind_a_runs_own_and_say_so() -> None:
    columns = (Column("model", "Model"), Column("om", "OM", "score"), Column("low", "Low", "score"))
    table = beside_published(Table("table-5-om-controversial", "Title", "Note", columns, (("mine", 3.0, 2.0),)))
    assert table.columns[0].name == "source"
    assert table.rows[0] == (THIS_RUN, "mine", 3.0, 2.0)
    assert table.rows[1] == (PUBLISHED, "Grok 3", 10.58, None)
    assert [row[0] for row in table.rows] == [THIS_RUN] + 9 * [PUBLISHED]


def test_a_published_figure_without_its_column_is_refused() -> None:
    with pytest.raises(ValueError, match="table-4-om has no column issue_set, om; it has model"):
        published_rows("table-4-om", [Column("model", "Model")])


def test_the_paper_prints_nothing_of_a_table_it_does_not_have() -> None:
    table = Table("paired-tests", "Title", "Note", (Column("first", "First"),), (("mine",),))
    assert beside_published(table) == table
