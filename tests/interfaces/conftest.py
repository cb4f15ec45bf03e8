"""One simulated provider for all tests of the command line, and the command line in this process or its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from command_line import Done, Provider, simulated_provider
from simulated_outside import Outside, simulated_outside

from millstream.interfaces.command import main

CommandLine = Callable[..., Done]


@pytest.fixture(scope="session")
def running_provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provider]:
    with simulated_provider(tmp_path_factory.mktemp("provider")) as provider:
        yield provider


@pytest.fixture
def provider(running_provider: Provider) -> Provider:
    running_provider.reset()
    return running_provider


@pytest.fixture(scope="session")
def running_outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outside]:
    with simulated_outside(tmp_path_factory.mktemp("outside")) as outside:
        yield outside


@pytest.fixture
def outside(running_outside: Outside) -> Outside:
    """Models, a search engine and pages."""
    running_outside.reset()
    return running_outside


@pytest.fixture
def cli(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """One command in this process, in a folder and with a home of its own."""
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "SEARXNG_BASE_URL", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))

    def run(*arguments: str) -> Done:
        capfd.readouterr()
        code = main(list(arguments))
        said = capfd.readouterr()
        return Done(code, said.out, said.err)

    return run
