"""One browser for all tests here, and a small run with its report, made by the commands a person would give."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Reported, headless
from command_line import finish, simulated_provider, start
from playwright.sync_api import Browser

SCREENSHOTS = Path(__file__).parent / "screenshots"


# The module's own end closes it: while it is open, nothing else in this process can run a loop.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with headless() as started:
        yield started


@pytest.fixture(scope="session")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Reported:
    home = tmp_path_factory.mktemp("reported")
    with simulated_provider(home) as provider:
        asked = ("--model", "sim/open", "sim/refusing", "--limit", "5", "--trials", "3")
        where = ("--base-url", provider.base_url, "--cache", "cache", "--out", "run", "--no-progress")
        done = finish(start(home, "run", "millstone", *asked, *where))
        assert done.code == 0, done.err
        prompts = frozenset(provider.received())
    done = finish(start(home, "report", "run"))
    assert done.code == 0, done.err
    return Reported(home / "run", home / "run" / "report.html", prompts)


@pytest.fixture(scope="session")
def screenshots() -> Path:
    """Where pictures are kept to be looked at; nothing compares them."""
    SCREENSHOTS.mkdir(exist_ok=True)
    return SCREENSHOTS
