"""A headless browser that writes down whatever a page does: what it asks for, what it complains of, what it runs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

# The first, which has no window to draw, takes less than half of the others' processor time.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
# A page under test gets no network but its own file, and the browser's own errands are switched off.
QUIET = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)


class Reported(NamedTuple):
    """The folder of a run, and its report."""

    folder: Path
    page: Path


class Watched:
    """A page, and all that it did. What ran that should not have leaves its mark in `window.__ran`."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.requests: list[str] = []
        self.complaints: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("dialog", self._dialog)

    def _dialog(self, dialog: Any) -> None:
        self.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def ran(self) -> Any:
        return self.page.evaluate("window.__ran ?? null")

    def scroll_through(self) -> None:
        """Past everything, as figures wait until they are near."""
        height = self.page.evaluate("document.documentElement.scrollHeight")
        for place in range(0, height, 500):
            self.page.evaluate(f"window.scrollTo(0, {place})")
            self.page.wait_for_timeout(20)

    def settle(self, *parts: str) -> None:
        """Wait at each figure and the items, or at these parts alone, until it is alive: passing
        by, a busy browser may not notice it."""
        # Selectors, since the page's policy forbids the evaluation by which a polled expression would be asked again.
        waiting = [
            (part, ".is-live" if selector.endswith(".plot") else "[data-state=open]")
            for selector in parts or (".plot", ".items[data-columns]")
            for part in self.page.locator(selector).all()
        ]
        for part, alive in waiting:
            part.evaluate("part => part.scrollIntoView()")
            part.and_(self.page.locator(alive)).wait_for(state="attached")
        self.page.evaluate("window.scrollTo(0, 0)")


def executable() -> str:
    """Skips the test where there is no browser; under CI that is a failure, since nobody would see the skip."""
    for name in NAMES:
        if found := shutil.which(name):
            return found
    said = f"no browser: none of {', '.join(NAMES)} is installed (tests/browser/install-browser.sh)"
    if os.environ.get("CI"):
        pytest.fail(said)
    pytest.skip(said)


@contextmanager
def headless() -> Iterator[Browser]:
    path = executable()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(QUIET))
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened(browser: Browser, file: Path, **context: Any) -> Iterator[Watched]:
    """A page in a context of its own: `color_scheme`, `viewport`, `java_script_enabled`."""
    made = browser.new_context(**context)
    try:
        watched = Watched(made.new_page())
        watched.page.goto(file.as_uri())
        yield watched
    finally:
        made.close()
