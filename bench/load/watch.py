"""Whether the client itself was the bottleneck: its loop's lag, its share of a core, and what its late calls cost.

Samples while a test runs and judges at its end. Waiting for the server, for a lane or for a free place in flight is no
fault of the client's, and is not counted as one.
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
# Of one pause, so many samples that it kept from being taken are made up for: an hour of them.
_MISSED_MOST = 180_000
# The loop's own timers are no finer, so where they wake it a loop with nothing to do lags by as much.
TIMER_S = 0.001


class Verdict(Struct, frozen=True):
    """`reasons` say what was measured and what was allowed; none: the figures are the server's."""

    lag_p99_s: float
    cpu_peak: float
    cpu_mean: float
    reasons: tuple[str, ...]

    @property
    def is_client_bound(self) -> bool:
        return bool(self.reasons)


class Watch:
    """Samples from `begin` to `end`. `clock` and `cpu` are passed in: seconds that passed, and seconds of the processor
    that this process had; `alarm` is what wakes it for a sample, None: the loop's own timers."""

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
            asked = self._clock()
            await (asyncio.sleep(SAMPLE_S) if self._alarm is None else self._alarm.wait(SAMPLE_S))
            now = self._clock()
            self._note_lag(max(0.0, now - asked - SAMPLE_S))
            self._ended = (now, self._cpu())
            if now - window[0] >= CPU_WINDOW_S:
                self.cpu_peak = max(self.cpu_peak, (self._ended[1] - window[1]) / (now - window[0]))
                window = self._ended

    def _note_lag(self, lag_s: float) -> None:
        """A loop that stands still takes no samples. Those that it would have taken count too, else a pause of seconds
        were one in hundreds, and a closed loop, in which few calls meet it, would show no trace of it."""
        for number in range(min(int(lag_s / SAMPLE_S), _MISSED_MOST) + 1):
            self.lag.record(lag_s - number * SAMPLE_S)

    def _note_cpu(self, last: tuple[float, float]) -> None:
        """A test shorter than a window has its mean alone."""
        if last[0] - self._began[0] < CPU_WINDOW_S:
            self.cpu_peak = max(self.cpu_peak, self.cpu_mean)

    def verdict(self, latency: Histogram, undelayed: Histogram, *, due: int, begun: int) -> Verdict:
        """`undelayed`: latency without what our own loop was late. `due` and `begun`: calls that had a free place, and
        those of them that were begun. Latencies that we moved by more than 2% + 1 ms are not the server's."""
        reasons = []
        if self.cpu_peak > CPU_MOST:
            reasons.append(f"this process took {self.cpu_peak:.0%} of a core, more than {CPU_MOST:.0%}")
        for percent in (50.0, 90.0, 99.0):
            own = self._own_part(percent, latency, undelayed)
            if own:
                reasons.append(own)
                break
        if due and begun < RATE_LEAST * due:
            reasons.append(f"{begun:,} of {due:,} calls were begun, fewer than {RATE_LEAST:.0%}")
        lag = self.lag.percentile(99)
        return Verdict(0.0 if lag is None else lag.value_s, self.cpu_peak, self.cpu_mean, tuple(reasons))

    def _own_part(self, percent: float, latency: Histogram, undelayed: Histogram) -> str:
        """What is ours in a percentile, where that is too much. Calls were begun late, and answers were read as late as
        the loop lagged: the two may have met in one call, so they are added up."""
        whole, rest, lag = (each.percentile(percent) for each in (latency, undelayed, self.lag))
        if rest is None or whole is None:
            # No answer came: there is no latency to be wrong about.
            return ""
        moved_s, lag_s = whole.value_s - rest.value_s, 0.0 if lag is None else lag.value_s
        allowed_s = allowed_error_s(rest.value_s) + (TIMER_S if self._alarm is None else 0.0)
        if moved_s + lag_s <= allowed_s:
            return ""
        parts = f"calls were begun {1000 * moved_s:.1f} ms late, the loop lagged by {1000 * lag_s:.1f} ms"
        own = f"{1000 * min(whole.value_s, moved_s + lag_s):.1f} ms of p{percent:g} are our own"
        return f"{own} ({parts}), more than {1000 * allowed_s:.1f} ms"


def allowed_error_s(latency_s: float) -> float:
    """How far a latency may be from the truth: 2% and a millisecond."""
    return ERROR_SHARE * latency_s + ERROR_S
