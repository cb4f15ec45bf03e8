"""Assertions that are rewritten before a test file is collected are those that pytest takes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from rewriting import rewrite_all


def test_pytest_takes_what_was_rewritten_and_a_changed_file_is_rewritten_again(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    file = tmp_path / "test_numbers.py"
    file.write_text("def test_numbers():\n    number = 1\n    assert number == 2\n")
    rewrite_all(pytestconfig, [file])
    (kept,) = (tmp_path / "__pycache__").iterdir()
    before = kept.stat()
    rewrite_all(pytestconfig, [file])
    command = [sys.executable, "-P", "-m", "pytest", "-c", "/dev/null", "-p", "no:cacheprovider", str(file)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={"PATH": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    )
    assert "assert 1 == 2" in done.stdout, done
    assert (kept.stat().st_ino, kept.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    file.write_text("def test_numbers():\n    pass\n")
    rewrite_all(pytestconfig, [file])
    assert kept.stat().st_ino != before.st_ino
