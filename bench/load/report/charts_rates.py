"""Charts of percentiles by rate, with the knee, the goal, and the rates that kept or missed it.

The tables own the numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

from ....metrics.load.load_json import LoadPart, Times
from ....report import vega_lite as vl
from ....report.charts import drawn_figure
from ....report.colours import colour
from ....report.line_styles import lines_of, paint
from ....report.table import Cell, Figure, Table
from ..goal import Goal, parse_goal
from .axes import MIN_WIDTH, PLOT_WIDTH, SecondsAxis, only, rate_axis, seconds_axis, values_of
from .series import LoadSeries, has_several_rates, stepped
from .tables import PERCENTS

_HEIGHT, _SPACING = 200, 16
_PERCENTS = [f"p{percent:g}" for percent in PERCENTS]
_STANDINGS = {"kept": "goal kept", "missed": "goal missed", "open": "not decided", "unmeasured": "not measured"}
_PANELS = {"latency": "Latency", "first token": "TTFT"}
_ENDS = ("y", "low", "high")
Row = dict[str, Cell]


def by_rate_figure(table: Table, series: LoadSeries, number: int) -> Figure:
    """Returns the figure of one model: percentiles of its latency, and of its first token if answers were streamed.
    `number` makes its name unique."""
    goal = None
    with suppress(ValueError):  # the file may hold any text
        goal = None if series.of.goal is None else parse_goal(series.of.goal.goal)
    parts = stepped(series)
    knee = "" if series.of.knee is None else " The dotted line stands at the knee."
    figure = Figure(
        f"load-by-rate-{number}",
        f"{series.name}: percentiles by rate",
        "Percentiles of all calls at a rate, counted from when each was due; thin lines are 95% intervals, cut where "
        f"too few calls tell how far they reach.{_bound_words(parts)}{knee}{_goal_words(goal)}",
        table.name,
    )
    in_one_piece = not series.of.gap.count and (goal is None or goal.of != "first token")
    rows = [*_point_rows(parts, goal, is_in_one_piece=in_one_piece), *_mark_rows(series, goal)]
    panels = [panel for panel in _PANELS if any(row["layer"] == panel for row in rows)]
    x = rate_axis([part.rate or 0.0 for part in parts])
    chart = vl.vconcat(*(_panel(rows, panel, x) for panel in panels), spacing=_SPACING)
    return drawn_figure(figure, chart, rows, min_width=MIN_WIDTH)


def overlaid_by_rate_figure(table: Table, every: Sequence[LoadSeries]) -> Figure:
    """Returns the figure of several tests or models: the median and the 99th percentile of each."""
    figure = Figure(
        "load-by-rate",
        "Percentiles by rate",
        "Latency from when a call was due, half of the answers and 99% of them; thin lines are 95% intervals, and "
        f"dotted ones stand at each knee.{_bound_words([part for each in every for part in stepped(each)])}",
        table.name,
    )
    series = list(filter(has_several_rates, every))
    rows: list[Row] = [
        {
            "layer": f"p{percent:g}",
            "line": each.label,
            "x": part.rate,
            "bound": part.is_client_bound,
            **_ends(part.latency, percent),
        }
        for each in series
        for part in stepped(each)
        for percent in (50.0, 99.0)
    ]
    rows += [{"layer": "knee", "line": each.label, "x": each.of.knee.rate} for each in series if each.of.knee]
    order = {each.label: each.place for each in series}
    x = rate_axis([part.rate or 0.0 for each in series for part in stepped(each)])
    panels = []
    for percent in ("p50", "p99"):
        y = seconds_axis(values_of(rows, percent, *_ENDS), f"Latency {percent}", count=4)
        base = only(percent).encode(x=x)
        hue = paint(order)
        knees = only("knee").mark("rule", strokeDash=[2, 3], strokeWidth=1.5).encode(x=x, color=hue)
        spans = base.mark("rule", strokeWidth=1.2).encode(y=y.y("low"), y2="high:Q", color=hue)
        line = base.mark("line", strokeWidth=2).encode(y=y.y(), **lines_of(order))
        points = _points(base, y, hue, 40)
        panels.append(vl.layer(knees, spans, line, *points).properties(width=PLOT_WIDTH, height=_HEIGHT * 3 // 4))
    chart = vl.vconcat(*panels, spacing=_SPACING)
    return drawn_figure(figure, chart, rows, min_width=MIN_WIDTH)


def _panel(rows: Sequence[Row], panel: str, x: vl.Channel) -> vl.Chart:
    order = {percent: place for place, percent in enumerate(_PERCENTS)}
    y = seconds_axis([*values_of(rows, panel, *_ENDS), *values_of(rows, f"goal {panel}", *_ENDS)], _PANELS[panel])
    hue = paint(order)
    base = only(panel).encode(x=x)
    layers = [
        only("knee").mark("rule", color=colour("ink"), strokeDash=[2, 3], strokeWidth=1.5).encode(x=x),
        only("knee")
        .mark("text", align="left", dx=5, dy=3, baseline="top", fontSize=12, color=colour("ink"))
        .encode(x=x, y={"value": 0}, text="text:N"),
        base.mark("rule", strokeWidth=1.2).encode(y=y.y("low"), y2="high:Q", color=hue),
        base.mark("line", strokeWidth=2).encode(y=y.y(), **lines_of(order)),
        *_points(base, y, hue, 34),
    ]
    if any(row["layer"] == f"goal {panel}" for row in rows):
        goal = only(f"goal {panel}")
        label = goal.mark("text", align="left", baseline="bottom", dx=4, dy=-3, fontSize=12, color=colour("ink"))
        layers += [
            goal.mark("rule", color=colour("ink"), strokeDash=[6, 3]).encode(y=y.y()),
            label.encode(x={"value": 0}, y=y.y(), text="text:N"),
        ]
    if any(row.get("standing") for row in rows if row["layer"] == f"tried {panel}"):
        layers.append(_tried(panel, x, y.y()))
    return vl.layer(*layers).properties(width=PLOT_WIDTH, height=_HEIGHT)


def _points(base: vl.Chart, y: SecondsAxis, hue: vl.Channel, size: int) -> tuple[vl.Chart, vl.Chart]:
    """Returns two chart layers: the points, and what makes them hollow where the client was the bottleneck."""
    hollow = base.where("datum.bound").mark("point", filled=True, size=size // 3, opacity=1)
    return (
        base.mark("point", filled=True, size=size, opacity=1).encode(y=y.y(), color=hue),
        hollow.encode(y=y.y(), color={"value": colour("paper")}),
    )


def _tried(panel: str, x: vl.Channel, y: vl.Channel) -> vl.Chart:
    """Returns the chart layer of the goal's percentile at each rate, with a shape for whether the goal was kept."""
    shapes = {"domain": list(_STANDINGS.values()), "range": ["circle", "cross", "diamond"]}
    hues = {"domain": list(_STANDINGS.values()), "range": [colour("line-3"), colour("con"), colour("quiet")]}
    legend = {"orient": "bottom", "symbolFillColor": "transparent", "symbolStrokeWidth": 2, "symbolSize": 90}
    return (
        only(f"tried {panel}")
        .mark("point", size=150, strokeWidth=2, filled=False, opacity=1)
        .encode(
            x=x,
            y=y,
            shape=vl.channel("standing:N", title=None, scale=shapes, legend=legend),
            stroke=vl.channel("standing:N", title=None, scale=hues, legend=legend),
        )
    )


def _point_rows(parts: Sequence[LoadPart], goal: Goal | None, *, is_in_one_piece: bool) -> Iterator[Row]:
    """Yields the points. `is_in_one_piece`: the first token would be drawn as the same points as the latency."""
    for part in parts:
        for panel, times in (("latency", part.latency), ("first token", part.first_token)):
            if panel == "first token" and is_in_one_piece:
                continue
            for percent in PERCENTS:
                if times.at(percent) is not None:
                    bound = part.is_client_bound
                    row = {"layer": panel, "line": f"p{percent:g}", "x": part.rate, "bound": bound}
                    yield {**row, **_ends(times, percent)}
        if goal is not None and part.standing is not None and goal.of in _PANELS:
            at = (part.latency if goal.of == "latency" else part.first_token).at(goal.percent)
            if at is not None:
                standing = _STANDINGS[part.standing]
                yield {"layer": f"tried {goal.of}", "x": part.rate, "y": at.value_s, "standing": standing}


def _mark_rows(series: LoadSeries, goal: Goal | None) -> Iterator[Row]:
    if series.of.knee is not None:
        yield {"layer": "knee", "x": series.of.knee.rate, "text": "knee"}
    if goal is not None and goal.of in _PANELS:
        yield {"layer": f"goal {goal.of}", "y": goal.most_s, "text": f"goal: p{goal.percent:g}"}


def _ends(times: Times, percent: float) -> Row:
    """Returns a percentile and its interval; a missing end is set to the percentile itself."""
    percentile = times.at(percent)
    if percentile is None:
        return {"y": None, "low": None, "high": None}
    low, high = percentile.low_s, percentile.high_s
    return {
        "y": percentile.value_s,
        "low": percentile.value_s if low is None else low,
        "high": percentile.value_s if high is None else high,
    }


def _bound_words(parts: Sequence[LoadPart]) -> str:
    return " Hollow points: the client was the bottleneck." if any(part.is_client_bound for part in parts) else ""


def _goal_words(goal: Goal | None) -> str:
    if goal is None:
        return ""
    if goal.of in _PANELS:
        return f" The dashed line is the goal; signs stand at p{goal.percent:g} of each rate that was tried for it."
    return f" The goal is one of the {goal.of}, which is not drawn by rate."
