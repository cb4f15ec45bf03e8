"""The toy benchmark, installed, and the server that answers it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import CommandLine
from toy_outside import KEY, Toys, ToyServer


@pytest.fixture
def server() -> Iterator[ToyServer]:
    with ToyServer() as running:
        yield running


@pytest.fixture
def toys(cli: CommandLine, server: ToyServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Toys]:
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.setenv("LAB_KEY", KEY)
    installed = Toys(cli, server, tmp_path)
    yield installed
    installed.end()
