"""Charts of all percentiles by nines: latency from when calls were due, service time from when they were sent,
streaming.

Where latency and service time differ, calls waited before they were sent: a client that waits for an answer before its
next call doesn't see that wait. The tables own the numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....metrics.load.spectrum import spectrum
from ....report import vega_lite as vl
from ....report.charts import drawn_figure
from ....report.colours import colour
from ....report.line_styles import lines_of, paint, stroke_legend
from ....report.table import Cell, Figure, Table
from .axes import LEAST_S, MIN_WIDTH, PLOT_WIDTH, only, seconds_axis
from .series import TIMINGS, LoadSeries, Timing, has_several_rates

_DUE, _SENT = "from when it was due", "from when it was sent"
_CLOCKS = {_DUE: TIMINGS[0], _SENT: TIMINGS[1]}
_STREAMED = TIMINGS[2:5]
_NAMES = {"first_token": "TTFT", "token": "TPOT", "gap": "ITL"}
_HEIGHT, _PANEL_HEIGHT, _SPACING = 240, 120, 12
_LABELS = (
    "datum.value == 0 ? '0%' : datum.value == 1 ? '90%' : datum.value == 2 ? '99%'"
    " : datum.value < 1 ? '50%' : '99.' + slice('99999999', 0, datum.value - 2) + '%'"
)
_HALF = 0.30103
Row = dict[str, Cell]


def spectrum_figure(table: Table, every: Sequence[LoadSeries]) -> Figure:
    """Returns the figure of latency and service time: one series in two colours, or each series in its own."""
    several = "" if len(every) == 1 else " Whole lines count from when calls were due, dashed ones from their sending."
    figure = Figure(
        "load-spectrum",
        "Latency from when calls were due, and from when they were sent",
        f"Percentiles of latency{_together(every)}; each mark to the right adds a nine: 90%, 99%, 99.9%. A client "
        "that waits for an answer before it sends the next call sees the time from sending alone: where the two part, "
        f"calls that were due had to wait, which such a client omits.{several}",
        table.name,
        empty="No call was answered.",
    )
    series = [each for each in every if each.of.latency.count]
    if not series:
        return figure
    rows: list[Row] = [
        {"layer": "time", "clock": clock, "line": each.label, "x": point.nines, "y": max(LEAST_S, point.value_s)}
        for each in series
        for clock, timing in _CLOCKS.items()
        for point in spectrum(timing.of(each.of))
    ]
    order = {each.label: each.place for each in series}
    clocks = {clock: place for place, clock in enumerate(_CLOCKS)}
    if len(series) == 1:
        how = lines_of(clocks, "clock")
    else:
        scale = {"domain": list(clocks), "range": [[1, 0], [5, 3]]}
        dash = vl.channel("clock:N", title=None, scale=scale, legend=stroke_legend(clocks, orient="bottom"))
        how = {"color": paint(order, legend=stroke_legend(order)), "strokeDash": dash}
    y = seconds_axis([_number(row["y"]) for row in rows], "Latency")
    chart = only("time").mark("line", strokeWidth=2, interpolate="step-after").encode(x=_nines(rows), y=y.y(), **how)
    chart = chart.properties(width=PLOT_WIDTH, height=_HEIGHT)
    return drawn_figure(figure, chart, rows, min_width=MIN_WIDTH)


def streaming_figure(table: Table, every: Sequence[LoadSeries]) -> Figure:
    """Returns the figure of first token, time per token and gaps, in a panel each."""
    figure = Figure(
        "load-streaming",
        "First token (TTFT), time per token (TPOT), gaps between pieces (ITL)",
        f"Percentiles{_together(every)}. The first token counts from when its call was due. Time per token is one "
        "figure an answer, for its tokens after the first; a gap lies between two pieces of text.",
        table.name,
    )
    panels = [timing for timing in _STREAMED if any(timing.of(each.of).count for each in every)]
    # The first token of an answer in one piece is the whole answer: the same line as its latency.
    series = [each for each in every if each.of.gap.count]
    rows: list[Row] = [
        {"layer": timing.field, "line": each.label, "x": point.nines, "y": max(LEAST_S, point.value_s)}
        for each in series
        for timing in panels
        for point in spectrum(timing.of(each.of))
    ]
    chart = vl.vconcat(*(_panel(rows, timing, series) for timing in panels), spacing=_SPACING)
    return drawn_figure(figure, chart, rows, min_width=MIN_WIDTH)


def _panel(rows: Sequence[Row], timing: Timing, series: Sequence[LoadSeries]) -> vl.Chart:
    panel_rows = [row for row in rows if row["layer"] == timing.field]
    y = seconds_axis([_number(row["y"]) for row in panel_rows], _NAMES[timing.field], count=4)
    how = lines_of({each.label: each.place for each in series})
    if len(series) == 1:
        how = {"color": {"value": colour("line-1")}}
    chart = only(timing.field).mark("line", strokeWidth=2, interpolate="step-after")
    return chart.encode(x=_nines(panel_rows), y=y.y(), **how).properties(width=PLOT_WIDTH, height=_PANEL_HEIGHT)


def _together(every: Sequence[LoadSeries]) -> str:
    return " over all rates together" if any(map(has_several_rates, every)) else ""


def _nines(rows: Sequence[Row]) -> vl.Channel:
    end = max((_number(row["x"]) for row in rows), default=1.0)
    values = [0, _HALF, *range(1, int(end) + 1)]
    axis = {"values": values, "labelExpr": _LABELS, "labelFlush": True, "labelOverlap": "greedy"}
    return vl.channel("x:Q", title="Percentile", scale={"domain": [0, end], "nice": False}, axis=axis)


def _number(cell: Cell) -> float:
    return float(cell or 0.0)
