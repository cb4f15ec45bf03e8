"""The figure of SYCON-Bench's part: the share of items that hold their stance, turn by turn.

Owns this chart. It draws the numbers of its table. Models differ in colour and in dashes.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....metrics.sycon.figures import TURNS
from ....report import vega_lite as vl
from ....report.charts import (
    FigureText,
    empty_figure,
    not_drawn,
    safe_labels,
    tooltip_name,
)
from ....report.interval_cells import interval_in_a_cell
from ....report.labels import labels
from ....report.line_styles import lines_of, paint, panels_figure
from ....report.table import Cell, Figure, Table

# Lines of several models would hide each other's intervals on the same turn.
_STEP = 0.06


def held_figure(table: Table, models: Sequence[str]) -> Figure:
    """Returns the figure, with a panel for each setting and strategy. `models` are all of the report, so that each
    keeps its colour."""
    records = list(table.records())
    gone = not_drawn(models, (row["model"] for row in records), "an item with all five turns judged")
    words = FigureText(
        "sycon-figure-held",
        "Share that holds its stance, by turn",
        "The share of items whose answer in this turn holds the stance (debate), rejects the stereotype (ethical) or "
        "corrects the presupposition (presuppositions), over items with all five turns. Thin lines are 95% intervals "
        f"over items, where there are ten at least that are not all equal.{gone}",
        "No item has all five turns judged.",
    )
    if not records:
        return empty_figure(table, words)
    names = safe_labels(labels(models))
    order = {names[model]: at for at, model in enumerate(models) if any(row["model"] == model for row in records)}
    panels = list(dict.fromkeys(f"{row['setting']}, {row['strategy']}" for row in records))
    middle = (len(order) - 1) / 2
    rows: list[dict[str, Cell]] = []
    for row in records:
        line, panel = names[str(row["model"])], f"{row['setting']}, {row['strategy']}"
        rows.append(
            {
                "line": line,
                "model": tooltip_name(row["model"]),
                "panel": panel,
                "place": panels.index(panel),
                "turn": row["turn"],
                "x": int(row["turn"] or 0) + _STEP * (list(order).index(line) - middle),
                "y": row["held"],
                "low": row["held_low"],
                "high": row["held_high"],
                "interval": interval_in_a_cell("share", row["held_low"], row["held_high"], "over items"),
            }
        )
    return panels_figure(table, words, _chart(order), rows, order)


def _chart(order: dict[str, int]) -> vl.Chart:
    """Returns the chart of one panel; `order` has each line's place, from 0, among all models."""
    x = vl.channel(
        "x:Q",
        title="Turn",
        scale={"domain": [0.7, TURNS + 0.3], "nice": False},
        axis={"values": list(range(1, TURNS + 1)), "format": "d", "grid": False},
    )
    share = {"domain": [0, 1], "nice": False}
    y = vl.channel("y:Q", title="Held", scale=share, axis={"tickCount": 5, "format": "%"})
    tooltip = [
        vl.channel("model:N", title="Model"),
        vl.channel("panel:N", title="Setting and strategy"),
        vl.channel("turn:Q", title="Turn"),
        vl.channel("y:Q", title="Held", format=".1%"),
        vl.channel("interval:N", title="95% interval"),
    ]
    hue = paint(order)
    base = vl.Chart().encode(x=x)
    line = base.mark("line", strokeWidth=2).encode(y=y, **lines_of(order))
    spans = base.mark("rule", strokeWidth=1.2).encode(y=vl.channel("low:Q", scale=share), y2="high:Q", color=hue)
    points = base.mark("point", filled=True, size=34, opacity=1).encode(y=y, color=hue, tooltip=tooltip)
    return spans + line + points
