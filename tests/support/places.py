"""Places on disk that misbehave for real: file systems that are small, or read-only."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(point: Path, size: int) -> Iterator[Path]:
    """A file system of its own with room for `size` bytes. Skips where mounting is not allowed."""
    point.mkdir(parents=True)
    mounting = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=0777", "none", str(point)]
    if os.geteuid() != 0 or subprocess.run(mounting, capture_output=True, check=False).returncode != 0:
        pytest.skip("a small file system can't be mounted here: that needs root")
    try:
        yield point
    finally:
        subprocess.run(["umount", "-l", str(point)], capture_output=True, check=True)


def make_read_only(point: Path) -> None:
    """A mounted `small_disk` refuses writes from now on, even root's."""
    subprocess.run(["mount", "-o", "remount,ro", str(point)], capture_output=True, check=True)
