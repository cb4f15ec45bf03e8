"""How lines of load tests are drawn: their colours, dashes and legends, and axes of time and of rates.

Owns the look alone. A time is shown in the unit that a reader would take; where the largest is far above the smallest,
its axis is logarithmic.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import altair as alt
from msgspec import Struct

from ..charts import LEGEND_HEIGHT, data, legend_columns
from ..colours import colour

COLOURS = tuple(f"line-{number}" for number in range(1, 9))
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [12, 3], [4, 2, 1, 2], [1, 3], [10, 2, 2, 2, 2, 2])
FAR_APART = 20.0
# Times of nothing have a place on a logarithmic axis too.
LEAST_S = 1e-6
_IN_UNITS = (
    "datum.value == 0 ? '0' : abs(datum.value) < 0.9995 ? format(1000 * datum.value, ',.3~r') + ' ms'"
    " : format(datum.value, ',.3~r') + ' s'"
)


def only(layer: str) -> Any:
    """The rows of one layer of a chart."""
    return alt.Chart(data()).transform_filter(f"datum.layer === '{layer}'")


class Seconds(Struct, frozen=True):
    """An axis of times, the same for all fields that are drawn along it."""

    title: str
    scale: Any
    axis: Any

    def y(self, field: str = "y") -> alt.Y:
        return alt.Y(f"{field}:Q", title=self.title or None, scale=self.scale, axis=self.axis)


def seconds_axis(values: Iterable[float | None], title: str, *, count: int = 5) -> Seconds:
    """`values`: all that is drawn along it."""
    known = [value for value in values if value is not None]
    top, least = max(known, default=1.0), min((value for value in known if value > 0), default=1.0)
    if top <= FAR_APART * least:
        axis = alt.Axis(labelExpr=_IN_UNITS, tickCount=count)
        return Seconds(title, alt.Scale(type="linear", zero=True), axis)
    least = max(LEAST_S, least)
    scale = alt.Scale(type="log", domainMin=least, domainMax=max(top, 2 * least), nice=False)
    return Seconds(title, scale, alt.Axis(labelExpr=_IN_UNITS, values=_log_ticks(least, top)))


def _log_ticks(least: float, top: float) -> list[float]:
    ones = [10.0**power for power in range(-6, 5)]
    many = [one * part for one in ones for part in (1, 2, 5)]
    shown = [tick for tick in many if 0.999 * least <= tick <= 1.001 * top]
    return shown if len(shown) <= 8 else [tick for tick in ones if 0.999 * least <= tick <= 1.001 * top]


def elapsed_axis(end_s: float, *, is_bare: bool = False) -> alt.X:
    """`is_bare`: above another panel that has the numbers."""
    numbers = alt.Axis(tickCount=10, format=",~r", labelFlush=True, grid=False)
    return alt.X(
        "x:Q",
        title=None if is_bare else "Seconds since the start, by when calls were due",
        scale=alt.Scale(domain=[0, end_s], nice=False),
        axis=alt.Axis(labels=False, grid=False) if is_bare else numbers,
    )


def rate_axis(rates: Sequence[float]) -> alt.X:
    least, top = min(rates, default=1.0), max(rates, default=1.0)
    is_wide = least > 0 and top > FAR_APART * least
    scale = alt.Scale(type="log", domain=[0.9 * least, 1.1 * top]) if is_wide else alt.Scale(domain=[0, 1.05 * top])
    values = _log_ticks(0.9 * least, 1.1 * top) if is_wide else None
    axis = alt.Axis(format=",.4~r", labelFlush=True, grid=False, **({"values": values} if values else {"tickCount": 8}))
    return alt.X("x:Q", title="Asked, calls a second", scale=scale, axis=axis)


def lines_of(names: Sequence[str], places: Sequence[int], field: str = "line") -> dict[str, Any]:
    """Colour and dashes of lines by name. `places`: among all of the report, so that each looks alike anywhere."""
    legend = stroke_legend(names)
    dashes = alt.Scale(domain=list(names), range=[list(DASHES[place % len(DASHES)]) for place in places])
    return {
        "color": paint(names, places, field, legend),
        "strokeDash": alt.StrokeDash(f"{field}:N", title=None, scale=dashes, legend=legend),
    }


def stroke_legend(names: Sequence[str], **how: Any) -> alt.Legend:
    columns, between = legend_columns(list(names))
    return alt.Legend(
        symbolType="stroke", symbolStrokeWidth=2, symbolSize=260, columns=columns, columnPadding=between, **how
    )


def paint(names: Sequence[str], places: Sequence[int], field: str, legend: alt.Legend | None = None) -> alt.Color:
    """Without a legend of its own it has that of the lines it is drawn over."""
    scale = alt.Scale(domain=list(names), range=[colour(COLOURS[place % len(COLOURS)]) for place in places])
    if legend is None:
        return alt.Color(f"{field}:N", title=None, scale=scale)
    return alt.Color(f"{field}:N", title=None, scale=scale, legend=legend)


def legend_height(names: Sequence[str]) -> int:
    columns, _ = legend_columns(list(names))
    return LEGEND_HEIGHT + 18 * (-(-len(names) // columns) - 1)
