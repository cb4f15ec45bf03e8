"""What is told of: load tests by their names, and the models in them, each with a name of its own and a place.

Owns these shapes, and in which test and model a series stands in a table. Knows no page and no folder.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ...load.file import Load, Model, Times
from ..charts import guarded
from ..labels import labels, plain
from ..table import Cell, Column


class LoadTest(Struct, frozen=True):
    """`name`: its folder, where that tells it from the others."""

    name: str
    load: Load


class Series(Struct, frozen=True):
    """One model of one test. `label` is drawn, `place` gives its colour; `name` is what a sentence calls it."""

    test: str
    model: str
    label: str
    name: str
    place: int
    load: Load
    of: Model


class Timing(Struct, frozen=True):
    """A time that was measured: the field of Model, its title, and from when to when it is."""

    field: str
    title: str
    told: str

    def of(self, model: Model) -> Times:
        times: Times = getattr(model, self.field)
        return times


TIMINGS = (
    Timing("latency", "latency", "from when a call was due to its last byte"),
    Timing("service", "service time", "from when it was sent to its last byte"),
    Timing("first_token", "first token", "from when a call was due to its first piece of text"),
    Timing("token", "time per token", "for each token after the first"),
    Timing("gap", "gap between tokens", "between two pieces of text"),
    Timing("own_delay", "our own delay", "how late the client's loop began it"),
    Timing("held_by_lane", "held by its lane", "how long quotas and slots held it before it was sent"),
)


def series_of(tests: Sequence[LoadTest]) -> tuple[Series, ...]:
    several = len(tests) > 1
    pairs = [(test, model) for test in tests for model in test.load.models]
    same_model = len({model for _, model in pairs}) == 1
    names = [_name(test.name, model, several, same_model) for test, model in pairs]
    shown = guarded(labels(names, 48))
    return tuple(
        Series(test.name, model, shown[name], plain(name, 80), place, test.load, test.load.models[model])
        for place, ((test, model), name) in enumerate(zip(pairs, names, strict=True))
    )


def _name(test: str, model: str, several: bool, same_model: bool) -> str:
    if not several:
        return model
    return test if same_model else f"{test}: {model}"


def whose_columns(every: Sequence[Series]) -> tuple[Column, ...]:
    """The columns that tell rows of several tests apart."""
    own = Column("model", "Model")
    return (Column("test", "Test"), own) if _are_several(every) else (own,)


def whose(series: Series, every: Sequence[Series]) -> tuple[Cell, ...]:
    return (series.test, series.model) if _are_several(every) else (series.model,)


def _are_several(every: Sequence[Series]) -> bool:
    return len({series.test for series in every}) > 1
