"""Finished runs: each is made once, and every test has a copy of its own."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from command_line import SMALL_RUN, Provider, run_command


@pytest.fixture(scope="session")
def made_runs(running_provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    @cache
    def make(*options: str, rejected: int | None) -> Path:
        running_provider.reset()
        running_provider.set_faults(*(() if rejected is None else (f"rejected=400,at={rejected}",)))
        home = tmp_path_factory.mktemp("finished")
        where = ("--base-url", running_provider.base_url, "--cache", "cache", "--out", "run", "--no-report")
        done = run_command(home, *SMALL_RUN, *where, *options)
        assert done.code == (0 if rejected is None else 3), done.err
        return home / "run"

    return make


@pytest.fixture
def finished_run(made_runs: Callable[..., Path], provider: Provider, tmp_path: Path) -> Callable[..., Path]:
    """Puts the folder of a small finished run without a report into the test's own, as `out`. The call of the number
    `rejected` failed."""

    def copied(*options: str, rejected: int | None = None, out: str = "run") -> Path:
        made = made_runs(*options, rejected=rejected)
        provider.reset()
        return Path(shutil.copytree(made, tmp_path / out))

    return copied
