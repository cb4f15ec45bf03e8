"""A test is marked by what it needs, and `make quick` fails one that starts a process unmarked."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
from collections.abc import Callable

import command_line
import pytest
from command_line import environment, simulated_provider
from needs import GUARD, Needs

START: dict[str, Callable[[], object]] = {
    "subprocess": lambda: subprocess.run([sys.executable, "-c", ""], check=True),
    # Made when it is started: a fork that runs the tests may start none that another process has made.
    "multiprocessing": lambda: multiprocessing.get_context("spawn").Process(target=print).start(),
}


@pytest.mark.parametrize("how", START)
def test_an_unmarked_test_that_starts_a_process_fails(how: str, pytestconfig: pytest.Config) -> None:
    with (
        pytest.raises(pytest.fail.Exception, match="without the marker `process`"),
        pytestconfig.stash[GUARD].forbidden(),
        pytest.raises(RuntimeError, match="a process was started"),
    ):
        START[how]()


def test_a_process_is_found_in_helpers_and_fixtures() -> None:
    def by_helper() -> object:
        return simulated_provider

    def by_its_module() -> object:
        return command_line.start

    def by_module() -> None:
        subprocess.run(["true"])

    def none() -> object:
        return environment

    needs = Needs()
    assert all(needs.of(each) == {"process"} for each in (by_helper, by_its_module, by_module))
    assert needs.of(none) == set()


def test_the_marker_is_set_for_those_who_use_the_simulated_provider(
    request: pytest.FixtureRequest, provider: object
) -> None:
    assert request.node.get_closest_marker("process")
