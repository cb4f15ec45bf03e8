"""A small run with its report, made by the commands a person would give."""

from __future__ import annotations

import pytest
from browser import Reported
from command_line import run_command, simulated_provider


@pytest.fixture(scope="session")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Reported:
    home = tmp_path_factory.mktemp("reported")
    with simulated_provider(home) as provider:
        asked = ("--model", "sim/open", "sim/refusing", "--limit", "5", "--trials", "3")
        where = ("--base-url", provider.base_url, "--cache", "cache", "--out", "run", "--no-report")
        done = run_command(home, "run", "millstone", *asked, *where)
        assert done.code == 0, done.err
    done = run_command(home, "report", "run")
    assert done.code == 0, done.err
    return Reported(home / "run", home / "run" / "report.html")
