"""Forecasts whether workers make a run faster: what bounds it, and how long it takes with them and without.

Figures of processes are those that were measured (docs/scale.md). Sends nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from ....engine.limits import Quota
from ....format import count_text, decimal_text, rough_minutes, span_text
from ..door.expected import NOTHING, Span
from .forecast import Forecast, LaneForecast

PROCESS_US, WORKER_US, DRIVER_US = 1e6 / 6_900, 150.0, 22.0
"""Microseconds a call of one process alone (6,900 calls a second), of a worker, and of the driver that all share."""
CALL_SECONDS = Span(2, 20)
"""Of a call whose model answers at its usual speed; one that thinks may take longer."""
# Figures of other machines differ by more than this.
_FASTER = 0.9


class WorkersForecast(Struct, frozen=True):
    """Whether `count` workers make a run faster: its minutes with them, and by one process `alone`. `bounds` are the
    minutes of each thing that bounds it, in words; `decisive` the longest of them: for short calls, and for long ones
    if another one is."""

    count: int
    helps: bool
    minutes: Span
    alone: Span
    decisive: tuple[str, ...]
    bounds: dict[str, Span]

    @property
    def text(self) -> str:
        which = " or ".join(f"{each} ({span_text(self.bounds[each], rough_minutes)})" for each in self.decisive)
        if not self.helps:
            return f"workers: {self.count:,} do not help: {which} bounds this run"
        then, now = (span_text(each, rough_minutes) for each in (self.minutes, self.alone))
        return f"{count_text(self.count, 'worker')}: {then} instead of {now}: {which} bounds this run without them"


def workers_forecast(count: int, forecast: Forecast, at_once: Callable[[str], int]) -> WorkersForecast:
    """Returns the forecast for workers with a core each, among which the calls in flight (`at_once` of a lane) are
    shared out."""
    others = dict(_others(forecast, at_once))
    calls = sum((lane.calls for lane in forecast.lanes), NOTHING)
    with_them = calls.times(max(WORKER_US / count, DRIVER_US) / 60e6)
    bounds = {**others, f"one process's {1e6 / PROCESS_US:,.0f} calls a second": calls.times(PROCESS_US / 60e6)}
    decisive = dict.fromkeys(max(bounds, key=lambda each: bounds[each][end]) for end in (0, 1))
    before, after = _longest(bounds.values()), _longest([*others.values(), with_them])
    helps = any(then < _FASTER * now for then, now in zip(after, before, strict=True))
    return WorkersForecast(count, helps, after, before, tuple(decisive), bounds)


def _others(forecast: Forecast, at_once: Callable[[str], int]) -> Iterator[tuple[str, Span]]:
    """Yields what no number of processes changes."""
    for lane in forecast.lanes:
        if lane.minutes is not None:
            yield f"the quota of {_narrowest(lane)} of {lane.lane}", lane.minutes
        if forecast.chain is None:
            most = at_once(lane.lane)
            seconds = Span(*(calls * each / most for calls, each in zip(lane.calls, CALL_SECONDS, strict=True)))
            each = span_text(CALL_SECONDS, decimal_text)
            yield f"--concurrency {most} to {lane.lane}, at {each} s a call", seconds.times(1 / 60)
    if forecast.chain is not None:
        yield f"{forecast.chain.noun}s that follow each other", forecast.chain.minutes


def _narrowest(lane: LaneForecast) -> str:
    """Returns a lane's quota that takes longest, in words."""
    amounts = [(each or NOTHING).most for each in (lane.calls, lane.input_tokens, lane.output_tokens)]
    whats = {"rpm": "requests", "tpm": "tokens", "itpm": "input tokens", "otpm": "output tokens"}
    times = {
        Quota(**{name: most}).minutes(*amounts) or 0.0: f"{most:,.0f} {whats[name]} a minute"
        for name, most in lane.quota.items()
        if most
    }
    return times[max(times)]


def _longest(spans: Iterable[Span]) -> Span:
    return Span(*map(max, zip(*spans, strict=True)))
