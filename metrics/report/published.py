"""The paper's own figures, to stand beside a run's.

Owns `published.toml`, where they were typed in from the paper. They are read into rows of tables and nowhere else: no
mean, rank or correlation is ever computed with them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from .table import PUBLISHED, THIS_RUN, Cell, Column, Table

NO_TARGET = "Published rows are of other data and stand beside for their shape: they are no target."
_SOURCE = Column("source", "Source")


def published_rows(name: str, columns: Sequence[Column]) -> list[tuple[Cell, ...]]:
    """What the paper prints of a table, in its order; None where it prints nothing."""
    names = [column.name for column in columns]
    found = []
    for row in _data().get(name, ()):
        unknown = sorted(set(row) - set(names))
        if unknown:
            raise ValueError(f"published.toml: {name} has no column {', '.join(unknown)}; it has {', '.join(names)}")
        found.append(tuple(row.get(name) for name in names))
    return found


def beside_published(
    name: str, title: str, note: str, columns: Sequence[Column], rows: Iterable[Sequence[Cell]]
) -> Table:
    """A table of this run's rows, with the paper's behind them and a first column that says whose each is."""
    own = [(THIS_RUN, *row) for row in rows]
    theirs = [(PUBLISHED, *row) for row in published_rows(name, columns)]
    return Table(name, title, note, (_SOURCE, *columns), tuple(own + theirs))


@cache
def _data() -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath("published.toml").read_text("utf-8"))
