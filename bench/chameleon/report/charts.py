"""Figures 3 to 5: how confident models are, how the score depends on source re-use, and re-use turn by turn.

Owns these three charts. The numbers are those of the tables. Models differ in colour and in dashes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from ....metrics.chameleon.readings import Confidence
from ....report import vega_lite as vl
from ....report.charts import WIDTH, drawn_figure, not_drawn, safe_labels, tooltip_name
from ....report.interval_cells import interval_in_a_cell
from ....report.labels import labels
from ....report.line_styles import lines_of, paint, panels_figure
from ....report.table import Cell, Figure, Table
from .tables_turns import EVERY_TEMPERATURE

_HEIGHT = 280
# The most turns that an axis names.
_TURNS_NAMED = 8
_UNIT = {"domain": [0, 1], "nice": False}
_TENTHS = {"tickCount": 10, "format": ".1f"}
# The values of one turn, behind a figure of means.
_FEW = "at each turn, so means of few turns stand on few values."
_RUBRIC_VALUES: dict[Confidence, str] = {
    "rubric": f" By the rubric a confidence is 0.33, 0.67 or 1 {_FEW}",
}


def confidence_figure(table: Table, all_models: Sequence[str] = (), reading: Confidence = "rubric") -> Figure:
    """Returns figure 3, the density of confidence. `all_models` are those of the whole report."""
    plotted = [row for row in table.records() if row["density"] is not None]
    same = {str(row["model"]): row for row in table.records() if row["density"] is None}
    alone = _alone([row for row in same.values() if row["conversations"] == 1], "they have a single one")
    alone += _alone(
        [row for row in same.values() if row["conversations"] != 1], "all their conversations have the same"
    )
    lacking = [model for model in all_models if model not in same]
    gone = not_drawn(lacking, (row["model"] for row in plotted), "scored conversations")
    figure = Figure(
        "chameleon-figure-3-confidence",
        "Figure 3: distribution of confidence",
        "Density of the mean confidence of a conversation, all temperatures together (Gaussian kernels, Scott's rule)."
        f"{_RUBRIC_VALUES.get(reading, '')}{alone}{gone}",
        table.name,
        empty=f"No model has two scored conversations that differ in confidence.{alone}",
    )
    if not plotted:
        return figure
    rows, order = _rows(
        plotted,
        all_models,
        lambda row: {"x": row["confidence"], "y": row["density"], "conversations": row["conversations"]},
    )
    x = vl.channel("x:Q", title="Mean confidence of a conversation", scale=_UNIT, axis=_TENTHS)
    tooltip = [
        vl.channel("model:N", title="Model"),
        vl.channel("x:Q", title="Confidence", format=".2f"),
        vl.channel("y:Q", title="Density", format=".2f"),
        vl.channel("conversations:Q", title="Conversations"),
    ]
    base = vl.Chart().encode(x=x, y=vl.channel("y:Q", title="Density"))
    line = base.mark("line", strokeWidth=2).encode(**lines_of(order))
    # A line shows tooltips only where it has points.
    points = base.mark("point", size=60, opacity=0, filled=True).encode(tooltip=tooltip)
    return _one(figure, line + points, rows)


def _alone(rows: Sequence[Mapping[str, Cell]], why: str) -> str:
    """Returns a sentence on models that have one number instead of a distribution; empty without any."""
    named = ", ".join(f"{tooltip_name(row['model'])} at {float(row['confidence'] or 0):.2f}" for row in rows)
    return f" Not drawn, as {why}: {named}." if rows else ""


def reuse_figure(table: Table, all_models: Sequence[str] = ()) -> Figure:
    """Returns figure 4, the score by source re-use. `all_models` are those of the whole report."""
    every = [row for row in table.records() if row["score"] is not None]
    number: Counter[str] = Counter()
    for row in every:
        number[str(row["model"])] += int(row["conversations"] or 0)
    plotted = [row for row in every if number[str(row["model"])] > 1]
    gone = not_drawn(all_models, (row["model"] for row in plotted), "two conversations with both rates")
    figure = Figure(
        "chameleon-figure-4-reuse",
        "Figure 4: score by source re-use",
        "Mean Chameleon score of the conversations in each tenth of the source re-use rate, all temperatures together. "
        "The rate is a part of the score (eq. (2)), so some rise is its own. Thin lines are 95% intervals over "
        f"conversations, where there are ten at least; the larger a point, the more conversations.{gone}",
        table.name,
        empty="No model has two conversations with both a source re-use rate and a score.",
    )
    if not plotted:
        return figure
    rows, order = _rows(
        plotted,
        all_models,
        lambda row: {
            "x": (float(row["from"] or 0) + float(row["to"] or 0)) / 2,
            "bin": f"{row['from']:.1f} to {row['to']:.1f}",
            "y": row["score"],
            "low": row["low"],
            "high": row["high"],
            "interval": interval_in_a_cell("rate", row["low"], row["high"], row["interval"]),
            "conversations": row["conversations"],
        },
    )
    tooltip = [
        vl.channel("model:N", title="Model"),
        vl.channel("bin:N", title="Source re-use"),
        vl.channel("y:Q", title="Mean score", format=".3f"),
        vl.channel("interval:N", title="95% interval"),
        vl.channel("conversations:Q", title="Conversations"),
    ]
    x = vl.channel("x:Q", title="Source re-use rate", scale=_UNIT, axis=_TENTHS)
    y = vl.channel("y:Q", title="Chameleon score", scale=_UNIT)
    base = vl.Chart().encode(x=x)
    hue = paint(order)
    line = base.mark("line", strokeWidth=2).encode(y=y, **lines_of(order))
    spans = base.mark("rule", strokeWidth=1.2).encode(y=vl.channel("low:Q"), y2="high:Q", color=hue)
    size = vl.channel("conversations:Q", legend=None, scale={"range": [30, 160]})
    points = base.mark("point", filled=True, opacity=1).encode(y=y, color=hue, size=size, tooltip=tooltip)
    return _one(figure, spans + line + points, rows)


def turns_figure(table: Table, all_models: Sequence[str] = ()) -> Figure:
    """Returns figure 5, source re-use by turn: a panel for each temperature, and one for all of them if there are
    several."""
    plotted = [row for row in table.records() if row["reuse"] is not None and int(row["turn"] or 0) > 1]
    gone = not_drawn(all_models, (row["model"] for row in plotted), "a second turn")
    temperatures = sorted({str(row["temperature"]) for row in plotted}, key=_by_temperature)
    several = ", and one for all of them together" if EVERY_TEMPERATURE in temperatures else ""
    each = f": a panel for each temperature{several}" if len(temperatures) > 1 else ""
    figure = Figure(
        "chameleon-figure-5-turns",
        "Figure 5: source re-use by turn",
        "The share of a turn's sources that were used before in the same conversation, mean over "
        f"conversations{each}.{gone}",
        table.name,
        empty="No conversation is scored.",
    )
    if not plotted:
        return figure
    rows, order = _rows(
        plotted,
        all_models,
        lambda row: {
            "panel": _panel_title(str(row["temperature"])),
            "place": temperatures.index(str(row["temperature"])),
            "x": row["turn"],
            "y": row["reuse"],
            "conversations": row["with_sources"],
        },
    )
    tooltip = [
        vl.channel("model:N", title="Model"),
        vl.channel("panel:N", title="Panel"),
        vl.channel("x:Q", title="Turn"),
        vl.channel("y:Q", title="Source re-use", format=".3f"),
        vl.channel("conversations:Q", title="Conversations"),
    ]
    last = max(int(row["turn"] or 0) for row in plotted)
    x = vl.channel(
        "x:Q",
        title="Turn",
        scale={"domain": [1, max(2, last)], "nice": False},
        axis={"values": list(range(1, last + 1, -(-last // _TURNS_NAMED))), "format": "d"},
    )
    base = vl.Chart().encode(
        x=x,
        y=vl.channel("y:Q", title="Source re-use", scale=_UNIT, axis={"tickCount": 5}),
    )
    line = base.mark("line", strokeWidth=2).encode(**lines_of(order))
    points = base.mark("point", filled=True, size=34, opacity=1).encode(color=paint(order), tooltip=tooltip)
    return panels_figure(figure, line + points, rows)


def _one(figure: Figure, chart: vl.Chart, rows: Sequence[Mapping[str, Cell]]) -> Figure:
    sized = chart.properties(width=WIDTH, height=_HEIGHT, autosize={"type": "fit-x", "contains": "padding"})
    return drawn_figure(figure, sized, rows, min_width=400)


def _rows(
    plotted: Sequence[Mapping[str, Cell]],
    all_models: Sequence[str],
    values: Callable[[Mapping[str, Cell]], dict[str, Cell]],
) -> tuple[list[dict[str, Cell]], dict[str, int]]:
    """Returns the rows of a chart, which have their line beside these values, and each drawn line's place, from 0,
    among those of all models of the report, so that each keeps its colour in every figure."""
    models = safe_labels(labels((*all_models, *(str(row["model"]) for row in plotted))))
    rows = [{"line": models[str(row["model"])], "model": tooltip_name(row["model"]), **values(row)} for row in plotted]
    drawn = {row["line"] for row in rows}
    return rows, {label: at for at, label in enumerate(models.values()) if label in drawn}


def _by_temperature(cell: str) -> tuple[int, float]:
    """Returns a sort key: numbers by their size, then the default temperature, then all together."""
    if cell == EVERY_TEMPERATURE:
        return 2, 0.0
    try:
        return 0, float(cell)
    except ValueError:
        return 1, 0.0


def _panel_title(cell: str) -> str:
    if cell == EVERY_TEMPERATURE:
        return "All temperatures"
    return "Default temperature" if cell == "default" else f"{'Temperature' if cell[0].isdigit() else 'Effort'} {cell}"
