"""The file of a hard limit on money: an upper bound of everything that was spent or reserved under it.

The bound (`granted`) is raised in blocks before a call that needs one is sent, and lowered when less was spent. A write
to the page cache outlives `kill -9`, so what a killed process had in flight stays in the bound. Several processes may
share a budget: each change is then made under a lock. Amounts on disk are whole billionths of a dollar.
"""

from __future__ import annotations

import fcntl
import math
import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from ..fault import LocalFault
from ..folder_file import open_regular, read_whole, try_lock

BUDGET = "budget"
"""The name of the file in a run's folder."""

_NANO = 1_000_000_000
_THOUSAND = 1_000
_MOST = 10**18


class Amounts(Struct, frozen=True):
    """Amounts in dollars: `granted` is the most that may have been spent, `spent` what was certainly spent, `at_worst`
    the part of that for answers whose tokens the provider did not report (not known to a budget's file)."""

    granted: float = 0.0
    spent: float = 0.0
    at_worst: float = 0.0


NOTHING = Amounts()


class BudgetPlace(Struct, frozen=True):
    """Where a budget's file lies, and what else counts against its limit. `before`: the amounts that count while the
    file doesn't exist. `beside`: the budget files of other folders under the same limit, each with the dollars that
    count while it doesn't exist. `lock`: a folder that is locked during each change by processes that share the
    limit; None: one process alone uses the file."""

    path: Path
    before: Amounts = Amounts()
    beside: Mapping[Path, float] = {}
    lock: Path | None = None


class Leftover(Struct, frozen=True):
    """A budget file that a killed process left: `written` is the UTC time of its last write, `granted` the most that
    may have been spent, in dollars."""

    path: Path
    written: str
    granted: float


class _State(Struct, frozen=True):
    granted: int
    spent: int
    overrun: int = _THOUSAND
    written: str = ""

    @property
    def amounts(self) -> Amounts:
        return Amounts(self.granted / _NANO, self.spent / _NANO)

    def line(self) -> bytes:
        amounts = f"granted {self.granted:>20} spent {self.spent:>20} overrun {self.overrun:>20}"
        text = f"{amounts} (billionths of a dollar, thousandths) {self.written}"
        return f"{text} crc {zlib.crc32(text.encode()):08x}\n".encode()


_SIZE = len(_State(0, 0, written="2000-01-01T00:00:00Z").line())


def amounts_in(path: Path) -> Amounts | None:
    """Returns the amounts in a budget's file; None if there is no file. Raises LocalFault if it is damaged."""
    state = _state_in(path)
    return None if state is None else state.amounts


def left_in(path: Path) -> Leftover | None:
    """Returns what may have been spent under a budget's file and when it was last written; None if there is no file.
    Raises LocalFault if it is damaged."""
    state = _state_in(path)
    return None if state is None else Leftover(path, state.written, state.granted / _NANO)


class BudgetSource(Protocol):
    """Who grants the money of a budget: a file (see BudgetFile for the methods), or the driver of a fleet.
    `is_waiting`: what was asked for last may still be granted."""

    is_shared: bool
    ends: bool
    leftover: Leftover | None

    @property
    def all(self) -> Amounts: ...

    @property
    def overrun(self) -> float: ...

    @property
    def is_waiting(self) -> bool: ...

    def draw(self, least: float, block: float) -> float: ...

    def settle(self, unused: float, spent: float, overrun: float = 1.0) -> float: ...

    def close(self, *, is_finished: bool) -> None: ...


class BudgetFile:
    """One process's open budget file, created when the first block is drawn. `ends`: it is removed at a clean end."""

    def __init__(self, place: BudgetPlace, limit: float, *, ends: bool = False) -> None:
        self.path = place.path
        self.limit = limit
        self.is_waiting = False
        self.leftover: Leftover | None = None
        self._beside = place.beside
        self._lock_folder = place.lock
        self.is_shared = place.lock is not None
        self.ends = ends
        self._fd: int | None = None
        self._lock_fd: int | None = None
        before = place.before
        self._state = _State(_nano_up(before.granted), min(_nano_down(before.spent), _nano_up(before.granted)))
        with self._as_fault():
            self._fd = _opened(place.path)
            if self._fd is not None:
                try:
                    if place.lock is None and not try_lock(self._fd):
                        raise LocalFault(f"{self.path} is in use by another process: wait for it")
                    self._state = self._read()
                except LocalFault:
                    self._close_files()
                    raise

    def __repr__(self) -> str:
        amounts = self._state.amounts
        return f"<BudgetFile [${amounts.granted:.4f} granted, ${amounts.spent:.4f} spent, limit ${self.limit:.4f}]>"

    @property
    def is_in_place(self) -> bool:
        """Whether the open file is still the one at `path`; its owner may have removed it."""
        if self._fd is None:
            return False
        try:
            return os.path.samestat(os.fstat(self._fd), self.path.stat())
        except OSError:
            return False

    @property
    def all(self) -> Amounts:
        """The amounts that count against the limit: this file's and those of other folders."""
        with self._locked():
            elsewhere = self._elsewhere()
            granted = self._state.granted + sum(state.granted for state in elsewhere)
            spent = self._state.spent + sum(state.spent for state in elsewhere)
            return Amounts(granted / _NANO, spent / _NANO)

    @property
    def overrun(self) -> float:
        """The most times its highest cost that a call has cost under this limit, as last read from the file."""
        return self._state.overrun / _THOUSAND

    def draw(self, least: float, block: float) -> float:
        """Raises the bound by `block` dollars (`least`, if that is more), or by what the limit has left. Returns the
        dollars added; 0.0 if less than `least` is left. Raises LocalFault if it can't be written: then nothing may
        be sent."""
        with self._locked():
            room, overrun = _nano_down(self.limit) - self._state.granted, self._state.overrun
            if room >= 0:
                elsewhere = self._elsewhere()
                room -= sum(state.granted for state in elsewhere)
                overrun = max(overrun, *(state.overrun for state in elsewhere), 0)
            wanted = _nano_up(least)
            if room < wanted:
                return 0.0
            amount = min(room, max(wanted, _nano_down(block)))
            self._write(self._state.granted + amount, self._state.spent, overrun)
            return amount / _NANO

    def settle(self, unused: float, spent: float, overrun: float = 1.0) -> float:
        """Lowers the bound by `unused` dollars (raises it if negative: a call cost more than its worst case), adds
        `spent` to what was certainly spent, and raises the kept `overrun`. Returns the dollars by which the bound was
        lowered."""
        with self._locked():
            lowered = _nano_down(unused)
            granted = max(0, self._state.granted - lowered)
            most = min(_MOST, math.ceil(overrun * _THOUSAND - 1e-3))
            self._write(granted, min(granted, self._state.spent + _nano_down(spent)), max(self._state.overrun, most))
            return lowered / _NANO

    def close(self, *, is_finished: bool) -> None:
        """Closes the file. One that `ends` is removed if `is_finished`: nobody has to count its amounts any more."""
        if self._fd is not None and self.ends and is_finished:
            with suppress(OSError):
                self.path.unlink()
        self._close_files()

    def _close_files(self) -> None:
        for fd in (self._fd, self._lock_fd):
            if fd is not None:
                os.close(fd)
        self._fd = self._lock_fd = None

    def _elsewhere(self) -> list[_State]:
        return [_state_in(path) or _State(_nano_up(known), 0) for path, known in self._beside.items()]

    # The file

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Locks a shared file against other processes during the block and first reads its state."""
        if self._lock_folder is None:
            with self._as_fault():
                yield
            return
        with self._as_fault():
            if self._lock_fd is None:
                self._lock_folder.mkdir(parents=True, exist_ok=True)
                self._lock_fd = os.open(self._lock_folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            fcntl.flock(self._lock_fd, fcntl.LOCK_EX)
            try:
                if self._fd is None:
                    self._fd = _opened(self.path)
                if self._fd is not None:
                    self._state = self._read()
                yield
            finally:
                fcntl.flock(self._lock_fd, fcntl.LOCK_UN)

    def _read(self) -> _State:
        assert self._fd is not None
        return _parsed(os.pread(self._fd, _SIZE + 1, 0), self.path)

    def _write(self, granted: int, spent: int, overrun: int) -> None:
        state = _State(granted, spent, overrun, datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
        if self._fd is None:
            self._fd = _made(self.path, state)
        elif os.pwrite(self._fd, state.line(), 0) != _SIZE:
            raise OSError(5, "only a part of it was written")
        self._state = state

    @contextmanager
    def _as_fault(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise LocalFault(
                f"{self.path} can't be written ({error.strerror}), and money that is spent is counted there: make it "
                f"writable and free disk space, then go on"
            ) from error


# One file


def is_held(path: Path) -> bool:
    """Whether a living process has the file open for itself alone."""
    fd = _opened(path)
    if fd is None:
        return False
    try:
        return not try_lock(fd)
    finally:
        os.close(fd)


def _opened(path: Path) -> int | None:
    try:
        return open_regular(path, os.O_RDWR)
    except FileNotFoundError:
        return None


def _made(path: Path, state: _State) -> int:
    """Creates the file and returns its descriptor, locked by this process. It is written beside and renamed, so that a
    kill leaves either no file or a complete one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    fd = open_regular(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        if os.write(fd, state.line()) != _SIZE:
            raise OSError(28, "No space left on device")
        try_lock(fd)
        draft.rename(path)
    except OSError:
        os.close(fd)
        draft.unlink(missing_ok=True)
        raise
    return fd


def _state_in(path: Path) -> _State | None:
    try:
        return _parsed(read_whole(path), path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise LocalFault(
            f"{path} can't be read ({error.strerror}), and money that was spent is counted there"
        ) from error


def _parsed(data: bytes, path: Path) -> _State:
    text, _, crc = data.decode("ascii", "replace").rpartition(" crc ")
    words = text.split()
    if crc != f"{zlib.crc32(text.encode()):08x}\n" or words[0:6:2] != ["granted", "spent", "overrun"]:
        raise LocalFault(
            f"{path} is damaged, so what may have been spent under its limit is not known: bring it back from a copy, "
            f"or delete it, and only what other records say was spent counts"
        )
    return _State(int(words[1]), int(words[3]), int(words[5]), words[-1])


def _nano_up(dollars: float) -> int:
    # Allows for the error of float sums, a thousandth of a billionth of a dollar.
    return min(_MOST, max(0, math.ceil(dollars * _NANO - 1e-3)))


def _nano_down(dollars: float) -> int:
    return max(-_MOST, min(_MOST, math.floor(dollars * _NANO + 1e-3)))
