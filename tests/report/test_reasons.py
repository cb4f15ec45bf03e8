"""What is too few for an interval has a dash in each row and one note below the table, on paper too."""

from __future__ import annotations

import numpy as np

from millstream.metrics.statistics.intervals import mean_interval
from millstream.report.interval_cells import OVER, interval_cells, interval_columns
from millstream.report.sections import table_section
from millstream.report.table import Column, Table


def html_of(*counts: int) -> str:
    rows = []
    for number in counts:
        found = mean_interval(np.linspace(0.2, 0.8, number), of="issues")
        rows.append((f"m{number}", found.mean, *interval_cells(found, "rate")))
    columns = (Column("model", "Model"), Column("score", "Score", "rate"), *interval_columns("rate"))
    return table_section(Table("t", "Scores", f"Means. {OVER['issues']}", columns, tuple(rows)))


def test_a_reason_stands_once_below_its_table_and_as_a_dash_in_its_rows() -> None:
    text = html_of(2, 3, 5)
    assert text.count("fewer than 10 issues") == 1 and text.count("no interval") == 1
    assert "– (0.200, 0.800)</td>" in text and 'class="note">–: no interval' in text


def test_a_table_without_an_interval_says_nothing_of_low_and_high() -> None:
    assert "Low and high are the ends" not in html_of(2, 3)
    assert "Low and high are the ends" in html_of(2, 40)
