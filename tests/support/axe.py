"""What axe has against a page: whether it can be used without eyes and without a mouse."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from playwright.sync_api import Page

AXE = Path(__file__).parent.parent / "node" / "node_modules" / "axe-core" / "axe.min.js"
# What is named in a failure: the rule, and the first elements that break it.
RUN = """async () => (await axe.run()).violations.map(
  (one) => `${one.id}: ${one.help}: ${one.nodes.slice(0, 3).map((node) => node.html.slice(0, 120)).join(" ")}`)"""


def needs_axe() -> None:
    """Skips the test where axe is not installed; under CI that is a failure."""
    if not AXE.exists():
        said = "axe is not installed, since there is no npm: make tools"
        pytest.fail(said) if os.environ.get("CI") else pytest.skip(said)


def violations_in(page: Page) -> list[str]:
    """The violations in a page whose context bypasses its policy: axe is let in from outside."""
    page.add_script_tag(path=AXE)
    found: list[str] = page.evaluate(RUN)
    return found
