"""Reads a trace's time stamps in seconds, and the tokens of its calls where it has them.

Owns which column is the time, its unit, and which columns hold tokens; knows the column names of public traces. Knows
nothing of what is sent.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from ...configuration.errors import UsageError
from ...engine.runs.data_file import DatasetError
from ...report.text import cut
from .trace_rows import Row, Where, date_of, is_number, is_own, is_time, number_of, rows_of

STAMPS_MAX = 1_000_000
# The unit is guessed from this many rows.
_LOOK = 1_000
# Letters only. If a file has several of these, the first in this list is the time.
_TIMES = (
    "timestamp", "time", "arrived", "arrivedat", "arrival", "arrivaltime", "ts", "due", "date", "datetime", "start",
    "startedat", "starttime", "sent", "sentat", "created", "createdat", "requesttime",
)  # fmt: skip
_INPUTS = ("contexttokens", "requesttokens", "inputtokens", "prompttokens", "inputlength", "promptlength")
_OUTPUTS = ("generatedtokens", "responsetokens", "outputtokens", "completiontokens", "outputlength")
_UNITS = {"s": 1.0, "sec": 1.0, "seconds": 1.0, "ms": 1e-3, "milliseconds": 1e-3, "us": 1e-6, "ns": 1e-9}
_UNIT_NAMES = {1.0: "seconds", 1e-3: "milliseconds", 1e-6: "microseconds", 1e-9: "nanoseconds"}
# Today's times since 1970 are below the first bound in seconds, below the next in milliseconds, and so on.
_EPOCHS = ((1e11, 1.0), (1e14, 1e-3), (1e17, 1e-6), (math.inf, 1e-9))
_EPOCH_LEAST = 1e8
# Stamps this far apart are milliseconds: one call in a quarter of an hour is no load.
_SLOWEST_S = 1_000.0
_TOKENS_MAX = 10_000_000


class TraceExcerpt(Struct, frozen=True):
    """The part of a trace to read: its first `seconds` and first `calls` (None: all), and whether with the tokens of
    prompts (`inputs`) and answers (`outputs`). A trace of more than `most` calls is an error."""

    seconds: float | None = None
    calls: int | None = None
    inputs: bool = False
    outputs: bool = False
    most: int = STAMPS_MAX


class ReplayTrace(Struct, frozen=True):
    """A trace that was read. `inputs` and `outputs` are the tokens of each call, if requested; `has_tokens`: the file
    has both. `told` describes how it was read. `lasts` is the length in seconds of an excerpt cut by time, with the
    silence at its end; else None."""

    stamps: tuple[float, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    has_tokens: bool
    told: str
    lasts: float | None = None


class _TraceColumns(Struct, frozen=True):
    """The names of a trace's columns; `inputs` and `outputs` are "" if no column has them. `unit`: the seconds in one
    unit of `time`, `is_guessed` if inferred from the values; None: times are ISO dates."""

    time: str
    unit: float | None
    is_guessed: bool
    inputs: str
    outputs: str


class _Arrival(NamedTuple):
    stamp: float
    inputs: int
    outputs: int
    where: Where


def read_trace(path: Path, part: TraceExcerpt) -> ReplayTrace:
    try:
        return _read(path, part)
    except DatasetError as error:
        raise UsageError(f"--replay: {error}") from error


def _read(path: Path, part: TraceExcerpt) -> ReplayTrace:
    rows = rows_of(path)
    first = list(islice(rows, _LOOK))
    if not first:
        raise UsageError(f"--replay: {path}: expected a time stamp a line, got none")
    columns = _columns([row for _, row in first], first[0][0])
    _check_token_columns(path, part, columns, first[0][1])
    every = chain(first, rows)
    if is_own(first[0][1]):
        # calls.jsonl has the calls in the order in which they ended.
        ended = (_arrival(row, columns, where, part) for where, row in islice(_of_one_model(every), part.most + 1))
        taken, lasts = _taken(iter(sorted(ended, key=lambda arrival: arrival.stamp)), path, part)
    else:
        taken, lasts = _taken((_arrival(row, columns, where, part) for where, row in every), path, part)
    return ReplayTrace(
        stamps=tuple(each.stamp for each in taken),
        inputs=tuple(each.inputs for each in taken) if part.inputs else (),
        outputs=tuple(each.outputs for each in taken) if part.outputs else (),
        has_tokens=bool(columns.inputs and columns.outputs),
        told=_note_on(len(taken), columns),
        lasts=lasts,
    )


def _note_on(count: int, columns: _TraceColumns) -> str:
    unit = "dates" if columns.unit is None else _UNIT_NAMES[columns.unit]
    text = f"{count:,} time stamps{f' from {columns.time!r}' if columns.time else ''}, read as {unit}"
    if columns.is_guessed and columns.unit == 1.0:
        text += " (if they are milliseconds, add --speed 1000)"
    return text


def _taken(arrivals: Iterator[_Arrival], path: Path, part: TraceExcerpt) -> tuple[list[_Arrival], float | None]:
    """Returns the arrivals of the excerpt, and its length in seconds if it is cut by time, else None."""
    taken: list[_Arrival] = []
    for number, each in enumerate(arrivals):
        if part.calls is not None and number >= part.calls:
            break
        if part.seconds is not None and number and each.stamp - taken[0].stamp >= part.seconds:
            return taken, part.seconds
        if number >= part.most:
            raise UsageError(
                f"--replay: {path}: expected at most {part.most:,} time stamps, got more: take a part of them by "
                f"--duration or --calls"
            )
        if taken and each.stamp < taken[-1].stamp:
            raise UsageError(
                f"{each.where}: expected a time no earlier than the one before it, got one that is "
                f"{taken[-1].stamp - each.stamp:g} s earlier: sort the trace by time"
            )
        taken.append(each)
    return taken, None


def _of_one_model(rows: Iterable[tuple[Where, Row]]) -> Iterator[tuple[Where, Row]]:
    before: object = None
    for where, row in rows:
        model = row.get("model")
        if before is not None and model != before:
            raise UsageError(
                f"{where}: expected a call of {before} as before, got one of {model}: every "
                f"model gets all that is replayed, so keep the lines of one"
            )
        before = model
        yield where, row


def _arrival(row: Row, columns: _TraceColumns, where: Where, part: TraceExcerpt) -> _Arrival:
    return _Arrival(
        _seconds(row.get(columns.time), columns, where),
        _tokens(row, columns.inputs, where) if part.inputs else 0,
        _tokens(row, columns.outputs, where) if part.outputs else 0,
        where,
    )


def _columns(rows: list[Row], where: Where) -> _TraceColumns:
    first = rows[0]
    time, unit = _time_column(first, where)
    inputs, outputs = _named(first, _INPUTS), _named(first, _OUTPUTS)
    if not is_number(first[time]):
        return _TraceColumns(time, None, False, inputs, outputs)
    if unit is not None or is_own(first):
        return _TraceColumns(time, unit or 1.0, False, inputs, outputs)
    stamps = [number_of(row.get(time)) for row in rows]
    unit = _guessed_unit(first, [stamp for stamp in stamps if math.isfinite(stamp)])
    return _TraceColumns(time, unit, True, inputs, outputs)


def _guessed_unit(row: Row, stamps: list[float]) -> float:
    if not stamps:
        return 1.0
    if stamps[0] >= _EPOCH_LEAST:
        return next(unit for below, unit in _EPOCHS if stamps[0] < below)
    # Mooncake's traces count milliseconds.
    if "input_length" in row and "output_length" in row:
        return 1e-3
    gap = (stamps[-1] - stamps[0]) / max(1, len(stamps) - 1)
    return 1e-3 if gap >= _SLOWEST_S and all(map(float.is_integer, stamps)) else 1.0


def _time_column(row: Row, where: Where) -> tuple[str, float | None]:
    """Returns the column that is named like a time, else the first that holds one, and the seconds in the unit that its
    name states (None: it states none)."""
    for wanted in _TIMES:
        for name in row:
            plain = _plain(name)
            if plain == wanted:
                return name, None
            if plain.startswith(wanted) and plain[len(wanted) :] in _UNITS:
                return name, _UNITS[plain[len(wanted) :]]
    for name, value in row.items():
        if is_time(value):
            return name, None
    raise UsageError(
        f"{where}: expected a time stamp (a number or an ISO date), got none in {_shown_names(row)}: name its column "
        f"timestamp"
    )


def _named(row: Row, wanted: tuple[str, ...]) -> str:
    return next((name for name in row if _plain(name).removeprefix("num") in wanted), "")


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _check_token_columns(path: Path, part: TraceExcerpt, columns: _TraceColumns, row: Row) -> None:
    for option, is_wanted, column, example in (
        ("--prompt-tokens", part.inputs, columns.inputs, "input_tokens"),
        ("--max-tokens", part.outputs, columns.outputs, "output_tokens"),
    ):
        if is_wanted and not column:
            raise UsageError(
                f"{option} trace: {path}: expected a column with each call's tokens, such as {example}, got "
                f"{_shown_names(row)}: give a number instead"
            )


def _shown_names(row: Row) -> str:
    return ", ".join(name or "one column without a name" for name in list(row)[:8]) or "an empty line"


def _seconds(value: object, columns: _TraceColumns, where: Where) -> float:
    if columns.unit is None:
        date = date_of(value)
        if date is None:
            raise UsageError(f"{where}: expected an ISO date{_in(columns)}, as in the line before, got {_shown(value)}")
        return date.timestamp()
    seconds = number_of(value) * columns.unit
    if not math.isfinite(seconds):
        raise UsageError(f"{where}: expected a number{_in(columns)}, got {_shown(value)}")
    return seconds


def _in(columns: _TraceColumns) -> str:
    return f" in {columns.time}" if columns.time else ""


def _tokens(row: Row, name: str, where: Where) -> int:
    value = row.get(name)
    number = number_of(value)
    if not 0 <= number <= _TOKENS_MAX or not number.is_integer():
        raise UsageError(
            f"{where}: expected a whole number of tokens in {name}, 0 to {_TOKENS_MAX:,}, got {_shown(value)}"
        )
    return int(number)


def _shown(value: object) -> str:
    return cut("nothing" if value in (None, "") else str(value), 40)
