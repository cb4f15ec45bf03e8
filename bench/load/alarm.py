"""Sleeps until a call is due, accurate to a tenth of a millisecond; an event loop's own timers are accurate to one.

The loop sleeps meanwhile and is woken by Linux's kernel timer. Elsewhere, and under another clock, such as virtual
time, the loop's own timers are used. Knows no call.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress

# Resolution of all alarms: a call due within this time is due now.
EARLY_S = 0.000_05
# The most time for waking a sleeping processor that is compensated.
_LEAD_MAX_S = 0.0005
_LEARNT_S = 0.000_05
_NANO = 1_000_000_000
_CLOCK_MONOTONIC = 1


class Alarm:
    """A timer that lets one task at a time wait for a number of seconds, by the loop's own timers, in real or virtual
    time. `ring` ends the wait at once and is called from the loop. A wait may end slightly early, so the waiting task
    checks the clock again."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._over: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def _set(self, seconds: float) -> None:
        """Arranges for `ring` to be called after `seconds`."""
        self.close()
        self._timer = self._loop.call_later(seconds, self.ring)

    async def wait(self, seconds: float) -> None:
        self._over = self._loop.create_future()
        self._set(seconds)
        try:
            await self._over
        finally:
            self._over = None

    def ring(self) -> None:
        if self._over is not None and not self._over.done():
            self._over.set_result(None)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


class _TimeSpec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _TimerSpec(ctypes.Structure):
    _fields_ = (("interval", _TimeSpec), ("value", _TimeSpec))


class KernelAlarm(Alarm):
    """An alarm that waits with Linux's timerfd, a file that becomes readable when the time is up. A sleeping processor
    takes time to wake, so the timer is set earlier by the first quartile of the recent delays; a wait shorter than that
    is not slept."""

    def __init__(self) -> None:
        super().__init__()
        self._lead = 0.0
        self._c = ctypes.CDLL(None, use_errno=True)
        self._file = self._c.timerfd_create(_CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)
        if self._file < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        self._asked = _TimerSpec()
        self._loop.add_reader(self._file, self._read)

    async def wait(self, seconds: float) -> None:
        if seconds <= self._lead:
            await asyncio.sleep(0)
            return
        aim = time.perf_counter() + seconds - self._lead
        await super().wait(seconds - self._lead)
        late = time.perf_counter() - aim
        if late >= 0:  # else it was rung
            self._lead += _LEARNT_S * (0.25 if late > self._lead else -0.75)
            self._lead = min(_LEAD_MAX_S, max(0.0, self._lead))

    def _set(self, seconds: float) -> None:
        # A timer set to 0 never fires.
        whole, rest = divmod(max(1, round(seconds * _NANO)), _NANO)
        self._asked.value.seconds, self._asked.value.nanoseconds = whole, rest
        self._c.timerfd_settime(self._file, 0, ctypes.byref(self._asked), None)

    def _read(self) -> None:
        with suppress(BlockingIOError):  # it was set again meanwhile
            os.read(self._file, 8)
            self.ring()

    def close(self) -> None:
        self.ring()
        if self._file >= 0:
            self._loop.remove_reader(self._file)
            os.close(self._file)
            self._file = -1


def kernel_alarm(clock: Callable[[], float]) -> KernelAlarm | None:
    """Returns the kernel's alarm for the system's clock (`time.perf_counter`); None for another clock, such as virtual
    time, and where the system has none."""
    if clock is time.perf_counter and sys.platform == "linux":
        with suppress(OSError, AttributeError):  # a C library or a sandbox without timerfd
            return KernelAlarm()
    return None
