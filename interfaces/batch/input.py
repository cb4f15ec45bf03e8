"""The input of a batch: splits the bytes of a file or a pipe into numbered lines, of any length and number.

Owns the bound on a line, blank lines, and the identity of a file. Knows nothing of a line's content.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from ...configuration.errors import UsageError
from ...engine.fault import LocalFault
from ...engine.folder_file import NotRegular, open_regular

# As many bytes as an answer may have: a longer line is a mistake in the file.
LINE_MAX = 16 << 20
_PIECE = 1 << 20
# Of a pipe: each may be as long as LINE_MAX.
_LINES_AHEAD = 16
_MARK = b"\xef\xbb\xbf"
_PACKED = b"\x1f\x8b"


class InputLine(NamedTuple):
    """A line without its newline, numbered from 1. `data` is None where the line is longer than the bound."""

    number: int
    data: bytes | None


def lines_of(pieces: Iterable[bytes], most: int = LINE_MAX) -> Iterator[InputLine]:
    """Yields the lines of pieces of any size, the text after the last newline among them. Blank lines are counted but
    skipped; of a line longer than `most` bytes only the number is passed on."""
    number, line, is_too_long = 0, bytearray(), False
    for piece in chain(pieces, (b"\n",)):
        for newlines, part in enumerate(piece.split(b"\n")):
            if newlines:
                number += 1
                data = bytes(line).removeprefix(_MARK if number == 1 else b"")
                if is_too_long or data.strip():
                    yield InputLine(number, None if is_too_long else data)
                line, is_too_long = bytearray(), False
            line += part
            if len(line) > most:
                line, is_too_long = bytearray(), True


class InputSurvey(Struct, frozen=True):
    """The SHA-256 of an input file in hex, its number of requests, and the number of the last one's line, from 1."""

    digest: str
    requests: int
    last: int


class InputFile:
    """An input file that is read twice: first for its survey, then for its requests. Use as a context manager."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._fd = open_regular(path, through_links=True)
        except NotRegular as error:
            raise UsageError(f"{path}: expected a file, got {error.kind}: a pipe is read as `-`") from error
        except OSError as error:
            raise UsageError(f"{path}: expected a readable file of requests, got: {error.strerror}") from error
        if os.pread(self._fd, len(_PACKED), 0) == _PACKED:
            os.close(self._fd)
            raise UsageError(f"{path}: expected lines of JSON, got a gzip file: unpack it, or pipe it unpacked to `-`")

    def __enter__(self) -> InputFile:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    def survey(self) -> InputSurvey:
        digest, requests, last = hashlib.sha256(), 0, 0
        self._state = self._look()
        for line in lines_of(self._pieces(digest.update)):
            requests, last = requests + 1, line.number
        return InputSurvey(digest.hexdigest(), requests, last)

    def read(self) -> Iterator[InputLine]:
        return lines_of(self._pieces())

    async def lines(self) -> AsyncIterator[InputLine]:
        for line in self.read():
            yield line
        if self._look() != self._state:
            raise LocalFault(
                f"{self.path} was changed while it was read: what was answered is another input's: ask anew"
            )

    def _pieces(self, look_at: Callable[[bytes], None] = lambda piece: None) -> Iterator[bytes]:
        """Yields the file's bytes up to the length that the survey saw: another program may still append to it."""
        place, size = 0, self._state[0]
        while piece := self._read(place, min(_PIECE, size - place)):
            place += len(piece)
            look_at(piece)
            yield piece

    def _read(self, place: int, most: int) -> bytes:
        try:
            return os.pread(self._fd, most, place)
        except OSError as error:
            raise LocalFault(f"{self.path} can't be read ({error.strerror})") from error

    def _look(self) -> tuple[int, int]:
        status = os.fstat(self._fd)
        return status.st_size, status.st_mtime_ns


async def lines_of_pipe(fd: int) -> AsyncIterator[InputLine]:
    """Yields the lines of a pipe as they arrive. A thread reads them: a non-blocking descriptor would be
    non-blocking for every process that shares it, at a terminal for our own stdout too."""
    loop, has_room = asyncio.get_running_loop(), threading.Semaphore(_LINES_AHEAD)
    lines: asyncio.Queue[InputLine | OSError | None] = asyncio.Queue()

    def read_on() -> None:
        with suppress(RuntimeError):  # the loop has ended without waiting for more
            try:
                for line in lines_of(iter(lambda: os.read(fd, _PIECE), b"")):
                    has_room.acquire()
                    loop.call_soon_threadsafe(lines.put_nowait, line)
                loop.call_soon_threadsafe(lines.put_nowait, None)
            except OSError as error:
                loop.call_soon_threadsafe(lines.put_nowait, error)

    # A read of a silent pipe can't be ended: the thread must not hold up the end of the process.
    threading.Thread(target=read_on, name="stdin", daemon=True).start()
    while (line := await lines.get()) is not None:
        if isinstance(line, OSError):
            raise LocalFault(f"stdin can't be read ({line.strerror})") from line
        has_room.release()
        yield line
