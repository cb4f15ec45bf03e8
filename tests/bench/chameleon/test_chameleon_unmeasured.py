"""Chameleon runs that measured nothing, from the command line: exit code 3, and a sentence that says why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import run_command
from simulated_outside import Outside

SIZE = ("--conversations", "2", "--turns", "3", "--pages", "3", "--temperature", "0", "--no-progress", "--no-report")


def run(
    home: Path, outside: Outside, *more: str, judge: str = "judge", has_pages: bool = True
) -> tuple[int, dict[str, Any]]:
    # Nothing listens at port 1.
    port = outside.web_port if has_pages else 1
    flags = [flag.replace(f".test=127.0.0.1:{outside.web_port}", f".test=127.0.0.1:{port}") for flag in outside.flags]
    asked = ("run", "chameleon", "--model", "sim/open", "--judge", f"sim/{judge}", *SIZE, *flags, *more)
    done = run_command(home, *asked, "--cache", "cache", "--out", "run", "--json", **outside.variables)
    found: dict[str, Any] = json.loads(done.out)["runs"][0]
    return done.code, found


@pytest.mark.parametrize(
    ("judge", "fault", "has_pages", "sentence"),
    [
        (
            "rubbish-judge",
            "",
            True,
            "sim/open @ 0 has no score worth reading: 6 of 6 turns have no clear stance (6 answers without a readable "
            "verdict of the judge)",
        ),
        (
            "judge",
            "content_filter=200,model=open",
            True,
            "sim/open @ 0 has no score worth reading: 6 of 6 turns have no clear stance (6 answers refused)",
        ),
        (
            "judge",
            "",
            False,
            "no conversation with search was measured: no page gave a text (all 18 pages: unreachable)",
        ),
        (
            "judge",
            "nothing",
            True,
            "no conversation with search was measured: no page gave a text (6 searches found no page)",
        ),
    ],
)
def test_it_ends_with_3_and_has_no_score(
    tmp_path: Path, outside: Outside, judge: str, fault: str, has_pages: bool, sentence: str
) -> None:
    if fault == "nothing":
        outside.set_search_faults(fault)
    elif fault:
        outside.provider.set_faults(fault)
    code, found = run(tmp_path, outside, judge=judge, has_pages=has_pages)
    assert (code, found["exit_code"], found["failed"], found["pending"]) == (3, 3, 0, 0)
    assert found["unmeasured"] == found["scores"]["chameleon"]["unmeasured"] == [sentence]
    entry = found["scores"]["chameleon"]["models"]["sim/open"]["0"]
    assert (entry["score"]["mean"], entry["rank"], entry["conversations"], entry["unscored"]) == (None, None, 0, 2)
