"""The look of lines: colours, dashes and legends, by the lines' names.

Owns the look alone, and how panels of lines are laid out. Lines differ in dashes too, so that they can be distinguished
without colours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import vega_lite as vl
from .charts import drawn_figure, legend_columns
from .colours import colour
from .table import Cell, Figure

COLOURS = tuple(f"line-{number}" for number in range(1, 9))
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [12, 3], [4, 2, 1, 2], [1, 3], [10, 2, 2, 2, 2, 2])
_PANEL, _PANEL_HEIGHT, _SPACING = 262, 180, 26


def lines_of(order: Mapping[str, int], field: str = "line") -> dict[str, Any]:
    """Returns the colour and dashes of lines by name. `order` has each drawn line's place, from 0, among all lines of
    the report, so that a line looks the same everywhere."""
    legend = stroke_legend(order)
    dashes = {"domain": list(order), "range": [list(DASHES[place % len(DASHES)]) for place in order.values()]}
    return {
        "color": paint(order, field, legend),
        "strokeDash": vl.channel(f"{field}:N", title=None, scale=dashes, legend=legend),
    }


def stroke_legend(names: Iterable[str], **how: Any) -> vl.Channel:
    """Returns a legend of lines in place of squares, as dashes belong to lines."""
    columns, between = legend_columns(list(names))
    return {
        "symbolType": "stroke",
        "symbolStrokeWidth": 2,
        "symbolSize": 260,
        "columns": columns,
        "columnPadding": between,
        **how,
    }


def paint(order: Mapping[str, int], field: str = "line", legend: vl.Channel | None = None) -> vl.Channel:
    """Returns the colour encoding of a chart by the names in column `field`, each with the colour of its place in
    `order`; without `legend`, the legend is that of the lines drawn beneath."""
    scale = {"domain": list(order), "range": [colour(COLOURS[place % len(COLOURS)]) for place in order.values()]}
    if legend is None:
        return vl.channel(f"{field}:N", title=None, scale=scale)
    return vl.channel(f"{field}:N", title=None, scale=scale, legend=legend)


def panels_figure(figure: Figure, chart: vl.Chart, rows: Sequence[Mapping[str, Cell]]) -> Figure:
    """Returns a figure of lines with two panels side by side: one for each `panel` of the rows, in order of `place`."""
    panels = len({row["panel"] for row in rows})
    facet = vl.channel("panel:N", sort={"field": "place", "op": "min"}, title=None)
    chart = chart.properties(width=_PANEL, height=_PANEL_HEIGHT).facet(facet, columns=2).properties(spacing=_SPACING)
    return drawn_figure(figure, chart, rows, min_width=440 if panels > 1 else 280)
