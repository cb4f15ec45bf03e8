"""A test is marked by what it needs, and `make quick` fails one that starts a process unmarked."""

from __future__ import annotations

import json
import multiprocessing
import subprocess
import sys
from collections.abc import Callable
from math import inf

import command_line
import pytest
from command_line import environment, simulated_provider
from durations import FILE, seconds_of_modules, table_of
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


def test_a_run_of_a_part_leaves_the_durations_of_other_modules_that_exist_as_they_were() -> None:
    here, other = "tests/test_markers.py", "tests/test_house.py"
    before = {
        "modules": {here: 9.0, other: 2.5, "tests/test_gone.py": 3.0},
        "slow": {f"{here}::test_a": 9.0, f"{other}::test_b": 0.1, "tests/test_gone.py::test_c": 3.0},
    }
    table = table_of({f"{here}::test_a[1]": 0.05, f"{here}::test_d[1]": 0.2, f"{here}::test_d[2]": 0.3}, before)
    assert table == {
        "modules": {other: 2.5, here: 0.6},
        "slow": {f"{other}::test_b": 0.1, f"{here}::test_d": 0.3},
    }


def test_a_module_lasts_as_long_as_the_tests_that_are_chosen_of_it_and_one_that_nobody_knows_is_begun_first() -> None:
    table = json.loads(FILE.read_text("utf-8"))
    name, seconds = max(table["slow"].items(), key=lambda row: float(row[1]))
    module, new = name.partition("::")[0], "tests/test_new.py"
    cases = [f"{name}[{number}]" for number in range(1_000)]
    assert seconds_of_modules([*cases, f"{new}::test_a"]) == {module: pytest.approx(1_000 * seconds), new: inf}
    # The row of a module, where it is more than its slow tests.
    assert seconds_of_modules([f"{module}::test_quick"]) == {module: table["modules"][module]}
