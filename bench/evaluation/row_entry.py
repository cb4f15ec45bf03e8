"""A row of a data file before anything is checked, and the refusal of a row or file that can't be read.

Knows no file format and no benchmark.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...engine.runs.data_file import DatasetError

_SHOWN_CHARS = 60


class TaskError(DatasetError):
    """Raised for a task that can't be run as declared; the message names the part, what was expected, what it has, and
    what to do."""


class RowEntry(NamedTuple):
    """A row's content before it is checked, and its place in the data."""

    content: Any
    where: str


def shown(value: Any) -> str:
    """Returns a value as messages show it: its `repr`, cut at 60 characters."""
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARS else f"{text[: _SHOWN_CHARS - 1]}…"
