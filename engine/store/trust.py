"""Decides whether the file of a cache can be trusted, before LMDB maps it.

A file that was closed cleanly and has not changed since is trusted, and so is one that another process has open: that
process has checked it. Any other is proven page by page, while nobody else can open it. Repairs nothing.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from pathlib import Path

from ..folder_file import try_lock
from .page_proof import check_pages

_LOOK_AGAIN_S = 0.02
_MARK = "closed"


class TrustedFile:
    """A lock on the store's file: shared by all who have the store open, exclusive while the file is checked."""

    def __init__(self, path: Path, names: tuple[bytes, ...], *, read_only: bool) -> None:
        """Checks the file unless it is trusted. Raises DamagedPages, or OSError if it can't be read."""
        self._path = path
        self._mark = path.with_name(_MARK)
        flags = os.O_RDONLY if read_only else os.O_RDWR | os.O_CREAT
        self._fd = os.open(path, flags | os.O_CLOEXEC, 0o644)
        try:
            self._trust(names)
        except BaseException:
            os.close(self._fd)
            raise

    def _trust(self, names: tuple[bytes, ...]) -> None:
        while True:
            if try_lock(self._fd):
                if self._state() != self._marked():
                    check_pages(self._path, names)
                # The lock may be lost for a moment here: another process then checks the file once more.
                fcntl.flock(self._fd, fcntl.LOCK_SH)
                return
            if try_lock(self._fd, fcntl.LOCK_SH):
                return
            time.sleep(_LOOK_AGAIN_S)  # somebody is checking it

    def close(self) -> None:
        """Frees the lock. The last user to close the store notes the file's state, so that the next start trusts it."""
        with contextlib.suppress(OSError):
            if try_lock(self._fd) and self._state() != self._marked():
                draft = self._mark.with_name(f"{_MARK}.{os.getpid()}")
                draft.write_text(self._state())
                draft.replace(self._mark)
        os.close(self._fd)

    def _state(self) -> str:
        """Returns a text that changes with every write to the file: nobody can set the time of its last change."""
        status = os.fstat(self._fd)
        return f"{status.st_ino} {status.st_size} {status.st_ctime_ns}"

    def _marked(self) -> str | None:
        try:
            return self._mark.read_text()
        except (OSError, UnicodeDecodeError):
            return None
