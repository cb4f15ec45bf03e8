"""The published figures of the MillStone paper, copied into `published.toml`, and the mark of rows from published
counts."""

from __future__ import annotations

from collections.abc import Collection

from msgspec import structs

from ....report.published import PublishedFigures
from ....report.table import Table

COUNTS = "counts"
_FIGURES = PublishedFigures(__package__)
published_rows = _FIGURES.rows
beside_published = _FIGURES.beside


def counts_marked(table: Table, names: Collection[str]) -> Table:
    """Returns a table whose rows of these models, which are published counts, name counts as their source; the same
    table if it names no sources."""
    at = {column.name: place for place, column in enumerate(table.columns)}
    if not names or "source" not in at or "model" not in at:
        return table
    rows = (
        tuple(COUNTS if place == at["source"] and row[at["model"]] in names else cell for place, cell in enumerate(row))
        for row in table.rows
    )
    return structs.replace(table, rows=tuple(rows))
