"""The charts of load tests hold to the schema, and are drawn from the figures of load.json."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import altair as alt
import pytest
from hostile import hostile
from load_files import closed, searched, steady, swept
from msgspec.structs import replace

from millstream.bench.load.report import tables
from millstream.bench.load.report.charts_rates import by_rate_figure, overlaid_by_rate_figure
from millstream.bench.load.report.charts_spectrum import spectrum_figure, streaming_figure
from millstream.bench.load.report.charts_time import over_time_figure, overlaid_over_time_figure
from millstream.bench.load.report.series import LoadSeries, LoadTest, has_several_rates, series_of
from millstream.metrics.load.load_json import LoadFigures, LoadPart, ModelFigures
from millstream.metrics.load.spectrum import spectrum
from millstream.report.pictures import svg
from millstream.report.table import Figure

# The load tests that it reads take seconds of a core, whoever runs first.
pytestmark = pytest.mark.slow


def series(*loads: LoadFigures) -> tuple[LoadSeries, ...]:
    return series_of([LoadTest(f"test {at}", load) for at, load in enumerate(loads, 1)])


def of(load: LoadFigures) -> ModelFigures:
    return next(iter(load.models.values()))


def renamed(load: LoadFigures, name: str, errors: list[str]) -> LoadFigures:
    slices = tuple(replace(part, kinds=dict.fromkeys(errors, 1), errors=len(errors)) for part in of(load).slices)
    return replace(load, models={name: replace(of(load), slices=slices)})


def figures_of(*loads: LoadFigures) -> list[Figure]:
    every = series(*loads)
    over_time, spectra = tables.over_time_table(every), tables.spectrum_table(every)
    by_rate = tables.by_rate_table(every)
    if len(loads) > 1:
        own = [overlaid_over_time_figure(over_time, every), overlaid_by_rate_figure(by_rate, every)]
    else:
        own = [over_time_figure(over_time, every[0], 1)]
        own += [by_rate_figure(by_rate, each, 1) for each in every if has_several_rates(each)]
    streamed = [streaming_figure(spectra, every)] if any(each.of.gap.count for each in every) else []
    return [*own, spectrum_figure(spectra, every), *streamed]


def rows(figure: Figure, layer: str) -> list[dict[str, Any]]:
    assert figure.spec is not None
    return [row for row in figure.spec["datasets"]["rows"] if row["layer"] == layer]


def evil() -> list[LoadFigures]:
    texts = [text for text in hostile(80) if len(text) < 5_000]
    return [renamed(steady(), texts[0], texts[1:9]), renamed(searched(), "__proto__", texts[50:60])]


# Measured by whoever asks for one, not by every process that reads this module.
CASES: dict[str, Callable[[], list[LoadFigures]]] = {
    "one rate": lambda: [steady()],
    "a closed loop": lambda: [closed()],
    "a search": lambda: [searched()],
    "two": lambda: [swept(), searched()],
    "nine": lambda: [closed()] * 8 + [swept()],
    "hostile": evil,
}


@pytest.mark.long
@pytest.mark.parametrize("case", CASES)
def test_a_chart_holds_to_the_schema_and_is_no_narrower_than_it_may_be(case: str) -> None:
    for figure in figures_of(*CASES[case]()):
        if figure.spec is None:
            assert figure.empty.endswith(".")
            continue
        alt.Chart.from_dict(figure.spec, validate=True)
        assert json.loads(json.dumps(figure.spec)) == figure.spec
        root = ElementTree.fromstring(svg(figure))
        assert 0 < figure.min_width <= float(root.attrib["width"])


def test_axes_have_the_usual_titles() -> None:
    spec = json.dumps([figure.spec for load in (searched(), steady()) for figure in figures_of(load)])
    for title in (
        "Time since start (s)",
        "Calls per second",
        "Percentile",
        "Latency (ms)",
        "TTFT (ms)",
        "TPOT (ms)",
        "ITL (ms)",
    ):
        assert f'"title": "{title}"' in spec, title
    slow = replace(of(closed()), slices=tuple(_slower(part) for part in of(closed()).slices))
    assert '"Latency (s)"' in json.dumps(figures_of(replace(closed(), models={"sim/m": slow}))[0].spec)


def _slower(part: LoadPart) -> LoadPart:
    """The same part with every latency a hundred times as long: 20 s and more."""
    found = tuple(replace(each, value_s=100 * each.value_s) for each in part.latency.percentiles)
    return replace(part, latency=replace(part.latency, percentiles=found))


def test_answers_in_one_piece_have_no_second_chart_of_the_same_times() -> None:
    """Their first token is the whole answer: its percentiles by rate would be those of the latency again."""
    load = swept()
    nothing = of(closed()).token
    whole = replace(load, models={"sim/m": replace(of(load), gap=nothing, token=nothing)})
    assert rows(figures_of(load)[1], "first token") and len(figures_of(load)) == 4
    assert not rows(figures_of(whole)[1], "first token") and len(figures_of(whole)) == 3
    assert rows(figures_of(whole)[1], "latency")


def test_latency_over_time_is_that_of_the_slices_and_errors_stand_by_their_kind() -> None:
    load = steady()
    figure = figures_of(load)[0]
    for row, part in zip(rows(figure, "latency"), of(load).slices, strict=True):
        found = [part.latency.at(percent) for percent in (50.0, 90.0, 99.0)]
        assert [row["y"], row["p90"], row["p99"]] == [None if each is None else each.value_s for each in found]
        assert row["x"] == part.begins_s + part.seconds / 2
    errors = rows(figure, "errors")
    area = sum((row["y"] - row["base"]) * (row["end"] - row["x"]) for row in errors)
    assert area == pytest.approx(sum(of(load).errors.values()))
    for part in of(load).slices:
        stacked = [row for row in errors if row["x"] == part.begins_s]
        assert [row["base"] for row in stacked] == [0.0, *(row["y"] for row in stacked)][: len(stacked)]
    assert {row["kind"].rstrip("\N{NO-BREAK SPACE}") for row in errors} == set(of(load).errors)
    assert [(row["x"], row["end"]) for row in rows(figure, "left out")] == [(0.0, 5.0), (55.0, 60.0)]
    assert rows(figures_of(closed())[0], "left out") == []


def test_percentiles_by_rate_stand_at_their_rates_with_their_intervals() -> None:
    load = swept()
    figure = figures_of(load)[1]
    drawn = {(row["line"], row["x"]): row for row in rows(figure, "latency")}
    for part in of(load).steps:
        for percent in (50.0, 90.0, 99.0):
            found = part.latency.at(percent)
            assert found is not None
            row = drawn[f"p{percent:g}", part.rate]
            assert row["y"] == found.value_s
            assert row["low"] == (found.low_s or found.value_s) and row["high"] == (found.high_s or found.value_s)
    knee = of(load).knee
    assert knee is not None and [row["x"] for row in rows(figure, "knee")] == [knee.rate]


def test_a_goal_has_its_line_and_each_rate_its_standing() -> None:
    load = searched()
    figure = figures_of(load)[1]
    assert [(row["y"], row["text"]) for row in rows(figure, "goal first token")] == [(1.0, "goal: p95")]
    assert rows(figure, "goal latency") == []
    tried = {row["x"]: row["standing"] for row in rows(figure, "tried first token")}
    names = {"kept": "goal kept", "missed": "goal missed", "open": "not decided"}
    assert tried == {part.rate: names[str(part.standing)] for part in of(load).steps}
    assert {"goal kept", "goal missed"} <= set(tried.values())


def test_a_spectrum_has_both_clocks_beside_each_other() -> None:
    load = steady()
    figure = figures_of(load)[1]
    for clock, times in (("from when it was due", of(load).latency), ("from when it was sent", of(load).service)):
        drawn = [(row["x"], row["y"]) for row in rows(figure, "time") if row["clock"] == clock]
        assert drawn == [(point.nines, point.value_s) for point in spectrum(times)]


def test_a_model_keeps_its_colour_in_every_figure() -> None:
    every = series(swept(), closed(), searched())
    label = every[2].label
    hues = set()
    for figure in (
        overlaid_over_time_figure(tables.over_time_table(every), every),
        overlaid_by_rate_figure(tables.by_rate_table(every), every),
        streaming_figure(tables.spectrum_table(every), every),
    ):
        for text in json.dumps(figure.spec).split('"scale": ')[1:]:
            scale, _ = json.JSONDecoder().raw_decode(text)
            if isinstance(scale, dict) and label in scale.get("domain", []) and isinstance(scale["range"][0], str):
                hues.add(scale["range"][scale["domain"].index(label)])
    assert len(hues) == 1
