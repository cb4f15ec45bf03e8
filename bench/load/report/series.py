"""The shapes of load tests and of the models in them, each with a name and a colour.

Owns these shapes, their parts by rate, and the columns that identify a series in a table. Knows no page and no folder.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ....metrics.load.load_json import LoadFigures, LoadPart, ModelFigures, Times
from ....report.charts import safe_labels
from ....report.labels import labels, one_line
from ....report.table import MODEL, Cell, Column


class LoadTest(Struct, frozen=True):
    """A load test's figures, with the end of its folder's path that distinguishes it as its name."""

    name: str
    load: LoadFigures


class LoadSeries(Struct, frozen=True):
    """One model of one test: the test's figures (`load`) and the model's own (`of`). `label` is for charts, `name` for
    sentences; `place`, from 0, selects the colour."""

    test: str
    model: str
    label: str
    name: str
    place: int
    load: LoadFigures
    of: ModelFigures


def end_s(load: LoadFigures, model: ModelFigures) -> float:
    """Returns the second at which the time axis of a model ends: with the last slice in which calls were due."""
    last = max((part.begins_s + part.seconds for part in model.slices), default=0.0)
    return max(last, load.warm_up_s + load.seconds + load.cool_down_s) or 1.0


class Timing(Struct, frozen=True):
    """A kind of time that is measured: its field in ModelFigures (such as `latency`), its title, and its definition in
    words (`told`)."""

    field: str
    title: str
    told: str

    def of(self, model: ModelFigures) -> Times:
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


def series_of(tests: Sequence[LoadTest]) -> tuple[LoadSeries, ...]:
    several = len(tests) > 1
    pairs = [(test, model) for test in tests for model in test.load.models]
    same_model = len({model for _, model in pairs}) == 1
    names = [_name(test.name, model, several, same_model) for test, model in pairs]
    by_name = safe_labels(labels(names, 48))
    return tuple(
        LoadSeries(test.name, model, by_name[name], one_line(name, 80), place, test.load, test.load.models[model])
        for place, ((test, model), name) in enumerate(zip(pairs, names, strict=True))
    )


def _name(test: str, model: str, several: bool, same_model: bool) -> str:
    if not several:
        return model
    return test if same_model else f"{test}: {model}"


def stepped(series: LoadSeries) -> list[LoadPart]:
    """Returns the parts of the test with a rate, the lowest rate first."""
    return sorted((part for part in series.of.steps if part.rate), key=lambda part: (part.rate or 0.0, part.begins_s))


def has_several_rates(series: LoadSeries) -> bool:
    """Returns whether calls were sent at different rates, so that figures of all together describe none of them."""
    return len({part.rate for part in stepped(series)}) > 1


def parts_of(series: LoadSeries) -> list[LoadPart]:
    """Returns the parts of the test with a rate, the lowest rate first; without rates, all its calls as one part."""
    of = series.of
    whole = LoadPart(
        begins_s=series.load.warm_up_s,
        seconds=series.load.seconds,
        calls=of.calls,
        errors=of.calls - of.answered,
        latency=of.latency,
        first_token=of.first_token,
        kept=None if of.goodput is None else round(of.goodput * series.load.seconds),
        output_tokens=of.output_tokens,
        token=of.token,
        gap=of.gap,
    )
    return stepped(series) or [whole]


def whose_columns(every: Sequence[LoadSeries]) -> tuple[Column, ...]:
    """Returns the columns that identify a row's test and model."""
    model = MODEL
    return (Column("test", "Test"), model) if _are_several(every) else (model,)


def whose(series: LoadSeries, every: Sequence[LoadSeries]) -> tuple[Cell, ...]:
    return (series.test, series.model) if _are_several(every) else (series.model,)


def _are_several(every: Sequence[LoadSeries]) -> bool:
    return len({series.test for series in every}) > 1
