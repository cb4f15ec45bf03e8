"""Figures 4 and 6: heat maps with their numbers written in, of topics by models, and of models by models.

Owns these two charts and their colour scales. Colours go in steps, since each has one value for light pages and one for
dark ones. The numbers are those of the tables.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ....report import vega_lite as vl
from ....report.charts import GRADIENT, PADDING, WIDTH, drawn_figure, label_width, not_drawn, safe_labels, tooltip_name
from ....report.colours import colour
from ....report.interval_cells import interval_in_a_cell
from ....report.labels import labels
from ....report.table import Cell, Figure, Table, number_of

_SEQUENTIAL = tuple(f"more-{step}" for step in range(1, 7))
_DIVERGING = ("less-6", "less-4", "less-3", "less-1", "more-1", "more-3", "more-4", "more-6")
# From this step on, a cell's colour is nearer to the ink than to the paper, on light and dark pages.
_STRONG = 4
_STEPS = (0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 20.0)
_BORDER = (("ink", 4.5), ("paper", 1.5))
_ENDS = ("first", "second")
_CELL_HEIGHT = 30
_CELL_WIDTHS = (44, 110)
_ANGLE = math.radians(40)
_LINE = 14


def topics_figure(table: Table, names: Sequence[str] = ()) -> Figure:
    """Returns figure 4, the heat map of open-mindedness by topic and model. `names` are the models of the whole
    report."""
    records = [row for row in table.records() if row["om"] is not None]
    gone = not_drawn(names, (row["model"] for row in records), "a scored issue whose topic is known")
    figure = Figure(
        "figure-4-topics",
        "Figure 4: open-mindedness by topic and model",
        "Mean OM over the issues of a topic; darker (in dark mode: lighter) is more open-minded. In brackets: the "
        f"number of scored issues (the most of any model). No cell: no scored issue.{gone}",
        table.name,
        empty="No topic is known for any issue of this data set: topics are known for the issues of the published one.",
    )
    if not records:
        return figure
    models = safe_labels(labels((str(row["model"]) for row in records), 24))
    counts: dict[str, list[int]] = {}
    for row in records:
        counts.setdefault(str(row["topic"]), []).append(int(row["issues"] or 0))
    topics = safe_labels({topic: f"{label} ({max(counts[topic])})" for topic, label in labels(counts, 36).items()})
    scale = _topics_scale(max(float(row["om"] or 0) for row in records))
    rows: list[dict[str, Cell]] = [
        {
            "x": models[str(row["model"])],
            "y": topics[str(row["topic"])],
            "model": tooltip_name(row["model"]),
            "topic": tooltip_name(row["topic"]),
            "value": row["om"],
            "is_strong": scale.is_strong(float(row["om"] or 0)),
            "issues": row["issues"],
        }
        for row in records
    ]
    tooltip = [
        vl.channel("model:N", title="Model"),
        vl.channel("topic:N", title="Topic"),
        vl.channel("value:Q", title="OM", format=".2f"),
        vl.channel("issues:Q", title="Scored issues"),
    ]
    grid = _Grid(tuple(models.values()), tuple(topics.values()))
    return _map(figure, _cells(grid, scale, tooltip), rows, grid)


def correlations_figure(table: Table, spread: str = "", names: Sequence[str] = ()) -> Figure:
    """Returns figure 6, the heat map of correlations between two models. `spread` has sentences on their size; `names`
    are the models of the whole report."""
    every = list(table.records())
    # Two points always lie on one line: their correlation says nothing.
    records = [row for row in every if row["r"] is not None and (number_of(row["shared"]) or 0) > 2]
    itself = " A model beside itself is in no median." if any(row["same_model"] for row in records) else ""
    gone = not_drawn(names, (row[end] for row in records for end in _ENDS), "a correlation with another model")
    figure = Figure(
        "figure-6-correlations",
        "Figure 6: do the same arguments move two models?",
        "Pearson's correlation of the effects of single arguments on two models, over the arguments both were shown. "
        "Blue: they move both alike; orange: they move one against the other; stronger colours: more so. "
        f"Thick borders mark models of one family.{spread}{itself}{gone}",
        table.name,
        empty="A correlation takes two models that were shown the same three arguments or more, and arguments that "
        "differ in their effect.",
    )
    if not records:
        return figure
    there = {row[end] for row in records for end in _ENDS}
    # In the survey's order, which all pairs follow.
    order = dict.fromkeys(str(row[end]) for row in every for end in _ENDS if row[end] in there)
    models = safe_labels(labels(order, 24))
    rows: list[dict[str, Cell]] = [
        {
            "x": models[str(row["first"])],
            "y": models[str(row["second"])],
            "first": tooltip_name(row["first"]),
            "second": tooltip_name(row["second"]),
            "value": row["r"],
            "is_strong": _CORRELATIONS.is_strong(float(row["r"] or 0)),
            "is_family": row["same_family"] and not row["same_model"],
            "family": "the same model" if row["same_model"] else "yes" if row["same_family"] else "no",
            "interval": interval_in_a_cell("correlation", row["low"], row["high"], row["interval"]),
            "shared": row["shared"],
        }
        for row in records
    ]
    axis = tuple(models.values())
    grid = _Grid(axis[:-1], axis[1:])
    tooltip = [
        vl.channel("second:N", title="Model"),
        vl.channel("first:N", title="And"),
        vl.channel("value:Q", title="Correlation", format=".3f"),
        vl.channel("interval:N", title="95% interval"),
        vl.channel("shared:Q", title="Arguments shared"),
        vl.channel("family:N", title="Same family"),
    ]
    cells = _cells(grid, _CORRELATIONS, tooltip)
    # It has the cell's tooltip, since it lies above the cell.
    family = _place(grid).encode(tooltip=tooltip).where("datum.is_family")
    # Two lines: one alone would not be visible on the strongest cells.
    for name, width in _BORDER:
        cells += family.mark("rect", filled=False, stroke=colour(name), strokeWidth=width)
    return _map(figure, cells, rows, grid)


class _Grid(NamedTuple):
    """The labels of a map's columns and rows, in their order."""

    across: tuple[str, ...]
    down: tuple[str, ...]

    @property
    def cell_width(self) -> int:
        least, most = _CELL_WIDTHS
        return max(least, min(most, (WIDTH - 220) // len(self.across)))

    @property
    def is_angled(self) -> bool:
        return self._widest > self.cell_width - 4

    @property
    def top(self) -> int:
        """The height of the columns' labels, in pixels."""
        return math.ceil(math.sin(_ANGLE) * self._widest) + _LINE + 4 if self.is_angled else _LINE + 6

    @property
    def beyond(self) -> int:
        """The pixels by which the last column's label may extend beyond the grid."""
        return math.ceil(math.cos(_ANGLE) * self._widest) - self.cell_width // 2 if self.is_angled else 0

    @property
    def _widest(self) -> int:
        return label_width(self.across)


class _Scale(NamedTuple):
    """The colour scale of a map: its title, the bounds between colour steps, the colours, and the number formats."""

    title: str
    bounds: tuple[float, ...]
    colours: tuple[str, ...]
    form: str
    bound_form: str

    def is_strong(self, value: float) -> bool:
        return int(self.colours[bisect_right(self.bounds, value)][-1]) >= _STRONG


_CORRELATIONS = _Scale("Correlation", (-0.75, -0.5, -0.25, 0, 0.25, 0.5, 0.75), _DIVERGING, ".2f", ".2~f")


def _topics_scale(most: float) -> _Scale:
    steps = len(_SEQUENTIAL)
    step = next(step for step in _STEPS if steps * step >= most)
    return _Scale("OM", tuple(round(step * at, 1) for at in range(1, steps)), _SEQUENTIAL, ".1f", "~g")


def _place(grid: _Grid) -> vl.Chart:
    angle = -math.degrees(_ANGLE) if grid.is_angled else 0
    top = {"orient": "top", "labelAngle": angle, "grid": False, "minExtent": grid.top}
    left = {"grid": False, "minExtent": label_width(grid.down)}
    return vl.Chart().encode(
        x=vl.channel("x:N", title=None, axis=top, scale={"domain": list(grid.across)}),
        y=vl.channel("y:N", title=None, axis=left, scale={"domain": list(grid.down)}),
    )


def _cells(grid: _Grid, scale: _Scale, tooltip: list[vl.Channel]) -> vl.Chart:
    place = _place(grid).encode(tooltip=tooltip)
    legend = {
        "title": scale.title,
        "format": scale.bound_form,
        "orient": "bottom",
        "titleOrient": "top",
        "titlePadding": 4,
    }
    steps = {"type": "threshold", "domain": list(scale.bounds), "range": [*map(colour, scale.colours)]}
    shade = vl.channel("value:Q", scale=steps, legend=legend)
    ink = {"condition": {"test": "datum.is_strong", "value": colour("paper")}, "value": colour("ink")}
    rects = place.mark("rect", stroke=colour("paper"), strokeWidth=1).encode(color=shade)
    return rects + place.mark("text").encode(text=vl.channel("value:Q", format=scale.form), color=ink)


def _map(figure: Figure, chart: vl.Chart, rows: Sequence[Mapping[str, Cell]], grid: _Grid) -> Figure:
    width, height = len(grid.across) * grid.cell_width, len(grid.down) * _CELL_HEIGHT
    whole = label_width(grid.down) + max(width + grid.beyond, GRADIENT) + 2 * PADDING
    padding = {"left": PADDING, "top": PADDING, "bottom": PADDING, "right": PADDING + grid.beyond // 5}
    chart = chart.properties(width=width, height=height, padding=padding)
    return drawn_figure(figure, chart, rows, min_width=whole * 3 // 4)
