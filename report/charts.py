"""The common look and sizes of all charts, and the step from a table and a chart to a figure.

Knows no single figure.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from msgspec import structs

from .colours import colour
from .labels import named_list, one_line, width_of
from .table import Cell, Figure
from .vega_lite import SCHEMA, Chart

DATA = "rows"
Name = TypeVar("Name", bound=Hashable)
FONT = "system-ui, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"
WIDTH = 640
# The pixels that a legend adds to the height of a plot.
LEGEND_HEIGHT = 28
PADDING = 4
# Long enough for eight steps with a number between each two.
GRADIENT = 330
_SMALL, _PLAIN = 11, 12
_LABEL_LIMIT, _NAME_LONGEST = 300, 120
_LABEL_PADDING, _LABEL_MARGIN, _SYMBOL_WIDTH = 6, 4, 18
# A still picture is laid out in one font and shown in another, whose words may be wider by this share.
_WIDER = 0.2
# An invisible character that makes every label different from the names that each object of JavaScript has by itself.
_GUARD = "\N{NO-BREAK SPACE}"


def drawn_figure(figure: Figure, chart: Chart, rows: Iterable[Mapping[str, Cell]], *, min_width: int) -> Figure:
    """Returns the figure with a chart and its rows, at least so many pixels wide. The page, not the chart, writes the
    title."""
    spec: dict[str, Any] = {
        "$schema": SCHEMA,
        "config": _look(),
        "data": {"name": DATA},
        "description": figure.title,
        **chart.spec,
        "datasets": {DATA: [dict(row) for row in rows]},
    }
    return structs.replace(figure, spec=spec, empty="", min_width=min_width)


def safe_labels(labels: Mapping[Name, str]) -> dict[Name, str]:
    """Returns the labels with an invisible character added, so that charts can group by them: Vega keeps groups in
    plain JavaScript objects, which always have keys such as `toString` and `__proto__`."""
    return {name: label + _GUARD for name, label in labels.items()}


def tooltip_name(name: Cell) -> str:
    """Returns a name for a tooltip, cut in its middle if it is longer than 120 characters."""
    return one_line(str(name), _NAME_LONGEST)


def not_drawn(models: Sequence[str], drawn: Iterable[Cell], lack: str) -> str:
    """Returns a sentence on the models that a figure leaves out for want of `lack`; empty if none or all are."""
    there = set(drawn)
    gone = [model for model in models if model not in there]
    return f" Not drawn, without {lack}: {named_list(gone)}." if gone and there else ""


def label_width(names: Iterable[str]) -> int:
    """Returns the width in pixels that an axis needs for its labels, also if they are drawn in a wider font."""
    widest = max((width_of(label, _PLAIN) for label in names), default=0)
    return _LABEL_PADDING + _LABEL_MARGIN + min(round((1 + _WIDER) * _LABEL_LIMIT), widest)


def legend_columns(titles: Sequence[str]) -> tuple[int, int]:
    """Returns how many entries of a legend fit on a line, at least 1, and the pixels between them."""
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
            # Here and not with each legend: for a legend in steps, Vega-Lite passes these on only from here.
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
