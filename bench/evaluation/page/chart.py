"""The figure of the general part: the score of each model with its interval. It draws the numbers of its table."""

from __future__ import annotations

from ....report import vega_lite as vl
from ....report.charts import WIDTH, drawn_figure, label_width, safe_labels, tooltip_name
from ....report.colours import colour
from ....report.interval_cells import interval_in_a_cell
from ....report.labels import labels
from ....report.table import Cell, Figure, Table

_STEP = 26
# The pixels of a page's column on a wide screen, without the room beside a still picture.
_WIDTH = 900


def scores_figure(table: Table, name: str, title: str, most: float | None) -> Figure:
    """Returns the figure: a point and an interval for each model that has a score; an empty one if none has. Its axis
    reaches `most`, the largest score possible; None: it is not known."""
    scored = [row for row in table.records() if row["name"] is None and isinstance(row["score"], int | float)]
    figure = Figure(
        f"{name}-figure-scores",
        title,
        "The score of each model, and its 95% interval over items where there is one.",
        table.name,
        empty="No model has a score.",
    )
    if not scored:
        return figure
    names = safe_labels(labels([str(row["model"]) for row in scored]))
    rows: list[dict[str, Cell]] = [
        {
            "label": names[str(row["model"])],
            "model": tooltip_name(row["model"]),
            "score": row["score"],
            "low": row["low"],
            "high": row["high"],
            "interval": interval_in_a_cell("small", row["low"], row["high"], "over items"),
        }
        for row in scored
    ]
    order = [str(row["label"]) for row in rows]
    return drawn_figure(
        figure,
        _chart(order, most),
        rows,
        min_width=max(label_width(order) + 240, WIDTH),
    )


def _chart(order: list[str], most: float | None) -> vl.Chart:
    y = vl.channel(
        "label:N", title=None, sort=order, axis={"minExtent": label_width(order), "maxExtent": label_width(order)}
    )
    tooltip = [
        vl.channel("model:N", title="Model"),
        vl.channel("score:Q", title="Score", format=".3f"),
        vl.channel("interval:N", title="95% interval"),
    ]
    base = vl.Chart().encode(y=y)
    scale = {} if most is None else {"domainMax": most}
    # Flush labels are moved inward from the ends of the axis, away from their lines.
    x = vl.channel("low:Q", title="Score", scale=scale, axis={"labelFlush": False, "tickCount": 10})
    span = base.mark("rule", strokeWidth=2, color=colour("line-1")).encode(x=x, x2="high:Q")
    point = base.mark("point", filled=True, size=60, opacity=1, color=colour("line-1")).encode(
        x="score:Q", tooltip=tooltip
    )
    return (span + point).properties(width=_WIDTH - label_width(order) - 30, height=_STEP * len(order))
