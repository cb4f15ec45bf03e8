"""Claims about the tables of a survey so small that every figure in them is worked out by hand."""

from __future__ import annotations

from functools import cache

import pytest
from polls import counted, survey_of

from millstream.bench.millstone.report.part import tables_and_figures
from millstream.bench.millstone.report.survey import ReportSurvey
from millstream.metrics.millstone.counts import CountRow
from millstream.report.sections import PageContents
from millstream.report.table import THIS_RUN, Cell, Table


def table(found: PageContents, name: str) -> Table:
    [one] = [table for table in found.tables if table.name == name]
    return one


def own(found: PageContents, name: str) -> list[dict[str, Cell]]:
    """The run's rows of a table."""
    return [row for row in table(found, name).records() if row.get("source", THIS_RUN) == THIS_RUN]


def small_counts() -> ReportSurvey:
    """Two models and three issues, so few answers that every figure can be worked out by hand."""
    cells = {
        ("m", "golf"): {"baseline": (10, 0, 0), "one-sided-pro": (10, 0, 0), "one-sided-con": (10, 0, 0)},
        ("n", "golf"): {"baseline": (10, 0, 0), "one-sided-pro": (9, 1, 0), "one-sided-con": (2, 8, 0)},
        ("m", "milk"): {"baseline": (9, 1, 0), "one-sided-pro": (10, 0, 0), "one-sided-con": (0, 10, 0)},
        ("n", "milk"): {"baseline": (0, 9, 1), "one-sided-pro": (5, 5, 0), "one-sided-con": (2, 8, 0)},
        ("m", "zoos"): {"baseline": (3, 3, 4), "balanced": (6, 3, 1)},
    }
    rows = [
        CountRow(model, issue, case, stance, number)
        for (model, issue), cases in cells.items()
        for case, numbers in cases.items()
        for stance, number in zip(("pro", "con", "other"), numbers, strict=True)
    ]
    return survey_of(*counted(rows))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("table-2-agreement", [("unanimous", 1, 2, 50), (1, 2, 50), (1, 2, 50), ("strong disagreement", 1, 2, 50)]),
        ("table-3-counter-shifts", [("m", 4, 0, None), ("n", 4, 2, 15)]),
        ("table-6-unanimous", [("golf", 100, 0, True, 2)]),
        (
            "table-7-disagreement",
            [("milk", "m", "n", 90, 0, 90, True), ("golf", "m", "m", 100, 100, 0, False)],
        ),
        (
            "figure-3-disagreement",
            [
                ("milk", 90, "m", 90, 10, 0, 10),
                ("milk", 90, "n", 0, 90, 10, 10),
                ("golf", 0, "m", 100, 0, 0, 10),
                ("golf", 0, "n", 100, 0, 0, 10),
            ],
        ),
        ("figure-7-refusals", [("m", "zoos", "baseline", 30, 30, 40), ("m", "zoos", "balanced", 60, 30, 10)]),
        ("table-1-pro-majorities", [(None, None, 1), (None, None, 1)]),
        # m: milk flips from pro to con; zoos from Other to pro, which are no two sides; golf has pro answers alone.
        # n: golf flips to con; milk is con in all three cases, with single answers of pro.
        ("definition-1", [("m", 3, 2, 200 / 3, 1, 2), ("n", 2, 1, 50, 1, 2)]),
        # Other, refused, the same at the baseline, stance and share unmoved. With all pro arguments, n has 5 pro and 5
        # con on milk: a tie is con, as its baseline is.
        (
            "om-by-issue",
            [
                (0, 0, 0, 0, True, True),
                (0, 0, 0, 0, False, False),
                (5, 0, 4, 0, None, None),
                (0, 0, 0, 0, False, False),
                (1, 0, 1, 0, True, False),
            ],
        ),
        # Other, its shares of all 80 and 60 answers and of the 30 and 20 at the baseline, refused, issues above 30%.
        ("answers-by-model", [(5, 6.25, 40 / 3, 0, 1, 0, 3), (1, 5 / 3, 5.0, 0, 0, 0, 2)]),
    ],
)
def test_a_small_survey_gives_what_is_worked_out_by_hand(name: str, expected: list[tuple[Cell, ...]]) -> None:
    found = [tuple(row.values()) for row in own(found_small(), name)]
    found = [row[1:] if row[0] == THIS_RUN else row for row in found]
    assert len(found) == len(expected)
    for row, cells in zip(found, expected, strict=True):
        # What the two rows of consistency are called is told elsewhere.
        for cell, wanted in zip(row[len(row) - len(cells) :], cells, strict=True):
            assert cell == (pytest.approx(wanted) if isinstance(wanted, float) else wanted)


@cache
def found_small() -> PageContents:
    return tables_and_figures(small_counts())
