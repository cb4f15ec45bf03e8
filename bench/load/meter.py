"""Measurements of one model in a load test: histograms of its times, failures by kind, tokens, goodput.

Of fixed size: with more calls, slices of time get wider, not more. Takes finished calls; knows no clock, no engine and
not when the test began.
"""

from __future__ import annotations

from collections import Counter

from msgspec import Struct

from .histogram import Histogram
from .timing import CallTimes

SLICES_MAX = 128
_SUMS = (
    *("calls", "answered", "kept", "attempts", "retries", "retry_s", "cached", "input_tokens", "output_tokens"),
    *("empty", "cut"),
)


class Promise(Struct, frozen=True):
    """The times, in seconds, that a good answer keeps: first token, whole answer, and each token after the first; None:
    not promised. Goodput counts the answers that keep all of them."""

    first_token_s: float | None = None
    latency_s: float | None = None
    token_s: float | None = None

    def __post_init__(self) -> None:
        times = [(name, getattr(self, name)) for name in ("first_token_s", "latency_s", "token_s")]
        if all(value is None for _, value in times):
            raise ValueError("a promise must name at least 1 time: first_token_s, latency_s or token_s")
        for name, value in times:
            if value is not None and not value > 0:
                raise ValueError(f"{name} ({value:g} s) must be > 0")

    def is_kept(self, call: CallTimes) -> bool:
        """Returns whether a call keeps the promise; an unknown time counts as not kept."""
        if not call.is_answered:
            return False
        if self.latency_s is not None and call.latency_s > self.latency_s:
            return False
        first = call.first_token_s
        if self.first_token_s is not None and (first is None or first > self.first_token_s):
            return False
        if self.token_s is None or call.output_tokens == 1:
            # An answer of one token has no time between tokens.
            return True
        token = call.token_s if call.output_tokens else call.piece_s
        return token is not None and token <= self.token_s


class PartMeter:
    """The measurements of the calls due in one slice of time or in one step of the rate, which begins `begins_s`
    seconds after the start. Its histograms keep `digits` significant digits."""

    def __init__(self, begins_s: float, digits: int = 2) -> None:
        self.begins_s = begins_s
        self.calls = 0
        self.errors = 0
        self.failures: Counter[str] = Counter()
        self.latency = Histogram(digits)
        self.first_token = Histogram(digits)

    def take(self, call: CallTimes) -> None:
        self.calls += 1
        if not call.is_answered:
            self.errors += 1
            self.failures[call.status] += 1
            return
        self.latency.record(call.latency_s)
        if call.first_token_s is not None:
            self.first_token.record(call.first_token_s)

    def merge(self, other: PartMeter) -> None:
        self.begins_s = min(self.begins_s, other.begins_s)
        self.calls += other.calls
        self.errors += other.errors
        self.failures.update(other.failures)
        self.latency.merge(other.latency)
        self.first_token.merge(other.first_token)


class StepMeter(PartMeter):
    """The measurements of the calls due in one step of the rate: beside those of a slice, the answers that kept the
    promise, their tokens, and the times of tokens and pieces."""

    def __init__(self, begins_s: float) -> None:
        super().__init__(begins_s, digits=3)
        self.kept = 0
        self.output_tokens = 0
        # Two digits, since a plan may have a thousand steps.
        self.token = Histogram(2)
        self.gap = Histogram(2)

    def take_answer(self, call: CallTimes, *, is_kept: bool) -> None:
        """Counts what only an answer has; `take` counts the call."""
        self.kept += is_kept
        self.output_tokens += call.output_tokens
        if call.token_s is not None:
            self.token.record(call.token_s)
        for gap in call.gaps:
            self.gap.record(gap)

    def merge_step(self, other: StepMeter) -> None:
        self.merge(other)
        self.kept += other.kept
        self.output_tokens += other.output_tokens
        self.token.merge(other.token)
        self.gap.merge(other.gap)


class LoadMeter:
    """The measurements of one model. Latency, first token and goodput count from when a call was due, `service` from
    when it was sent; `undelayed` is latency without the delay of our own loop. Times are those of answers;
    unanswered calls are counted by kind. `slice_s` is the length of the slices of time, in seconds; `begins_s` is
    where this meter begins on a time axis shared by several tests."""

    def __init__(self, promise: Promise | None = None, slice_s: float = 1.0, begins_s: float = 0.0) -> None:
        if not slice_s > 0:
            raise ValueError(f"slice_s ({slice_s:g} s) must be > 0")
        self.promise = promise
        self.slice_s = slice_s
        self.begins_s = begins_s
        self.latency = Histogram()
        self.service = Histogram()
        self.first_token = Histogram()
        self.token = Histogram()
        self.gap = Histogram()
        self.undelayed = Histogram()
        self.own_delay = Histogram()
        self.held = Histogram()
        self.calls = 0
        self.answered = 0
        self.kept = 0
        self.attempts = 0
        self.retries = 0
        self.retry_s = 0.0
        self.cached = 0
        self.input_tokens = 0
        self.output_tokens = 0
        self.empty = 0
        self.cut = 0
        self.failures: Counter[str] = Counter()
        self.slices: dict[int, PartMeter] = {}
        self.steps: dict[int, StepMeter] = {}

    def __repr__(self) -> str:
        return (
            f"<LoadMeter [{self.calls} calls, {self.errors} errors, {len(self.slices)} slices of {self.slice_s:g} s]>"
        )

    @property
    def errors(self) -> int:
        return self.calls - self.answered

    def take(self, call: CallTimes, step: int = 0) -> None:
        self.calls += 1
        self.attempts += call.attempts
        self.retries += max(0, call.attempts - 1)
        self.retry_s += call.retry_s
        self.own_delay.record(call.own_delay_s)
        self.held.record(call.held_s)
        counted = self._step(step, self.begins_s + call.due)
        counted.take(call)
        self._slice_of(self.begins_s + call.due).take(call)
        if not call.is_answered:
            self.failures[call.status] += 1
            return
        self.answered += 1
        self.cached += call.cached
        self.input_tokens += call.input_tokens
        self.output_tokens += call.output_tokens
        self.empty += call.is_empty
        self.cut += call.is_cut
        is_kept = self.promise is not None and self.promise.is_kept(call)
        self.kept += is_kept
        counted.take_answer(call, is_kept=is_kept)
        self.latency.record(call.latency_s)
        self.undelayed.record(call.latency_s - call.own_delay_s)
        for histogram, seconds in (
            (self.service, call.service_s),
            (self.first_token, call.first_token_s),
            (self.token, call.token_s),
        ):
            if seconds is not None:
                histogram.record(seconds)
        for gap in call.gaps:
            self.gap.record(gap)

    def merge(self, other: LoadMeter) -> None:
        """Adds the measurements of another meter with the same promise; raises ValueError for another. Slices are
        joined by time, steps by number."""
        if other.promise != self.promise:
            raise ValueError(f"promises differ: {self.promise} and {other.promise}; merge what was measured alike")
        for name in ("latency", "undelayed", "service", "first_token", "token", "gap", "own_delay", "held"):
            getattr(self, name).merge(getattr(other, name))
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.failures.update(other.failures)
        while self.slice_s < other.slice_s:
            self._widen()
        for part in other.slices.values():
            self._slice_of(part.begins_s).merge(part)
        for number, step in other.steps.items():
            self._step(number, step.begins_s).merge_step(step)

    def _step(self, number: int, begins_s: float) -> StepMeter:
        step = self.steps.get(number)
        if step is None:
            step = self.steps[number] = StepMeter(begins_s)
        return step

    def _slice_of(self, at: float) -> PartMeter:
        while (number := int(at / self.slice_s)) >= SLICES_MAX:
            self._widen()
        part = self.slices.get(number)
        if part is None:
            part = self.slices[number] = PartMeter(number * self.slice_s)
        return part

    def _widen(self) -> None:
        """Merges every two neighbouring slices into one."""
        narrow, self.slices = self.slices, {}
        self.slice_s *= 2
        for number, part in sorted(narrow.items()):
            if (wide := self.slices.get(number // 2)) is None:
                part.begins_s = number // 2 * self.slice_s
                self.slices[number // 2] = part
            else:
                wide.merge(part)
