"""Judges whether the client itself was the bottleneck: its loop's lag, its share of a core, and the effect of late
calls.

Samples while a test runs and judges at its end. Time spent waiting for the server, a lane or a free slot is not the
client's fault and is not counted.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator

from msgspec import Struct

from .alarm import KernelAlarm
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


class _Part:
    """What was sampled in one step of a run. `cpu_peak` is None until a window has ended in it."""

    def __init__(self) -> None:
        self.lag = Histogram(2)
        self.cpu_peak: float | None = None


class ClientWatch:
    """A sampler of the loop's lag and the use of the processor from `begin` to `end`, of the whole run and of each of
    its steps. `clock` and `cpu` return seconds passed and seconds of processor time used; `alarm` wakes it for a sample
    (None: the loop's own timers do). `step_of` returns the step at a second of the run, which begins at `begins_s`."""

    def __init__(
        self,
        clock: Clock,
        cpu: Callable[[], float] = time.process_time,
        alarm: KernelAlarm | None = None,
        step_of: Callable[[float], int] = lambda at: 0,
        begins_s: float = 0.0,
    ) -> None:
        self._clock = clock
        self._alarm = alarm
        self._cpu = cpu
        self._step_of = step_of
        self._begins_s = begins_s
        self.lag = Histogram()
        self.cpu_peak = 0.0
        self._parts: dict[int, _Part] = {}
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
        # The peak of a test shorter than a window is its mean.
        if self._ended[0] - self._began[0] < CPU_WINDOW_S:
            self.cpu_peak = self.cpu_mean
        self._ended = (self._clock(), self._cpu())

    @property
    def cpu_mean(self) -> float:
        return _share(self._began, self._ended)

    async def _sample(self) -> None:
        window, part = self._began, self._part_at(self._began[0])
        while True:
            before = self._clock()
            await (asyncio.sleep(SAMPLE_S) if self._alarm is None else self._alarm.wait(SAMPLE_S))
            now = self._clock()
            for lag_s in _lags(max(0.0, now - before - SAMPLE_S)):
                self.lag.record(lag_s)
                part.lag.record(lag_s)
            self._ended = (now, self._cpu())
            next_part, is_whole = self._part_at(now), now - window[0] >= CPU_WINDOW_S
            if is_whole:
                self.cpu_peak = max(self.cpu_peak, _share(window, self._ended))
            if is_whole or (next_part is not part and part.cpu_peak is None):
                part.cpu_peak = max(part.cpu_peak or 0.0, _share(window, self._ended))
            if is_whole or next_part is not part:
                window, part = self._ended, next_part

    def _part_at(self, now: float) -> _Part:
        return self._parts.setdefault(self._step_of(now - self._begins_s), _Part())

    def verdict(self, latency: Histogram, undelayed: Histogram, *, due: int, begun: int) -> ClientVerdict:
        """Returns the verdict so far. `undelayed` is latency without our own loop's delay; `due` is the number of calls
        that had a free slot, `begun` of those that began. Latencies that we changed by more than 2% + 1 ms are not the
        server's."""
        reasons = [*self._own_parts(self.cpu_peak, self.lag, latency, undelayed)]
        if due and begun < RATE_LEAST * due:
            reasons.append(f"{begun:,} of {due:,} calls were begun, fewer than {RATE_LEAST:.0%}")
        return ClientVerdict(self.lag.value(99) or 0.0, self.cpu_peak, self.cpu_mean, tuple(reasons))

    def was_bottleneck(self, step: int, latency: Histogram) -> bool:
        """Returns whether the client was the bottleneck in one step of the run."""
        part = self._parts.get(step, _Part())
        return any(self._own_parts(part.cpu_peak or 0.0, part.lag, latency, latency))

    def _own_parts(self, cpu_peak: float, lag: Histogram, latency: Histogram, undelayed: Histogram) -> Iterator[str]:
        """Yields sentences on the processor, if it took too much of it, and on the first percentile of which too much
        is our own delay. A late start and a late read may meet in one call, so the two are added."""
        if cpu_peak > CPU_MOST:
            yield f"this process took {cpu_peak:.0%} of a core, more than {CPU_MOST:.0%}"
        timer_s = TIMER_S if self._alarm is None else 0.0
        for percent in (50.0, 90.0, 99.0):
            whole_s, rest_s, lag_s = latency.value(percent), undelayed.value(percent), lag.value(percent) or 0.0
            if whole_s is None or rest_s is None:
                # Without an answer there is no latency to be wrong.
                return
            moved_s, allowed_s = whole_s - rest_s, ERROR_SHARE * rest_s + ERROR_S + timer_s
            if moved_s + lag_s > allowed_s:
                parts = f"calls were begun {1000 * moved_s:.1f} ms late, the loop lagged by {1000 * lag_s:.1f} ms"
                delay = f"{1000 * min(whole_s, moved_s + lag_s):.1f} ms of p{percent:g} are our own"
                rule = f"{ERROR_SHARE:.0%} of it and {1000 * (ERROR_S + timer_s):g} ms"
                yield f"{delay} ({parts}), more than the {1000 * allowed_s:.1f} ms allowed ({rule})"
                return


def _share(began: tuple[float, float], ended: tuple[float, float]) -> float:
    """Returns the share of a core that was used between two marks of seconds passed and seconds of processor time."""
    passed = ended[0] - began[0]
    return (ended[1] - began[1]) / passed if passed > 0 else 0.0


def _lags(lag_s: float) -> Iterator[float]:
    """Yields a lag, and the lags of the samples that a blocked loop could not take. Otherwise a pause of seconds would
    be one sample in hundreds, and a closed loop, in which few calls meet it, would show no trace of it."""
    for number in range(min(int(lag_s / SAMPLE_S), _MISSED_MOST) + 1):
        yield lag_s - number * SAMPLE_S
