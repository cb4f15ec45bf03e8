"""What a table is sorted by, where its text is no number."""

from __future__ import annotations

import re

from millstream.report.html_tables import table_html
from millstream.report.table import Column, Table


def test_times_carry_the_seconds_that_they_are_sorted_by_since_their_texts_are_in_several_units() -> None:
    columns = (Column("name", "Name"), Column("took", "Took", "seconds"), Column("count", "Count", "count"))
    made = Table("t", "T", "", columns, (("a", 0.944, 3), ("b", 1.18, 4), ("c", None, 5)))
    cells = re.findall(r'<td class="number"( data-value="[^"]*")?>([^<]*)</td>', table_html(made, "t"))
    assert cells == [
        (' data-value="0.944"', "944 ms"),
        ("", "3"),
        (' data-value="1.18"', "1.18 s"),
        ("", "4"),
        ("", "–"),
        ("", "5"),
    ]
