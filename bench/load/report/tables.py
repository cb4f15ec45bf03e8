"""The tables of load tests: the figures of `load.json` unchanged, a row each, with their intervals.

Owns the content of each file. Figures are drawn from these tables; sentences are made elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import structs

from ....format import listed_counts
from ....metrics.load.load_json import LoadPart, Times
from ....metrics.load.spectrum import spectrum
from ....metrics.statistics.shares import share_interval
from ....report.table import Cell, Column, Table
from .series import TIMINGS, LoadSeries, parts_of, whose, whose_columns

OVER_TIME, BY_RATE, PERCENTILES, SPECTRUM = "load-over-time", "load-by-rate", "load-percentiles", "load-spectrum"
ERRORS = "load-errors"
PERCENTS = (50.0, 90.0, 99.0)


def percentiles_table(every: Sequence[LoadSeries]) -> Table:
    columns = (
        *whose_columns(every),
        Column("time", "Time"),
        Column("times", "Times", "count"),
        Column("percent", "Percentile", "amount"),
        Column("seconds", "At most", "seconds"),
        Column("low", "from", "seconds"),
        Column("high", "to", "seconds"),
    )
    rows = tuple(
        (*whose(each, every), timing.title, times.count, *structs.astuple(percentile))
        for each in every
        for timing in TIMINGS
        for times in (timing.of(each.of),)
        for percentile in times.percentiles
    )
    note = (
        "Each percentile with its 95% interval, which holds for any distribution; where there are too few calls for it "
        f"an end is missing. {'; '.join(f'{timing.title}: {timing.told}' for timing in TIMINGS)}."
    )
    return Table(PERCENTILES, "Percentiles", note, columns, rows)


def over_time_table(every: Sequence[LoadSeries]) -> Table:
    columns = (*whose_columns(every), *_part_columns(), Column("kinds", "Errors by kind"))
    rows = tuple(
        (*whose(each, every), *_part_cells(part), listed_counts(part.kinds) or None)
        for each in every
        for part in each.of.slices
    )
    note = "Calls by when they were due, in slices of time, in seconds since the start of the test."
    return Table(OVER_TIME, "Slices of time", note, columns, rows, is_long=True)


def by_rate_table(every: Sequence[LoadSeries]) -> Table:
    columns = (
        *whose_columns(every),
        *_part_columns(),
        Column("kept", "Kept the promise", "count"),
        Column("output_tokens", "Output tokens", "count"),
        *_time_columns("token", "Time per token"),
        *_time_columns("gap", "Gap"),
        Column("standing", "The goal was"),
        Column("knee", "Knee"),
        Column("client_bound", "Client was the bottleneck"),
    )
    rows: list[tuple[Cell, ...]] = []
    for each in every:
        at = None if each.of.knee is None else each.of.knee.rate
        for part in parts_of(each):
            rows.append(
                (
                    *whose(each, every),
                    *_part_cells(part),
                    *(part.kept, part.output_tokens),
                    *_time_cells(part.token),
                    *_time_cells(part.gap),
                    part.standing,
                    part.rate == at,
                    part.is_client_bound,
                )
            )
    note = "Calls by the rate that was asked, the lowest first; without one, all calls of the measured part in a row."
    return Table(BY_RATE, "Each rate", note, columns, tuple(rows))


def spectrum_table(every: Sequence[LoadSeries]) -> Table:
    columns = (
        *whose_columns(every),
        Column("time", "Time"),
        Column("percent", "Of all, %", "text"),
        Column("nines", "Nines", "amount"),
        Column("seconds", "At most", "seconds"),
    )
    rows = tuple(
        (*whose(each, every), timing.title, f"{point.percent:.8g}", point.nines, point.value_s)
        for each in every
        for timing in TIMINGS[:5]
        for point in spectrum(timing.of(each.of))
    )
    note = "All percentiles, evenly spaced in nines: two nines are 99%, three 99.9%. The last is the longest of all."
    return Table(SPECTRUM, "Spectrum of percentiles", note, columns, rows, is_long=True)


def errors_table(every: Sequence[LoadSeries]) -> Table:
    columns = (
        *whose_columns(every),
        Column("kind", "Kind of error"),
        Column("calls", "Calls", "count"),
        Column("share", "Of all calls", "share"),
        Column("low", "from", "share"),
        Column("high", "to", "share"),
    )
    rows: list[tuple[Cell, ...]] = []
    for each in every:
        for kind, calls in sorted(each.of.errors.items(), key=lambda pair: (-pair[1], pair[0])):
            share = min(1.0, calls / each.of.calls) if each.of.calls else 0.0
            ends = share_interval(share * each.of.calls, each.of.calls)
            rows.append((*whose(each, every), kind, calls, share, *ends))
    note = "Calls that had no answer, by kind, with exact 95% intervals. Latencies are those of answers alone."
    return Table(ERRORS, "Errors by kind", note, columns, tuple(rows))


def _part_columns() -> Iterator[Column]:
    yield Column("begins", "From", "seconds")
    yield Column("seconds", "For", "seconds")
    yield Column("calls", "Calls", "count")
    yield Column("asked_per_s", "Asked, calls a second", "amount")
    yield Column("came_per_s", "Sent, calls a second", "amount")
    yield Column("errors", "Errors", "count")
    yield from _time_columns("latency", "Latency")
    yield from _time_columns("first_token", "First token")


def _time_columns(name: str, title: str) -> Iterator[Column]:
    for percent in PERCENTS:
        yield Column(f"{name}_p{percent:g}", f"{title} p{percent:g}", "seconds")
        yield Column(f"{name}_p{percent:g}_low", "from", "seconds")
        yield Column(f"{name}_p{percent:g}_high", "to", "seconds")


def _part_cells(part: LoadPart) -> Iterator[Cell]:
    yield from (part.begins_s, part.seconds, part.calls, part.rate, part.achieved, part.errors)
    yield from _time_cells(part.latency)
    yield from _time_cells(part.first_token)


def _time_cells(times: Times | None) -> Iterator[Cell]:
    for percent in PERCENTS:
        point = None if times is None else times.at(percent)
        yield from (None, None, None) if point is None else (point.value_s, point.low_s, point.high_s)
