"""A sink beside a run of conversations: it is given every call of a turn, and what is wrong with it ends the run."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

from command_line import Done, environment, finish, lines_of, start
from distributions import install
from simulated_outside import Outside

SINK = """
import json, os
import millstream as ms

class Lines:
    fault = None
    left = int(os.environ.get("LEFT", "1000000"))

    def __init__(self, path):
        self.file = open(path, "a", buffering=1)

    def write(self, outcome):
        self.left -= 1
        row = {"lane": outcome.call.lane, "key": outcome.key, "cached": outcome.cached}
        self.file.write(json.dumps(row) + "\\n")
        if not self.left:
            self.fault = ms.LocalFault("enough was written")

    def flush(self):
        self.file.flush()
"""
ASKED = (
    "--conversations",
    "1",
    "--turns",
    "3",
    "--pages",
    "4",
    "--temperature",
    "0",
    "--model",
    "sim/open",
    "--judge",
    "sim/judge",
)


def run(home: Path, outside: Outside, *verb: str, **more: str) -> Done:
    install_once(home / "site")
    paths = [str(home / "site"), environment(home)["PYTHONPATH"]]
    variables = {**outside.variables, "PYTHONPATH": os.pathsep.join(filter(None, paths)), **more}
    return finish(start(home, *verb, "--no-progress", "--no-report", **variables))


def install_once(site: Path) -> None:
    if not site.exists():
        install(site, "lines", SINK, {"millstream.sinks": {"lines": "lines:Lines"}})


def test_every_call_of_a_turn_reaches_the_sink_and_its_fault_leaves_a_run_to_be_resumed(
    outside: Outside, tmp_path: Path
) -> None:
    command = ("run", "chameleon", *ASKED, *outside.flags, "--out", "run", "--cache", "c", "--sink", "lines:rows.jsonl")
    broken = run(tmp_path, outside, *command, LEFT="4")
    assert broken.code == 5, broken.err
    assert "sink lines of lines 1.0: enough was written" in broken.err and "Traceback" not in broken.err
    assert len(lines_of(tmp_path / "rows.jsonl")) == 4
    assert run(tmp_path, outside, "resume", "run").code == 0
    turns = lines_of(tmp_path / "run/records.jsonl")
    assert len(turns) == 3
    rows = lines_of(tmp_path / "rows.jsonl")
    lanes = Counter(row["lane"].partition("/")[0] for row in rows)
    assert lanes["sim"] >= 2 * 3 and lanes["search"] >= 3 and lanes["web"] > 0
    assert {key for turn in turns for key in turn["keys"]} <= {row["key"] for row in rows}
