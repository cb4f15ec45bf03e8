"""A run that has begun keeps windows and its judge's temperature, whatever the table of models says later."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine

from millstream.engine.runs.run_folder import manifest_hash, specification_hash

MODEL, JUDGE = "openai/gpt-5.5", "openai/gpt-5.4"
RUN = ("chameleon", "--model", MODEL, "--judge", JUDGE, "--search", "corpus", "--conversations", "1", "--turns", "2")
QUIET = ("--no-progress", "--no-report")


@pytest.mark.parametrize("way", ["run", "resume"])
def test_a_begun_run_keeps_what_the_table_decided(cli: CommandLine, tmp_path: Path, way: str) -> None:
    command = (*RUN, "--out", "run", "--mode", "strict", "--cache", "cache", *QUIET)
    first = cli("run", *command)
    path = tmp_path / "run/manifest.json"
    assert path.exists(), first.err
    manifest: dict[str, Any] = json.loads(path.read_text())
    # As of an earlier table, which did not know these models.
    assert min(manifest["specification"]["prompt_tokens"].values()) > 111_104
    manifest["specification"]["prompt_tokens"] = dict.fromkeys((MODEL, JUDGE), 111_104)
    assert manifest["specification"]["judge_temperature"] == 0.0
    manifest["specification"]["judge_temperature"] = None
    manifest["specification_hash"] = specification_hash(manifest["specification"])
    manifest["manifest_hash"] = manifest_hash(manifest)
    path.write_text(json.dumps(manifest))
    again = cli("run", *command) if way == "run" else cli("resume", "run", *QUIET)
    assert again.code == first.code, again.err
    kept = json.loads(path.read_text())["specification"]
    assert kept["prompt_tokens"] == dict.fromkeys((MODEL, JUDGE), 111_104) and kept["judge_temperature"] is None
    other = cli("run", *command, "--window", "200000")
    assert other.code == 2 and "prompt_tokens" in other.err
