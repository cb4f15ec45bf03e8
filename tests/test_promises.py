"""Every promise has tests that exist, and the long attack counts what broke."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from ci_programs import ci_program

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def torture() -> ModuleType:
    return ci_program("torture")


def test_every_promise_names_tests_and_files_that_exist(torture: ModuleType) -> None:
    promises = torture.promises()
    assert [promise["number"] for promise in promises] == list(range(1, len(promises) + 1))
    for promise in promises:
        assert promise["tests"], promise["number"]
        for test in (*promise["tests"], *promise["long"]):
            file, _, name = test.partition("::")
            assert (ROOT / file).is_file(), test
            assert not name or f"def {name}(" in (ROOT / file).read_text("utf-8"), test
        for named in re.findall(r"`([a-z]+/[\w/.]*)`", promise["kept"]):
            assert (ROOT / named).exists(), named


def test_the_page_has_every_promise_as_it_stands(torture: ModuleType) -> None:
    page = torture.PAGE.read_text("utf-8")
    for promise in torture.promises():
        assert promise["promise"] in page and promise["kept"] in page, f"{promise['number']}: run: make reliability"


def test_the_readme_states_every_promise_with_the_figures_of_the_page(torture: ModuleType) -> None:
    readme, page = torture.README.read_text("utf-8"), torture.PAGE.read_text("utf-8")
    assert torture.BEGIN in readme and torture.END in readme
    table = readme.partition(torture.BEGIN)[2].partition(torture.END)[0]
    for promise in torture.promises():
        number = promise["number"]
        stated = re.search(
            rf"^\| \[{number}\]\(docs/reliability.md#promise-{number}\) \| (.*) \| (.*) \|$", table, re.M
        )
        assert stated and stated[1] == promise["short"], f"{number}: run: make reliability"
        told = re.search(rf"^\| \[{number}\].* \| ([\d,]*) \| ([\d,]*) \|", page, re.M)
        assert told and stated[2] == (f"{told[2]} of {told[1]}" if told[1] else "not tried yet"), number


BROKEN = """
from torture import record, times

def test_one_that_holds():
    record("1", times(1, 40), times(1, 40), "nothing broke", "7")

def test_one_that_says_nothing():
    pass

def test_one_that_breaks():
    assert False
"""


@pytest.mark.process
def test_a_broken_attack_survives_nothing_and_is_counted(
    torture: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torture, "RESULTS", tmp_path)
    (tmp_path / "test_broken.py").write_text(BROKEN)
    found: dict[str, Any] = torture.attack("1-1", str(tmp_path / "test_broken.py"), "3")
    # Forty of the long form, one test without a line of its own, and the one that broke.
    assert (found["tried"], found["survived"], found["tests"], found["failed"]) == (42, 41, 2, 1)
    assert found["worst"] == ["nothing broke"]
    first = torture.promises()[0]["long"]
    results: dict[str, Any] = {
        "commit": "c",
        "day": "d",
        "seed": "3",
        "cores": 2,
        "tests": {test: {**found, "commit": "c0ffee"} for test in first[1:]},
    }
    assert "| 42 |" not in torture.page(results), "a promise has no figures while one of its tests has not run"
    results["tests"][first[0]] = {**found, "commit": "decade"}
    row = f"| {42 * len(first)} | {41 * len(first)} | {found['seconds'] * len(first)} s | `decade`, `c0ffee` |"
    assert row in torture.page(results)
    assert f"**What failed.** 1 of 3 tests of `{first[0]}`." in torture.page(results)
