"""Judges whether the client itself was the bottleneck: its loop's lag, its share of a core, and the effect of late
calls.

Samples while a test runs and judges at its end. Time spent waiting for the server, a lane or a free slot is not the
client's fault and is not counted.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from msgspec import Struct

from .alarm import FineAlarm
from .histogram import Histogram
from .timing import Clock

SAMPLE_S = 0.02
CPU_WINDOW_S = 1.0
CPU_MOST = 0.90
RATE_LEAST = 0.99
ERROR_SHARE, ERROR_S = 0.02, 0.001
# The most missing samples that are recorded for one pause: an hour of them.
_MISSED_MOST = 180_000
# Resolution of the loop's own timers: an idle loop that they wake lags by as much.
TIMER_S = 0.001


class ClientVerdict(Struct, frozen=True):
    """Whether the client was the bottleneck: its loop's lag in seconds (99th percentile) and the shares of a core that
    it used. `reasons` give the measured and the allowed values; without any, the figures are the server's."""

    lag_p99_s: float
    cpu_peak: float
    cpu_mean: float
    reasons: tuple[str, ...]

    @property
    def is_client_bound(self) -> bool:
        return bool(self.reasons)


class ClientWatch:
    """A sampler of the loop's lag and the use of the processor from `begin` to `end`. `clock` and `cpu` return seconds
    passed and seconds of processor time used; `alarm` wakes it for a sample (None: the loop's own timers do)."""

    def __init__(
        self, clock: Clock, cpu: Callable[[], float] = time.process_time, alarm: FineAlarm | None = None
    ) -> None:
        self._clock = clock
        self._alarm = alarm
        self._cpu = cpu
        self.lag = Histogram()
        self.cpu_peak = 0.0
        self._task: asyncio.Task[None] | None = None
        self._began = (0.0, 0.0)
        self._ended = (0.0, 0.0)

    def begin(self) -> None:
        self._began = self._ended = (self._clock(), self._cpu())
        self._task = asyncio.create_task(self._sample(), name="load watch")

    async def end(self) -> None:
        if self._task is None:
            return
        self._task.cancel()
        await asyncio.wait([self._task])
        self._task = None
        if self._alarm is not None:
            self._alarm.close()
        self._note_cpu(self._ended)
        self._ended = (self._clock(), self._cpu())

    @property
    def cpu_mean(self) -> float:
        passed = self._ended[0] - self._began[0]
        return (self._ended[1] - self._began[1]) / passed if passed > 0 else 0.0

    async def _sample(self) -> None:
        window = self._began
        while True:
            before = self._clock()
            await (asyncio.sleep(SAMPLE_S) if self._alarm is None else self._alarm.wait(SAMPLE_S))
            now = self._clock()
            self._note_lag(max(0.0, now - before - SAMPLE_S))
            self._ended = (now, self._cpu())
            if now - window[0] >= CPU_WINDOW_S:
                self.cpu_peak = max(self.cpu_peak, (self._ended[1] - window[1]) / (now - window[0]))
                window = self._ended

    def _note_lag(self, lag_s: float) -> None:
        """Records a lag, and the lags of the samples that a blocked loop could not take. Otherwise a pause of seconds
        would be one sample in hundreds, and a closed loop, in which few calls meet it, would show no trace of it."""
        for number in range(min(int(lag_s / SAMPLE_S), _MISSED_MOST) + 1):
            self.lag.record(lag_s - number * SAMPLE_S)

    def _note_cpu(self, last: tuple[float, float]) -> None:
        """Sets the peak of a test shorter than a window to its mean."""
        if last[0] - self._began[0] < CPU_WINDOW_S:
            self.cpu_peak = max(self.cpu_peak, self.cpu_mean)

    def verdict(self, latency: Histogram, undelayed: Histogram, *, due: int, begun: int) -> ClientVerdict:
        """Returns the verdict. `undelayed` is latency without our own loop's delay; `due` is the number of calls that
        had a free slot, `begun` of those that began. Latencies that we changed by more than 2% + 1 ms are not the
        server's."""
        reasons = []
        if self.cpu_peak > CPU_MOST:
            reasons.append(f"this process took {self.cpu_peak:.0%} of a core, more than {CPU_MOST:.0%}")
        for percent in (50.0, 90.0, 99.0):
            reason = self._own_part(percent, latency, undelayed)
            if reason:
                reasons.append(reason)
                break
        if due and begun < RATE_LEAST * due:
            reasons.append(f"{begun:,} of {due:,} calls were begun, fewer than {RATE_LEAST:.0%}")
        lag = self.lag.percentile(99)
        return ClientVerdict(0.0 if lag is None else lag.value_s, self.cpu_peak, self.cpu_mean, tuple(reasons))

    def _own_part(self, percent: float, latency: Histogram, undelayed: Histogram) -> str:
        """Returns a sentence on the part of a percentile that is our own delay, if it is too large; else an empty text.
        A late start and a late read may meet in one call, so the two are added."""
        whole, rest, lag = (each.percentile(percent) for each in (latency, undelayed, self.lag))
        if rest is None or whole is None:
            # Without an answer there is no latency to be wrong.
            return ""
        moved_s, lag_s = whole.value_s - rest.value_s, 0.0 if lag is None else lag.value_s
        timer_s = TIMER_S if self._alarm is None else 0.0
        allowed_s = allowed_error_s(rest.value_s) + timer_s
        if moved_s + lag_s <= allowed_s:
            return ""
        parts = f"calls were begun {1000 * moved_s:.1f} ms late, the loop lagged by {1000 * lag_s:.1f} ms"
        delay = f"{1000 * min(whole.value_s, moved_s + lag_s):.1f} ms of p{percent:g} are our own"
        rule = f"{ERROR_SHARE:.0%} of it and {1000 * (ERROR_S + timer_s):g} ms"
        return f"{delay} ({parts}), more than the {1000 * allowed_s:.1f} ms allowed ({rule})"


def allowed_error_s(latency_s: float) -> float:
    """Returns the allowed error of a latency in seconds: 2% and a millisecond."""
    return ERROR_SHARE * latency_s + ERROR_S
