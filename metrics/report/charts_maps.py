"""Figures 4 and 6: heat maps with their numbers written in, of topics and models, and of models and models.

Owns these two charts and how dark a cell must be for its number to be light. Their numbers are their tables'.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import altair as alt

from .charts import LEGEND_HEIGHT, WIDTH, Words, data, drawn, empty, label_width, span
from .colours import colour
from .labels import labels
from .table import Cell, Figure, Table

# Cells are coloured the same on light pages and dark ones, since a scale between two colours can't be a variable.
_DARK_TEXT, _LIGHT_TEXT = "#1f2328", "#ffffff"
_SCORES = ("#edf3fa", "#a9cbe8", "#4a90c8", "#1a5a9a", "#0b2f5c")
_CORRELATIONS = ("#b34700", "#f0a868", "#f5f5f3", "#7fb2de", "#1f66ad")
_CELL_HEIGHT = 30
_CELL_WIDTHS = (44, 110)
_CHARACTER = 7


def topics_figure(table: Table) -> Figure:
    """Figure 4."""
    words = Words(
        "figure-4-topics",
        "Figure 4: open-mindedness by topic and model",
        "Mean OM over the issues of a topic, the darker the more open-minded. In brackets stands how many issues of "
        "the topic are scored, of the model with the most; a model with none there has no cell.",
        "No topic is known for any issue of this data set: topics are known for the issues of the published one.",
    )
    found = [row for row in table.records() if row["om"] is not None]
    if not found:
        return empty(table, words)
    models = labels((str(row["model"]) for row in found), 24)
    counts: dict[str, list[int]] = {}
    for row in found:
        counts.setdefault(str(row["topic"]), []).append(int(row["issues"] or 0))
    topics = {topic: f"{label} ({max(counts[topic])})" for topic, label in labels(counts, 40).items()}
    top = max(1, math.ceil(max(float(row["om"] or 0) for row in found)))
    rows: list[dict[str, Cell]] = [
        {
            "x": models[str(row["model"])],
            "y": topics[str(row["topic"])],
            "value": row["om"],
            "is_dark": float(row["om"] or 0) > 0.6 * top,
            "issues": row["issues"],
        }
        for row in found
    ]
    tooltip = [
        alt.Tooltip("x:N", title="Model"),
        alt.Tooltip("y:N", title="Topic"),
        alt.Tooltip("value:Q", title="OM", format=".2f"),
        alt.Tooltip("issues:Q", title="Scored issues"),
    ]
    grid = _Grid(tuple(models.values()), tuple(topics.values()))
    cells = _cells(grid, _Scale("OM", (0, top), _SCORES, ".1f"), tooltip)
    return _map(table, words, cells, rows, grid)


def correlations_figure(table: Table, medians: Table) -> Figure:
    """Figure 6."""
    words = Words(
        "figure-6-correlations",
        "Figure 6: do the same arguments move two models?",
        "Pearson's correlation of the effects of single arguments on two models, over the arguments both were shown. "
        f"Thick borders mark models of one family. {_told(medians)}",
        "A correlation takes two models that were shown the same arguments, and arguments that differ in their effect.",
    )
    found = [row for row in table.records() if row["r"] is not None]
    if not found:
        return empty(table, words)
    models = labels((str(row[end]) for row in table.records() for end in ("first", "second")), 24)
    rows: list[dict[str, Cell]] = [
        {
            "x": models[str(row["first"])],
            "y": models[str(row["second"])],
            "value": row["r"],
            "is_dark": abs(float(row["r"] or 0)) > 0.8,
            "is_family": row["same_family"],
            "family": "yes" if row["same_family"] else "no",
            "interval": span(row["low"], row["high"], ".2f"),
            "shared": row["shared"],
        }
        for row in found
    ]
    order = tuple(models.values())
    grid = _Grid(order[:-1], order[1:])
    tooltip = [
        alt.Tooltip("y:N", title="Model"),
        alt.Tooltip("x:N", title="And"),
        alt.Tooltip("value:Q", title="Correlation", format=".3f"),
        alt.Tooltip("interval:N", title="95% interval"),
        alt.Tooltip("shared:Q", title="Arguments shared"),
        alt.Tooltip("family:N", title="Same family"),
    ]
    cells = _cells(grid, _Scale("Correlation", (-1, 0, 1), _CORRELATIONS, ".2f"), tooltip)
    # With the cell's tooltip, as it lies above the cell.
    border = (
        _place(grid)
        .encode(tooltip=tooltip)
        .mark_rect(filled=False, stroke=colour("ink"), strokeWidth=2.5)
        .transform_filter("datum.is_family")
    )
    return _map(table, words, cells + border, rows, grid)


class _Grid(NamedTuple):
    """The labels of columns and rows, in their order."""

    across: tuple[str, ...]
    down: tuple[str, ...]

    @property
    def cell_width(self) -> int:
        least, most = _CELL_WIDTHS
        return max(least, min(most, (WIDTH - 220) // len(self.across)))

    @property
    def is_angled(self) -> bool:
        return max(map(len, self.across)) * _CHARACTER > self.cell_width


class _Scale(NamedTuple):
    """What a cell's colour and number mean: `ticks` are the numbers written at the legend, from end to end."""

    title: str
    ticks: tuple[int, ...]
    colours: tuple[str, ...]
    form: str


def _place(grid: _Grid) -> alt.Chart:
    top = alt.Axis(orient="top", labelAngle=-40 if grid.is_angled else 0, grid=False)
    return alt.Chart(data()).encode(
        x=alt.X("x:N", title=None, axis=top, scale=alt.Scale(domain=list(grid.across))),
        y=alt.Y("y:N", title=None, axis=alt.Axis(grid=False), scale=alt.Scale(domain=list(grid.down))),
    )


def _cells(grid: _Grid, scale: _Scale, tooltip: list[alt.Tooltip]) -> Any:
    place = _place(grid).encode(tooltip=tooltip)
    legend = alt.Legend(
        title=scale.title,
        values=list(scale.ticks),
        format="d",
        gradientLength=160,
        gradientThickness=10,
        orient="bottom",
        titleOrient="left",
    )
    first, last, colours = scale.ticks[0], scale.ticks[-1], len(scale.colours) - 1
    stops = [first + (last - first) * at / colours for at in range(colours + 1)]
    shade = alt.Color(
        "value:Q", scale=alt.Scale(domain=stops, range=list(scale.colours), interpolate="rgb"), legend=legend
    )
    ink = alt.condition("datum.is_dark", alt.value(_LIGHT_TEXT), alt.value(_DARK_TEXT))
    rects = place.mark_rect(stroke=colour("paper"), strokeWidth=1).encode(color=shade)
    return rects + place.mark_text().encode(text=alt.Text("value:Q", format=scale.form), color=ink)


def _map(table: Table, words: Words, chart: Any, rows: Sequence[Mapping[str, Cell]], grid: _Grid) -> Figure:
    width, height = len(grid.across) * grid.cell_width, len(grid.down) * _CELL_HEIGHT
    size = (
        width + label_width(grid.down) + (50 if grid.is_angled else 10),
        height + (label_width(grid.across) * 2 // 3 if grid.is_angled else 20) + LEGEND_HEIGHT + 30,
    )
    return drawn(
        table, words, chart.properties(width=width, height=height), rows, size=size, min_width=size[0] * 3 // 4
    )


def _told(medians: Table) -> str:
    parts = [
        f"{row['pairs']} {float(row['median']):.3f} ({row['number']} {'pair' if row['number'] == 1 else 'pairs'})"
        for row in medians.records()
        if row["median"] is not None and row["source"] != "published"
    ]
    return f"Median {', '.join(parts)}." if parts else ""
