"""The report of a real run, opened from its file in a browser: it is whole, and asks for nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from browser import Reported, Watched, opened
from playwright.sync_api import Browser

PHONE = {"width": 360, "height": 740}
PAPER = (
    *("table-1-pro-majorities", "table-2-agreement", "table-3-counter-shifts", "table-4-om"),
    *("table-5-om-controversial", "table-6-unanimous", "table-7-disagreement"),
    *("figure-2-shifts", "figure-3-disagreement", "figure-4-topics", "figure-5-contradiction"),
    *("figure-6-correlations", "figure-7-refusals"),
)


@pytest.fixture(scope="module")
def drawn(browser: Browser, reported: Reported) -> Iterator[Watched]:
    """The page with every figure alive, once for all tests that only look at it."""
    with opened(browser, reported.page) as watched:
        watched.settle()
        yield watched


def texts(watched: Watched, selector: str) -> list[str]:
    return [text.strip() for text in watched.page.locator(selector).all_inner_texts()]


def test_the_page_asks_for_nothing_but_itself_and_complains_of_nothing(drawn: Watched, reported: Reported) -> None:
    for details in drawn.page.locator("main details summary").all():
        details.click()
    for plot in drawn.page.locator(".plot").all():
        plot.hover()
    drawn.page.mouse.move(1, 1)
    assert drawn.requests == [reported.page.as_uri()]
    assert drawn.complaints == []


def test_every_table_is_whole_in_the_page_and_can_be_copied_and_saved(browser: Browser, reported: Reported) -> None:
    with opened(browser, reported.page, permissions=["clipboard-read", "clipboard-write"]) as watched:
        places = watched.page.locator("[data-csv]")
        names = [place.get_attribute("data-csv") or "" for place in places.all()]
        held = watched.page.evaluate("async names => Promise.all(names.map(csvOf))", names)
        assert held == [(reported.folder / name).read_text("utf-8") for name in names]
        table = watched.page.locator('[data-csv="tables/table-4-om.csv"]').first
        table.get_by_role("button", name="Copy as CSV").click()
        table.get_by_text("Copied").wait_for()
        copied = watched.page.evaluate("navigator.clipboard.readText()")
        file = reported.folder / "tables/table-4-om.csv"
        assert copied == file.read_text("utf-8")
        with watched.page.expect_download() as saving:
            table.get_by_role("button", name="Save as CSV").click()
        assert saving.value.suggested_filename == "table-4-om.csv"
        assert Path(saving.value.path()).read_bytes() == file.read_bytes()


def test_the_contents_say_where_one_is_and_headings_have_addresses(browser: Browser, reported: Reported) -> None:
    with opened(browser, reported.page, viewport={"width": 1280, "height": 700}) as watched:
        here = watched.page.locator("nav a[aria-current]")
        assert here.count() == 1
        before = here.get_attribute("href")
        anchors = watched.page.locator("main h2 > .anchor").all()
        last = anchors[-1].get_attribute("href") or ""
        watched.page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
        watched.page.locator(f'nav a[href="{last}"][aria-current]').wait_for()
        assert before != last
        identities = watched.page.eval_on_selector_all("[id]", "all => all.map(one => one.id)")
        targets = watched.page.eval_on_selector_all(".anchor", "all => all.map(one => one.hash.slice(1))")
        assert len(targets) > 15 and set(targets) <= set(identities)


def test_every_table_and_figure_of_the_paper_is_there(drawn: Watched, reported: Reported) -> None:
    identities = drawn.page.eval_on_selector_all("[id]", "all => all.map(one => one.id)")
    assert set(PAPER) <= set(identities)
    assert [name for name, times in Counter(identities).items() if times > 1] == []
    links = drawn.page.eval_on_selector_all("nav a", "all => all.map(one => one.getAttribute('href').slice(1))")
    assert set(PAPER) <= set(links) <= set(identities)
    published = texts(drawn, "#table-4-om tr.published")
    assert len(published) == 5 and "Claude Opus 4" in published[0] and "7.14" in published[0]
    files = drawn.page.eval_on_selector_all("[data-csv]", "all => all.map(one => one.dataset.csv)")
    assert [name for name in files if not (reported.folder / name).is_file()] == []
    with_rows = [path for path in (reported.folder / "tables").iterdir() if path.read_text("utf-8").count("\n") > 1]
    assert {Path(name).stem for name in files} == {path.stem for path in with_rows}


def test_figures_answer_to_the_pointer(drawn: Watched, reported: Reported) -> None:
    drawn.page.locator("#figure-2-shifts .live .mark-rect path").first.hover()
    drawn.page.wait_for_selector("#vg-tooltip-element.visible")
    assert "sim/" in drawn.page.inner_text("#vg-tooltip-element")
    inside = drawn.page.eval_on_selector(
        "#vg-tooltip-element",
        "tip => { const box = tip.getBoundingClientRect(); return box.left >= 0 && box.right <= innerWidth; }",
    )
    assert inside


def test_the_page_can_be_used_with_the_keyboard_alone(browser: Browser, reported: Reported) -> None:
    with opened(browser, reported.page) as watched:
        watched.settle()
        watched.page.keyboard.press("Tab")
        assert watched.page.evaluate("document.activeElement.className") == "skip"
        watched.page.keyboard.press("Enter")
        # What scrolls can be reached, so that its end can be read.
        reachable = "all => all.every(one => one.tabIndex === 0 && one.getAttribute('aria-label'))"
        assert watched.page.eval_on_selector_all(".table, .plot", reachable)


def test_tables_are_told_to_who_can_not_see_them(drawn: Watched, reported: Reported) -> None:
    lacking = drawn.page.eval_on_selector_all(
        "table:not(#vg-tooltip-element table)",
        """all => all
            .filter(one => !one.caption?.textContent || [...one.querySelectorAll('th')].some(th => !th.scope))
            .map(one => one.outerHTML.slice(0, 200))""",
    )
    assert lacking == []
    levels = drawn.page.eval_on_selector_all("h1, h2, h3, h4", "all => all.map(one => Number(one.tagName[1]))")
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert drawn.page.evaluate("document.documentElement.lang") == "en"


def test_without_scripts_every_table_and_figure_still_shows(browser: Browser, reported: Reported) -> None:
    with opened(browser, reported.page, java_script_enabled=False) as watched:
        stills = watched.page.locator(".plot .still svg")
        assert stills.count() >= 5
        assert all(still.is_visible() for still in stills.all())
        assert watched.page.locator("#table-4-om table").is_visible()


LOOKS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light", "viewport": {"width": 1280, "height": 900}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1280, "height": 900}},
    "phone": {"color_scheme": "light", "viewport": PHONE},
    "phone-dark": {"color_scheme": "dark", "viewport": PHONE},
}


def lightness(watched: Watched, selector: str, what: str) -> float:
    """From 0, black, to 1."""
    channels: list[float] = watched.page.eval_on_selector(
        selector, "(one, what) => getComputedStyle(one)[what].match(/[0-9.]+/g).slice(0, 3).map(Number)", what
    )
    return sum(channels) / 3 / 255


# Each size once and each light once; the other two pairs in `make long`.
@pytest.mark.parametrize(
    "look", [look if look in ("light", "phone-dark") else pytest.param(look, marks=pytest.mark.long) for look in LOOKS]
)
def test_the_page_fits_its_screen_and_follows_its_light(
    browser: Browser, reported: Reported, screenshots: Path, look: str
) -> None:
    with opened(browser, reported.page, **LOOKS[look]) as watched:
        watched.settle()
        watched.page.screenshot(path=screenshots / f"{look}.png", full_page=True)
        assert watched.page.evaluate("document.documentElement.scrollWidth") <= LOOKS[look]["viewport"]["width"]
        is_dark = "dark" in look
        assert (lightness(watched, "body", "backgroundColor") < 0.5) is is_dark
        assert (lightness(watched, "body", "color") > 0.5) is is_dark
        # The words of the charts are the page's, in both lights.
        for drawing in (".live", ".still"):
            assert (lightness(watched, f"#figure-2-shifts {drawing} text", "fill") > 0.5) is is_dark


@pytest.mark.parametrize("light", [pytest.param("light", marks=pytest.mark.long), "dark"])
def test_on_paper_there_are_pictures_and_no_controls(
    browser: Browser, reported: Reported, screenshots: Path, light: str
) -> None:
    with opened(browser, reported.page, color_scheme=light, viewport={"width": 760, "height": 1000}) as watched:
        watched.settle("#figure-2-shifts .plot")
        watched.page.emulate_media(media="print")
        for hidden in ("nav", "#figure-2-shifts .live"):
            assert not watched.page.locator(hidden).is_visible(), hidden
        assert watched.page.locator("#figure-2-shifts .still").is_visible()
        assert watched.page.eval_on_selector("figure", "one => getComputedStyle(one).breakInside") == "avoid"
        assert lightness(watched, "#figure-2-shifts .still text", "fill") < 0.5
        for paper in ("#table-4-om thead th", "#table-4-om tr.published td", "pre"):
            assert lightness(watched, paper, "backgroundColor") > 0.9, paper
        cut = watched.page.eval_on_selector_all(
            ".table, .plot",
            """all => all.filter(one => one.scrollHeight > one.clientHeight + 2
                && getComputedStyle(one).overflowY !== 'visible').length""",
        )
        assert cut == 0
        printed = watched.page.pdf(format="A4", path=screenshots / f"print-{light}.pdf")
        assert printed.startswith(b"%PDF")
        watched.page.screenshot(path=screenshots / f"print-{light}.png", full_page=True)
