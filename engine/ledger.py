"""The last minute's sends of one lane, so that no sliding 60 s exceeds the declared quota.

Held in memory, or in a small file that several processes share and that outlives a kill. Owns the
arithmetic of the window; it never waits: it says how long to wait. Times are the system's monotonic
clock, the same for every process of a machine until it boots.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TICK_S = 0.25
# A send may arrive up to a tick late and stands up to a tick early in its slot: 60.5 s cover a true minute.
TICKS_COUNTED = 242
_SLOTS = 256
_TAIL, _HEAD, _REQUESTS, _TOKENS, _NEXT_REQUEST_US, _NEXT_TOKENS_US, _BOOT = range(7)
_FIELDS = 8
_WORDS = _FIELDS + 2 * _SLOTS

REQUESTS_SHARE = 0.995 / 60.5
TOKENS_SHARE = 1 / 60.2
BURST_SHARE = 1 / 200


def _boot_mark() -> int:
    """Differs after a reboot, where monotonic time starts again; 0 where the system does not tell."""
    try:
        return int(Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", "")[:15], 16)
    except (OSError, ValueError):
        return 0


class Ledger:
    """A sliding minute of requests and tokens under a declared quota."""

    def __init__(self, rpm: float | None, tpm: float | None, path: Path | None = None) -> None:
        self._rpm = rpm
        self._tpm = tpm
        self._fd: int | None = None
        self._map: mmap.mmap | None = None
        if path is None:
            self._words = memoryview(bytearray(8 * _WORDS)).cast("q")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            if os.fstat(self._fd).st_size < 8 * _WORDS:
                os.ftruncate(self._fd, 8 * _WORDS)
            self._map = mmap.mmap(self._fd, 8 * _WORDS)
            self._words = memoryview(self._map).cast("q")
        self._request_s = 1 / (rpm * REQUESTS_SHARE) if rpm else 0.0
        self._burst_s = self._request_s * rpm * BURST_SHARE if rpm else 0.0
        self._token_s = 1 / (tpm * TOKENS_SHARE) if tpm else 0.0
        self._token_burst_s = self._token_s * tpm * BURST_SHARE if tpm else 0.0
        self._open(_boot_mark() if path is not None else 0)

    def _open(self, boot: int) -> None:
        with self._alone() as words:
            if words[_BOOT] != boot:
                words[:] = memoryview(bytes(8 * _WORDS)).cast("q")
                words[_BOOT] = boot

    def take(self, now: float, tokens: int) -> tuple[float, str]:
        """Record a send now, or say how many seconds to wait for what: (0.0, "") means taken."""
        with self._alone() as words:
            tick = self._advance(words, now)
            wait, why = self._wait(words, now, tokens)
            # Times are kept in whole microseconds: what is left below one is rounding, not waiting.
            if wait > 1e-6:
                return wait, why
            slot = _FIELDS + 2 * (tick % _SLOTS)
            words[slot] += 1
            words[slot + 1] += tokens
            words[_REQUESTS] += 1
            words[_TOKENS] += tokens
            now_us = int(now * 1e6)
            words[_NEXT_REQUEST_US] = max(words[_NEXT_REQUEST_US], now_us) + int(self._request_s * 1e6)
            words[_NEXT_TOKENS_US] = max(words[_NEXT_TOKENS_US], now_us) + int(self._token_s * tokens * 1e6)
            return 0.0, ""

    def settle(self, sent_at: float, now: float, reserved: int, used: int, *, requests: int = 1) -> None:
        """Replace a reservation by what was used. Less is given back to the minute it was taken from; more
        is a debt on the minute that begins now. `requests=0` gives the request back too."""
        with self._alone() as words:
            head = self._advance(words, now)
            tick = int(sent_at / TICK_S)
            delta = used - reserved
            if delta > 0:
                words[_FIELDS + 2 * (head % _SLOTS) + 1] += delta
                words[_TOKENS] += delta
            elif tick >= words[_TAIL]:
                words[_FIELDS + 2 * (tick % _SLOTS) + 1] += delta
                words[_TOKENS] += delta
            if requests == 0 and tick >= words[_TAIL]:
                words[_FIELDS + 2 * (tick % _SLOTS)] -= 1
                words[_REQUESTS] -= 1
            words[_NEXT_TOKENS_US] += int(self._token_s * delta * 1e6)

    def used(self, now: float) -> tuple[int, int]:
        """Requests and tokens of the last minute."""
        with self._alone() as words:
            self._advance(words, now)
            return words[_REQUESTS], words[_TOKENS]

    def close(self) -> None:
        self._words.release()
        if self._map is not None:
            self._map.close()
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    @contextmanager
    def _alone(self) -> Iterator[memoryview]:
        if self._fd is None:
            yield self._words
            return
        fcntl.flock(self._fd, fcntl.LOCK_EX)
        try:
            yield self._words
        finally:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def _advance(self, words: memoryview, now: float) -> int:
        """Drop what is older than the window; the tick of now. A file from another epoch starts empty."""
        tick = int(now / TICK_S)
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
        return tick

    def _wait(self, words: memoryview, now: float, tokens: int) -> tuple[float, str]:
        waits = [(0.0, "")]
        if self._tpm:
            excess = words[_TOKENS] + tokens - self._tpm
            waits.append((self._until_free(words, now, 1, excess), "tokens"))
            waits.append((words[_NEXT_TOKENS_US] / 1e6 - self._token_burst_s - now, "tokens"))
        if self._rpm:
            excess = words[_REQUESTS] + 1 - self._rpm
            waits.append((self._until_free(words, now, 0, excess), "requests"))
            waits.append((words[_NEXT_REQUEST_US] / 1e6 - self._burst_s - now, "requests"))
        return max(waits)

    def _until_free(self, words: memoryview, now: float, column: int, excess: float) -> float:
        """Seconds until at least `excess` has left the window, oldest first."""
        tick = words[_TAIL]
        while excess > 0 and tick <= words[_HEAD]:
            excess -= words[_FIELDS + 2 * (tick % _SLOTS) + column]
            tick += 1
            if excess <= 0:
                return float((tick - 1 + TICKS_COUNTED) * TICK_S - now)
        return 0.0 if excess <= 0 else TICK_S
