"""Claims on cache keys: of all engines that share a cache, one at a time sends the call of a key.

Owns who has the lease of which key, and how often the others look again; knows neither calls nor answers. The engine
that is first on a cache owns a table of keys in a file that all map, and while no other is present it takes a key by
writing it there, without a lock. Beside others, each takes a key by a lock on one byte of a file. The kernel frees
locks when their holder ends, however that happens; so no lease is left behind, and none has to be renewed.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import struct
import time
from pathlib import Path

from .mapped_file import open_to_map
from .remarks import remark

# Locks that belong to an open file, not to a process: two engines of one process exclude each other too, and closing
# another descriptor of the file frees nothing. Only Linux names them.
_SET_LOCK: int = getattr(fcntl, "F_OFD_SETLK", 0)
_GET_LOCK: int = getattr(fcntl, "F_OFD_GETLK", 0)
# C's struct flock: type, whence, start, length, process (0 for these locks).
_FLOCK = struct.Struct("@hhqqi")
_NO_OFD = "this system has no locks that belong to an open file"
# The kernel walks a list of a file's locks. Measured with one file, to take a key and to release it: 3 µs, with 256
# keys held 5, with 1,000 held 13. So the keys are spread over files.
_FILES = 8
_TABLE = _FILES
# Bytes of the table's file that are locked: by its owner alone, and by every engine that is present.
_OWNER, _PRESENT = 0, 1
# The words of the table: whether its owner is not alone, then in each slot the beginning of a key, or 0. A key is a
# hash, so no other key begins like it; if one did, it would only wait.
_SHARED = 0
_WORD = struct.Struct("@q")
_WORDS = 2048
# A core writes what it has to at most this much later, as others see it: by then they see each key that the owner wrote
# before it saw that it is not alone.
_SEEN_AFTER_S = 0.01
# What a lease is released by, beside the number of its slot.
_NONE, _LOCKED, _UNLOCKED = 0, -1, -2

# A pause is this share of the wait so far: an answer is seen late by a quarter of what it took, at most.
_PAUSE_SHARE = 0.25
_PAUSE_MIN_S = 0.02
_PAUSE_MAX_S = 0.5


def look_again_in_s(waited_s: float, patience_s: float) -> float:
    """Returns the seconds after which a call whose key another engine has looks again: at the end of its patience at
    the latest."""
    return min(_PAUSE_MAX_S, max(_PAUSE_MIN_S, _PAUSE_SHARE * waited_s), patience_s - waited_s)


class Claims:
    """The claims of one engine in a cache folder. `is_shared` False: no other engine uses its answers. `changes` grows
    whenever a call has ended or another engine may have stored an answer: what was looked up before may be in the store
    now. `look_round_s`: how often it finds out whether it is alone. Where the folder's file system has no such locks,
    it says so once and lets every call be sent."""

    def __init__(self, folder: Path, *, is_shared: bool = True, look_round_s: float = 1.0) -> None:
        self.changes = 0
        self._path = folder / "leases"
        self._is_shared = is_shared
        self._is_off = not is_shared
        self._is_owner = False
        self._words = memoryview(b"")
        self._free: list[int] = []
        # What the owner had taken alone when this engine began: while that is present, this can only become less.
        self._theirs = set[int]()
        self._fds: dict[int, int] = {}
        self._look_round_s, self._look_round_at = look_round_s, 0.0

    def __repr__(self) -> str:
        state = "owner" if self._is_owner else "guest" if self._words else "not used yet"
        return f"<Claims {self._path} [{'off' if self._is_off else state}]>"

    def take(self, key: bytes) -> int:
        """Takes the lease of a key. Returns what it is released by; 0 if another engine has it, or this machine has no
        file descriptor to find that out with."""
        if self._free:
            words, slot = self._words, self._free.pop()
            (words[slot],) = _WORD.unpack_from(key)
            # In this order, since another engine first sets it, then reads the slots.
            if not words[_SHARED]:
                return slot
            words[slot] = 0
            self._free.append(slot)
        return self._take_beside_others(key)

    def release(self, key: bytes, lease: int) -> None:
        """Gives a lease back, after the answer is stored or the call has ended without one."""
        self.changes += 1
        if lease > 0:
            self._words[lease] = 0
            self._free.append(lease)
        elif lease == _LOCKED:
            try:
                self._lock_key(fcntl.F_UNLCK, key)
            except OSError as error:
                self._turn_off(error)

    def close(self) -> None:
        """Gives all leases back."""
        self._is_owner, self._free, self._words = False, [], memoryview(b"")
        while self._fds:
            fd = self._fds.popitem()[1]
            _lock(fd, fcntl.F_UNLCK, 0, 0)  # a fork of this process has the same locks
            os.close(fd)

    def _take_beside_others(self, key: bytes) -> int:
        self.changes += self._is_shared
        if self._is_off:
            return _UNLOCKED
        try:
            if time.monotonic() >= self._look_round_at:
                self._look_round() if self._words else self._enter()
            if (word := _WORD.unpack_from(key)[0]) in self._theirs and word in self._words.tolist():
                self._look_round()  # its owner may have ended
                if not self._is_owner:
                    return _NONE
            return _LOCKED if self._lock_key(fcntl.F_WRLCK, key) else _NONE
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                return _NONE  # this passes, and another engine may have the key
            self._turn_off(error)
            return _UNLOCKED

    def _look_round(self) -> None:
        """Takes the table over if it has no owner; as its owner, finds out whether another engine is present."""
        self._look_round_at = time.monotonic() + self._look_round_s
        if not self._is_owner and _lock(self._fds[_TABLE], fcntl.F_WRLCK, _OWNER):
            # What is in it was taken by an owner that has ended.
            self._words[_SHARED + 1 :] = memoryview(bytes(self._words.nbytes - _WORD.size)).cast("q")
            self._is_owner, self._free = True, list(range(_SHARED + 1, _WORDS))
        if self._is_owner:
            # In this order: another engine is present first, then sets it; and what it sets must stay.
            self._words[_SHARED] = 0
            if _is_locked(self._fds[_TABLE], _PRESENT):
                self._words[_SHARED] = 1

    def _enter(self) -> None:
        """Opens the table, lets its owner know that it is not alone, and notes which keys that has."""
        if not _SET_LOCK:
            raise OSError(errno.ENOTSUP, _NO_OFD)
        self._fds[_TABLE] = fd = open_to_map(self._path, _WORDS * _WORD.size, 0o644)
        self._words = memoryview(mmap.mmap(fd, _WORDS * _WORD.size)).cast("q")
        _lock(fd, fcntl.F_RDLCK, _PRESENT)
        self._words[_SHARED] = 1
        self._look_round()
        if not self._is_owner:
            time.sleep(_SEEN_AFTER_S)
            self._theirs = set(self._words.tolist())

    def _lock_key(self, kind: int, key: bytes) -> bool:
        file = key[-1] % _FILES
        if file not in self._fds:
            path = self._path.with_suffix(f".{file}")
            self._fds[file] = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        return _lock(self._fds[file], kind, int.from_bytes(key[:8], "big") >> 1)

    def _turn_off(self, error: OSError) -> None:
        """Takes no locks from now on."""
        if not self._is_off:
            self._is_off = True
            remark(
                f"{self._path} can't be locked ({error.strerror}): programs that use this cache at the same time may "
                f"send the same call twice"
            )


def _lock(fd: int, kind: int, start: int, length: int = 1) -> bool:
    """Locks bytes of a file or frees them. Returns False if another engine has them."""
    try:
        fcntl.fcntl(fd, _SET_LOCK, _FLOCK.pack(kind, os.SEEK_SET, start, length, 0))
    except OSError as error:
        if error.errno not in (errno.EAGAIN, errno.EACCES):
            raise
        return False
    return True


def _is_locked(fd: int, start: int) -> bool:
    """Whether another engine has locked a byte of a file."""
    held = fcntl.fcntl(fd, _GET_LOCK, _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, start, 1, 0))
    return bool(_FLOCK.unpack(held)[0] != fcntl.F_UNLCK)
