"""Charts in Vega-Lite, the JSON that a page draws: https://vega.github.io/vega-lite/docs/.

Owns how charts are put together: each verb returns a new chart. Scales, axes and legends are plain mappings in
Vega-Lite's own words. Knows no look and no data.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.4.1.json"
_TYPES = {"Q": "quantitative", "N": "nominal"}
# The second end of a bar or a rule has the type of the first.
_SECOND = ("x2", "y2")

Channel = dict[str, Any]
"""What a mark's place, colour or size shows: a column of the data, or a constant."""


def channel(column: str, **how: Any) -> Channel:
    """Returns the channel of a column, written `name:Q` for numbers and `name:N` for names. None: without, as in
    `title=None`."""
    field, _, kind = column.rpartition(":")
    return {"field": field, "type": _TYPES[kind], **how}


class Chart(Struct, frozen=True):
    """A chart without its data. `spec` is its JSON."""

    spec: Mapping[str, Any] = {}

    def mark(self, kind: str, **how: Any) -> Chart:
        return self.properties(mark={"type": kind, **how})

    def encode(self, **channels: str | Channel | list[Channel]) -> Chart:
        """Adds channels, each a column as `channel` takes it, or made by `channel`; several tooltips are a list."""
        added = {name: _encoded(name, each) for name, each in channels.items()}
        return self.properties(encoding={**self.spec.get("encoding", {}), **added})

    def where(self, expression: str) -> Chart:
        """Returns the chart of those rows alone for which a Vega expression on `datum` is true."""
        return self.properties(transform=[*self.spec.get("transform", ()), {"filter": expression}])

    def facet(self, facet: Channel, **how: Any) -> Chart:
        """Returns panels of this chart, one for each value of a column."""
        return Chart({"facet": facet, "spec": self.spec, **how})

    def resolve(self, **scales: str) -> Chart:
        """Says of channels whether panels share a scale (`shared`) or have their own (`independent`)."""
        return self.properties(resolve={"scale": scales})

    def properties(self, **fields: Any) -> Chart:
        return Chart({**self.spec, **fields})

    def __add__(self, other: Chart) -> Chart:
        """Returns both, the second drawn over the first."""
        return layer(*self._layers, *other._layers)

    @property
    def _layers(self) -> list[Chart]:
        return [Chart(each) for each in self.spec["layer"]] if "layer" in self.spec else [self]


def layer(*charts: Chart) -> Chart:
    """Returns charts drawn over each other, the last on top."""
    return Chart({"layer": [each.spec for each in charts]})


def vconcat(*charts: Chart, spacing: int) -> Chart:
    """Returns charts below each other, with this many pixels between them."""
    return Chart({"vconcat": [each.spec for each in charts], "spacing": spacing})


def _encoded(name: str, value: str | Channel | list[Channel]) -> Channel | list[Channel]:
    if not isinstance(value, str):
        return value
    return {"field": value.rpartition(":")[0]} if name in _SECOND else channel(value)
