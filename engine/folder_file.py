"""The one way to open a file of a run's folder, which may come from somebody else.

Opens regular files only, never through a link (the folder itself may be one) and without waiting for a pipe. Bounds a
line, a whole file and the depth of JSON.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterable, Iterator
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from .fault import DamagedJournal, LocalFault

LINE_MAX = 64 << 20  # an answer has at most 16 MiB; escapes and a copy in base64 make its line longer
WHOLE_MAX = 256 << 20  # a manifest lists each row of its data in some 110 bytes
# Below Python's 1,000, at which decoders raise RecursionError.
DEPTH_MAX = 900
# Of a file that is read in blocks of lines: larger ones leave the processor's cache.
_BLOCK = 1 << 16
# So deep are the files that we write, at most. The rest makes each bracket a square one, and leaves out all else.
_SHALLOW, _OPEN = 12, ord("[")
_SQUARE, _NO_BRACKETS = bytes.maketrans(b"{}", b"[]"), bytes(set(range(256)) - set(b"[]{}"))


class NotRegular(LocalFault):
    """Raised for what is no regular file. `kind` says what it is."""

    def __init__(self, path: Path, kind: str) -> None:
        super().__init__(f"{path} is {kind}, and only a regular file is read or written there: move it away")
        self.kind = kind


def open_regular(path: Path, flags: int = os.O_RDONLY, mode: int = 0o644, *, through_links: bool = False) -> int:
    """Returns a descriptor of a regular file. Raises NotRegular for anything else, and OSError as `os.open` does."""
    follow = 0 if through_links else os.O_NOFOLLOW
    try:
        fd = os.open(path, flags | follow | os.O_NONBLOCK | os.O_CLOEXEC, mode)
    except OSError as error:
        if error.errno == errno.ELOOP and path.is_symlink():
            raise NotRegular(path, "a link") from error
        if error.errno == errno.ENXIO:  # a pipe that nobody reads, or a socket
            raise NotRegular(path, _kind_of(os.stat(path).st_mode)) from error
        raise
    file_mode = os.fstat(fd).st_mode
    if not stat.S_ISREG(file_mode):
        os.close(fd)
        raise NotRegular(path, _kind_of(file_mode))
    return fd


def _kind_of(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "a folder"
    if stat.S_ISFIFO(mode):
        return "a pipe"
    return "a socket" if stat.S_ISSOCK(mode) else "a device"


def try_lock(fd: int, kind: int = fcntl.LOCK_EX) -> bool:
    """Locks an open file, and returns whether nobody else has a lock on it that forbids this."""
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def open_to_read(path: Path) -> BinaryIO:
    return os.fdopen(open_regular(path), "rb")


def open_to_append(path: Path) -> BinaryIO:
    return os.fdopen(open_regular(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), "ab")


def line_blocks(path: Path, begin: int = 0, before: int = 0) -> Iterator[list[bytes]]:
    """Yields the lines of a file in blocks, each with its newline, which the last may lack. `begin`: the byte at which
    to begin, behind this many lines (`before`). Raises DamagedJournal for a block with a line that is too long, or
    nested too deeply to decode."""
    with os.fdopen(open_regular(path), "rb", 0) as file:
        file.seek(begin)
        rest = b""
        # What is read grows with a long line, so that this is not copied again and again.
        while data := file.read(max(_BLOCK, len(rest) // 4)):
            lines = BytesIO(rest + data).readlines()
            rest = b"" if lines[-1].endswith(b"\n") else lines.pop()
            for number, line in enumerate(lines, before + 1):
                # Between two braces that nest stands a name, so that each takes four bytes: of most lines, the place of
                # the first and of the last bracket tells enough, in a tenth of the time of counting.
                if len(line) + 3 * (line.rfind(b"[") - line.find(b"[") + 1) > 4 * DEPTH_MAX:
                    check_bounded(line, f"{path} line {number}", len(line), LINE_MAX)
            before += len(lines)
            if lines:
                yield lines
            if len(rest) > LINE_MAX:
                break
        if rest:
            check_bounded(rest, f"{path} line {before + 1}", len(rest), LINE_MAX)
            yield [rest]


def lines_in(path: Path, begin: int = 0, before: int = 0) -> Iterator[bytes]:
    """Yields each line as `line_blocks` does."""
    return chain.from_iterable(line_blocks(path, begin, before))


def line_at(file: BinaryIO, place: int) -> bytes:
    """Returns the line that begins at a byte of a file that was read by `lines_in` before."""
    file.seek(place)
    return file.readline(LINE_MAX + 1)


def read_whole(path: Path) -> bytes:
    """Returns the JSON text of a file. Raises DamagedJournal if it is longer than WHOLE_MAX, or nested too deeply."""
    with open_to_read(path) as file:
        # Of a file with a hole of many gigabytes nothing is read.
        size = os.fstat(file.fileno()).st_size
        data = b"" if size > WHOLE_MAX else file.read(WHOLE_MAX + 1)
    check_bounded(data, str(path), max(size, len(data)), WHOLE_MAX)
    return data


def check_bounded(data: bytes, where: str, size: int, most: int) -> None:
    if size > most:
        raise DamagedJournal(f"{where} is longer than {most >> 20} MiB: no run writes that: take it out")
    if data.count(b"[") + data.count(b"{") > DEPTH_MAX and _is_deep(data):
        raise DamagedJournal(f"{where} is nested more than {DEPTH_MAX} deep: no run writes that: take it out")


def _is_deep(data: bytes) -> bool:
    # A backslash escapes one sign; what stands after each second quote is no text.
    outside = b"".join(data.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')[::2])
    brackets = outside.translate(_SQUARE, _NO_BRACKETS)
    for _ in range(_SHALLOW):
        brackets = brackets.replace(b"[]", b"")  # takes out the innermost level
    depth = _SHALLOW
    for bracket in brackets:
        depth += 1 if bracket == _OPEN else -1
        if depth > DEPTH_MAX:
            return True
    return False


def write_whole(path: Path, data: bytes | Iterable[bytes | memoryview], *, is_synced: bool = True) -> None:
    """Replaces a file at once: a reader, or a kill, finds either the old file or the new one; a power cut too, if it is
    synced."""
    fresh = path.with_name(path.name + ".new")
    fresh.unlink(missing_ok=True)
    try:
        with os.fdopen(open_regular(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
            file.writelines((data,) if isinstance(data, bytes) else data)
            if is_synced:
                file.flush()
                os.fsync(file.fileno())
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def keep_whole(path: Path, data: bytes) -> None:
    """Does the same for a file that belongs to a run's records. Raises LocalFault if it can't be written."""
    try:
        write_whole(path, data)
    except OSError as error:
        raise LocalFault(
            f"{path} can't be written ({error.strerror}): the records are whole; free disk space, then resume"
        ) from error


def make_folder(path: Path) -> None:
    """Creates a folder within a run's. Raises NotRegular if a link stands there."""
    path.mkdir(parents=True, exist_ok=True)
    if path.is_symlink():
        raise NotRegular(path, "a link")
