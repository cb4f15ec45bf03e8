"""Claims about the charts: they draw for any survey, follow the page's colours, and bear any name."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any
from xml.etree import ElementTree

import altair as alt
import pytest
from msgspec.structs import replace as changed
from polls import ISSUES, TOPICS, polled, realistic, survey_of

from millstream.bench.millstone.report.charts_maps import topics_figure
from millstream.bench.millstone.report.charts_shifts import shifts_figure
from millstream.bench.millstone.report.part import tables_and_figures
from millstream.bench.millstone.report.survey import ReportSurvey
from millstream.engine.pairs import Pair
from millstream.metrics.millstone.answers import AnswerRows
from millstream.metrics.millstone.openness import CONFIGS
from millstream.report.charts import legend_columns
from millstream.report.colours import COLOURS, colour, in_light, style_sheet
from millstream.report.labels import width_of
from millstream.report.pictures import png, svg
from millstream.report.sections import PageContents
from millstream.report.table import Figure

# What a name must never do: close a tag, call a function, fill in a template, or be taken for a thing of JavaScript's.
HOSTILE = (
    "<script>window.__ran = 1</script>",
    '"><img src=x onerror=alert(1)>',
    "it's \"quoted\" \\ 'twice'",
    "datum.value + alert(1)",
    "{{7*7}}${7*7}",
    "right \u202eto left",
    "bell\x07 and \x1b[31m",
    "x" * 300,
    "x" * 299 + "y",
    "__proto__",
    "constructor",
    "toString",
    "a\nb\tc",
    ".",
)


@cache
def figures_of(survey: str) -> dict[str, Figure]:
    found: PageContents = tables_and_figures(_SURVEYS[survey]())
    return {figure.name: figure for figure in found.figures}


def hostile() -> ReportSurvey:
    """Models and issues whose names are attacks; one of them refuses, so that no figure is empty."""
    issues = list(HOSTILE)
    every = [polled("m", issues, seed=seed, trials=1, refuses=issues[:2] if seed == 1 else ()) for seed in range(4)]
    names = [*HOSTILE[:2], HOSTILE[9], HOSTILE[10]]
    named: list[AnswerRows] = [
        replace(one, name=name, pair=Pair(name, None)) for one, name in zip(every, names, strict=True)
    ]
    return ReportSurvey(tuple(named), topics=dict.fromkeys(issues, ("<b>Topic</b>",)))


_SURVEYS: dict[str, Callable[[], ReportSurvey]] = {
    "realistic": realistic,
    "hostile": hostile,
    "one model on one issue": lambda: survey_of(polled("solo", ["US-penny"], trials=1)),
    "twelve models": lambda: survey_of(*(polled(f"m{at}", list(TOPICS)[:2], seed=at, trials=1) for at in range(12))),
    "nothing": lambda: survey_of(),
}
DRAWN = {
    "realistic": 6,
    "hostile": 6,
    "one model on one issue": 3,
    "twelve models": 5,
    "nothing": 0,
}


def texts_of(picture: str) -> list[str]:
    root = ElementTree.fromstring(picture)
    return [element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}text")]


def size_of(picture: bytes) -> tuple[int, int]:
    width, height = struct.unpack(">II", picture[16:24])
    return width, height


@pytest.mark.parametrize("survey", _SURVEYS)
def test_a_figure_draws_or_says_in_a_sentence_why_it_does_not(survey: str) -> None:
    figures = figures_of(survey)
    drawn = [figure for figure in figures.values() if figure.spec is not None]
    assert len(drawn) == DRAWN[survey]
    for figure in figures.values():
        if figure.spec is None:
            assert re.fullmatch(r"[A-Z][^\n]+\.", figure.empty)
            with pytest.raises(ValueError, match="has nothing to draw"):
                svg(figure)
        else:
            assert texts_of(svg(figure))
            assert figure.caption.endswith((".", ". "))


@pytest.mark.parametrize("survey", ["realistic", "hostile"])
def test_a_specification_holds_to_the_schema_and_holds_its_data(survey: str) -> None:
    for figure in figures_of(survey).values():
        assert figure.spec is not None
        alt.Chart.from_dict(figure.spec, validate=True)
        assert json.loads(json.dumps(figure.spec)) == figure.spec
        assert figure.spec["datasets"]["rows"]
        assert "url" not in json.dumps(figure.spec["datasets"])
        assert '"url"' not in json.dumps(figure.spec).replace("$schema", "")


@pytest.mark.parametrize("survey", ["realistic", "one model on one issue", "hostile"])
def test_a_picture_is_no_narrower_than_it_may_be(survey: str) -> None:
    for figure in figures_of(survey).values():
        if figure.spec is not None:
            width, _ = size_of(png(svg(figure), scale=1))
            assert 0 < figure.min_width <= width


def test_colours_follow_the_page_and_a_picture_alone_is_light() -> None:
    figure = figures_of("realistic")["figure-2-shifts"]
    spec = json.dumps(figure.spec)
    assert colour("ink") in spec
    assert colour("con") in spec
    drawn = svg(figure)
    assert "var(" not in drawn
    assert COLOURS["ink"].light in drawn
    assert COLOURS["con"].light in drawn
    assert 'fill="#ffffff"' in drawn


def test_a_style_sheet_has_every_colour_for_light_and_for_dark() -> None:
    light, dark = style_sheet().split("@media (prefers-color-scheme: dark)")
    for name, values in COLOURS.items():
        assert f"--chart-{name}: {values.light};" in light
        assert f"--chart-{name}: {values.dark};" in dark
        assert in_light([{"fill": colour(name)}]) == [{"fill": values.light}]


def contrast(one: str, other: str) -> float:
    """How far two colours stand apart, as the web's rules for accessible content define it."""

    def luminance(value: str) -> float:
        parts = [int(value[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("at", [0, 1], ids=["light", "dark"])
def test_text_and_bars_stand_out_from_the_page(at: int) -> None:
    paper = COLOURS["paper"][at]
    assert contrast(COLOURS["ink"][at], paper) >= 7
    assert contrast(COLOURS["quiet"][at], paper) >= 4.5
    for name in ("pro", "con", "zero"):
        assert contrast(COLOURS[name][at], paper) >= 3, name
    for soft in ("pro-soft", "con-soft", "other"):
        assert contrast(COLOURS[soft][at], paper) >= 1.9, soft


def test_cases_stand_in_the_paper_s_order_from_con_to_pro() -> None:
    shown = texts_of(svg(figures_of("realistic")["figure-2-shifts"]))
    order = ["One-sided con", "Clear con", "Balanced", "Clear pro", "One-sided pro"]
    assert [text for text in shown if text in order] == order
    assert "0" in shown
    assert any(text.startswith("+") for text in shown)
    assert any(text.startswith("−") for text in shown)


def test_shares_are_drawn_in_percent() -> None:
    for name in ("figure-3-disagreement", "figure-7-refusals"):
        assert {"0%", "50%", "100%"} <= set(texts_of(svg(figures_of("realistic")[name])))


def test_the_medians_stand_in_the_caption_and_families_are_bordered() -> None:
    figure = figures_of("realistic")["figure-6-correlations"]
    assert re.search(
        r"Median within a family -?0\.\d{3} \(1 pair\), between families -?0\.\d{3} \(5 pairs\); in the paper",
        figure.caption,
    )
    drawn = svg(figure)
    assert [drawn.count(f'stroke-width="{width}"') for width in (4.5, 1.5)] == [1, 1]


def test_hostile_names_are_text_and_cut() -> None:
    for figure in figures_of("hostile").values():
        drawn = svg(figure)
        root = ElementTree.fromstring(drawn)
        tags = {element.tag.rpartition("}")[2] for element in root.iter()}
        assert tags <= {
            "svg",
            "g",
            "path",
            "rect",
            "text",
            "line",
            "defs",
            "linearGradient",
            "stop",
            "title",
            "clipPath",
        }
        assert not any(name.startswith("on") for element in root.iter() for name in element.attrib)
        assert max(map(len, texts_of(drawn))) < 90
        assert not any(sign in text for text in texts_of(drawn) for sign in "\u202e\x07\x1b\n")


def test_two_names_alike_when_cut_are_two_rows() -> None:
    names = ["x" * 300, "x" * 150 + "z" + "x" * 149]
    survey = survey_of(*(polled(name, ["golf"], seed=at, trials=1) for at, name in enumerate(names)))
    [figure] = [figure for figure in tables_and_figures(survey).figures if figure.name == "figure-2-shifts"]
    assert figure.spec is not None
    assert len({row["model"] for row in figure.spec["datasets"]["rows"]}) == 2


def test_names_never_stand_in_an_expression() -> None:
    """Vega would run it: only what is written here may be one."""
    allowed = {
        "datum.value === 0 ? '0' : format(datum.value, '+~g')",
        "datum.value + '%'",
        "datum.is_strong",
        "datum.is_family",
    }
    for figure in figures_of("hostile").values():
        assert set(expressions_in(figure.spec)) <= allowed
        assert not any(
            "sort" in encoding and isinstance(encoding["sort"], list) for encoding in channels_of(figure.spec)
        )


def expressions_in(spec: Any) -> list[str]:
    if isinstance(spec, dict):
        own = [value for key, value in spec.items() if key in ("labelExpr", "test", "filter", "calculate", "expr")]
        return [*own, *(one for key, value in spec.items() if key != "datasets" for one in expressions_in(value))]
    return [one for value in spec for one in expressions_in(value)] if isinstance(spec, list) else []


def channels_of(spec: Any) -> list[dict[str, Any]]:
    """The encodings of models and issues, whose names are not ours."""
    if isinstance(spec, dict):
        mine = [spec] if spec.get("field") in ("model", "bar", "x", "y") or spec.get("panel_place") else []
        return [*mine, *(one for key, value in spec.items() if key != "datasets" for one in channels_of(value))]
    return [one for value in spec for one in channels_of(value)] if isinstance(spec, list) else []


def test_every_mark_that_stands_for_a_number_has_a_tooltip() -> None:
    for figure in figures_of("realistic").values():
        marks = list(marks_in(figure.spec))
        assert marks
        for mark in marks:
            told = [part["title"] for part in mark["encoding"]["tooltip"]]
            assert len(told) >= 2, figure.name
            assert len(set(told)) == len(told)


def marks_in(spec: Any, is_of_rows: bool = False) -> Iterator[dict[str, Any]]:
    """The layers that are drawn from the figure's own rows, which a line at zero is not."""
    is_of_rows = spec.get("data", {}).get("name") == "rows" if "data" in spec else is_of_rows
    for inner in (*spec.get("layer", ()), *([spec["spec"]] if "spec" in spec else ())):
        yield from marks_in(inner, is_of_rows)
    if "mark" in spec and is_of_rows:
        yield spec


def test_a_picture_of_one_model_s_refusals_says_whose_they_are() -> None:
    assert figures_of("realistic")["figure-7-refusals"].caption.endswith("All are other/shy-1's.")


def test_a_figure_names_the_models_that_it_leaves_out() -> None:
    aside = [polled(f"aside-{at}", ["abortion", "unheard-of"], seed=at, trials=1) for at in range(5)]
    survey = survey_of(polled("there", seed=8), polled("near", seed=9), *aside[:1])
    captions = {figure.name: figure.caption for figure in tables_and_figures(survey).figures}
    assert captions["figure-4-topics"].endswith(" Not drawn, without a scored issue whose topic is known: aside-0.")
    assert (
        " Not drawn, without answers on these issues to both cases of a side: aside-0."
        in captions["figure-5-contradiction"]
    )
    for name in ("figure-2-shifts", "figure-3-disagreement", "figure-6-correlations", "figure-7-refusals"):
        assert "Not drawn" not in captions[name]
    many = {figure.name: figure.caption for figure in tables_and_figures(survey_of(survey.answers[0], *aside)).figures}
    assert many["figure-4-topics"].endswith(": aside-0, aside-1, aside-2 and 2 more.")


def test_a_figure_leaves_out_who_has_nothing_to_draw() -> None:
    mute = polled("mute", ["golf"], trials=1, skipped=[("golf", config) for config in CONFIGS if config != "baseline"])
    deaf = polled("deaf", ["golf"], trials=1, skipped=[("golf", "baseline")])
    captions = {
        figure.name: figure.caption
        for figure in tables_and_figures(survey_of(polled("a", seed=1), polled("b", seed=2), mute, deaf)).figures
    }
    lacking = {
        "figure-2-shifts": "an issue with answers both at the baseline and with arguments: mute and deaf.",
        "figure-3-disagreement": "baseline answers on these issues: deaf.",
        "figure-4-topics": "a scored issue whose topic is known: mute and deaf.",
        "figure-6-correlations": "a correlation with another model: mute.",
    }
    for name, lack in lacking.items():
        assert captions[name].endswith(f" Not drawn, without {lack}"), name


def test_a_legend_takes_as_many_lines_as_its_titles_need() -> None:
    assert legend_columns(["Pro", "Con"])[0] == 2
    assert legend_columns(["x" * 50, "y" * 50])[0] == 1
    columns, between = legend_columns(["x" * 20] * 5)
    assert 1 < columns < 5
    assert between >= 0.2 * width_of("x" * 20, 12)


@pytest.mark.parametrize("at", [0, 1], ids=["light", "dark"])
def test_the_number_in_a_cell_stands_out_from_every_colour_of_cells(at: int) -> None:
    steps = [name for name in COLOURS if name.startswith(("more-", "less-"))]
    assert len(steps) == 10
    for name in steps:
        number = COLOURS["paper" if int(name[-1]) >= 4 else "ink"][at]
        assert contrast(COLOURS[name][at], number) >= 4.5, name
    for kind in ("more-", "less-"):
        apart = [contrast(COLOURS[name][at], COLOURS["paper"][at]) for name in steps if name.startswith(kind)]
        assert apart == sorted(apart)
        assert apart[0] < 1.3


@pytest.mark.parametrize("most", [0.0, 0.6, 0.61, 7.5, 18.0, 59.9, 100.0])
def test_the_steps_of_a_map_reach_from_nothing_to_the_most(most: float) -> None:
    survey = survey_of(polled("m", ["golf"], trials=1))
    [found] = [table for table in tables_and_figures(survey).tables if table.name == "figure-4-topics"]
    figure = topics_figure(changed(found, rows=tuple((*row[:2], most, *row[3:]) for row in found.rows)))
    assert figure.spec is not None
    scale = figure.spec["layer"][0]["encoding"]["color"]["scale"]
    bounds, step = scale["domain"], scale["domain"][0]
    assert len(scale["range"]) == len(bounds) + 1 == 6
    assert bounds == pytest.approx([step * number for number in range(1, 6)])
    assert most <= 6 * step + 1e-9
    # No finer steps would do.
    assert step == 0.1 or 2.5 * most > 6 * step
    is_strong = figure.spec["datasets"]["rows"][0]["is_strong"]
    assert is_strong == (most >= bounds[2])


def test_many_refused_issues_are_cut_and_the_caption_says_so() -> None:
    issues = [f"issue-{at}" for at in range(60)]
    found = tables_and_figures(survey_of(polled("shy", issues, refuses=issues, trials=1)))
    figure = found.figures[-1]
    [table] = [table for table in found.tables if table.name == figure.table]
    pairs = len({row["issue"] for row in table.records() if row["source"] == "this run"})
    assert pairs > 40
    assert f"Drawn are 40 of {pairs}: the table has all." in figure.caption
    assert figure.spec is not None
    assert len({row["bar"] for row in figure.spec["datasets"]["rows"]}) == 40


def test_where_there_is_no_interval_none_is_drawn_and_the_reason_is_told() -> None:
    [table] = [
        table
        for table in tables_and_figures(survey_of(polled("m", ISSUES[:1]))).tables
        if table.name == "figure-2-shifts"
    ]
    figure = shifts_figure(table)
    assert figure.spec is not None
    rows = figure.spec["datasets"]["rows"]
    assert {(row["low"], row["high"]) for row in rows} == {(None, None)}
    assert {row["interval"] for row in rows} == {"no interval: fewer than 10 issues (1)"}
    assert texts_of(svg(figure))
