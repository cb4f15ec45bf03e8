"""What a caller has spent, in an append-only file beside the cache that several gateways share and a kill outlives.

A line before a call is sent, with the most it can cost, and one when what it cost is known. What a kill left without
the second counts at its worst. A torn last line is cut off: its call was not sent. Knows no caller's token.
"""

from __future__ import annotations

import fcntl
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ...engine.fault import LocalFault

_RESERVED, _SETTLED = "+", "="


class Spending:
    """One caller's file. `limit` is in dollars."""

    def __init__(self, path: Path, limit: float) -> None:
        self.path = path
        self.limit = limit
        self.settled = 0.0
        self._open: dict[str, float] = {}
        self._own: set[str] = set()
        self._read_to = 0
        self._number = 0
        self._mark = os.urandom(6).hex()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise self._fault(error) from error
        try:
            with self._locked():
                self._cut_torn_line()
                self._catch_up()
        except LocalFault:
            os.close(self._fd)
            raise

    def __repr__(self) -> str:
        return f"<Spending [${self.settled:.4f} spent, ${self.reserved:.4f} reserved, limit ${self.limit:.4f}]>"

    @property
    def reserved(self) -> float:
        return sum(self._open.values())

    @property
    def left(self) -> float:
        """What nobody has spent or reserved, as far as it was read."""
        return max(0.0, self.limit - self.settled - self.reserved)

    @property
    def is_idle(self) -> bool:
        """Nothing of this gateway's own is on its way that could give money back."""
        return not self._own

    def reserve(self, most: float) -> str | None:
        """A mark for a call that may cost so much; None where the limit can't bear it now."""
        with self._locked():
            self._catch_up()
            if self.settled + self.reserved + most > self.limit:
                return None
            self._number += 1
            mark = f"{self._mark}-{self._number}"
            self._append(_RESERVED, mark, most)
            self._own.add(mark)
            return mark

    def settle(self, mark: str, cost: float) -> None:
        self._own.discard(mark)
        with self._locked():
            self._append(_SETTLED, mark, cost)

    def close(self) -> None:
        os.close(self._fd)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        fcntl.flock(self._fd, fcntl.LOCK_EX)
        try:
            yield
        except OSError as error:
            raise self._fault(error) from error
        finally:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def _append(self, sign: str, mark: str, amount: float) -> None:
        told = f"{sign} {mark} {amount!r}"
        line = f"{told} {zlib.crc32(told.encode()):08x}\n".encode()
        size = os.fstat(self._fd).st_size
        if os.write(self._fd, line) < len(line):
            os.ftruncate(self._fd, size)
            raise OSError(28, "No space left on device")
        self._catch_up()

    def _cut_torn_line(self) -> None:
        size = os.fstat(self._fd).st_size
        tail = os.pread(self._fd, 4_096, max(0, size - 4_096))
        if tail and not tail.endswith(b"\n"):
            os.ftruncate(self._fd, size - (len(tail) - (tail.rfind(b"\n") + 1)))

    def _catch_up(self) -> None:
        """Read what was written since, by whichever gateway."""
        size = os.fstat(self._fd).st_size
        while self._read_to < size:
            data = os.pread(self._fd, min(1 << 20, size - self._read_to), self._read_to)
            whole = data[: data.rfind(b"\n") + 1]
            if not whole:
                raise self._damaged()
            for line in whole.split(b"\n")[:-1]:
                self._take(line.decode("ascii", "replace"))
            self._read_to += len(whole)

    def _take(self, line: str) -> None:
        told, _, sum_told = line.rpartition(" ")
        words = told.split(" ")
        if len(words) != 3 or sum_told != f"{zlib.crc32(told.encode()):08x}":
            raise self._damaged()
        sign, mark, amount = words[0], words[1], float(words[2])
        if sign == _RESERVED:
            self._open[mark] = amount
        else:
            self._open.pop(mark, None)
            self.settled += amount

    def _damaged(self) -> LocalFault:
        return LocalFault(
            f"{self.path} is damaged, so what was spent can't be told: mend it, or take it away to begin from nothing"
        )

    def _fault(self, error: OSError) -> LocalFault:
        return LocalFault(
            f"{self.path} can't be written ({error.strerror}): what a caller spends is kept there; mend it, or use "
            f"another folder with --cache"
        )
