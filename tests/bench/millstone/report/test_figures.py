"""Figures as a reader sees them: whole words in any font, every mark there whatever it is called, light and dark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from browser import Watched, opened
from drawn_page import drawn_page
from playwright.sync_api import Browser
from polls import CONTROVERSIAL, ISSUES, polled, survey_of

from millstream.bench.millstone.report.survey import ReportSurvey
from millstream.report.table import Figure

# The longest label of an axis, of thin letters and of broad ones, and issues whose titles fill their panels.
LONG = (
    "gateway/meta-llama/llama-3.1-405b-instru",
    "third/WWWWMMMMWWWWMMMMWWWWMMMMWWWWMMMMWW",
    "bedrock/us.anthropic.claude-3-5-haiku-20",
    "lab/illicit-little-lilliputian-jillililit",
)
LONG_ISSUES = ("dare-drug-abuse-resistance-education-programmes", "MAXIMUM-MINIMUM-WAGES-AND-MAMMOTHS-OF-WOMEN")
SHORT = ("a/one", "a/two", "b/shy", "c/part")
# What every object of JavaScript's has, whoever made it.
OF_OBJECTS = (
    *("__proto__", "hasOwnProperty", "toString", "valueOf", "constructor", "__defineGetter__", "isPrototypeOf"),
    "golf",
)

# Words that reach out of their picture, and words or signs of a legend that touch each other.
CROWDED = """drawing => [...document.querySelectorAll(`.plot ${drawing} svg`)].flatMap(svg => {
    const name = svg.closest('figure').id;
    const seen = one => [one, one.getBoundingClientRect()];
    const frame = svg.getBoundingClientRect();
    const room = 1;
    const out = [...svg.querySelectorAll('text')].map(seen).filter(([one, box]) => one.textContent && (
        box.left < frame.left - room || box.right > frame.right + room ||
        box.top < frame.top - room || box.bottom > frame.bottom + room
    )).map(([one]) => `${name}: ${one.textContent} is cut`);
    const words = ['legend-label', 'legend-title', 'title-text', 'axis-title'].map(role => `.role-${role} text`);
    const parts = [...svg.querySelectorAll([...words, '.role-legend-symbol path'].join())].map(seen)
        .filter(([one, box]) => box.width > 0 && one.getAttribute('opacity') !== '0');
    const touch = (box, other) => box.left < other.right + 1 && other.left < box.right + 1 &&
        box.top < other.bottom - 1 && other.top < box.bottom - 1;
    const told = one => one.textContent || 'a sign';
    const touching = parts.flatMap(([one, box], at) => parts.slice(at + 1)
        .filter(([, other]) => touch(box, other))
        .map(([other]) => `${name}: ${told(one)} touches ${told(other)}`));
    return [...out, ...touching];
})"""
# Of each cell of a map: its colour, and that of its number.
CELLS = """figure => {
    const parts = kind => [...document.querySelectorAll(`#${figure} .live .mark-${kind}.role-mark > *`)];
    const fill = one => getComputedStyle(one).fill.match(/[0-9.]+/g).slice(0, 3).map(Number);
    const numbers = parts('text');
    return parts('rect').slice(0, numbers.length).map((cell, at) => [fill(cell), fill(numbers[at])]);
}"""

# What the tooltips of a figure's marks say, by their titles.
TOOLTIPS = """figure => {
    const told = {};
    for (const mark of document.querySelectorAll(`#${figure} .live .role-mark > *`)) {
        const box = mark.getBoundingClientRect();
        const place = {bubbles: true, clientX: box.x, clientY: box.y};
        for (const kind of ['pointerover', 'mouseover', 'pointermove', 'mousemove'])
            mark.dispatchEvent(new MouseEvent(kind, place));
        for (const row of document.querySelectorAll('#vg-tooltip-element tr')) {
            const [key, value] = [...row.cells].map(cell => cell.textContent);
            told[key] = [...new Set([...(told[key] ?? []), value])];
        }
    }
    return told;
}"""


class Drawn(NamedTuple):
    page: Path
    figures: dict[str, Figure]


def small(names: tuple[str, ...], *more: str) -> ReportSurvey:
    """Every figure is drawn; the last model was asked about few issues."""
    issues = (*ISSUES[:6], *more)
    return survey_of(
        polled(names[0], issues, seed=1),
        polled(names[1], issues, seed=2, refuses=("abortion", "golf")),
        polled(names[2], issues, seed=3, refuses=("abortion", *more)),
        polled(names[3], CONTROVERSIAL, seed=4),
    )


def of_objects() -> ReportSurvey:
    models = (*OF_OBJECTS[:3], "plain")
    return ReportSurvey(
        tuple(polled(name, OF_OBJECTS, seed=at, trials=1, refuses=OF_OBJECTS[:4]) for at, name in enumerate(models)),
        topics={issue: (OF_OBJECTS[at - 1],) for at, issue in enumerate(OF_OBJECTS)},
        controversial=OF_OBJECTS,
    )


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Drawn]:
    folder = tmp_path_factory.mktemp("figures")
    found = {}
    for name, survey in (("short", small(SHORT)), ("long", small(LONG, *LONG_ISSUES)), ("of objects", of_objects())):
        path = folder / f"{name}.html"
        found[name] = Drawn(path, {figure.name: figure for figure in drawn_page(survey, path).figures})
        assert all(figure.spec is not None for figure in found[name].figures.values())
    return found


@pytest.fixture(scope="module")
def live(browser: Browser, pages: dict[str, Drawn]) -> Iterator[Callable[..., Watched]]:
    """Gives a page with every figure alive; one of the same names and look is drawn once for all tests."""
    with ExitStack() as ends:

        @cache
        def drawn(names: str, width: int = 1280, light: str = "light") -> Watched:
            look: dict[str, Any] = {"viewport": {"width": width, "height": 900}, "color_scheme": light}
            watched = ends.enter_context(opened(browser, pages[names].page, **look))
            watched.settle()
            return watched

        yield drawn


# Long names where there is the least room; the other pairs in `make long`.
@pytest.mark.parametrize(
    ("look", "names"),
    [
        ("wide", "short"),
        ("phone", "long"),
        ("paper", "long"),
        *(
            pytest.param(*each, marks=pytest.mark.long)
            for each in (("wide", "long"), ("phone", "short"), ("paper", "short"))
        ),
    ],
)
def test_without_scripts_no_word_of_a_figure_is_cut_or_touches_another(
    browser: Browser, pages: dict[str, Drawn], names: str, look: str
) -> None:
    viewport = {"width": {"wide": 1000, "phone": 360, "paper": 700}[look], "height": 900}
    with opened(browser, pages[names].page, viewport=viewport, java_script_enabled=False) as watched:
        if look == "paper":
            watched.page.emulate_media(media="print")
        assert watched.page.evaluate(CROWDED, ".still") == []


@pytest.mark.parametrize(
    ("width", "names"),
    [
        (1280, "short"),
        (360, "long"),
        *(pytest.param(*each, marks=pytest.mark.long) for each in ((1280, "long"), (360, "short"))),
    ],
)
def test_no_word_of_a_live_figure_is_cut_or_touches_another(
    live: Callable[..., Watched], names: str, width: int
) -> None:
    page = live(names, width).page
    assert page.evaluate(CROWDED, ".live") == []
    legend = page.locator("#figure-2-shifts .live .role-legend-label text").all_text_contents()
    assert legend == ["One-sided con", "Clear con", "Balanced", "Clear pro", "One-sided pro"]


def marks(figure: Figure) -> dict[str, int]:
    """How many marks of each kind a figure's rows come to."""
    assert figure.spec is not None
    rows: list[dict[str, Any]] = figure.spec["datasets"]["rows"]
    if figure.name in ("figure-2-shifts", "figure-5-contradiction"):
        return {"rect": len(rows), "rule": sum(row["low"] is not None for row in rows) + 1}
    if "value" in rows[0]:
        return {"rect": len(rows) + 2 * sum(bool(row.get("is_family")) for row in rows), "text": len(rows)}
    return {"rect": len(rows)}


@pytest.mark.parametrize("drawing", [".live", ".still"])
def test_no_name_of_javascripts_own_takes_a_mark_away(
    live: Callable[..., Watched], pages: dict[str, Drawn], drawing: str
) -> None:
    watched = live("of objects")
    for name, figure in pages["of objects"].figures.items():
        for kind, number in marks(figure).items():
            seen = watched.page.locator(f"#{name} {drawing} .mark-{kind}.role-mark > *").count()
            assert seen == number, (name, kind)
    panels = watched.page.locator(f"#figure-3-disagreement {drawing} .role-title-text text")
    titles = [text.strip() for text in panels.all_text_contents()]
    # An id that is one word reads as one, with a capital.
    assert sorted(titles) == sorted(name[:1].upper() + name[1:] for name in OF_OBJECTS)
    assert watched.complaints == []


def test_a_tooltip_has_the_names_as_they_are(live: Callable[..., Watched], pages: dict[str, Drawn]) -> None:
    for names, models in (("of objects", (*OF_OBJECTS[:3], "plain")), ("long", LONG)):
        for name in pages[names].figures:
            told = live(names).page.evaluate(TOOLTIPS, name)
            if name != "figure-7-refusals":  # where only who refuses stands
                assert set(told["Model"]) | set(told.get("And", ())) == set(models), name
            if "Issue" in told and names == "of objects":
                assert set(told["Issue"]) <= set(OF_OBJECTS)
                assert "__proto__" in told["Issue"]


def luminance(colour: list[float]) -> float:
    parts = [value / 255 for value in colour]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("light", ["light", pytest.param("dark", marks=pytest.mark.long)])
def test_a_cell_bears_its_number_and_stands_out_the_more_the_higher_it_is(
    live: Callable[..., Watched], pages: dict[str, Drawn], light: str
) -> None:
    figures = pages["short"].figures
    page = live("short", light=light).page
    paper = 1.0 if light == "light" else 0.0
    for name in ("figure-4-topics", "figure-6-correlations"):
        spec = figures[name].spec
        assert spec is not None
        cells = page.evaluate(CELLS, name)
        rows = spec["datasets"]["rows"]
        assert len(cells) == len(rows) > 5
        apart = []
        for (cell, number), row in zip(cells, rows, strict=True):
            low, high = sorted((luminance(cell), luminance(number)))
            assert (high + 0.05) / (low + 0.05) >= 4.5
            apart.append((abs(row["value"]), round(abs(luminance(cell) - paper), 3)))
        in_order = [distance for _, distance in sorted(apart)]
        assert in_order == sorted(in_order)
        assert len(set(in_order)) > 1
        if name == "figure-4-topics":  # whose least is about 0
            assert in_order[0] < 0.15
