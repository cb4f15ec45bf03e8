"""What all charts share: how they look, and the way from a table and an Altair chart to a figure.

Owns the look and the sizes. Knows no single figure. Altair takes most of a second to import: only charts import it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import altair as alt
from msgspec import Struct

from .colours import colour
from .table import Cell, Figure, Table

DATA = "rows"
FONT = "system-ui, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"
WIDTH = 640
# What a labelled axis and a legend add to the height of a plot.
AXIS_HEIGHT, LEGEND_HEIGHT = 38, 28
_SMALL, _PLAIN = 11, 12
_LABEL_LIMIT = 300


def data() -> alt.NamedData:
    """The data of every chart: filled in when the figure is made, since Altair checks each value it is given."""
    return alt.NamedData(name=DATA)


class Words(Struct, frozen=True):
    """What is written about a figure; `empty` is the sentence in its place when there is nothing to draw."""

    name: str
    title: str
    caption: str
    empty: str


def drawn(
    table: Table,
    words: Words,
    chart: Any,
    rows: Iterable[Mapping[str, Cell]],
    *,
    size: tuple[int, int],
    min_width: int,
) -> Figure:
    """A figure from a chart and its rows. The title is the page's to write: the chart has none."""
    # The tests hold every chart to the schema; here it would cost as much as all the rest.
    spec: dict[str, Any] = chart.properties(description=words.title).configure(**_look()).to_dict(validate=False)
    spec["datasets"] = spec.get("datasets", {}) | {DATA: [dict(row) for row in rows]}
    return Figure(words.name, words.title, words.caption, table.name, spec, "", *size, min_width)


def empty(table: Table, words: Words) -> Figure:
    return Figure(words.name, words.title, words.caption, table.name, None, words.empty)


def label_width(shown: Iterable[str]) -> int:
    """About how wide the longest label of an axis is, which nobody can know before it is drawn."""
    return min(_LABEL_LIMIT, 12 + round(6.4 * max(map(len, shown), default=0)))


def span(low: Cell, high: Cell, form: str = "+.1f") -> str:
    """An interval in words, for a tooltip."""
    if low is None or high is None:
        return "unknown"
    return f"{low:{form}} to {high:{form}}".replace("-", "−")


def _look() -> dict[str, Any]:
    ink, quiet, grid = colour("ink"), colour("quiet"), colour("grid")
    return {
        "background": "transparent",
        "font": FONT,
        "padding": 4,
        "view": {"stroke": None},
        "axis": {
            "labelColor": ink,
            "titleColor": quiet,
            "labelFontSize": _PLAIN,
            "titleFontSize": _PLAIN,
            "titleFontWeight": "normal",
            "titlePadding": 8,
            "labelLimit": _LABEL_LIMIT,
            "gridColor": grid,
            "domainColor": grid,
            "tickColor": grid,
            "domain": False,
            "ticks": False,
            "labelPadding": 6,
        },
        "legend": {
            "labelColor": ink,
            "titleColor": quiet,
            "labelFontSize": _PLAIN,
            "titleFontSize": _PLAIN,
            "titleFontWeight": "normal",
            "orient": "top",
            "direction": "horizontal",
            "symbolType": "square",
            "symbolStrokeWidth": 0,
            "labelLimit": _LABEL_LIMIT,
            "padding": 0,
            "offset": 10,
        },
        "header": {
            "labelColor": ink,
            "titleColor": quiet,
            "labelFontSize": _PLAIN,
            "labelFontWeight": "bold",
            "labelLimit": _LABEL_LIMIT,
            "labelPadding": 4,
        },
        "text": {"color": ink, "fontSize": _SMALL},
        "rule": {"color": ink},
    }
