"""The table that a page of load tests begins with: a row for each rate, with whether goal and promise were kept there.

Owns its columns and the words of its verdicts. Its figures are those of the table by rate, which has them to the last
digit and with their intervals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ....format import percent_text, rate_text
from ....metrics.statistics.shares import share_interval
from ....report.table import Cell, Column, Table
from .series import LoadSeries, parts_of

_STANDINGS = {"kept": "kept", "missed": "missed", "open": "not decided", "unmeasured": "not measured"}
_TIMES = (
    Column("latency_p50", "Latency p50", "seconds"),
    Column("latency_p99", "Latency p99", "seconds"),
    Column("first_token_p99", "TTFT p99", "seconds"),
    Column("token_p50", "TPOT p50", "seconds"),
    Column("gap_p99", "ITL p99", "seconds"),
)


def rates_table(every: Sequence[LoadSeries], by_rate: Table) -> Table:
    """Returns the table for a reader. A column without any figure is left out."""
    columns = (
        Column("series", "Test" if len({each.test for each in every}) > 1 else "Model"),
        Column("rate", "Asked"),
        Column("goal", "Goal", "verdict"),
        Column("promise", "Promise", "verdict"),
        Column("sent", "Sent per second", "amount"),
        Column("calls", "Calls", "count"),
        Column("errors", "Errors", "amount"),
        *_TIMES,
        Column("tokens", "Tokens per second", "amount"),
    )
    series = [each for each in every for _ in parts_of(each)]
    rows = [
        (each.name if len(every) > 1 else None, *_cells(each, row))
        for each, row in zip(series, by_rate.records(), strict=True)
    ]
    kept = [at for at in range(len(columns)) if any(row[at] is not None for row in rows)]
    return Table(
        "rates",
        "Each rate",
        "",
        tuple(columns[at] for at in kept),
        tuple(tuple(row[at] for at in kept) for row in rows),
    )


def _cells(series: LoadSeries, row: Mapping[str, Cell]) -> tuple[Cell, ...]:
    calls, errors, tokens = (int(row[name] or 0) for name in ("calls", "errors", "output_tokens"))
    seconds, kept = float(row["seconds"] or 0), row["kept"]
    low, high = share_interval(errors, calls)
    return (
        _asked(series, row),
        None if row["standing"] is None else _STANDINGS[str(row["standing"])],
        None if kept is None or not calls else _promise(int(kept), calls),
        row["came_per_s"] if seconds else None,
        calls,
        f"{errors / calls:.1%} ({100 * low:.1f} to {100 * high:.1f})" if calls else None,
        *(row[column.name] for column in _TIMES),
        # Without a count there is no figure: a server that reports no tokens made some.
        tokens / seconds if tokens and seconds else None,
    )


def _asked(series: LoadSeries, row: Mapping[str, Cell]) -> str:
    if (rate := row["asked_per_s"]) is None:
        in_flight = series.load.test.get("in-flight")
        return f"{in_flight} in flight" if isinstance(in_flight, int) else "a trace"
    remarks = [*(["the knee"] if row["knee"] else []), *(["client-bound"] if row["client_bound"] else [])]
    return ", ".join([f"{rate_text(float(rate))}/s", *remarks])


def _promise(kept: int, calls: int) -> str:
    if kept == calls:
        return f"kept by all {calls:,}"
    return f"missed by {calls - kept:,} ({percent_text(1 - kept / calls)})"
