"""The axes of load tests' charts: times, elapsed time and rates.

Times are shown in a suitable unit, on a logarithmic axis if they span a wide range.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import altair as alt
from msgspec import Struct

from ....report.charts import data

FAR_APART = 20.0
# A time of 0 is drawn here on a logarithmic axis.
LEAST_S = 1e-6
_IN_UNITS = (
    "datum.value == 0 ? '0' : abs(datum.value) < 0.9995 ? format(1000 * datum.value, ',.3~r') + ' ms'"
    " : format(datum.value, ',.3~r') + ' s'"
)


def only(layer: str) -> Any:
    """Returns a chart whose data are the rows with this `layer`, not yet drawn."""
    return alt.Chart(data()).transform_filter(f"datum.layer === '{layer}'")


class SecondsAxis(Struct, frozen=True):
    """The y axis of durations, such as latencies, in a chart: its title, and Vega-Lite's scale and axis. `y` returns it
    for one column of the chart's data (a field); columns drawn together share it."""

    title: str
    scale: Any
    axis: Any

    def y(self, field: str = "y") -> alt.Y:
        return alt.Y(f"{field}:Q", title=self.title or None, scale=self.scale, axis=self.axis)


def seconds_axis(values: Iterable[float | None], title: str, *, count: int = 5) -> SecondsAxis:
    """Returns the y axis for `values`, durations in seconds (None: not known); logarithmic if they are far apart."""
    known = [value for value in values if value is not None]
    top, least = max(known, default=1.0), min((value for value in known if value > 0), default=1.0)
    if top <= FAR_APART * least:
        axis = alt.Axis(labelExpr=_IN_UNITS, tickCount=count)
        return SecondsAxis(title, alt.Scale(type="linear", zero=True), axis)
    least = max(LEAST_S, least)
    scale = alt.Scale(type="log", domainMin=least, domainMax=max(top, 2 * least), nice=False)
    return SecondsAxis(title, scale, alt.Axis(labelExpr=_IN_UNITS, values=_log_ticks(least, top)))


def _log_ticks(least: float, top: float) -> list[float]:
    ones = [10.0**power for power in range(-6, 5)]
    many = [one * part for one in ones for part in (1, 2, 5)]
    shown = [tick for tick in many if 0.999 * least <= tick <= 1.001 * top]
    return shown if len(shown) <= 8 else [tick for tick in ones if 0.999 * least <= tick <= 1.001 * top]


def elapsed_axis(end_s: float, *, is_bare: bool = False) -> alt.X:
    """Returns the x axis of the seconds since the start, from 0 to `end_s`; `is_bare`: without numbers, since a panel
    beneath has them."""
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
