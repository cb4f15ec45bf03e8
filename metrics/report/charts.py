"""What all charts share: how they look, and the way from a table and an Altair chart to a figure.

Owns the look and the sizes. Knows no single figure. Altair takes most of a second to import: only charts import it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import altair as alt
from msgspec import Struct

from .colours import colour
from .labels import listed, plain, width_of
from .table import Cell, Figure, Table

DATA = "rows"
Name = TypeVar("Name", bound=Hashable)
FONT = "system-ui, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"
WIDTH = 640
# What a labelled axis and a legend add to the height of a plot.
AXIS_HEIGHT, LEGEND_HEIGHT = 38, 28
PADDING = 4
# Long enough for eight steps with a number between each two.
GRADIENT = 330
_SMALL, _PLAIN = 11, 12
_LABEL_LIMIT, _NAME_LONGEST = 300, 120
_LABEL_PADDING, _LABEL_MARGIN, _SYMBOL_WIDTH = 6, 4, 18
# A still picture is laid out by one font and shown in another, of which words may be so much wider.
_WIDER = 0.2
# Shows nothing, and makes every label a name that no object of JavaScript's has by itself.
_GUARD = "\N{NO-BREAK SPACE}"


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


def guarded(labels: Mapping[Name, str]) -> dict[Name, str]:
    """Labels that charts may group by: Vega keeps groups in plain objects, where `toString` and `__proto__` are found
    though nobody put them there."""
    return {name: label + _GUARD for name, label in labels.items()}


def told(name: Cell) -> str:
    """A name as a tooltip has it: nearly always whole."""
    return plain(str(name), _NAME_LONGEST)


def not_drawn(asked: Sequence[str], shown: Iterable[Cell], lack: str) -> str:
    """A sentence on the models that a figure leaves out; none if it leaves out none, or all, which it says itself."""
    there = set(shown)
    gone = [model for model in asked if model not in there]
    return f" Not drawn, for want of {lack}: {listed(gone)}." if gone and there else ""


def label_width(shown: Iterable[str]) -> int:
    """The room that an axis keeps for its labels, so that they fit in whatever font they are drawn."""
    widest = max((width_of(label, _PLAIN) for label in shown), default=0)
    return _LABEL_PADDING + _LABEL_MARGIN + min(round((1 + _WIDER) * _LABEL_LIMIT), widest)


def legend_columns(titles: Sequence[str]) -> tuple[int, int]:
    """How many entries of a legend stand in a line, and the space between them."""
    between = 12 + round(_WIDER * max(width_of(title, _PLAIN) for title in titles))
    entries = [_SYMBOL_WIDTH + width_of(title, _PLAIN) for title in titles]
    for columns in range(len(titles), 1, -1):
        widths = [max(entries[at::columns]) for at in range(columns)]
        if sum(widths) + (columns - 1) * between <= WIDTH - 2 * PADDING:
            return columns, between
    return 1, between


def _look() -> dict[str, Any]:
    ink, quiet, grid = colour("ink"), colour("quiet"), colour("grid")
    return {
        "background": "transparent",
        "font": FONT,
        "padding": PADDING,
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
            "labelPadding": _LABEL_PADDING,
            "labelSeparation": 8,
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
            "columnPadding": 24,
            # Here and not with each legend: of one in steps, Vega-Lite passes these on from nowhere else.
            "gradientLength": GRADIENT,
            "gradientThickness": 10,
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
