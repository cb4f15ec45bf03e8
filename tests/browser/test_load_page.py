"""The page of load tests in a browser: it fits wide screens and narrow ones, runs nothing and asks for nothing."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from browser import Watched, opened
from hostile import hostile
from load_files import closed, searched, steady, swept, written
from msgspec.structs import replace
from playwright.sync_api import Browser

from millstream.bench.load.report.write import write
from millstream.metrics.load.load_json import Client, LoadFigures

SIZES = {1400: "wide", 400: "narrow"}


def evil() -> list[LoadFigures]:
    texts = [text for text in hostile(200) if len(text) < 100_000]
    load = steady()
    own = load.models["sim/steady"]
    slices = tuple(replace(part, errors=20, kinds=dict.fromkeys(texts[40:60], 1)) for part in own.slices[:10])
    model = replace(own, errors=dict.fromkeys(texts[:100], 3), slices=slices)
    load = replace(
        load,
        models=dict.fromkeys(texts[100:104], model),
        client=Client(tuple(texts[:80]), 0.1, 1.0, 1.0),
        ending="stopped",
        ending_detail=texts[5],
        millstream=texts[4],
        test={text[:60]: text for text in texts},
    )
    return [load]


def two() -> list[LoadFigures]:
    lagging = Client(("the loop's lag was 21 ms, more than 5 ms",), 0.02, 0.9, 0.8)
    return [swept(), replace(searched(), client=lagging)]


# Measured by whoever asks for one, not by every process that reads this module.
CASES: dict[str, Callable[[], list[LoadFigures]]] = {
    "steady": lambda: [steady()],
    "search": lambda: [searched()],
    "closed": lambda: [closed()],
    "two": two,
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("load-page")


@pytest.fixture(scope="module", params=CASES)
def page(request: pytest.FixtureRequest, home: Path) -> tuple[str, Path]:
    return str(request.param), made(home / request.param, CASES[request.param])


def made(home: Path, loads: Callable[[], list[LoadFigures]]) -> Path:
    # Playwright has a loop at work in this thread, and there is room for one.
    with ThreadPoolExecutor(1) as thread:
        measured = thread.submit(loads).result()
    return write([written(load, home / f"test-{at}") for at, load in enumerate(measured, 1)], home).page


def looked_at(watched: Watched, width: int, path: Path) -> None:
    """All of it, opened; it must fit, run nothing and ask for nothing."""
    watched.scroll_through()
    for details in watched.page.locator("main details summary").all():
        details.click()
    assert watched.page.evaluate("document.documentElement.scrollWidth") <= width
    assert watched.page.evaluate("document.scripts.length") == 0
    assert watched.ran() is None
    assert watched.requests == [path.as_uri()] and watched.complaints == []
    figures = watched.page.locator("figure svg")
    assert figures.count() >= 2 and all(figure.is_visible() for figure in figures.all())
    missing = "all => all.filter(one => !document.getElementById(one.getAttribute('href').slice(1))).length"
    assert watched.page.eval_on_selector_all("nav a", missing) == 0


@pytest.mark.long
@pytest.mark.parametrize("width", SIZES)
def test_the_page_fits_and_runs_nothing(
    browser: Browser, page: tuple[str, Path], screenshots: Path, width: int
) -> None:
    name, path = page
    with opened(browser, path, viewport={"width": width, "height": 900}) as watched:
        watched.page.screenshot(path=screenshots / f"load-{name}-{SIZES[width]}.png", full_page=True)
        looked_at(watched, width, path)


def test_hostile_names_and_errors_run_nothing_and_break_nothing(browser: Browser, home: Path) -> None:
    path = made(home / "hostile", evil)
    for width in SIZES:
        with opened(browser, path, viewport={"width": width, "height": 900}) as watched:
            looked_at(watched, width, path)
