"""What is written for people and programs: results on stdout, everything else on stderr.

A reader that has gone away is no error of the run: what it no longer reads is dropped. Control characters are
struck out, since details of faults hold what a provider said.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any, TextIO


def say(text: str) -> None:
    """A result, on stdout."""
    _write(sys.stdout, text)


def note(text: str) -> None:
    """A remark, on stderr."""
    _write(sys.stderr, text)


def say_json(value: Any) -> None:
    """One JSON object on stdout."""
    import orjson

    _write(sys.stdout, orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())


def _write(stream: TextIO | None, text: str) -> None:
    if stream is None:
        return
    lines = "\n".join(inert(line) for line in text.split("\n")) + "\n"
    encoding = stream.encoding or "utf-8"
    try:
        stream.write(lines.encode(encoding, "replace").decode(encoding))
        stream.flush()
    except BrokenPipeError:
        # The interpreter flushes once more at its end, and would complain again.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def inert(text: str) -> str:
    """The text with nothing in it that a terminal would obey."""
    return text if text.isprintable() else "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def table(rows: Sequence[Sequence[str]]) -> str:
    """Columns under each other: the first is names and leans left, the others are numbers and lean right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )
