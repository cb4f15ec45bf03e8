"""The sends of one lane in the last minute, counted so that no sliding 60 s exceeds its quota.

Held in memory, or in a small file that several processes share and that outlives a kill. Owns the arithmetic of the
window; it never waits: it returns how long to wait. A process takes sends in blocks, counted before they are made, so
that most of them need no lock. Times are seconds of the system's monotonic clock, the same for every process of a
machine until it boots.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from ..fault import Stop
from ..limits import Limit, Quota, Tokens
from ..mapped_file import open_to_map

TICK_S = 0.25
# A send may arrive up to a tick late, and its slot begins up to a tick before it: 60.5 s cover a true minute.
TICKS_COUNTED = 242
_SLOTS = 256
# What each slot counts; tokens, input and output together, have a limit and a pace but no count of their own.
REQUESTS, _INPUT, _OUTPUT, _TOKENS = range(4)
_COUNTED = 3
# The words of the header: the minute's sums of what is counted, the times until which sends are paced, by kind, and the
# time until which the latest refused send has to wait. The last two are a shared ledger's alone: the time before which
# nothing is granted, and a mark of the latest writer.
_TAIL, HEAD, BOOT, SUMS, _NEXT_US, WAITED_US, HELD_US, WRITER = 0, 1, 2, 3, 6, 10, 11, 12
_FIELDS = 16
WORDS = _FIELDS + _COUNTED * _SLOTS
_MINUTE_US = 61_000_000
_LAYOUT = 2
# More requests or tokens than any quarter of a second has.
_SLOT_MOST = 1 << 40

PACED_SHARE = 0.995 / 60.5
BURST_SHARE = 1 / 200
_BURST_US = int(1e6 * BURST_SHARE / PACED_SHARE)
# The share of a minute's tokens that is kept for calls in flight that use more than was reserved for them.
_KEPT_SHARE = 1 / 200
# A caller that knows how long to wait comes back at most this much later.
LATE_US = 500_000
# How early a request may go where a quota asks for a distance between two.
SPACED_BURST_S = 0.05
AT_ONCE = (0.0, "")
_EMPTY = memoryview(bytes(8 * _COUNTED)).cast("q")
_CLOSED = -1


def _boot_mark() -> int:
    """Returns a number that differs after a reboot, when monotonic time starts again, and for another layout of the
    file. The boot counts as 0 if the system does not name it."""
    try:
        boot = int(Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", "")[:15], 16)
    except (OSError, ValueError):
        boot = 0
    return boot ^ _LAYOUT


def is_sound(words: memoryview) -> bool:
    """Whether the words of a ledger fit together; a damaged ledger could make a lane wait for ever."""
    tail, head, slots = words[_TAIL], words[HEAD], words[_FIELDS:].tolist()
    return (
        0 <= tail <= head + 1 <= tail + _SLOTS
        and 0 <= min(slots) <= max(slots) < _SLOT_MOST
        and max(words[_NEXT_US : WAITED_US + 1].tolist()) <= head * TICK_S * 1e6 + 2 * _MINUTE_US
    )


def _add_up(words: memoryview) -> None:
    """Sums the slots up anew: a process that was killed between two writes leaves a sum that does not fit."""
    slots = words[_FIELDS:].tolist()
    for kind in range(_COUNTED):
        words[SUMS + kind] = sum(slots[kind::_COUNTED])


def amounts(words: memoryview, place: int) -> tuple[int, int, int, int]:
    """Returns what is counted from this word on, by kind."""
    requests, read, written = words[place : place + _COUNTED].tolist()
    return requests, read, written, read + written


def _count(words: memoryview, tick: int, kind: int, amount: int) -> None:
    words[_FIELDS + _COUNTED * (tick % _SLOTS) + kind] += amount
    words[SUMS + kind] += amount


def advance(words: memoryview, tick: int) -> None:
    """Drops what is older than the window. A file whose times lie too far away is emptied."""
    if not words[_TAIL] <= tick <= words[HEAD] + _SLOTS or tick < words[HEAD] - 8:
        boot = words[BOOT]
        words[:] = memoryview(bytes(8 * WORDS)).cast("q")
        words[BOOT] = boot
        words[_TAIL] = max(0, tick - TICKS_COUNTED + 1)
    while words[_TAIL] <= tick - TICKS_COUNTED:
        place = _FIELDS + _COUNTED * (words[_TAIL] % _SLOTS)
        words[place : place + _COUNTED] = _EMPTY
        words[_TAIL] += 1
    words[HEAD] = max(words[HEAD], tick)
    _add_up(words)


def until_free(words: memoryview, now: float, kind: int, excess: float) -> float:
    """Returns the seconds until at least `excess` of a kind has left the window, oldest first."""
    if excess <= 0:
        return 0.0
    for tick in range(words[_TAIL], words[HEAD] + 1):
        excess -= amounts(words, _FIELDS + _COUNTED * (tick % _SLOTS))[kind]
        if excess <= 0:
            return float((tick + TICKS_COUNTED) * TICK_S - now)
    return TICK_S


class _Limit(NamedTuple):
    """The limit on one kind: the most of it in a minute, the sending time that each one takes, and how much of that may
    be taken in advance. `what`: the word for it."""

    kind: int
    what: str
    most: float
    each_us: float
    burst_us: int

    def wait(self, words: memoryview, now: float, wanted: Sequence[int]) -> tuple[float, str]:
        """Returns the seconds until this limit allows a send, and for what; 0.0 or less: it does now. A send that needs
        all of a minute has it alone."""
        held = amounts(words, SUMS)[self.kind]
        paced_s = (words[_NEXT_US + self.kind] - self.burst_us - int(now * 1e6)) / 1e6
        excess = min(held, held + wanted[self.kind] - self.most)
        return max(paced_s, until_free(words, now, self.kind, excess)), self.what

    def free(self, words: memoryview, now: float, wanted: Sequence[int]) -> float:
        """Returns how many sends of this size may go at once. What lost time is made up with is left out."""
        paced_us = self.burst_us + min(0, int(now * 1e6) - words[_NEXT_US + self.kind])
        return min(paced_us / self.each_us, self.most - amounts(words, SUMS)[self.kind]) / max(1, wanted[self.kind])


class LedgerFiles:
    """The open files of one engine's ledgers: at most `most`, since each takes two descriptors. Those that were unused
    for longest are closed for others."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: OrderedDict[Ledger, None] = OrderedDict()

    def __repr__(self) -> str:
        return f"<LedgerFiles [{len(self._open)} of {self._most} open]>"

    def use(self, ledger: Ledger) -> None:
        """Opens a ledger's file, if it is closed. Raises OSError."""
        while ledger not in self._open:
            if len(self._open) >= self._most:
                self._close_oldest()
            try:
                ledger.open_file()
                self._open[ledger] = None
            except OSError as error:
                if error.errno not in (errno.EMFILE, errno.ENFILE) or not self._open:
                    raise
                self._close_oldest()
        self._open.move_to_end(ledger)

    def forget(self, ledger: Ledger) -> None:
        self._open.pop(ledger, None)

    def _close_oldest(self) -> None:
        self._open.popitem(last=False)[0].close_file()


class Ledger:
    """The requests and tokens of a sliding minute under a quota, which may change. `path` None: only in memory; `files`
    None: its file stays open until `close`. `counted_at`: the time under which the latest send is counted."""

    # The most sends of a block, and its share of what is free at once: a killed process leaves the rest counted.
    block_most = 32
    block_share = 1 / 16
    counted_at = 0.0

    def __init__(self, quota: Quota, path: Path | None = None, files: LedgerFiles | None = None) -> None:
        self._halvings = 0
        # Changes to what is counted already: the tick of each, by how much, and by how much of each kind it is paced.
        self._owed: list[tuple[int, tuple[int, ...], tuple[int, ...]]] = []
        # The block: the tick in which it is counted, from when until when it may be used, what is left of it, and how
        # many were sent.
        self._tick, self._from, self._until = 0, 0.0, 0.0
        self._left = self._left_input = self._left_output = self._size = 0
        self.set_quota(quota)
        self._fd = _CLOSED
        self._path = path
        self._files = files if files is not None or path is None else LedgerFiles(1)
        if path is None:
            self._words = memoryview(bytearray(8 * WORDS)).cast("q")
        boot = _boot_mark() if path is not None else 0
        with self._locked() as words:
            if words[BOOT] != boot or not is_sound(words):
                words[:] = memoryview(bytes(8 * WORDS)).cast("q")
                words[BOOT] = boot
            _add_up(words)

    def set_quota(self, quota: Quota) -> None:
        """Keeps to another quota from now on; what the last minute holds already counts under it too."""
        self._made_up_us = 0 if quota.spacing_s else int(1e6 * quota.made_up_s)
        self._limits = []
        if quota.rpm is not None or quota.spacing_s:
            rpm = float("inf") if quota.rpm is None else quota.rpm
            each_us = max(1e6 / (rpm * PACED_SHARE), 1e6 * quota.spacing_s)
            burst_us = int(1e6 * SPACED_BURST_S) if quota.spacing_s else _BURST_US
            self._limits.append(_Limit(REQUESTS, "requests", rpm, each_us, burst_us))
        for kind, amount in ((_TOKENS, quota.tpm), (_INPUT, quota.itpm), (_OUTPUT, quota.otpm)):
            if amount is not None:
                most, each_us = amount - int(_KEPT_SHARE * amount), 1e6 / (amount * PACED_SHARE)
                self._limits.append(_Limit(kind, "tokens", most, each_us, _BURST_US))
        self._end_block()

    def make_up_less(self) -> None:
        """Halves how much lost sending time may be made up at once; for a refusal although no limit was exceeded."""
        self._halvings += 1

    def take(self, now: float, tokens: Tokens, *, is_tried: bool = False) -> tuple[float, str]:
        """Records a send now and returns (0.0, ""), or returns the seconds to wait and for what: `tokens` or
        `requests`. `is_tried`: nothing is recorded."""
        read, written = tokens.input, tokens.output
        if self._left and self._from <= now < self._until and read <= self._left_input and written <= self._left_output:
            if not is_tried:
                self._left -= 1
                self._left_input -= read
                self._left_output -= written
            return AT_ONCE
        return self._take_anew(now, tokens, is_tried=is_tried)

    def _take_anew(self, now: float, tokens: Tokens, *, is_tried: bool) -> tuple[float, str]:
        """Takes a send that the block in hand does not have."""
        with self._locked() as words:
            tick = self._catch_up(words, now)
            wait = self._take_block(words, now, tokens, tick, is_tried=is_tried)
        if not (wait[0] or is_tried):
            self.counted_at, self._until = now, (tick + 1) * TICK_S
            self._left -= 1
            self._left_input -= tokens.input
            self._left_output -= tokens.output
        return wait

    def _take_block(
        self, words: memoryview, now: float, tokens: Tokens, tick: int, *, is_tried: bool = False
    ) -> tuple[float, str]:
        """Counts in this tick as many sends like this one as may go at once and are likely to, or returns the wait for
        one."""
        wanted = (1, tokens.input, tokens.output, tokens.total)
        wait = max((limit.wait(words, now, wanted) for limit in self._limits), default=AT_ONCE)
        if wait[0] > 0:
            words[WAITED_US] = int(1e6 * (now + wait[0]))
            return wait
        if is_tried:
            return AT_ONCE
        shares = (int(self.block_share * limit.free(words, now, wanted)) for limit in self._limits)
        size = max(1, min(self.block_most, 2 * self._size, *shares))
        now_us, self._size, self._tick = int(now * 1e6), size, tick
        # Sending time that one limit lost while a call waited for another is made up; time without a waiting call is
        # not.
        made_up_us = self._made_up_us >> self._halvings if now_us <= words[WAITED_US] + LATE_US else 0
        for kind in range(_COUNTED):
            _count(words, tick, kind, size * wanted[kind])
        for limit in self._limits:
            place = _NEXT_US + limit.kind
            words[place] = max(words[place], now_us - made_up_us) + int(limit.each_us * size * wanted[limit.kind])
        self._left, self._left_input, self._left_output = (size * amount for amount in wanted[:_COUNTED])
        return AT_ONCE

    def _end_block(self) -> None:
        """Gives back what is left of the block, with the next lock."""
        read, written = -self._left_input, -self._left_output
        if self._left or read or written:
            self._owed.append((self._tick, (-self._left, read, written), (-self._left, read, written, read + written)))
            self._size -= self._left
            self._left = self._left_input = self._left_output = 0

    def move(self, counted_at: float, now: float, tokens: Tokens) -> float:
        """Counts a send, counted less than a minute ago, from `now` on: its request is written only now. Returns under
        which time it is counted."""
        old = int(counted_at / TICK_S)
        if old == int(now / TICK_S):
            return now
        with self._locked() as words:
            new = self._catch_up(words, now)
            for kind, amount in enumerate((1, tokens.input, tokens.output)):
                _count(words, new, kind, amount)
                if old >= words[_TAIL]:
                    _count(words, old, kind, -amount)
        return now

    def settle(self, counted_at: float, reserved: Tokens, used: Tokens, *, requests: int = 1) -> None:
        """Replaces a reservation by what was used. Less is given back to the minute in which it was sent; more counts
        in the minute that begins now. `requests=0` gives the request back too. Takes effect with the next `take` that
        needs a lock or `used`, so that an answer costs no lock of its own; if more was used, with the next `take`."""
        read, written = used.input - reserved.input, used.output - reserved.output
        # A request that is given back stays paced: if it was refused, it comes again.
        self._owed.append((int(counted_at / TICK_S), (requests - 1, read, written), (0, read, written, read + written)))
        if read > 0 or written > 0:
            self._end_block()

    def used(self, now: float) -> tuple[int, Tokens]:
        """Returns the requests and tokens of the last minute."""
        requests, read, written, _ = amounts(self._window(now)[0], SUMS)
        return requests, Tokens(read, written)

    def empty_in_s(self, now: float) -> float:
        """Returns the seconds until the last minute holds no request."""
        words, now = self._window(now)
        return until_free(words, now, REQUESTS, words[SUMS])

    def _window(self, now: float) -> tuple[memoryview, float]:
        """Returns a copy of the last minute's words, and the time by their clock."""
        with self._locked() as words:
            self._catch_up(words, now)
            return memoryview(bytes(words)).cast("q"), now

    def tell(self, *, limits: tuple[Limit, ...] = (), pause_s: float = 0.0, stop: Stop | None = None) -> None:
        """Lets the other processes on a shared ledger know the limits that an answer reported, a pause of all calls, or
        why the API key is of no use. Those of this machine learn it for themselves."""

    def close(self) -> None:
        """Closes the ledger; applies waiting corrections first, so that the next process counts them."""
        self._end_block()
        if self._owed:
            with self._locked() as words:
                self._catch_up(words, words[HEAD] * TICK_S)
        if self._files is not None:
            self._files.forget(self)
        self.close_file()

    def open_file(self) -> None:
        assert self._path is not None
        fd = open_to_map(self._path, 8 * WORDS)
        try:
            self._map = mmap.mmap(fd, 8 * WORDS)
        except OSError:
            os.close(fd)
            raise
        self._fd = fd
        self._words = memoryview(self._map).cast("q")

    def close_file(self) -> None:
        """Closes the file, which the next use opens again."""
        if self._fd != _CLOSED:
            self._words.release()
            self._map.close()
            os.close(self._fd)
            self._fd = _CLOSED

    @contextmanager
    def _locked(self) -> Iterator[memoryview]:
        if self._files is not None:
            self._files.use(self)
            fcntl.flock(self._fd, fcntl.LOCK_EX)
        try:
            yield self._words
        finally:
            if self._files is not None:
                fcntl.flock(self._fd, fcntl.LOCK_UN)

    def _catch_up(self, words: memoryview, now: float) -> int:
        """Moves the window to now, ends the block and applies waiting corrections. Returns the current tick's number
        (TICK_S each)."""
        tick = int(now / TICK_S)
        if tick != words[HEAD]:
            advance(words, tick)
        self._end_block()
        for sent, changes, paced in self._owed:
            self._correct(words, tick, sent, changes, paced)
        self._owed.clear()
        return tick

    def _correct(
        self, words: memoryview, tick: int, sent: int, changes: tuple[int, ...], paced: tuple[int, ...]
    ) -> None:
        for kind, change in enumerate(changes):
            # More than was reserved counts from now on; less is taken off where it was counted, if the window still
            # holds that.
            if change and (change > 0 or sent >= words[_TAIL]):
                _count(words, tick if change > 0 else sent, kind, change)
        for limit in self._limits:
            # Delays what comes next, at most until a minute from now.
            before, by_us = words[_NEXT_US + limit.kind], int(limit.each_us * paced[limit.kind])
            words[_NEXT_US + limit.kind] = min(before + by_us, max(before, int(tick * TICK_S * 1e6) + _MINUTE_US))
