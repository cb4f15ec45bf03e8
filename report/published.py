"""A paper's own figures, shown beside a run's.

They are read into rows of tables and nowhere else: no mean, rank or correlation is ever computed with them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from msgspec import structs

from .table import PUBLISHED, THIS_RUN, Cell, Column, Table

NO_TARGET = "Published rows are of other data and only show the shape."
_SOURCE = Column("source", "Source")


class PublishedFigures:
    """The figures of a package's `published.toml`, which has one section for each table."""

    def __init__(self, package: str) -> None:
        self._package = package

    def entries(self, name: str) -> Sequence[Mapping[str, Any]]:
        """Returns the paper's rows of a table as the file has them."""
        entries: Sequence[Mapping[str, Any]] = _read(self._package).get(name, ())
        return entries

    def rows(self, name: str, columns: Sequence[Column]) -> list[tuple[Cell, ...]]:
        """Returns the paper's rows of a table, in the paper's order; a cell is None if the paper prints nothing."""
        names = [column.name for column in columns]
        rows = []
        for row in self.entries(name):
            unknown = sorted(set(row) - set(names))
            if unknown:
                raise ValueError(
                    f"published.toml: {name} has no column {', '.join(unknown)}; it has {', '.join(names)}"
                )
            rows.append(tuple(row.get(name) for name in names))
        return rows

    def beside(self, table: Table) -> Table:
        """Returns a run's table with the paper's rows after its own and a first column that names each row's source;
        the same table if the paper prints nothing of it."""
        theirs = [(PUBLISHED, *row) for row in self.rows(table.name, table.columns)]
        if not theirs:
            return table
        ours = [(THIS_RUN, *row) for row in table.rows]
        return structs.replace(table, columns=(_SOURCE, *table.columns), rows=tuple(ours + theirs))


@cache
def _read(package: str) -> dict[str, Any]:
    return tomllib.loads(files(package).joinpath("published.toml").read_text("utf-8"))
