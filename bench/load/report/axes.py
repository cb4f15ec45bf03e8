"""The axes of load tests' charts: times, elapsed time and rates.

Times are in milliseconds or, if they are long, in seconds; on a logarithmic axis if they span a wide range. The plots
are narrow, so that a phone shows them whole with letters that can be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from ....report import vega_lite as vl
from ....report.table import Cell

FAR_APART = 20.0
# A time of 0 is drawn here on a logarithmic axis.
LEAST_S = 1e-6
# The width of a plot in pixels.
PLOT_WIDTH = 420
# A picture is at least this wide, its axis and labels included: as wide as the text on a screen of 390 pixels.
MIN_WIDTH = 330
# Times of at least this are shown in seconds.
_SECONDS_FROM_S = 10.0
_UNITS = {"ms": "format(1000 * datum.value, ',.3~r')", "s": "format(datum.value, ',.3~r')"}


def only(layer: str) -> vl.Chart:
    """Returns a chart whose data are the rows with this `layer`, not yet drawn."""
    return vl.Chart().where(f"datum.layer === '{layer}'")


class SecondsAxis(Struct, frozen=True):
    """The y axis of durations, such as latencies, in a chart: its title, and Vega-Lite's scale and axis. `y` returns it
    for one column of the chart's data (a field); columns drawn together share it."""

    title: str
    scale: Any
    axis: Any

    def y(self, field: str = "y") -> vl.Channel:
        return vl.channel(f"{field}:Q", title=self.title, scale=self.scale, axis=self.axis)


def seconds_axis(values: Iterable[float | None], title: str, *, count: int = 5) -> SecondsAxis:
    """Returns the y axis for `values`, durations in seconds (None: not known); logarithmic if they are far apart. Its
    title is followed by the unit."""
    seconds = [value for value in values if value is not None]
    top, least = max(seconds, default=1.0), min((value for value in seconds if value > 0), default=1.0)
    unit = "s" if top >= _SECONDS_FROM_S else "ms"
    title, label = f"{title} ({unit})", _UNITS[unit]
    if top <= FAR_APART * least:
        axis = {"labelExpr": label, "tickCount": count}
        return SecondsAxis(title, {"type": "linear", "zero": True}, axis)
    least = max(LEAST_S, least)
    scale = {"type": "log", "domainMin": least, "domainMax": max(top, 2 * least), "nice": False}
    return SecondsAxis(title, scale, {"labelExpr": label, "values": _log_ticks(least, top)})


def values_of(rows: Iterable[Mapping[str, Cell]], layer: str, *keys: str) -> list[float | None]:
    """Returns the values of the rows of a layer; `keys` are `y` if none are given."""
    values = [row.get(key) for row in rows if row["layer"] == layer for key in keys or ("y",)]
    return [None if value is None else float(value) for value in values]


def _log_ticks(least: float, top: float) -> list[float]:
    ones = [10.0**power for power in range(-6, 5)]
    many = [one * part for one in ones for part in (1, 2, 5)]
    ticks = [tick for tick in many if 0.999 * least <= tick <= 1.001 * top]
    return ticks if len(ticks) <= 8 else [tick for tick in ones if 0.999 * least <= tick <= 1.001 * top]


def elapsed_axis(end_s: float, *, is_bare: bool = False) -> vl.Channel:
    """Returns the x axis of the seconds since the start, from 0 to `end_s`; `is_bare`: without numbers, since a panel
    beneath has them."""
    numbers = {"tickCount": 8, "format": ",~r", "labelFlush": True, "grid": False}
    return vl.channel(
        "x:Q",
        title=None if is_bare else "Time since start (s)",
        scale={"domain": [0, end_s], "nice": False},
        axis={"labels": False, "grid": False} if is_bare else numbers,
    )


def rate_axis(rates: Sequence[float]) -> vl.Channel:
    least, top = min(rates, default=1.0), max(rates, default=1.0)
    is_wide = least > 0 and top > FAR_APART * least
    scale = {"type": "log", "domain": [0.9 * least, 1.1 * top]} if is_wide else {"domain": [0, 1.05 * top]}
    values = _log_ticks(0.9 * least, 1.1 * top) if is_wide else None
    ticks = {"values": values} if values else {"tickCount": 8}
    axis = {"format": ",.4~r", "labelFlush": True, "grid": False, **ticks}
    return vl.channel("x:Q", title="Calls per second", scale=scale, axis=axis)
