"""Leases on cache keys: of the processes that share a cache, one at a time sends the call of a key.

Owns who holds which key, and knows neither calls nor answers. A lease of a folder is a lock on one byte of a file.
The kernel frees it when its holder ends, however that happens; so no lease is left behind, and none has to be renewed.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from pathlib import Path
from typing import Protocol

from ..remarks import remark

# Locks that belong to an open file, not to a process: two engines of one process exclude each other too, and closing
# another descriptor of the file frees nothing. Only Linux names them.
_SET_LOCK: int | None = getattr(fcntl, "F_OFD_SETLK", None)
# The kernel walks a list of a file's locks. Measured with one file, to take a key and to release it: 3 µs, with 256
# keys held 5, with 1,000 held 13. So the keys are spread over files.
_FILES = 8
# C's struct flock: type, whence, start, length, process (0 for these locks).
_FLOCK = struct.Struct("@hhqqi")
_NO_OFD = "this system has no locks that belong to an open file"


class KeyLeases(Protocol):
    """The right to send the call of a cache key. One engine takes each key once at a time."""

    def try_take(self, key: bytes) -> bool:
        """Takes a key's lease, unless another engine holds it. Returns whether the call may be sent."""

    def release(self, key: bytes) -> None:
        """Gives a lease back, after the answer is stored or the call has ended without one."""

    def close(self) -> None:
        """Gives all leases back."""


class FolderLeases:
    """The leases of all engines on this machine that use one cache folder. Where the folder's file system has no such
    locks, it says so once and lets every call be sent."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "leases"
        self._fds: dict[int, int] = {}
        self._is_off = False

    def __repr__(self) -> str:
        state = "off" if self._is_off else "open" if self._fds else "not used yet"
        return f"<FolderLeases {self._path} [{state}]>"

    def try_take(self, key: bytes) -> bool:
        try:
            self._lock(fcntl.F_WRLCK, key)
        except OSError as error:
            # The system may say either; the second also where the file itself can't be opened.
            if key[-1] % _FILES in self._fds and error.errno in (errno.EAGAIN, errno.EACCES):
                return False
            self._turn_off(error)
        return True

    def release(self, key: bytes) -> None:
        if self._fds:
            try:
                self._lock(fcntl.F_UNLCK, key)
            except OSError as error:
                self._turn_off(error)

    def close(self) -> None:
        while self._fds:
            os.close(self._fds.popitem()[1])

    def _lock(self, kind: int, key: bytes) -> None:
        if self._is_off:
            return
        if _SET_LOCK is None:
            raise OSError(errno.ENOTSUP, _NO_OFD)
        number = key[-1] % _FILES
        if number not in self._fds:
            path = self._path.with_suffix(f".{number}")
            self._fds[number] = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        # A key is a hash, so its first 63 bits are an offset that no other key has; if one had, it would only wait.
        offset = int.from_bytes(key[:8], "big") >> 1
        fcntl.fcntl(self._fds[number], _SET_LOCK, _FLOCK.pack(kind, os.SEEK_SET, offset, 1, 0))

    def _turn_off(self, error: OSError) -> None:
        """Frees all leases and takes none from now on."""
        self.close()
        self._is_off = True
        remark(
            f"{self._path} can't be locked ({error.strerror}): programs that use this cache at the same time may send "
            f"the same call twice"
        )
