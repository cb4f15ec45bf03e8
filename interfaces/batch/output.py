"""A file of rows that one batch has locked, and its replacement as a whole.

Two batches may name one file, most likely for their errors: the second is rejected. Knows of a row only its id.
"""

from __future__ import annotations

import fcntl
import os
from array import array
from collections.abc import Iterable
from pathlib import Path

from ...engine.fault import LocalFault, RunHeld
from ...engine.folder_file import open_regular
from ...engine.runs.journal import read_lines
from .rows import line_of


class Output:
    """A file of rows that this process has locked until it closes it. A missing file is created."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = _held(path)

    def close(self) -> None:
        os.close(self._fd)

    def rewrite(self, rows: Iterable[bytes]) -> None:
        """Replaces the file by these rows (newlines included) at once: a kill leaves the old file or the new one."""
        fresh = self.path.with_name(f".{self.path.name}.millstream-new")
        try:
            # Locked before it has the name, so that no other process can lock it first.
            fd = _held(fresh)
            try:
                with open(fd, "wb", buffering=1 << 20, closefd=False) as file:
                    file.truncate()
                    file.writelines(rows)
                    file.flush()
                    os.fsync(fd)
                fresh.replace(self.path)
            except BaseException:
                os.close(fd)
                raise
        except OSError as error:
            fresh.unlink(missing_ok=True)
            raise LocalFault(
                f"{self.path} can't be rewritten ({error.strerror}): what it holds is whole; make room, then the same "
                f"command goes on"
            ) from error
        os.close(self._fd)
        self._fd = fd

    def put_in_order(self, tag: str, last: int) -> None:
        """Rewrites the file in the order of the input's lines, unless it has that order already."""
        places, sizes = array("Q", bytes(8 * (last + 1))), array("Q", bytes(8 * (last + 1)))
        place, before, is_in_order = 0, 0, True
        for row in read_lines(self.path):
            line = line_of(row, tag)
            if line is not None:  # rows were checked when they were counted
                places[line], sizes[line] = place, len(row) + 1
                is_in_order, before = is_in_order and line > before, line
            place += len(row) + 1
        if not is_in_order:
            fd = self._fd
            self.rewrite(os.pread(fd, sizes[line], places[line]) for line in range(last + 1) if sizes[line])


def _held(path: Path) -> int:
    while True:
        fd = open_regular(path, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # False if the file was replaced between the two.
            if os.path.samestat(os.fstat(fd), path.stat()):
                return fd
        except BlockingIOError as error:
            os.close(fd)
            raise RunHeld(f"{path} is being written by another batch: wait for it, or choose another file") from error
        except FileNotFoundError:
            pass
        os.close(fd)
