"""The sends of one lane in the last minute, counted so that no sliding 60 s exceeds its quota.

Held in memory, or in a small file that several processes share and that outlives a kill. Owns the arithmetic of the
window; it never waits: it returns how long to wait. Times are seconds of the system's monotonic clock, the same for
every process of a machine until it boots.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
from collections import OrderedDict
from pathlib import Path

from ..limits import Quota, Tokens
from ..mapped_file import open_to_map

TICK_S = 0.25
# A send may arrive up to a tick late, and its slot begins up to a tick before it: 60.5 s cover a true minute.
TICKS_COUNTED = 242
_SLOTS = 256
# What each slot counts, and the words of the header: the minute's sums of the same, the times until which sends are
# paced, and the time until which the latest refused send has to wait.
_REQUESTS, _INPUT, _OUTPUT = range(3)
_COUNTED = 3
_TAIL, _HEAD, _BOOT, _SUMS, _NEXT_US = 0, 1, 2, 3, 6
_TOKENS = 3  # input and output together, which have a pace and no sum of their own
_PACED = 4
_WAITED_US = _NEXT_US + _PACED
_FIELDS = 16
_WORDS = _FIELDS + _COUNTED * _SLOTS
_MINUTE_US = 61_000_000
_LAYOUT = 2

PACED_SHARE = 0.995 / 60.5
BURST_SHARE = 1 / 200
_BURST_US = int(1e6 * BURST_SHARE / PACED_SHARE)
# The share of a minute's tokens that is kept for calls in flight that use more than was reserved for them.
_KEPT_SHARE = 1 / 200
# A caller that was told how long to wait comes back at most this much later.
_LATE_US = 500_000
# How early a request may go where a quota asks for a distance between two.
SPACED_BURST_S = 0.05
_NO_LIMIT = float("inf")


def _boot_mark() -> int:
    """Returns a number that differs after a reboot, when monotonic time starts again, and for another layout of the
    file. The boot counts as 0 if the system does not name it."""
    try:
        boot = int(Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", "")[:15], 16)
    except (OSError, ValueError):
        boot = 0
    return boot ^ _LAYOUT


def _is_sound(words: memoryview) -> bool:
    """Whether the words of a ledger fit together; a damaged ledger could make a lane wait for ever."""
    tail, head = words[_TAIL], words[_HEAD]
    sums, next_us = words[_SUMS : _SUMS + _COUNTED].tolist(), words[_NEXT_US : _NEXT_US + _PACED].tolist()
    slots = words[_FIELDS:].tolist()
    return (
        0 <= tail <= head + 1 <= tail + _SLOTS
        and min(slots) >= 0
        and [sum(slots[kind::_COUNTED]) for kind in range(_COUNTED)] == sums
        and max(*next_us, words[_WAITED_US]) <= head * TICK_S * 1e6 + 2 * _MINUTE_US
    )


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
        if ledger in self._open:
            self._open.move_to_end(ledger)
            return
        while len(self._open) >= self._most:
            self._close_oldest()
        while True:
            try:
                ledger.open_file()
                break
            except OSError as error:
                if error.errno not in (errno.EMFILE, errno.ENFILE) or not self._open:
                    raise
                self._close_oldest()
        self._open[ledger] = None

    def forget(self, ledger: Ledger) -> None:
        self._open.pop(ledger, None)

    def _close_oldest(self) -> None:
        self._open.popitem(last=False)[0].close_file()


class Ledger:
    """The requests and tokens of a sliding minute under a quota, which may change. `path` None: only in memory; `files`
    None: its file stays open until `close`."""

    def __init__(self, quota: Quota, path: Path | None = None, files: LedgerFiles | None = None) -> None:
        self._halvings = 0
        self.set_quota(quota)
        self._owed: list[tuple[int, int, int, int]] = []
        self._fd: int | None = None
        self._map: mmap.mmap | None = None
        self._path = path
        self._files = files if files is not None or path is None else LedgerFiles(1)
        if path is None:
            self._words = memoryview(bytearray(8 * _WORDS)).cast("q")
        self._open(_boot_mark() if path is not None else 0)

    def set_quota(self, quota: Quota) -> None:
        """Keeps to another quota from now on; what the last minute holds already counts under it too."""
        self._rpm = _NO_LIMIT if quota.rpm is None else quota.rpm
        self._tpm, self._itpm, self._otpm = (
            _NO_LIMIT if amount is None else amount - int(_KEPT_SHARE * amount)
            for amount in (quota.tpm, quota.itpm, quota.otpm)
        )
        self._made_up_us = 0 if quota.spacing_s else int(1e6 * quota.made_up_s) >> self._halvings
        paced_us = 0.0 if quota.rpm is None else 1e6 / (quota.rpm * PACED_SHARE)
        self._request_us = round(max(paced_us, 1e6 * quota.spacing_s))
        self._burst_us = int(1e6 * SPACED_BURST_S) if quota.spacing_s else _BURST_US
        self._token_us, self._input_us, self._output_us = (
            0.0 if amount is None else 1e6 / (amount * PACED_SHARE) for amount in (quota.tpm, quota.itpm, quota.otpm)
        )
        self._is_split = quota.itpm is not None or quota.otpm is not None

    def make_up_less(self) -> None:
        """Halves how much lost sending time may be made up at once; for a refusal although no limit was exceeded."""
        self._halvings += 1
        self._made_up_us >>= 1

    def _open(self, boot: int) -> None:
        self._lock()
        try:
            if self._words[_BOOT] != boot or not _is_sound(self._words):
                self._words[:] = memoryview(bytes(8 * _WORDS)).cast("q")
                self._words[_BOOT] = boot
        finally:
            self._unlock()

    def take(self, now: float, tokens: Tokens) -> tuple[float, str]:
        """Records a send now and returns (0.0, ""), or returns the seconds to wait and for what: `tokens` or
        `requests`."""
        self._lock()
        try:
            words = self._words
            tick = self._catch_up(words, now)
            now_us = int(now * 1e6)
            read, written = tokens.input, tokens.output
            total = read + written
            if (
                words[_NEXT_US + _REQUESTS] - self._burst_us > now_us
                or words[_NEXT_US + _TOKENS] - _BURST_US > now_us
                or words[_SUMS + _REQUESTS] + 1 > self._rpm
                or 0 < words[_SUMS + _INPUT] + words[_SUMS + _OUTPUT] > self._tpm - total
                or (self._is_split and self._lacks_one(words, now_us, read, written))
            ):
                wait = self._wait(words, now, read, written)
                words[_WAITED_US] = now_us + int(1e6 * wait[0])
                return wait
            # Sending time that one limit lost while a call waited for another is made up; time without a waiting call
            # is not.
            from_us = now_us - self._made_up_us if now_us <= words[_WAITED_US] + _LATE_US else now_us
            slot = _FIELDS + _COUNTED * (tick % _SLOTS)
            words[slot] += 1
            words[slot + _INPUT] += read
            words[slot + _OUTPUT] += written
            words[_SUMS] += 1
            words[_SUMS + _INPUT] += read
            words[_SUMS + _OUTPUT] += written
            words[_NEXT_US] = max(words[_NEXT_US], from_us) + self._request_us
            words[_NEXT_US + _TOKENS] = max(words[_NEXT_US + _TOKENS], from_us) + int(self._token_us * total)
            if self._is_split:
                words[_NEXT_US + _INPUT] = max(words[_NEXT_US + _INPUT], from_us) + int(self._input_us * read)
                words[_NEXT_US + _OUTPUT] = max(words[_NEXT_US + _OUTPUT], from_us) + int(self._output_us * written)
            return 0.0, ""
        finally:
            self._unlock()

    def move(self, granted_at: float, now: float, tokens: Tokens) -> None:
        """Counts a send, granted less than a minute ago, from `now` on: its request is written only now."""
        old = int(granted_at / TICK_S)
        if old == int(now / TICK_S):
            return
        self._lock()
        try:
            words = self._words
            new = self._catch_up(words, now)
            for kind, amount in enumerate((1, tokens.input, tokens.output)):
                words[_FIELDS + _COUNTED * (new % _SLOTS) + kind] += amount
                if old >= words[_TAIL]:
                    words[_FIELDS + _COUNTED * (old % _SLOTS) + kind] -= amount
                else:
                    words[_SUMS + kind] += amount
        finally:
            self._unlock()

    def settle(self, sent_at: float, reserved: Tokens, used: Tokens, *, requests: int = 1) -> None:
        """Replaces a reservation by what was used. Less is given back to the minute in which it was sent; more counts
        in the minute that begins now. `requests=0` gives the request back too. Takes effect with the next `take` or
        `used`, so that an answer costs no lock of its own."""
        self._owed.append(
            (int(sent_at / TICK_S), requests - 1, used.input - reserved.input, used.output - reserved.output)
        )

    def used(self, now: float) -> tuple[int, Tokens]:
        """Returns the requests and tokens of the last minute."""
        self._lock()
        try:
            self._catch_up(self._words, now)
            requests, read, written = self._words[_SUMS : _SUMS + _COUNTED].tolist()
            return requests, Tokens(read, written)
        finally:
            self._unlock()

    def empty_in_s(self, now: float) -> float:
        """Returns the seconds until the last minute holds no request."""
        self._lock()
        try:
            self._catch_up(self._words, now)
            return self._until_free(self._words, now, (_REQUESTS,), self._words[_SUMS])
        finally:
            self._unlock()

    def close(self) -> None:
        """Closes the ledger; applies waiting corrections first, so that the next process counts them."""
        if self._owed:
            self._lock()
            try:
                self._catch_up(self._words, self._words[_HEAD] * TICK_S)
            finally:
                self._unlock()
        if self._files is not None:
            self._files.forget(self)
        self.close_file()

    def open_file(self) -> None:
        assert self._path is not None
        self._fd = open_to_map(self._path, 8 * _WORDS)
        try:
            self._map = mmap.mmap(self._fd, 8 * _WORDS)
        except OSError:
            os.close(self._fd)
            self._fd = None
            raise
        self._words = memoryview(self._map).cast("q")

    def close_file(self) -> None:
        """Closes the file, which the next use opens again."""
        if self._fd is not None and self._map is not None:
            self._words.release()
            self._map.close()
            os.close(self._fd)
            self._fd = None

    def _lock(self) -> None:
        if self._files is not None:
            self._files.use(self)
            assert self._fd is not None
            fcntl.flock(self._fd, fcntl.LOCK_EX)

    def _unlock(self) -> None:
        if self._fd is not None:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def _catch_up(self, words: memoryview, now: float) -> int:
        """Moves the window to now and applies waiting corrections. Returns the current tick's number (TICK_S each)."""
        tick = int(now / TICK_S)
        if tick != words[_HEAD]:
            self._advance(words, tick)
        if self._owed:
            now_us = int(now * 1e6)
            for owed in self._owed:
                self._correct(words, tick, owed, now_us)
            self._owed.clear()
        return tick

    def _correct(self, words: memoryview, tick: int, owed: tuple[int, int, int, int], now_us: int) -> None:
        sent, *changes = owed
        for kind, change in enumerate(changes):
            # More than was reserved counts from now on; less is taken off where it was counted, if the window still
            # holds that.
            if change and (change > 0 or sent >= words[_TAIL]):
                words[_FIELDS + _COUNTED * ((tick if change > 0 else sent) % _SLOTS) + kind] += change
                words[_SUMS + kind] += change
        _, read, written = changes
        self._put_off(words, _TOKENS, self._token_us * (read + written), now_us)
        if self._is_split:
            self._put_off(words, _INPUT, self._input_us * read, now_us)
            self._put_off(words, _OUTPUT, self._output_us * written, now_us)

    @staticmethod
    def _put_off(words: memoryview, kind: int, by_us: float, now_us: int) -> None:
        """Delays the next send of one kind by `by_us` microseconds, at most until a minute from now."""
        before = words[_NEXT_US + kind]
        words[_NEXT_US + kind] = min(before + int(by_us), max(before, now_us + _MINUTE_US))

    def _advance(self, words: memoryview, tick: int) -> None:
        """Drops what is older than the window. A file whose times lie too far away is emptied."""
        if not words[_TAIL] <= tick <= words[_HEAD] + _SLOTS or tick < words[_HEAD] - 8:
            boot = words[_BOOT]
            words[:] = memoryview(bytes(8 * _WORDS)).cast("q")
            words[_BOOT] = boot
            words[_TAIL] = max(0, tick - TICKS_COUNTED + 1)
        while words[_TAIL] <= tick - TICKS_COUNTED:
            slot = _FIELDS + _COUNTED * (words[_TAIL] % _SLOTS)
            for kind in range(_COUNTED):
                words[_SUMS + kind] -= words[slot + kind]
                words[slot + kind] = 0
            words[_TAIL] += 1
        words[_HEAD] = max(words[_HEAD], tick)

    def _lacks_one(self, words: memoryview, now_us: int, read: int, written: int) -> bool:
        """Whether the limit on input tokens or the one on output tokens by itself forbids a send now."""
        return (
            words[_NEXT_US + _INPUT] - _BURST_US > now_us
            or words[_NEXT_US + _OUTPUT] - _BURST_US > now_us
            or 0 < words[_SUMS + _INPUT] > self._itpm - read
            or 0 < words[_SUMS + _OUTPUT] > self._otpm - written
        )

    def _wait(self, words: memoryview, now: float, read: int, written: int) -> tuple[float, str]:
        """Returns the longest of all waits, in seconds (at least a microsecond), and what it is for."""
        requests, read_so_far, written_so_far = words[_SUMS : _SUMS + _COUNTED].tolist()
        held = read_so_far + written_so_far
        paced_us = max(
            words[_NEXT_US + kind] for kind in ((_TOKENS, _INPUT, _OUTPUT) if self._is_split else (_TOKENS,))
        )
        return max(
            # A call that needs all of a minute has it alone.
            (self._until_free(words, now, (_INPUT, _OUTPUT), min(held, held + read + written - self._tpm)), "tokens"),
            (self._until_free(words, now, (_INPUT,), min(read_so_far, read_so_far + read - self._itpm)), "tokens"),
            (
                self._until_free(words, now, (_OUTPUT,), min(written_so_far, written_so_far + written - self._otpm)),
                "tokens",
            ),
            ((paced_us - _BURST_US) / 1e6 - now, "tokens"),
            (self._until_free(words, now, (_REQUESTS,), requests + 1 - self._rpm), "requests"),
            ((words[_NEXT_US] - self._burst_us) / 1e6 - now, "requests"),
            (1e-6, "requests"),
        )

    def _until_free(self, words: memoryview, now: float, kinds: tuple[int, ...], excess: float) -> float:
        """Returns the seconds until at least `excess` of these kinds has left the window, oldest first."""
        tick = words[_TAIL]
        while excess > 0 and tick <= words[_HEAD]:
            slot = _FIELDS + _COUNTED * (tick % _SLOTS)
            excess -= sum(words[slot + kind] for kind in kinds)
            tick += 1
            if excess <= 0:
                return float((tick - 1 + TICKS_COUNTED) * TICK_S - now)
        return 0.0 if excess <= 0 else TICK_S
