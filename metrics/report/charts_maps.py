"""Figures 4 and 6: heat maps with their numbers written in, of topics and models, and of models and models.

Owns these two charts and how dark a cell must be for its number to be light. Their numbers are their tables'.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from .charts import WIDTH, Words, data, drawn, empty, span
from .colours import colour
from .labels import labels
from .table import Cell, Figure, Table

# Cells are coloured the same on light pages and dark ones, since a scale between two colours can't be a variable.
_DARK_TEXT, _LIGHT_TEXT = "#1f2328", "#ffffff"
_SCORES = ("#edf3fa", "#a9cbe8", "#4a90c8", "#1a5a9a", "#0b2f5c")
_CORRELATIONS = ("#b34700", "#f0a868", "#f5f5f3", "#7fb2de", "#1f66ad")
_CELL_HEIGHT = 30
_CELL_WIDTHS = (44, 110)
_ANGLED_BELOW = 90


def topics_figure(table: Table) -> Figure:
    """Figure 4."""
    words = Words(
        "figure-4-topics",
        "Figure 4: open-mindedness by topic and model",
        "Mean OM over the issues of a topic, with the number of issues behind the topic's name. The darker, the more "
        "open-minded; a cell without number has no scored issue.",
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
    largest = max(float(row["om"] or 0) for row in found)
    rows: list[dict[str, Cell]] = [
        {
            "x": models[str(row["model"])],
            "y": topics[str(row["topic"])],
            "value": row["om"],
            "is_dark": float(row["om"] or 0) > 0.6 * largest,
            "issues": row["issues"],
        }
        for row in found
    ]
    scale = alt.Scale(domain=[0, largest or 1], range=list(_SCORES), interpolate="rgb")
    tooltip = [
        alt.Tooltip("x:N", title="Model"),
        alt.Tooltip("y:N", title="Topic"),
        alt.Tooltip("value:Q", title="OM", format=".2f"),
        alt.Tooltip("issues:Q", title="Scored issues"),
    ]
    cells = _cells(list(models.values()), list(topics.values()), scale, tooltip, ".1f", "OM")
    return _map(table, words, cells, rows, list(models.values()), list(topics.values()))


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
    order = list(models.values())
    scale = alt.Scale(domain=[-1, -0.5, 0, 0.5, 1], range=list(_CORRELATIONS), interpolate="rgb")
    tooltip = [
        alt.Tooltip("y:N", title="Model"),
        alt.Tooltip("x:N", title="And"),
        alt.Tooltip("value:Q", title="Correlation", format=".3f"),
        alt.Tooltip("interval:N", title="95% interval"),
        alt.Tooltip("shared:Q", title="Arguments shared"),
        alt.Tooltip("family:N", title="Same family"),
    ]
    cells = _cells(order[:-1], order[1:], scale, tooltip, ".2f", "Correlation")
    border = (
        _place(order[:-1], order[1:])
        .mark_rect(filled=False, stroke=colour("ink"), strokeWidth=2.5)
        .transform_filter("datum.is_family")
    )
    return _map(table, words, cells + border, rows, order[:-1], order[1:])


def _place(across: Sequence[str], down: Sequence[str]) -> alt.Chart:
    angle = -40 if _cell_width(across) < _ANGLED_BELOW else 0
    axis = alt.Axis(orient="top", labelAngle=angle, grid=False)
    return alt.Chart(data()).encode(
        x=alt.X("x:N", sort=list(across), title=None, axis=axis, scale=alt.Scale(domain=list(across))),
        y=alt.Y("y:N", sort=list(down), title=None, axis=alt.Axis(grid=False), scale=alt.Scale(domain=list(down))),
    )


def _cells(
    across: Sequence[str], down: Sequence[str], scale: alt.Scale, tooltip: list[alt.Tooltip], form: str, title: str
) -> Any:
    place = _place(across, down).encode(tooltip=tooltip)
    legend = alt.Legend(
        title=title,
        gradientLength=160,
        gradientThickness=10,
        orient="bottom",
        titleOrient="left",
        tickCount=2,
        format="~g",
    )
    rects = place.mark_rect(stroke=colour("paper"), strokeWidth=1).encode(
        color=alt.Color("value:Q", scale=scale, legend=legend)
    )
    numbers = place.mark_text().encode(
        text=alt.Text("value:Q", format=form),
        color=alt.condition("datum.is_dark", alt.value(_LIGHT_TEXT), alt.value(_DARK_TEXT)),
    )
    return rects + numbers


def _cell_width(across: Sequence[str]) -> int:
    least, most = _CELL_WIDTHS
    return max(least, min(most, (WIDTH - 220) // max(len(across), 1)))


def _map(
    table: Table,
    words: Words,
    chart: Any,
    rows: Sequence[Mapping[str, Cell]],
    across: Sequence[str],
    down: Sequence[str],
) -> Figure:
    width, height = len(across) * _cell_width(across), len(down) * _CELL_HEIGHT
    size = (width + 230, height + 130)
    return drawn(
        table, words, chart.properties(width=width, height=height), rows, size=size, min_width=size[0] * 3 // 4
    )


def _told(medians: Table) -> str:
    parts = [
        f"{row['pairs']} {float(row['median']):.3f} ({row['number']} pairs)"
        for row in medians.records()
        if row["median"] is not None and row["source"] != "published"
    ]
    return f"Median {', '.join(parts)}." if parts else ""
