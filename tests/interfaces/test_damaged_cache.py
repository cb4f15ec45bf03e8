"""Every verb that opens a damaged cache ends with exit code 5 and one line; no core dump holds what a process knew."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import SMALL, CommandLine, Provider, environment

from millstream.configuration.errors import LOCAL_FAULT


@pytest.mark.needs_benchmark("millstone")
def test_every_verb_refuses_a_cache_that_was_cut_short(cli: CommandLine, provider: Provider, tmp_path: Path) -> None:
    at = ("--base-url", provider.base_url, "--cache", "cache")
    run = ("run", "millstone", "--model", "sim/open", *SMALL)
    assert cli(*run, *at, "--out", "whole").code == 0
    assert cli("cache", "export", "whole", "whole.snapshot").code == 0
    path = tmp_path / "cache" / "data.mdb"
    os.truncate(path, path.stat().st_size - 2 * 4096)
    before, calls = path.read_bytes(), provider.calls()
    (tmp_path / "in.jsonl").write_text(
        '{"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", '
        '"body": {"model": "sim/open", "messages": [{"role": "user", "content": "x"}]}}\n'
    )
    for verb in (
        (*run, *at, "--out", "another"),
        ("cache", "stats", "--cache", "cache"),
        ("cache", "why", "--model", "sim/open", "--prompt", "x", *at),
        ("cache", "prune", "--all", "--cache", "cache"),
        ("cache", "export", "whole", "another.snapshot"),
        ("cache", "import", "whole.snapshot", "--cache", "cache"),
        ("batch", "in.jsonl", "out.jsonl", "--model", "sim/open", *at),
        ("serve", "--port", "0", *at),
    ):
        done = cli(*verb)
        said = done.err.strip().splitlines()
        assert done.code == LOCAL_FAULT, (verb, done)
        assert "cache/data.mdb is damaged: " in said[-1] and "move that file away" in said[-1], (verb, done)
        assert "Traceback" not in done.err and len([line for line in said if "damaged" in line]) == 1
    assert path.read_bytes() == before and provider.calls() == calls
    assert cli("verify", "whole").code == 0


@pytest.mark.parametrize("front_door", ["millstream.__main__", "millstream.interfaces.plugins.lm_eval"])
def test_the_command_line_leaves_no_core_dump(front_door: str, tmp_path: Path) -> None:
    program = (
        "import resource, sys; hard = resource.getrlimit(resource.RLIMIT_CORE)[1]; "
        "resource.setrlimit(resource.RLIMIT_CORE, (hard, hard)); sys.argv = ['x', '--version']; import atexit; "
        "atexit.register(lambda: print(resource.getrlimit(resource.RLIMIT_CORE)[0])); "
        f"import {front_door} as door; door.main()"
    )
    command = [sys.executable, "-P", "-c", program]
    done = subprocess.run(command, env=environment(tmp_path), capture_output=True, text=True)
    assert done.stdout.splitlines()[-1:] == ["0"], done
