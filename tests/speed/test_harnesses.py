"""The speed of other harnesses with and without us, as a bench prints it: a look at whether it still runs."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import environment


@pytest.mark.long
@pytest.mark.skipif(not (shutil.which("nginx") or Path("/usr/sbin/nginx").exists()), reason="nginx is not installed")
def test_both_harnesses_have_a_row_with_their_versions_and_ratios(tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-m", "millstream.speed.harnesses", "--samples", "2", "--rounds", "1"]
    done = subprocess.run(command, env=environment(tmp_path), cwd=tmp_path, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr
    rows = [re.split(r" {2,}", line) for line in done.stdout.splitlines()[-2:]]
    assert [(row[0].split()[0], row[1]) for row in rows] == [("inspect-ai", "2"), ("lm-eval", "10")]
    assert all(re.fullmatch(r"[\w.-]+ \d+\.\d+\.\d+", row[0]) for row in rows)
    assert all(float(ratio) > 0 for row in rows for ratio in row[-2:])
