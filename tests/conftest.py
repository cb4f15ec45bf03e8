"""What tests of the whole house share: its files, as git sees them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def tree() -> list[str]:
    """Every file of the repository that git does not ignore, committed or not yet."""
    root = Path(__file__).parent.parent
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    return sorted({path for path in listed.split("\0") if path and (root / path).is_file()})
