"""The last minute's sends of one lane, so that no sliding 60 s exceeds the declared quota.

Held in memory, or in a small file that several processes share and that outlives a kill. Owns the
arithmetic of the window; it never waits: it says how long to wait. Times are the system's monotonic
clock, the same for every process of a machine until it boots.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from pathlib import Path

TICK_S = 0.25
# A send may arrive up to a tick late and stands up to a tick early in its slot: 60.5 s cover a true minute.
TICKS_COUNTED = 242
_SLOTS = 256
_TAIL, _HEAD, _REQUESTS, _TOKENS, _NEXT_REQUEST_US, _NEXT_TOKENS_US, _BOOT = range(7)
_FIELDS = 8
_WORDS = _FIELDS + 2 * _SLOTS
_MINUTE_US = 61_000_000

REQUESTS_SHARE = 0.995 / 60.5
TOKENS_SHARE = 1 / 60.2
BURST_SHARE = 1 / 200


def _boot_mark() -> int:
    """Differs after a reboot, where monotonic time starts again; 0 where the system does not tell."""
    try:
        return int(Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", "")[:15], 16)
    except (OSError, ValueError):
        return 0


def _open_file(path: Path, size: int) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if os.fstat(fd).st_size < size:
            # A mapped file with holes in it would kill the process that touches one on a full disk.
            lengthen = getattr(os, "posix_fallocate", None)
            lengthen(fd, 0, size) if lengthen is not None else os.ftruncate(fd, size)
    except OSError:
        os.close(fd)
        raise
    return fd


def _is_sound(words: memoryview) -> bool:
    """Whether a ledger can have been written by one; a damaged one could make a lane wait for ever."""
    tail, head, requests, tokens, *next_us = (words[place] for place in range(_BOOT))
    slots = words[_FIELDS:].tolist()
    return (
        0 <= tail <= head + 1 <= tail + _SLOTS
        and min(slots) >= 0
        and (sum(slots[0::2]), sum(slots[1::2])) == (requests, tokens)
        and max(next_us) <= head * TICK_S * 1e6 + 2 * _MINUTE_US
    )


class Ledger:
    """A sliding minute of requests and tokens under a declared quota."""

    def __init__(self, rpm: float | None, tpm: float | None, path: Path | None = None) -> None:
        self._rpm = rpm if rpm is not None else float("inf")
        self._tpm = tpm if tpm is not None else float("inf")
        self._request_us = round(1e6 / (rpm * REQUESTS_SHARE)) if rpm is not None else 0
        self._burst_us = int(1e6 * BURST_SHARE / REQUESTS_SHARE) if rpm is not None else 0
        self._token_us = 1e6 / (tpm * TOKENS_SHARE) if tpm is not None else 0.0
        self._token_burst_us = int(1e6 * BURST_SHARE / TOKENS_SHARE) if tpm is not None else 0
        self._owed: list[tuple[int, int, int]] = []
        self._fd: int | None = None
        self._map: mmap.mmap | None = None
        if path is None:
            self._words = memoryview(bytearray(8 * _WORDS)).cast("q")
        else:
            self._fd = _open_file(path, 8 * _WORDS)
            self._map = mmap.mmap(self._fd, 8 * _WORDS)
            self._words = memoryview(self._map).cast("q")
        self._open(_boot_mark() if path is not None else 0)

    def _open(self, boot: int) -> None:
        self._lock()
        try:
            if self._words[_BOOT] != boot or not _is_sound(self._words):
                self._words[:] = memoryview(bytes(8 * _WORDS)).cast("q")
                self._words[_BOOT] = boot
        finally:
            self._unlock()

    def take(self, now: float, tokens: int) -> tuple[float, str]:
        """Record a send now, or say how many seconds to wait for what: (0.0, "") means taken."""
        self._lock()
        try:
            words = self._words
            tick = self._catch_up(words, now)
            now_us = int(now * 1e6)
            next_request, next_tokens = words[_NEXT_REQUEST_US], words[_NEXT_TOKENS_US]
            if (
                next_request - self._burst_us > now_us
                or next_tokens - self._token_burst_us > now_us
                or words[_REQUESTS] + 1 > self._rpm
                or words[_TOKENS] + tokens > self._tpm
            ):
                return self._wait(words, now, tokens)
            slot = _FIELDS + 2 * (tick % _SLOTS)
            words[slot] += 1
            words[slot + 1] += tokens
            words[_REQUESTS] += 1
            words[_TOKENS] += tokens
            words[_NEXT_REQUEST_US] = (next_request if next_request > now_us else now_us) + self._request_us
            words[_NEXT_TOKENS_US] = (next_tokens if next_tokens > now_us else now_us) + int(self._token_us * tokens)
            return 0.0, ""
        finally:
            self._unlock()

    def settle(self, sent_at: float, reserved: int, used: int, *, requests: int = 1) -> None:
        """Replace a reservation by what was used. Less is given back to the minute it was taken from; more
        is a debt on the minute that begins now. `requests=0` gives the request back too. Takes effect with the next
        question, so that an answer costs no lock of its own."""
        self._owed.append((int(sent_at / TICK_S), used - reserved, requests - 1))

    def used(self, now: float) -> tuple[int, int]:
        """Requests and tokens of the last minute."""
        self._lock()
        try:
            self._catch_up(self._words, now)
            return self._words[_REQUESTS], self._words[_TOKENS]
        finally:
            self._unlock()

    def close(self) -> None:
        self._words.release()
        if self._map is not None:
            self._map.close()
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _lock(self) -> None:
        if self._fd is not None:
            fcntl.flock(self._fd, fcntl.LOCK_EX)

    def _unlock(self) -> None:
        if self._fd is not None:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def _catch_up(self, words: memoryview, now: float) -> int:
        """Bring the minute up to now: the tick of now."""
        tick = int(now / TICK_S)
        if tick != words[_HEAD]:
            self._advance(words, tick)
        if self._owed:
            for sent, tokens, requests in self._owed:
                self._correct(words, tick, sent, tokens, requests, int(now * 1e6))
            self._owed.clear()
        return tick

    def _correct(self, words: memoryview, tick: int, sent: int, tokens: int, requests: int, now_us: int) -> None:
        if tokens > 0:
            words[_FIELDS + 2 * (tick % _SLOTS) + 1] += tokens
            words[_TOKENS] += tokens
        elif sent >= words[_TAIL]:
            words[_FIELDS + 2 * (sent % _SLOTS) + 1] += tokens
            words[_TOKENS] += tokens
        if requests and sent >= words[_TAIL]:
            words[_FIELDS + 2 * (sent % _SLOTS)] += requests
            words[_REQUESTS] += requests
        # A debt holds back the next minute, however large it is, and no more than that one.
        next_tokens = words[_NEXT_TOKENS_US] + int(self._token_us * tokens)
        words[_NEXT_TOKENS_US] = min(next_tokens, max(words[_NEXT_TOKENS_US], now_us + _MINUTE_US))

    def _advance(self, words: memoryview, tick: int) -> None:
        """Drop what is older than the window. A file from another epoch starts empty."""
        if not words[_TAIL] <= tick <= words[_HEAD] + _SLOTS or tick < words[_HEAD] - 8:
            boot = words[_BOOT]
            words[:] = memoryview(bytes(8 * _WORDS)).cast("q")
            words[_BOOT] = boot
            words[_TAIL] = max(0, tick - TICKS_COUNTED + 1)
        while words[_TAIL] <= tick - TICKS_COUNTED:
            slot = _FIELDS + 2 * (words[_TAIL] % _SLOTS)
            words[_REQUESTS] -= words[slot]
            words[_TOKENS] -= words[slot + 1]
            words[slot] = words[slot + 1] = 0
            words[_TAIL] += 1
        words[_HEAD] = max(words[_HEAD], tick)

    def _wait(self, words: memoryview, now: float, tokens: int) -> tuple[float, str]:
        """The longest of all waits. A microsecond at least, since times are kept in whole ones."""
        paced_tokens = (words[_NEXT_TOKENS_US] - self._token_burst_us) / 1e6 - now
        paced_requests = (words[_NEXT_REQUEST_US] - self._burst_us) / 1e6 - now
        return max(
            (self._until_free(words, now, 1, words[_TOKENS] + tokens - self._tpm), "tokens"),
            (paced_tokens, "tokens"),
            (self._until_free(words, now, 0, words[_REQUESTS] + 1 - self._rpm), "requests"),
            (paced_requests, "requests"),
            (1e-6, "requests"),
        )

    def _until_free(self, words: memoryview, now: float, column: int, excess: float) -> float:
        """Seconds until at least `excess` has left the window, oldest first."""
        tick = words[_TAIL]
        while excess > 0 and tick <= words[_HEAD]:
            excess -= words[_FIELDS + 2 * (tick % _SLOTS) + column]
            tick += 1
            if excess <= 0:
                return float((tick - 1 + TICKS_COUNTED) * TICK_S - now)
        return 0.0 if excess <= 0 else TICK_S
