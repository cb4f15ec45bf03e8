"""Measurements of one model in a load test: histograms of its times, failures by kind, tokens, goodput.

Of fixed size: with more calls, slices of time get wider, not more. Takes finished calls; knows no clock and no engine.
"""

from __future__ import annotations

from collections import Counter

from msgspec import Struct

from .histogram import Histogram
from .timing import CallTimes

SLICES_MAX = 128


class Promise(Struct, frozen=True):
    """The times, in seconds, that a good answer keeps: first token, whole answer, and each token after the first; None:
    not promised. Goodput counts the answers that keep all of them."""

    first_token_s: float | None = None
    latency_s: float | None = None
    token_s: float | None = None

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
    """The measurements of the calls due in one slice of time. Its histograms keep `digits` significant digits."""

    def __init__(self, digits: int = 2) -> None:
        self.calls = 0
        self.failures: Counter[str] = Counter()
        self.latency = Histogram(digits)
        self.first_token = Histogram(digits)

    @property
    def errors(self) -> int:
        return self.failures.total()

    @property
    def answered(self) -> int:
        return self.calls - self.errors

    def add(self, call: CallTimes) -> None:
        self.calls += 1
        if not call.is_answered:
            self.failures[call.status] += 1
            return
        self.latency.record(call.latency_s)
        if call.first_token_s is not None:
            self.first_token.record(call.first_token_s)

    def merge(self, other: PartMeter) -> None:
        """Adds the measurements of a meter of the same kind: histograms, failures by kind, and counts."""
        for name, mine in vars(self).items():
            theirs = getattr(other, name)
            if isinstance(mine, Histogram):
                mine.merge(theirs)
            elif isinstance(mine, Counter):
                mine.update(theirs)
            elif isinstance(mine, int):
                setattr(self, name, mine + theirs)


class StepMeter(PartMeter):
    """The measurements of the calls due in one step of the rate: beside those of a slice, the answers that kept the
    promise, their tokens, and the times of tokens and pieces."""

    # Two digits for these times, since a plan may have a thousand steps.
    def __init__(self, digits: int = 2) -> None:
        super().__init__(digits=3)
        self.kept = 0
        self.output_tokens = 0
        self.token = Histogram(digits)
        self.gap = Histogram(digits)

    def count(self, call: CallTimes, *, is_kept: bool) -> None:
        self.add(call)
        if not call.is_answered:
            return
        self.kept += is_kept
        self.output_tokens += call.output_tokens
        if call.token_s is not None:
            self.token.record(call.token_s)
        for gap in call.gaps:
            self.gap.record(gap)


class LoadMeter(StepMeter):
    """The measurements of one model. Latency, first token and goodput count from when a call was due, `service` from
    when it was sent; `undelayed` is latency without the delay of our own loop. Times are those of answers; unanswered
    calls are counted by kind. `slices` are numbered from the start of the test, each `slice_s` seconds long."""

    def __init__(self, promise: Promise | None = None) -> None:
        super().__init__(digits=3)
        self.promise = promise
        self.service = Histogram()
        self.undelayed = Histogram()
        self.own_delay = Histogram()
        self.held = Histogram()
        self.attempts = 0
        self.input_tokens = 0
        self.empty = 0
        self.cut = 0
        self.slice_s = 1.0
        self.slices: dict[int, PartMeter] = {}
        self.steps: dict[int, StepMeter] = {}

    def __repr__(self) -> str:
        return (
            f"<LoadMeter [{self.calls} calls, {self.errors} errors, {len(self.slices)} slices of {self.slice_s:g} s]>"
        )

    def take(self, call: CallTimes, step: int = 0) -> None:
        is_kept = self.promise is not None and self.promise.is_kept(call)
        self.count(call, is_kept=is_kept)
        self._step(step).count(call, is_kept=is_kept)
        self._slice_at(call.due).add(call)
        self.attempts += call.attempts
        self.own_delay.record(call.own_delay_s)
        self.held.record(call.held_s)
        if not call.is_answered:
            return
        self.input_tokens += call.input_tokens
        self.empty += call.is_empty
        self.cut += call.is_cut
        self.undelayed.record(call.latency_s - call.own_delay_s)
        if call.service_s is not None:
            self.service.record(call.service_s)

    def merge(self, other: PartMeter) -> None:
        """Adds the measurements of another meter with the same promise. Slices are joined by time, steps by number."""
        assert isinstance(other, LoadMeter) and other.promise == self.promise
        super().merge(other)
        while self.slice_s < other.slice_s:
            self._widen()
        for number, part in other.slices.items():
            self._slice_at(number * other.slice_s).merge(part)
        for number, step in other.steps.items():
            self._step(number).merge(step)

    def _step(self, number: int) -> StepMeter:
        step = self.steps.get(number)
        if step is None:
            step = self.steps[number] = StepMeter()
        return step

    def _slice_at(self, at: float) -> PartMeter:
        while (number := int(at / self.slice_s)) >= SLICES_MAX:
            self._widen()
        part = self.slices.get(number)
        if part is None:
            part = self.slices[number] = PartMeter()
        return part

    def _widen(self) -> None:
        """Merges every two neighbouring slices into one."""
        narrow, self.slices = self.slices, {}
        self.slice_s *= 2
        for number, part in sorted(narrow.items()):
            if (wide := self.slices.get(number // 2)) is None:
                self.slices[number // 2] = part
            else:
                wide.merge(part)
