"""The one way to open a file that is mapped into memory and shared by processes."""

from __future__ import annotations

import os
from pathlib import Path


def open_to_map(path: Path, size: int, mode: int = 0o600) -> int:
    """Returns a descriptor of a file that has at least `size` bytes on the disk; makes it where it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, mode)
    try:
        there = os.fstat(fd)
        # A copy may have holes. Touching a hole of a mapped file on a full disk would kill the process.
        if min(there.st_size, 512 * there.st_blocks) < size:
            lengthen = getattr(os, "posix_fallocate", None)
            lengthen(fd, 0, size) if lengthen is not None else os.ftruncate(fd, size)
    except OSError:
        os.close(fd)
        raise
    return fd
