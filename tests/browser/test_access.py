"""Reports can be used without eyes and without a mouse: axe finds no violation in any of the demo's, light and dark."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from axe import needs_axe, violations_in
from browser import opened
from playwright.sync_api import Browser

pytestmark = [pytest.mark.long, pytest.mark.process, pytest.mark.needs_benchmark("millstone", "chameleon")]


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    needs_axe()
    home = tmp_path_factory.mktemp("demo")
    command = [sys.executable, "-P", "-m", "millstream", "demo", "--quick"]
    subprocess.run(command, cwd=home, env={**os.environ, "HOME": str(home)}, check=True, capture_output=True)
    return sorted(home.glob("runs/**/report.html"))


def violations(browser: Browser, page: Path, **context: Any) -> list[str]:
    with opened(browser, page, bypass_csp=True, **context) as watched:
        watched.settle()
        return violations_in(watched.page)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violation_in_any_report_of_the_demo(browser: Browser, reports: list[Path], scheme: str) -> None:
    assert len(reports) == 4
    found = {page.parent.name: violations(browser, page, color_scheme=scheme) for page in reports}
    assert {name: bad for name, bad in found.items() if bad} == {}


def test_axe_finds_no_violation_on_a_phone(browser: Browser, reports: list[Path]) -> None:
    whole = min(reports, key=lambda page: len(page.parts))
    assert violations(browser, whole, viewport={"width": 390, "height": 844}) == []


def test_axe_would_find_one(browser: Browser, reports: list[Path], tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text('<!doctype html><html lang="en"><title>t</title><main><h1>h</h1><button></button></main></html>')
    assert [each.partition(":")[0] for each in violations(browser, page)] == ["button-name"]


def test_no_report_and_no_figure_is_wider_than_a_phone(browser: Browser, reports: list[Path]) -> None:
    for page in reports:
        with opened(browser, page, viewport={"width": 390, "height": 844}) as watched:
            watched.settle()
            assert watched.page.evaluate("document.documentElement.scrollWidth") <= 390
            widths = watched.page.eval_on_selector_all(".plot", "all => all.map(one => [one.id, one.scrollWidth])")
            assert widths and [one for one in widths if one[1] > 390] == []
