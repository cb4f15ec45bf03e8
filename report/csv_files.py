"""Tables as CSV: a header of column names, one line for each row, an empty cell for a missing value.

Owns how a value is written: numbers with all their digits, texts so that no spreadsheet takes them for a formula.
Writes no file itself.
"""

from __future__ import annotations

import csv
import io

from .escaping import in_cell
from .table import Cell, Table


def csv_of(table: Table) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([in_cell(column.name) for column in table.columns])
    writer.writerows([_written(cell) for cell in row] for row in table.rows)
    return out.getvalue().encode("utf-8")


def _written(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, str):
        return in_cell(cell)
    # float() first: a numpy number would be written with the name of its type.
    return str(int(cell)) if isinstance(cell, int) else repr(float(cell))
