"""The tables of load tests: the figures of `load.json` unchanged, a row each, with their intervals.

Owns the content of each file. Figures are drawn from these tables; sentences are made elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec import structs

from ....metrics.load.load_json import LoadPart, Times
from ....metrics.load.spectrum import spectrum
from ....metrics.statistics.shares import share_interval
from ....report.table import Cell, Column, Table
from .series import TIMINGS, LoadSeries, whose, whose_columns

OVER_TIME, BY_RATE, PERCENTILES, SPECTRUM = "load-over-time", "load-by-rate", "load-percentiles", "load-spectrum"
SUMMARY, ERRORS, ERRORS_OVER_TIME = "load-summary", "load-errors", "load-errors-over-time"
TRAFFIC = "load-traffic"
PERCENTS = (50.0, 90.0, 99.0)


_SUMMARY: tuple[tuple[Column, Callable[[LoadSeries], Cell]], ...] = (
    (Column("calls", "Calls", "count"), lambda each: each.of.calls),
    (Column("answered", "Answered", "count"), lambda each: each.of.answered),
    (Column("errors", "Errors", "count"), lambda each: sum(each.of.errors.values())),
    (Column("error_share", "Errors", "share"), lambda each: each.of.error_share.value),
    (Column("error_share_low", "from", "share"), lambda each: each.of.error_share.low),
    (Column("error_share_high", "to", "share"), lambda each: each.of.error_share.high),
    (Column("seconds", "Measured", "seconds"), lambda each: each.load.seconds),
    (Column("calls_per_s", "Calls a second", "amount"), lambda each: each.of.rate),
    (Column("goodput_per_s", "Goodput, calls a second", "amount"), lambda each: each.of.goodput),
    (Column("output_tokens_per_s", "Output tokens a second", "amount"), lambda each: tokens_per_s(each)),
    (Column("in_flight_max", "Most in flight", "count"), lambda each: each.of.in_flight_max),
    (Column("cost", "Cost, $", "amount"), lambda each: each.of.spent),
)


def summary_table(every: Sequence[LoadSeries]) -> Table:
    columns = (*whose_columns(every), *(column for column, _ in _SUMMARY))
    rows = tuple((*whose(each, every), *(cell(each) for _, cell in _SUMMARY)) for each in every)
    note = "Calls and all that is reckoned from them are those of the measured part, without warm-up and cool-down."
    return Table(SUMMARY, "All calls", note, columns, rows)


def tokens_per_s(series: LoadSeries) -> float | None:
    """Returns the output tokens a second; None if no answer has a token count."""
    return series.of.output_tokens_per_s if series.of.output_tokens else None


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
    columns = (*whose_columns(every), *_part_columns())
    rows = tuple((*whose(each, every), *_part_cells(part)) for each in every for part in each.of.slices)
    note = "Calls by when they were due, in slices of time, in seconds since the start of the test."
    return Table(OVER_TIME, "Slices of time", note, columns, rows, is_long=True)


def traffic_table(every: Sequence[LoadSeries]) -> Table:
    columns = (
        *whose_columns(every),
        Column("begins", "From", "seconds"),
        Column("seconds", "For", "seconds"),
        Column("sent_per_s", "Sent, calls a second", "amount"),
        Column("answered_per_s", "Answered, calls a second", "amount"),
        Column("output_tokens_per_s", "Output tokens a second", "amount"),
        Column("in_flight", "In flight, mean", "amount"),
        Column("in_flight_max", "In flight, most", "count"),
    )
    rows = tuple((*whose(each, every), *structs.astuple(part)) for each in every for part in each.traffic)
    note = (
        "All calls of calls.jsonl, those of warm-up and cool-down too, in slices of time: sent by when they began, "
        "answered, with their tokens, by when they ended. No interval is given: these are counts."
    )
    return Table(TRAFFIC, "Throughput and calls in flight", note, columns, rows, is_long=True)


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
        for part in stepped(each):
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
    note = "Calls by the rate that was asked, the lowest first."
    return Table(BY_RATE, "Each rate", note, columns, tuple(rows))


def stepped(series: LoadSeries) -> list[LoadPart]:
    """Returns the parts of the test with a rate, the lowest rate first."""
    return sorted((part for part in series.of.steps if part.rate), key=lambda part: (part.rate or 0.0, part.begins_s))


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


def errors_over_time_table(every: Sequence[LoadSeries]) -> Table:
    columns = (
        *whose_columns(every),
        Column("begins", "From", "seconds"),
        Column("seconds", "For", "seconds"),
        Column("kind", "Kind of error"),
        Column("calls", "Calls", "count"),
    )
    rows = tuple(
        (*whose(each, every), part.begins_s, part.seconds, kind, calls)
        for each in every
        for part in each.of.slices
        for kind, calls in kinds_of(part)
    )
    note = "Calls that had no answer by when they were due, in seconds since the start of the test."
    return Table(ERRORS_OVER_TIME, "Errors by kind over time", note, columns, rows, is_long=True)


def kinds_of(part: LoadPart) -> Iterator[tuple[str, int]]:
    """Yields kind and number of a part's errors; those of unknown kind as `errors`."""
    yield from part.kinds.items()
    if (left := part.errors - sum(part.kinds.values())) > 0:
        yield "errors", left


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
        found = None if times is None else times.at(percent)
        yield from (None, None, None) if found is None else (found.value_s, found.low_s, found.high_s)
