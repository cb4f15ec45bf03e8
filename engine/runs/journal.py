"""An append-only file of JSON lines that survives a kill at any byte, a power cut and a full disk.

Every line ends with the CRC-32 of the bytes before it. A tail without its newline is set aside, and so is a line with a
hole where a power cut kept a block from the disk; any other line with a wrong CRC ends the start. Knows nothing of what
the lines mean.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import threading
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from ..fault import DamagedJournal, LocalFault
from ..folder_file import LINE_MAX, line_blocks, open_regular, open_to_append, open_to_read, write_whole
from ..spare_room import SpareRoom

FSYNC_EVERY_S = 0.25
_SEAL = b',"crc":'
_END_MAX = 10 + 1  # ten digits and the closing bracket
_HOLE = re.compile(rb"\0+")
# File systems write blocks of this size, or of a multiple of it.
_BLOCK = 512
_FULL = (errno.ENOSPC, errno.EDQUOT)


def sealed(row: bytes) -> bytes:
    """Returns a JSON object as a journal line, with its CRC-32 and a newline."""
    body = row[:-1]
    return b"%b%b%d}\n" % (body, _SEAL, zlib.crc32(body))


def damaged_places(lines: Iterable[bytes], *, must_be_sealed: bool) -> list[int]:
    """Returns the places, from 0, of the lines (without their newlines) that don't match the CRC at their end. A line
    without a CRC counts as damaged if `must_be_sealed`, else as intact."""
    crc32, damaged = zlib.crc32, list[int]()
    for at, line in enumerate(lines):
        body, seal, end = line.rpartition(_SEAL)
        if end == b"%d}" % crc32(body) and seal:
            continue
        is_sealed = seal and len(end) <= _END_MAX and end.endswith(b"}") and end[:-1].isdigit()
        if is_sealed or must_be_sealed:
            damaged.append(at)
    return damaged


def is_intact(line: bytes, *, must_be_sealed: bool) -> bool:
    """Returns whether a line is not damaged, as `damaged_places` tells it."""
    return not damaged_places((line,), must_be_sealed=must_be_sealed)


class Journal:
    """One journal file, open for appending. The caller holds the run's lock. `set_aside`: damaged lines are moved
    to a file beside it at the start."""

    def __init__(self, path: Path, spare: SpareRoom, *, set_aside: bool = False) -> None:
        self.path = path
        self.lines = 0
        self.rewind()
        self.fault: LocalFault | None = None
        self._spare = spare
        _mend_tail(path)
        _move_lines(path, lines_with_holes(path), ".torn")
        if set_aside:
            set_damaged_aside(path)
        self._fd = open_regular(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._pending: list[bytes] = []
        self._is_dirty = False
        self._is_closing = threading.Event()
        self._flusher = threading.Thread(target=self._fsync_often, name=f"fsync {path.name}", daemon=True)
        self._flusher.start()

    @property
    def is_replaced(self) -> bool:
        """Whether the file was deleted or replaced since it was opened, so that its path is another file's, or
        nobody's."""
        try:
            return not os.path.samestat(os.fstat(self._fd), self.path.stat())
        except FileNotFoundError:
            return True

    def rewind(self) -> None:
        """Makes `read_on` begin with the first line again."""
        self._read_to = self.lines_read = 0

    @property
    def is_cut(self) -> bool:
        """Whether the file has become shorter than what `read_on` has read."""
        return self.path.stat().st_size < self._read_to

    def read_on(self) -> Iterator[bytes]:
        """Yields the lines that it has not yielded before, as `read` does. `lines_read` counts them by blocks, before
        the lines of a block are yielded."""
        return chain.from_iterable(self._unread())

    def _unread(self) -> Iterator[list[bytes]]:
        for lines in self._intact(self._read_to, self.lines_read):
            self._read_to += sum(map(len, lines)) + len(lines)
            self.lines_read += len(lines)
            yield lines

    def read(self) -> Iterator[bytes]:
        """Yields every line so far without its newline. Raises DamagedJournal at the first damaged one."""
        return chain.from_iterable(self._intact())

    def _intact(self, begin: int = 0, before: int = 0) -> Iterator[list[bytes]]:
        for lines in read_blocks(self.path, begin, before):
            if damaged := damaged_places(lines, must_be_sealed=True):
                yield lines[: damaged[0]]
                raise DamagedJournal(
                    f"{self.path} line {before + damaged[0] + 1} is damaged: resume with --set-aside-damaged to move "
                    f"bad lines away and ask for them again"
                )
            yield lines
            before += len(lines)

    def append(self, row: bytes) -> None:
        """Adds one row to those that `flush` writes."""
        self._pending.append(sealed(row))

    def flush(self) -> None:
        """Writes the appended rows. If the disk is full, `fault` is set after the spare room has saved the rows."""
        if not self._pending:
            return
        count = len(self._pending)
        data = self._pending[0] if count == 1 else b"".join(self._pending)
        self._pending.clear()
        while data:
            try:
                data = data[os.write(self._fd, data) :]
            except OSError as error:
                if error.errno not in _FULL or self.fault is not None:
                    raise self._unwritable(error) from error
                self.fault = LocalFault(f"disk full while writing {self.path}: free disk space, then resume")
                self._spare.give_back()
        self.lines += count
        self._is_dirty = True

    def close(self) -> None:
        try:
            self.flush()
        finally:
            self._is_closing.set()
            self._flusher.join()
            try:
                os.fsync(self._fd)
            except OSError as error:
                raise self._unwritable(error) from error
            finally:
                os.close(self._fd)

    def _unwritable(self, error: OSError) -> LocalFault:
        return LocalFault(f"{self.path} can't be written ({error.strerror}): what it holds is whole; resume elsewhere")

    def _fsync_often(self) -> None:
        while not self._is_closing.wait(FSYNC_EVERY_S):
            try:
                if self.is_replaced:
                    self.fault = self.fault or replaced(self.path.parent)
                if self._is_dirty:
                    # Unset before the sync: what is written meanwhile belongs to the next one.
                    self._is_dirty = False
                    os.fsync(self._fd)
            except OSError as error:
                self.fault = self.fault or self._unwritable(error)


def replaced(folder: Path) -> LocalFault:
    """Returns the fault of a folder that is no longer the one that was opened."""
    return LocalFault(
        f"{folder} was deleted or replaced while this run was writing it: nothing more is written there; the same "
        f"command with another --out finds in the cache what was answered"
    )


def append_at_once(path: Path, rows: Sequence[bytes]) -> None:
    """Appends rows to a file that several processes append to, each as one line. They are on disk when this returns.
    Half a line at its end, as a kill leaves it, is moved to a file beside it. Raises LocalFault, with nothing appended,
    if the file can't be written."""
    try:
        fd = open_regular(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            _mend_tail(path)
            size = os.fstat(fd).st_size
            data = b"".join(map(sealed, rows))
            try:
                while data:
                    data = data[os.write(fd, data) :]
                os.fsync(fd)
            except OSError:
                os.ftruncate(fd, size)
                raise
        finally:
            os.close(fd)
    except OSError as error:
        raise LocalFault(f"{path} can't be written ({error.strerror}): make room there; nothing was added") from error


def read_blocks(path: Path, begin: int = 0, before: int = 0) -> Iterator[list[bytes]]:
    """Yields the complete lines of a file in blocks, without their newlines and unchecked; `begin` and `before` as in
    `line_blocks`. A last line without a newline is left out; a missing file has no lines."""
    if not path.exists():
        return
    for lines in line_blocks(path, begin, before):
        if not lines[-1].endswith(b"\n"):
            return
        yield [line[:-1] for line in lines]


def read_lines(path: Path) -> Iterator[bytes]:
    """Yields each complete line of a file, as `read_blocks` does."""
    return chain.from_iterable(read_blocks(path))


def torn_tail(path: Path, mended_by: str = "start") -> list[str]:
    """Returns the sentence on a file that ends within a line, as a kill leaves it; none if it is whole, empty or
    missing. `mended_by`: what sets the half line aside."""
    if not path.exists():
        return []
    with open_to_read(path) as file:
        size = file.seek(0, os.SEEK_END)
        is_whole = size == 0 or os.pread(file.fileno(), 1, size - 1) == b"\n"
    sentence = f"{path.name}: its last line is torn, as a kill leaves it; the next {mended_by} sets it aside"
    return [] if is_whole else [sentence]


def _mend_tail(path: Path) -> None:
    """Moves half a line at the end, as a kill leaves it, to a file beside the journal."""
    if not path.exists():
        return
    with os.fdopen(open_regular(path, os.O_RDWR), "r+b") as file:
        size = file.seek(0, os.SEEK_END)
        keep = _end_of_last_line(file.fileno(), size)
        if keep == size:
            return
        if size - keep > LINE_MAX:
            raise DamagedJournal(f"{path}: its last line is longer than {LINE_MAX >> 20} MiB: cut it off")
        torn = os.pread(file.fileno(), size - keep, keep)
        with open_to_append(path.with_suffix(".torn")) as aside:
            aside.write(torn + b"\n")
            aside.flush()
            os.fsync(aside.fileno())
        file.truncate(keep)
        os.fsync(file.fileno())


def _end_of_last_line(fd: int, size: int) -> int:
    position = size
    while position > max(0, size - LINE_MAX - 1):
        begin = max(0, position - (1 << 16))
        place = os.pread(fd, position - begin, begin).rfind(b"\n")
        if place >= 0:
            return begin + place + 1
        position = begin
    return 0


def lines_with_holes(path: Path) -> frozenset[int]:
    """Returns the numbers of the lines, from 1, that a power cut has left with a hole: zero bytes up to the end of a
    block that was never written. A line of JSON has no zero byte."""
    if not path.exists():
        return frozenset()
    with open_to_read(path) as file:
        if not any(b"\0" in part for part in iter(lambda: file.read(1 << 20), b"")):
            return frozenset()
    numbers, at = set[int](), 0
    for number, line in enumerate(read_lines(path), 1):
        if any((at + hole.end()) % _BLOCK == 0 for hole in _HOLE.finditer(line)):
            numbers.add(number)
        at += len(line) + 1
    return frozenset(numbers)


def set_damaged_aside(path: Path) -> None:
    """Moves every damaged line to a file beside the journal; the rest stays in its order."""
    places = damaged_places(read_lines(path), must_be_sealed=True)
    _move_lines(path, frozenset(place + 1 for place in places), ".damaged")


def _move_lines(path: Path, numbers: frozenset[int], suffix: str) -> None:
    if not numbers:
        return
    with open_to_append(path.with_suffix(suffix)) as aside:
        aside.writelines(line + b"\n" for number, line in enumerate(read_lines(path), 1) if number in numbers)
        aside.flush()
        os.fsync(aside.fileno())
    write_whole(path, (line + b"\n" for number, line in enumerate(read_lines(path), 1) if number not in numbers))
