"""The input of a batch: splits the bytes of a file or a pipe into numbered lines, of any length and number.

Owns the bound on a line, blank lines, and the identity of a file. Knows nothing of a line's content.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from ...configuration.errors import UsageError
from ...engine.fault import LocalFault
from ...engine.folder_file import NotRegular, open_regular

# As many bytes as an answer may have: a longer line is a mistake in the file.
LINE_MAX = 16 << 20
_PIECE = 1 << 20
_MARK = b"\xef\xbb\xbf"
_PACKED = b"\x1f\x8b"


class InputLine(NamedTuple):
    """A line without its newline, numbered from 1. `data` is None where the line is longer than the bound."""

    number: int
    data: bytes | None


class Splitter:
    """A splitter of pieces of any size into lines, numbered from 1. Blank lines are counted but skipped; of a line
    longer than `most` bytes only the number is passed on."""

    def __init__(self, most: int = LINE_MAX) -> None:
        self.number = 0
        self._most = most
        self._rest = bytearray()
        self._is_too_long = False

    def feed(self, piece: bytes) -> Iterator[InputLine]:
        begin = 0
        while (end := piece.find(b"\n", begin)) >= 0:
            self._keep(piece[begin:end])
            begin = end + 1
            if (line := self._take()) is not None:
                yield line
        self._keep(piece[begin:])

    def end(self) -> Iterator[InputLine]:
        """Yields the text after the last newline as a line, if there is any."""
        if (self._rest or self._is_too_long) and (line := self._take()) is not None:
            yield line

    def _keep(self, part: bytes) -> None:
        if self._is_too_long:
            return
        if len(self._rest) + len(part) > self._most:
            self._is_too_long = True
            self._rest.clear()
            return
        self._rest += part

    def _take(self) -> InputLine | None:
        self.number += 1
        data, is_too_long = bytes(self._rest), self._is_too_long
        self._rest.clear()
        self._is_too_long = False
        if is_too_long:
            return InputLine(self.number, None)
        if self.number == 1:
            data = data.removeprefix(_MARK)
        return InputLine(self.number, data) if data.strip() else None


class InputSurvey(Struct, frozen=True):
    """The SHA-256 of an input file in hex, its number of requests, and the number of its last line, from 1."""

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
        digest, splitter, requests = hashlib.sha256(), Splitter(), 0
        self._state = self._look()
        for piece in self._pieces():
            digest.update(piece)
            requests += sum(1 for _ in splitter.feed(piece))
        requests += sum(1 for _ in splitter.end())
        return InputSurvey(digest.hexdigest(), requests, splitter.number)

    def read(self) -> Iterator[InputLine]:
        splitter = Splitter()
        for piece in self._pieces():
            yield from splitter.feed(piece)
        yield from splitter.end()

    async def lines(self) -> AsyncIterator[InputLine]:
        for line in self.read():
            yield line
        if self._look() != self._state:
            raise LocalFault(
                f"{self.path} was changed while it was read: what was answered is another input's: ask anew"
            )

    def _pieces(self) -> Iterator[bytes]:
        """Yields the file's bytes up to the length that the survey saw: another program may still append to it."""
        place, size = 0, self._state[0]
        while piece := self._read(place, min(_PIECE, size - place)):
            place += len(piece)
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
    loop, may_read = asyncio.get_running_loop(), threading.Semaphore(0)
    pieces: asyncio.Queue[bytes | OSError] = asyncio.Queue()

    def read_on() -> None:
        piece: bytes | OSError = b"."
        while isinstance(piece, bytes) and piece:
            may_read.acquire()
            try:
                piece = os.read(fd, _PIECE)
            except OSError as error:
                piece = error
            try:
                loop.call_soon_threadsafe(pieces.put_nowait, piece)
            except RuntimeError:
                return  # the loop has ended without waiting for more

    # A read of a silent pipe can't be ended: the thread must not hold up the end of the process.
    threading.Thread(target=read_on, name="stdin", daemon=True).start()
    splitter = Splitter()
    while True:
        may_read.release()
        piece = await pieces.get()
        if isinstance(piece, OSError):
            raise LocalFault(f"stdin can't be read ({piece.strerror})") from piece
        if not piece:
            break
        for line in splitter.feed(piece):
            yield line
    for line in splitter.end():
        yield line
