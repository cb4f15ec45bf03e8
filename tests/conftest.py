"""What tests of the whole house share: its files, as git sees them; and a heap that is looked through but once."""

from __future__ import annotations

import gc
import subprocess
from pathlib import Path

import pytest


def pytest_collection() -> None:
    """Thousands of tests and all that they import come to stay: while they come there is nothing to find."""
    gc.disable()


def pytest_collection_finish() -> None:
    # Half a gigabyte that stays is no part of any later search.
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_unconfigure() -> None:
    # Some libraries look at their end for what nobody has freed.
    gc.unfreeze()


@pytest.fixture(scope="session")
def tree() -> list[str]:
    """Every file of the repository that git does not ignore, committed or not yet."""
    root = Path(__file__).parent.parent
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    return sorted({path for path in listed.split("\0") if path and (root / path).is_file()})
