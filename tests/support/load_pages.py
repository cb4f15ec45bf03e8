"""The page of one load test, as its elements and its tables."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from page_elements import Elements

from millstream.bench.load.report.part import LoadPage, drawn
from millstream.bench.load.report.series import LoadTest
from millstream.metrics.load.load_json import LoadFigures, ModelFigures

MODEL = "sim/steady"


def alone(load: LoadFigures) -> tuple[Elements, LoadPage]:
    made = drawn([LoadTest("test", load)], "millstream report test")
    return Elements(made.page), made


@cache
def page_of(load: Callable[[], LoadFigures]) -> tuple[Elements, LoadPage]:
    return alone(load())


def of(load: LoadFigures) -> ModelFigures:
    return load.models[MODEL]
