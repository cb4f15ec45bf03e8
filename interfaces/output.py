"""What is written for people and programs: results on stdout, everything else on stderr.

A reader that has gone away is no error of the run: what it no longer reads is dropped. A result that finds no room on
the disk is one, a remark is not. Control characters are struck out: details of faults hold what a provider said.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from typing import Any, TextIO


def say(text: str) -> None:
    """A result, on stdout."""
    _write_result(text)


def note(text: str) -> None:
    """A remark, on stderr. One that can't be written (a log on a full disk) is lost; the run is worth more."""
    with contextlib.suppress(OSError):
        _write(sys.stderr, text)


def say_json(value: Any) -> None:
    """One JSON object on stdout."""
    import orjson

    _write_result(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())


def _write_result(text: str) -> None:
    try:
        _write(sys.stdout, text)
    except OSError as error:
        from ..engine.fault import LocalFault

        raise LocalFault(
            f"the result can't be written to stdout ({error.strerror}): what is in the run's folder is not touched by "
            f"that; make room, then ask again"
        ) from error


def _write(stream: TextIO | None, text: str) -> None:
    if stream is None:
        return
    lines = "\n".join(inert(line) for line in text.split("\n")) + "\n"
    encoding = stream.encoding or "utf-8"
    try:
        stream.write(lines.encode(encoding, "replace").decode(encoding))
        stream.flush()
    except OSError as error:
        # The interpreter flushes once more at its end, and would complain again.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
        if not isinstance(error, BrokenPipeError):
            raise


def inert(text: str) -> str:
    """The text with nothing in it that a terminal would obey."""
    return text if text.isprintable() else "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def table(rows: Sequence[Sequence[str]], lean: Sequence[int] = (0,)) -> str:
    """Columns under each other: those in `lean` are names and lean left, the others are numbers and lean right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column in lean else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def span_of_time(least: float, most: float) -> str:
    """From so many minutes to so many."""
    low, high = _time(least), _time(most)
    return low if low == high else f"{low} to {high}"


def _time(minutes: float) -> str:
    if minutes < 1:
        return f"{60 * minutes:.0f} s"
    hours, rest = divmod(round(minutes), 60)
    return f"{hours} h {rest} min" if hours else f"{rest} min"
