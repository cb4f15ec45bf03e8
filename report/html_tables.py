"""A table as HTML: a caption, headings that name rows and columns, numbers in their units, the paper's rows marked.

Owns how a value is shown to a reader. Everything is escaped here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..format import figure_text, measured_time
from .escaping import in_html
from .labels import one_line
from .table import PUBLISHED, Cell, Column, Kind, Table

MISSING = "–"
# Tables of more rows than this get a box of their own to scroll in.
TALL = 16
# Tables of more columns than these have smaller type on paper.
WIDE, WIDEST = 9, 13
# The most rows of a long table that the page shows, and the number that it shows of a longer one.
LONG, BEGINNING = 60, 10
_NAME_LONGEST = 120
# The most characters of a text that is kept on one line, if there is room.
_SHORT = 36
# Too few for an interval, how many there are, and their single figures.
_FEW = re.compile(r"no interval: (fewer than \d+ [a-z ]+) \(\d[\d,]*\)(?:: (.+))?")
# The first words of verdicts that have a colour.
_VERDICTS = ("kept", "missed")


def table_html(table: Table, identity: str, *, file: str | None = None) -> str:
    """Returns a table as HTML, only the first rows of a long one. `identity` is the element's id; `file` is the path of
    the table's CSV file (None: it has none), by which the page's script finds the table's data."""
    columns, rows = _filled(table)
    rows, reasons = _without_reasons(rows)
    if table.is_long and len(rows) > LONG:
        rows = rows[:BEGINNING]
    note = "" if file is None else f"<span>{in_html(file)}</span>"
    if len(rows) < len(table.rows):
        note = f"The first {len(rows)} of {len(table.rows):,} rows; all of them: {note}"
    data = "" if file is None else f' data-csv="{in_html(file)}"'
    under = f'<p class="file"{data}>{note}</p>' if note else ""
    if reasons:
        why = f"no interval, as there are {' or '.join(reasons)}; in brackets: the single figures"
        under = f'<p class="note">{MISSING}: {in_html(why)}.</p>{under}'
    tall = " tall" if len(rows) > TALL else ""
    wide = " widest" if len(columns) > WIDEST else " wide" if len(columns) > WIDE else ""
    # The beginning of a longer table in another order would pass for the beginning of that order.
    sortable = " sortable" if 1 < len(rows) == len(table.rows) else ""
    head = "".join(_heading(column) for column in columns)
    body = "".join(_row(columns, row) for row in rows)
    return (
        f'<div id="{identity}"><div class="table{tall}{wide}{sortable}" role="region" tabindex="0" '
        f'aria-label="{in_html(table.title)}">'
        f"<table><caption>{in_html(table.title)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>{under}</div>"
    )


def _filled(table: Table) -> tuple[list[Column], list[tuple[Cell, ...]]]:
    """Returns the columns with a value in some row, and the rows in these columns alone: on a narrow screen the others
    would hide the columns with values. The first column always stands."""
    kept = [
        at
        for at in range(len(table.columns))
        if at == 0 or not table.rows or any(row[at] is not None for row in table.rows)
    ]
    return [table.columns[at] for at in kept], [tuple(row[at] for at in kept) for row in table.rows]


def _without_reasons(rows: Iterable[tuple[Cell, ...]]) -> tuple[list[tuple[Cell, ...]], list[str]]:
    """Returns the rows with a dash, and single figures in brackets, in place of each text that says that too few
    things have no interval; and the reasons, each once, for one note below the table."""
    reasons: dict[str, None] = {}

    def short(found: re.Match[str]) -> str:
        reasons[found[1]] = None
        return f"{MISSING} ({found[2]})" if found[2] else MISSING

    kept = [tuple(_FEW.sub(short, cell) if isinstance(cell, str) else cell for cell in row) for row in rows]
    return kept, list(reasons)


def shown_value(kind: Kind, cell: Cell) -> str:
    """Returns a value as text in the unit of its column; a dash for a missing one."""
    if cell is None or (isinstance(cell, float) and cell != cell):
        return MISSING
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, str):
        return one_line(cell, _NAME_LONGEST)
    return _number(kind, cell)


def _number(kind: Kind, number: int | float) -> str:
    match kind:
        case "count":
            return f"{number:,.0f}"
        case "share":
            return f"{number:.1%}"
        case "percent":
            return f"{number:.1f}%"
        case "points":
            return _minus(f"{number:+z.1f}")
        case "p":
            return "< 0.001" if number < 0.001 else f"{number:.3f}"
        case "rate":
            return f"{number:.3f}"
        case "small":
            return "0" if number == 0 else f"{number:.2g}"
        case "amount":
            return _minus(figure_text(number))
        case "seconds":
            return _minus(measured_time(number))
        case "score" | "correlation":
            return _minus(f"{number:.2f}")
        case _:
            return _minus(f"{number:g}")


def _minus(text: str) -> str:
    return text.replace("-", "−")


def _is_number(column: Column) -> bool:
    return column.kind not in ("text", "verdict")


def _sort_value(kind: Kind, cell: Cell) -> str:
    """Returns the attribute by which a cell is sorted, where its text is no number: times are in several units."""
    return f' data-value="{cell!r}"' if kind == "seconds" and isinstance(cell, int | float) else ""


def _heading(column: Column) -> str:
    kind = ' class="number"' if _is_number(column) else ""
    return f'<th scope="col"{kind}>{in_html(column.title)}</th>'


def _row(columns: Iterable[Column], row: Iterable[Cell]) -> str:
    cells, is_published, is_named = [], False, False
    for column, cell in zip(columns, row, strict=True):
        value = in_html(shown_value(column.kind, cell))
        if column.name == "source":
            is_published = cell == PUBLISHED
            cells.append(f'<td><span class="source">{value}</span></td>')
        elif column.kind == "verdict":
            verdict = value.partition(" ")[0]
            cells.append(f'<td class="{verdict if verdict in _VERDICTS else "short"}">{value}</td>')
        elif _is_number(column):
            cells.append(f'<td class="number"{_sort_value(column.kind, cell)}>{value}</td>')
        else:
            width = ' class="short"' if len(value) <= _SHORT else ""
            cells.append(f"<td{width}>{value}</td>" if is_named else f'<th scope="row"{width}>{value}</th>')
            is_named = True
    kind = ' class="published"' if is_published else ""
    return f"<tr{kind}>{''.join(cells)}</tr>"
