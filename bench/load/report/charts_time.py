"""Charts of latency over time with errors beneath: bands of one model's percentiles, or lines of several tests.

Warm-up and cool-down are shaded. The tables own the numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ....report import vega_lite as vl
from ....report.charts import drawn_figure, safe_labels
from ....report.colours import colour
from ....report.labels import labels
from ....report.line_styles import lines_of, paint
from ....report.table import Cell, Figure, Table
from .axes import MIN_WIDTH, PLOT_WIDTH, elapsed_axis, only, seconds_axis, values_of
from .series import LoadSeries, end_s

_LATENCY_HEIGHT, _ERRORS_HEIGHT, _PANEL_HEIGHT, _SPACING = 200, 80, 120, 14
Row = dict[str, Cell]


def over_time_figure(table: Table, series: LoadSeries, number: int) -> Figure:
    """Returns the figure of one model's latency and errors over the test's time. `number` makes its name unique among
    the models."""
    left_out = series.load.warm_up_s + series.load.cool_down_s
    shaded = " Shaded: what was sent in warm-up and cool-down, and left out." if left_out else ""
    figure = Figure(
        f"load-over-time-{number}",
        f"{series.name}: latency and errors over time",
        "Latency of the answers, counted from when each call was due: half of them took no longer than the line, 90% "
        "no longer than the dark band's upper edge, 99% no longer than the light one's (p50, p90, p99). Beneath, where "
        f"there are any, calls without an answer by their kind.{shaded}",
        table.name,
        empty="No call was measured.",
    )
    if not series.of.slices:
        return figure
    until_s = end_s(series.load, series.of)
    kinds = safe_labels(labels(kind for part in series.of.slices for kind in part.kinds))
    rows = [*_latency_rows(series), *_error_rows(series, kinds), *_left_out_rows(series, until_s)]
    top = _bands(rows, elapsed_axis(until_s, is_bare=bool(kinds)))
    if not kinds:
        return drawn_figure(figure, top, rows, min_width=MIN_WIDTH)
    names = list(kinds.values())
    chart = vl.vconcat(top, _errors(names, elapsed_axis(until_s)), spacing=_SPACING)
    return drawn_figure(figure, chart, rows, min_width=MIN_WIDTH)


def overlaid_over_time_figure(table: Table, every: Sequence[LoadSeries]) -> Figure:
    """Returns the figure of latency and errors over time in several tests, each from its own start."""
    figure = Figure(
        "load-over-time",
        "Latency and errors over time",
        "Each test from its own start: latency from when a call was due, half of the answers and 99% of them, and the "
        "share of calls without an answer.",
        table.name,
        empty="No call was measured.",
    )
    series = [each for each in every if each.of.slices]
    if not series:
        return figure
    rows: list[Row] = [
        {
            "layer": layer,
            "line": each.label,
            "x": part.begins_s + part.seconds / 2,
            "y": value,
        }
        for each in series
        for part in each.of.slices
        for layer, value in (
            ("p50", _percentile(part, 50.0)),
            ("p99", _percentile(part, 99.0)),
            ("errors", part.errors / part.calls if part.calls else None),
        )
    ]
    order = {each.label: each.place for each in series}
    until_s = max(end_s(each.load, each.of) for each in series)
    has_errors = any(part.errors for each in series for part in each.of.slices)
    panels = [
        only(layer)
        .mark("line", strokeWidth=1.6)
        .encode(
            x=elapsed_axis(until_s, is_bare=has_errors or layer == "p50"),
            y=seconds_axis(values_of(rows, layer), title, count=4).y(),
            **lines_of(order),
        )
        .properties(width=PLOT_WIDTH, height=_PANEL_HEIGHT)
        for layer, title in (("p50", "Latency p50"), ("p99", "Latency p99"))
    ]
    if has_errors:
        y = vl.channel("y:Q", title="Errors", scale={"zero": True}, axis={"format": ".0%", "tickCount": 3})
        beneath = only("errors").mark("line", strokeWidth=1.6).encode(x=elapsed_axis(until_s), y=y, **lines_of(order))
        panels.append(beneath.properties(width=PLOT_WIDTH, height=_ERRORS_HEIGHT))
    return drawn_figure(figure, vl.vconcat(*panels, spacing=_SPACING), rows, min_width=MIN_WIDTH)


def _bands(rows: Sequence[Row], x: vl.Channel) -> vl.Chart:
    y = seconds_axis(values_of(rows, "latency", "y", "p99"), "Latency")
    blue = colour("line-1")
    base = only("latency").encode(x=x)
    layers = (
        only("left out").mark("rect", color=colour("grid"), opacity=0.7).encode(x=x, x2="end:Q"),
        base.mark("area", color=blue, opacity=0.16).encode(y=y.y("p90"), y2="p99:Q"),
        base.mark("area", color=blue, opacity=0.38).encode(y=y.y(), y2="p90:Q"),
        base.mark("line", color=blue, strokeWidth=1.2, opacity=0.55).encode(y=y.y("p99")),
        base.mark("line", color=blue, strokeWidth=2).encode(y=y.y()),
        base.mark("point", color=blue, filled=True, size=12, opacity=1).encode(y=y.y()),
    )
    return vl.layer(*layers).properties(width=PLOT_WIDTH, height=_LATENCY_HEIGHT)


def _errors(names: Sequence[str], x: vl.Channel) -> vl.Chart:
    order = {name: place for place, name in enumerate(names, 1)}
    axis = {"tickCount": 3, "format": "~r"}
    # The rows are stacked already: Vega-Lite does not stack bars with explicit widths.
    bars = (
        only("errors")
        .mark("rect", strokeWidth=0)
        .encode(
            x=x,
            x2="end:Q",
            y=vl.channel("y:Q", title="Errors per second", scale={"zero": True}, axis=axis),
            y2="base:Q",
            color=paint(order, "kind", {"orient": "bottom", "columns": 4}),
        )
    )
    shades = only("left out").mark("rect", color=colour("grid"), opacity=0.7).encode(x=x, x2="end:Q")
    return (shades + bars).properties(width=PLOT_WIDTH, height=_ERRORS_HEIGHT)


def _latency_rows(series: LoadSeries) -> Iterator[Row]:
    for part in series.of.slices:
        # A slice without an answer is a gap that no line crosses.
        percentiles = {f"p{percent:g}": _percentile(part, percent) for percent in (50.0, 90.0, 99.0)}
        yield {"layer": "latency", "x": part.begins_s + part.seconds / 2, "y": percentiles["p50"], **percentiles}


def _error_rows(series: LoadSeries, kinds: dict[str, str]) -> Iterator[Row]:
    """Yields the bars of errors from `base` to `y`, stacked by kind."""
    for part in series.of.slices:
        base = 0.0
        for kind, calls in part.kinds.items():
            top = base + (calls / part.seconds if part.seconds else 0.0)
            ends = {"x": part.begins_s, "end": part.begins_s + part.seconds}
            yield {"layer": "errors", **ends, "kind": kinds[kind], "base": base, "y": top}
            base = top


def _left_out_rows(series: LoadSeries, until_s: float) -> Iterator[Row]:
    """Yields the shaded spans of warm-up and cool-down in a time axis that ends at `until_s`."""
    load = series.load
    if load.warm_up_s:
        yield {"layer": "left out", "x": 0.0, "end": load.warm_up_s}
    if load.cool_down_s:
        yield {"layer": "left out", "x": max(0.0, until_s - load.cool_down_s), "end": until_s}


def _percentile(part: Any, percent: float) -> float | None:
    percentile = part.latency.at(percent)
    return None if percentile is None else percentile.value_s
