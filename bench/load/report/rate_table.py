"""The table that a page of load tests begins with: a row for each rate, with whether goal and promise were kept there.

Owns its columns and the words of its verdicts. `tables` has the same figures to the last digit, with their intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from ....format import percent_text, rate_text
from ....metrics.load.load_json import LoadPart, Times
from ....metrics.statistics.shares import share_interval
from ....report.table import Cell, Column, Table
from .series import LoadSeries, parts_of

_STANDINGS = {"kept": "kept", "missed": "missed", "open": "not decided", "unmeasured": "not measured"}


class RateRow(Struct, frozen=True):
    """A row: the calls of one series at one rate, or all its calls if it has no rates."""

    series: LoadSeries
    part: LoadPart


Cells = Callable[[RateRow], Cell]


def rates_table(every: Sequence[LoadSeries]) -> Table:
    """Returns the table for a reader. A column without any figure is left out."""
    rows = [RateRow(each, part) for each in every for part in parts_of(each)]
    columns = [*_columns(every)]
    cells = [[cell(row) for _, cell in columns] for row in rows]
    kept = [at for at in range(len(columns)) if any(row[at] is not None for row in cells)]
    shown = tuple(tuple(row[at] for at in kept) for row in cells)
    return Table("rates", "Each rate", "", tuple(columns[at][0] for at in kept), shown)


def _columns(every: Sequence[LoadSeries]) -> Iterator[tuple[Column, Cells]]:
    if len(every) > 1:
        title = "Test" if len({each.test for each in every}) > 1 else "Model"
        yield Column("series", title), lambda row: row.series.name
    yield Column("rate", "Asked"), _asked
    yield Column("goal", "Goal", "verdict"), _goal
    yield Column("promise", "Promise", "verdict"), _promise
    yield Column("sent", "Sent per second", "amount"), lambda row: row.part.achieved if row.part.seconds else None
    yield Column("calls", "Calls", "count"), lambda row: row.part.calls
    yield Column("errors", "Errors", "amount"), _errors
    for name, title, percent in (
        ("latency", "Latency", 50.0),
        ("latency", "Latency", 99.0),
        ("first_token", "TTFT", 99.0),
        ("token", "TPOT", 50.0),
        ("gap", "ITL", 99.0),
    ):
        yield Column(f"{name}_p{percent:g}", f"{title} p{percent:g}", "seconds"), _at(name, percent)
    yield Column("tokens", "Tokens per second", "amount"), _tokens


def _asked(row: RateRow) -> Cell:
    if row.part.rate is not None:
        knee = row.series.of.knee
        remarks = ["the knee"] if knee is not None and row.part.rate == knee.rate else []
        remarks += ["client-bound"] if row.part.is_client_bound else []
        return ", ".join([f"{rate_text(row.part.rate)}/s", *remarks])
    in_flight = row.series.load.test.get("in-flight")
    return f"{in_flight} in flight" if isinstance(in_flight, int) else "a trace"


def _errors(row: RateRow) -> Cell:
    if not row.part.calls:
        return None
    low, high = share_interval(row.part.errors, row.part.calls)
    return f"{row.part.errors / row.part.calls:.1%} ({100 * low:.1f} to {100 * high:.1f})"


def _at(name: str, percent: float) -> Cells:
    def cell(row: RateRow) -> Cell:
        times: Times | None = getattr(row.part, name)
        percentile = None if times is None else times.at(percent)
        return None if percentile is None else percentile.value_s

    return cell


def _tokens(row: RateRow) -> Cell:
    """Returns the tokens of answers a second; None without a count, since a server that reports none made some."""
    tokens = row.part.output_tokens
    return tokens / row.part.seconds if tokens and row.part.seconds else None


def _goal(row: RateRow) -> Cell:
    return None if row.part.standing is None else _STANDINGS[row.part.standing]


def _promise(row: RateRow) -> Cell:
    kept, calls = row.part.kept, row.part.calls
    if kept is None or not calls:
        return None
    if kept == calls:
        return f"kept by all {calls:,}"
    return f"missed by {calls - kept:,} ({percent_text(1 - kept / calls)})"
