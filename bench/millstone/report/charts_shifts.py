"""Figures 2 and 5: how far arguments move a model's pro share, one bar for each case, with its interval.

Owns these two charts. The numbers are those of the tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ....metrics.millstone.openness import SHIFT_ORDER
from ....report import vega_lite as vl
from ....report.charts import (
    LEGEND_HEIGHT,
    PADDING,
    WIDTH,
    drawn_figure,
    label_width,
    legend_columns,
    not_drawn,
    safe_labels,
    tooltip_name,
)
from ....report.colours import colour
from ....report.interval_cells import interval_in_a_cell
from ....report.labels import labels
from ....report.table import Cell, Figure, Table

_CASES = dict(zip(SHIFT_ORDER, ("One-sided con", "Clear con", "Balanced", "Clear pro", "One-sided pro"), strict=True))
_CASE_COLOURS = ("con", "con-soft", "other", "pro-soft", "pro")
_SIDES = {"pro": "One con among pro arguments", "con": "One pro among con arguments"}
_SIDE_COLOURS = ("con", "pro")
_BAR, _BETWEEN, _LEGEND_LINE = 11, 16, 18
_SIGNED = "datum.value === 0 ? '0' : format(datum.value, '+~g')"


def shifts_figure(table: Table, names: Sequence[str] = ()) -> Figure:
    """Returns figure 2, how far each case moves the pro share. `names` are the models of the whole report."""
    gone = not_drawn(names, _drawable(table, "shift"), "an issue with answers both at the baseline and with arguments")
    figure = Figure(
        "figure-2-shifts",
        "Figure 2: average shift of the pro share, by case",
        "How far the share of pro answers moves from the baseline, in percentage points, averaged over issues. Lines "
        f"are 95% intervals; the table says over what, or why there is none.{gone}",
        table.name,
        empty="No issue has answers both at the baseline and in a case with arguments.",
    )
    return _bars(table, figure, "shift", "case", _CASES, _CASE_COLOURS)


def contradiction_figure(table: Table, names: Sequence[str] = ()) -> Figure:
    """Returns figure 5, the effect of one contradicting argument. `names` are the models of the whole report."""
    gone = not_drawn(names, _drawable(table, "effect"), "answers on these issues to both cases of a side")
    figure = Figure(
        "figure-5-contradiction",
        "Figure 5: the effect of a single contradicting argument",
        "How far the share of pro answers moves when arguments of one side are joined by one of the other, in "
        "percentage points, averaged over issues: clear and convincing minus one-sided. Lines are 95% "
        "intervals; the table says over what, or why there is none. "
        f"{table.note.partition('.')[0]}.{gone}",
        table.name,
        empty="No issue has answers both in a one-sided case and in the clear and convincing case of its side.",
    )
    return _bars(table, figure, "effect", "side", _SIDES, _SIDE_COLOURS)


def _drawable(table: Table, value: str) -> list[Cell]:
    return [row["model"] for row in table.records() if row[value] is not None]


def _bars(
    table: Table, figure: Figure, value: str, group: str, titles: Mapping[str, str], colours: Sequence[str]
) -> Figure:
    models = safe_labels(labels(str(row["model"]) for row in table.records()))
    rows: list[dict[str, Cell]] = [
        {
            "model": models[str(row["model"])],
            "name": tooltip_name(row["model"]),
            "group": titles[str(row[group])],
            "value": row[value],
            "low": row["low"],
            "high": row["high"],
            "interval": interval_in_a_cell("points", row["low"], row["high"], row["interval"]),
            "issues": row["issues"],
        }
        for row in table.records()
        if row[value] is not None
    ]
    if not rows:
        return figure
    drawn = {row["model"] for row in rows}
    order = [model for model in models.values() if model in drawn]
    groups = list(titles.values())
    columns, _ = legend_columns(groups)
    above = PADDING + LEGEND_HEIGHT + _LEGEND_LINE * (-(-len(groups) // columns) - 1)
    chart = _chart(order, groups, colours, above - PADDING)
    return drawn_figure(
        figure,
        chart.properties(
            width=WIDTH,
            height=len(order) * (len(titles) * _BAR + _BETWEEN),
            autosize={"type": "fit-x", "contains": "padding"},
            # The legend stands in the padding, since it may be wider than the plot.
            padding={"left": PADDING, "right": PADDING, "top": above, "bottom": PADDING},
        ),
        rows,
        min_width=480,
    )


def _chart(models: Sequence[str], groups: Sequence[str], colours: Sequence[str], above: int) -> vl.Chart:
    chosen = {"name": "chosen", "select": {"type": "point", "fields": ["group"]}, "bind": "legend"}
    padding = _BETWEEN / (len(groups) * _BAR + _BETWEEN)
    # By domain and not by sort, which would put the names into expressions.
    rows = {"domain": list(models), "paddingInner": padding, "paddingOuter": padding / 2}
    left = label_width(models)
    columns, between = legend_columns(groups)
    legend = {
        "orient": "none",
        "direction": "horizontal",
        "legendX": -left,
        "legendY": -above,
        "columns": columns,
        "columnPadding": between,
        "rowPadding": 4,
    }
    place = vl.Chart().encode(
        y=vl.channel("model:N", title=None, scale=rows, axis={"minExtent": left}),
        yOffset=vl.channel("group:N", sort=groups, scale={"padding": 0}),
        opacity={"condition": {"param": "chosen", "value": 1}, "value": 0.15},
        tooltip=[
            vl.channel("name:N", title="Model"),
            vl.channel("group:N", title="Case"),
            vl.channel("value:Q", title="Points", format="+.1f"),
            vl.channel("interval:N", title="95% interval"),
            vl.channel("issues:Q", title="Issues"),
        ],
    )
    bars = place.mark("bar").encode(
        x=vl.channel(
            "value:Q", title="Change of the pro share, percentage points", axis={"labelExpr": _SIGNED, "tickCount": 9}
        ),
        color=vl.channel(
            "group:N",
            title=None,
            sort=groups,
            scale={"domain": groups, "range": [*map(colour, colours)]},
            legend=legend,
        ),
    )
    spans = place.mark("rule", strokeWidth=1.2).encode(x="low:Q", x2="high:Q")
    zero = vl.Chart({"data": {"values": [{}]}}).mark("rule", color=colour("zero")).encode(x={"datum": 0})
    return bars.properties(params=[chosen]) + spans + zero
