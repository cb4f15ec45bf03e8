"""A limit of address space, as many clusters set it (`ulimit -v`): what draws says so, and the scores are there."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from command_line import COMMAND, SMALL, Done, Provider, environment

pytestmark = [pytest.mark.needs_benchmark("millstone"), pytest.mark.process]

KIB = 12_000_000


def limited(home: Path, *arguments: str) -> Done:
    done = subprocess.run(
        ["bash", "-c", f'ulimit -v {KIB} && exec "$@"', "bash", *COMMAND, *arguments],
        cwd=home,
        env=environment(home),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def test_a_run_scores_and_its_report_is_refused_with_the_limit_in_a_line(tmp_path: Path, provider: Provider) -> None:
    where = ("--base-url", provider.base_url, "--cache", "cache", "--out", "run", "--no-progress")
    # A cache maps what it can get.
    run = limited(tmp_path, "run", "millstone", "--model", "sim/open", *SMALL, *where)
    assert run.code == 0 and "sim/open" in run.out, run
    said = "charts need 66 GiB of address space, nearly all of it unused, and the limit here is 11 GiB: raise it"
    assert f"no report in {tmp_path}/run: {said}" in run.out + run.err
    report = limited(tmp_path, "report", "run")
    assert report.code == 5 and report.err.splitlines()[-1].startswith(f"millstream: {said}"), report
    assert limited(tmp_path, "score", "run").code == 0
    assert not (tmp_path / "run/report.html").exists()
