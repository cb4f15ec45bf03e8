"""Published tables of counts as a report and `score` read them: files, and the names that their models have.

Owns the reading of files and its errors. metrics/millstone/counts has the format.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from msgspec import Struct

from ...configuration.errors import UsageError
from ...metrics.millstone.counts import ModelCounts, counts_of_rows, rows_of_csv


class CountsTable(Struct, frozen=True):
    """A published table of counts: its file, and the counts of its models."""

    path: Path
    models: tuple[ModelCounts, ...]


def read_counts(path: Path) -> CountsTable:
    """Returns a table of counts. Raises UsageError if it can't be read, is no such table, or has no model."""
    try:
        models = counts_of_rows(rows_of_csv(path.read_text("utf-8")))
    except OSError as error:
        raise UsageError(f"{path}: expected a readable file, got: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from error
    if not models:
        raise UsageError(f"{path}: expected counts, got none: nothing to report")
    return CountsTable(path, tuple(models))


def named_counts(tables: Sequence[CountsTable]) -> tuple[ModelCounts, ...]:
    """Returns the counts of all tables, each under a unique name that marks it as counts: with its file's name if
    several tables have the model. Raises UsageError if these are equal too."""
    times = Counter(counts.model for table in tables for counts in table.models)
    by_name: dict[str, ModelCounts] = {}
    for table in tables:
        for counts in table.models:
            source = "counts" if times[counts.model] == 1 else f"counts, {table.path.stem}"
            name = f"{counts.model} ({source})"
            if name in by_name:
                raise UsageError(f"--counts: {counts.model} stands in two tables called {table.path.name}: rename one")
            by_name[name] = replace(counts, model=name)
    return tuple(by_name.values())
