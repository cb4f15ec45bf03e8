"""Charts of throughput and calls in flight over time: all lines of one model, or a line each of several.

The tables own the numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ....metrics.load.traffic import TrafficSlice
from ....report import vega_lite as vl
from ....report.charts import AXIS_HEIGHT, FigureText, empty_figure, figure_of
from ....report.colours import colour
from ....report.line_styles import legend_height, lines_of
from ....report.table import Cell, Figure, Table
from .axes import MIN_WIDTH, PLOT_WIDTH, elapsed_axis, only
from .charts_time import left_out_rows
from .series import LoadSeries, end_s

_HEIGHT, _SPACING = 120, 14
_CALLS, _TOKENS, _IN_FLIGHT = "Calls per second", "Tokens per second", "Calls in flight"
_MEANT = (
    "Calls per second: sent when the client began them, answered when their answer ended. Tokens per second are output "
    "tokens, counted when their answer ended. In flight are calls that began and have not ended"
)
_ALL = "What ended after the last call was due is not drawn."
_EMPTY = "The calls of this test are not there to draw."
Row = dict[str, Cell]


def traffic_figure(table: Table, series: LoadSeries, number: int) -> Figure:
    """Returns the figure of one model. `number` makes its name unique among the models."""
    ends_left_out = " Shaded: warm-up and cool-down." if series.load.warm_up_s + series.load.cool_down_s else ""
    words = FigureText(
        f"load-traffic-{number}",
        f"{series.name}: throughput and calls in flight over time",
        f"{_MEANT}: their mean over a slice of time, and the most at one moment of it. {_ALL}{ends_left_out}",
        _EMPTY,
    )
    if not series.traffic:
        return empty_figure(table, words)
    rows = [row for part in series.traffic for row in _rows_of(part)]
    shades = [*left_out_rows(series, end_s(series.load, series.of))]
    orders = {_CALLS: ("sent", "answered"), _TOKENS: ("output tokens",), _IN_FLIGHT: ("mean", "most")}
    panels = {name: dict(zip(lines, range(9), strict=False)) for name, lines in orders.items() if _has(rows, name)}
    return _figure(table, words, [*rows, *shades], panels, end_s(series.load, series.of))


def overlaid_traffic_figure(table: Table, every: Sequence[LoadSeries]) -> Figure:
    """Returns the figure of several models or tests, each from its own start."""
    words = FigureText(
        "load-traffic",
        "Throughput and calls in flight over time",
        f"Each test from its own start. {_MEANT}: their mean over a slice of time. Of the calls per second, those "
        f"answered are drawn. {_ALL}",
        _EMPTY,
    )
    series = [each for each in every if each.traffic]
    if not series:
        return empty_figure(table, words)
    rows = [
        {**row, "line": each.label}
        for each in series
        for part in each.traffic
        for row in _rows_of(part)
        if row["line"] in ("answered", "output tokens", "mean")
    ]
    order = {each.label: each.place for each in series}
    panels = {name: order for name in (_CALLS, _TOKENS, _IN_FLIGHT) if _has(rows, name)}
    return _figure(table, words, rows, panels, max(end_s(each.load, each.of) for each in series))


def _figure(
    table: Table, words: FigureText, rows: Sequence[Row], panels: Mapping[str, Mapping[str, int]], until_s: float
) -> Figure:
    charts = [
        _panel(name, order, until_s, is_last=at == len(panels)) for at, (name, order) in enumerate(panels.items(), 1)
    ]
    chart = vl.vconcat(*charts, spacing=_SPACING)
    orders = list(panels.values())
    if orders[0] is not orders[-1]:
        chart = chart.resolve(color="independent", strokeDash="independent")
        legends = sum(legend_height(order) for order in orders if len(order) > 1)
    else:
        legends = legend_height(orders[0])
    height = len(panels) * (_HEIGHT + _SPACING) + AXIS_HEIGHT + legends
    return figure_of(table, words, chart, rows, size=(PLOT_WIDTH, height), min_width=MIN_WIDTH)


def _panel(name: str, order: Mapping[str, int], until_s: float, *, is_last: bool) -> vl.Chart:
    x = elapsed_axis(until_s, is_bare=not is_last)
    y = vl.channel("y:Q", title=name, scale={"zero": True}, axis={"tickCount": 4, "format": ",~r"})
    how = lines_of(order) if len(order) > 1 else {"color": {"value": colour("line-1")}}
    shades = only("left out").mark("rect", color=colour("grid"), opacity=0.7).encode(x=x, x2="end:Q")
    line = only(name).mark("line", strokeWidth=1.8).encode(x=x, y=y, **how)
    return vl.layer(shades, line).properties(width=PLOT_WIDTH, height=_HEIGHT)


def _rows_of(part: TrafficSlice) -> Iterator[Row]:
    middle = part.begins_s + part.seconds / 2
    for layer, line, value in (
        (_CALLS, "sent", part.sent),
        (_CALLS, "answered", part.answered),
        (_TOKENS, "output tokens", part.output_tokens),
        (_IN_FLIGHT, "mean", part.in_flight),
        (_IN_FLIGHT, "most", part.in_flight_max),
    ):
        if value is not None:
            yield {"layer": layer, "line": line, "x": middle, "y": value}


def _has(rows: Sequence[Row], layer: str) -> bool:
    return any(row["layer"] == layer for row in rows)
