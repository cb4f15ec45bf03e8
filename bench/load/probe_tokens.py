"""Finds how many tokens a minute a provider admits, by few large calls, each round after a minute of rest.

A state machine as a generator, like that of requests, which comes before it. A round asks for one amount in few
calls: all admitted, and the quota is that at least. Knows no clock, no provider and no budget.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import NamedTuple

from .probe_result import Found
from .probe_steps import Ask, Seen, Step, Steps, Wait, told_wait_s

_REST_S = 61.5
_LEAST, _GROWTH = 1_000, 4.0
# How near below the truth is near enough, and where around a told number it is tried.
_SPAN = 1.028
_BELOW, _ABOVE = 0.985, 1.01
# A bucket that was emptied is not yet full again after so much of the time it takes.
_FILL_SHARE = 0.8
_ROUNDS_MAX = 30
# Two calls of a round each tell a bucket's rate to so much, one from either side.
_SLACK = 1.02
_LATE_S = 0.03
_SPLIT_MOST, _SPLIT_SHARE = 128, 8


class Told(NamedTuple):
    """What one round tells: so much was admitted, and less than `below` could have been."""

    admitted: float
    below: float
    one: float


class TokenProbe:
    """One model's tokens. `calls_left`: how many more its three minutes hold; `now_s`: the clock as requests left it;
    `at_once`: how many were once admitted together; `beside`: how many tokens a call had at the most beside those that
    were asked for."""

    def __init__(
        self, found: Found, *, now_s: float, tokens_a_call: int, at_once: int, calls_left: int | None, beside: int = 0
    ) -> None:
        self.found = found
        self._now = now_s
        self._a_call = tokens_a_call
        self._most = at_once
        self._calls_left = math.inf if calls_left is None else calls_left
        self._beside = beside
        self._ratio = 1.0
        self._pause_s, self._told_s = _REST_S, 0.0

    def steps(self) -> Steps:
        is_bucket = self.found.window == "bucket"
        share = 1.0
        if is_bucket and self.found.rpm and self.found.burst:
            share = min(1.0, self.found.burst / self.found.rpm)
        told = None if self.found.told_tpm is None else self.found.told_tpm * share
        least, most = yield from self._between(told)
        if not is_bucket:
            if _is_narrow(least, most):
                self.found.tpm = least
        elif math.isfinite(most) and least > 0:
            yield from self._fill(least, most, share)

    # What is sent

    def _count(self, tokens: float) -> int:
        """In how many calls: the more, the more exactly a refusal tells; where few are admitted, few."""
        fewest = max(1, math.ceil(tokens / self._a_call))
        rpm = self.found.rpm or 0
        return max(fewest, min(_SPLIT_MOST, int(rpm / _SPLIT_SHARE), int(self._at_once() / 2), int(tokens / 100)))

    def _at_once(self) -> float:
        bounds = (self.found.burst, self._most, self._calls_left)
        return min(math.inf if most is None else most for most in bounds)

    def _ask(self, tokens: float) -> Generator[Step, list[Seen], Told]:
        count = self._count(tokens)
        size = max(1, round((tokens / count - self._beside) / self._ratio))
        seen = yield Ask((size,) * count)
        self._calls_left -= count
        self._now = max(one.done_s for one in seen)
        self._told_s = told_wait_s(seen) or 0.0
        self._pause_s = max(_REST_S, self._told_s)
        counted = [one.answer.tokens for one in seen if one.is_admitted]
        if counted:
            self._ratio = max(0.1, (max(counted) - self._beside) / size)
        one = max(counted, default=math.ceil(size * self._ratio) + self._beside)
        is_refused = any(each.is_refused for each in seen)
        return Told(float(sum(counted)), sum(counted) + one if is_refused else math.inf, one)

    def _rest(self, seconds: float) -> Steps:
        self._now += seconds
        yield Wait(self._now)

    # What follows from it

    def _between(self, told: float | None) -> Generator[Step, list[Seen], tuple[float, float]]:
        """The least and the most that a rested provider can admit at once."""
        least, most = 0.0, math.inf
        for _ in range(_ROUNDS_MAX):
            tokens = _next_amount(least, most, told)
            if _is_narrow(least, most) or self._count(tokens) > self._at_once():
                break
            yield from self._rest(self._pause_s)
            made = yield from self._ask(tokens)
            if math.isinf(made.below):
                self.found.tested_tpm = max(self.found.tested_tpm, int(made.admitted))
            least, most = max(least, made.admitted), min(most, made.below)
        return least, most

    def _fill(self, least: float, most: float, share: float) -> Steps:
        """What comes back into an empty bucket in the time that fills most of it."""
        guess = most / share
        for _ in range(_ROUNDS_MAX):
            if self._count(2.2 * most) > self._at_once():
                return
            yield from self._rest(self._pause_s)
            # What was refused was decided as it was sent, not as it was answered.
            emptied_s = self._now
            emptied = yield from self._ask(1.04 * most)
            if math.isinf(emptied.below):
                return
            begun_s = max(emptied_s + 60 * share * _FILL_SHARE, self._now + self._told_s)
            yield from self._rest(begun_s - self._now)
            begun_s = self._now
            made = yield from self._ask(1.06 * guess * (begun_s - emptied_s) / 60)
            if math.isfinite(made.below):
                elapsed_s = begun_s - emptied_s + _LATE_S
                least = made.admitted - emptied.one
                if _is_narrow(least / elapsed_s, made.below / elapsed_s / _SLACK):
                    self.found.tpm = 60 * least / elapsed_s
                return
            guess *= 1.3


def _is_narrow(least: float, most: float) -> bool:
    return least > 0 and most <= _SPAN * least


def _next_amount(least: float, most: float, told: float | None) -> float:
    """A number that was told is tried from both sides; without one, ever more, and then the middle."""
    if told is not None:
        for tried in (told * _BELOW, told * _ABOVE):
            if least * 1.001 < tried < most * 0.999:
                return tried
    if math.isinf(most):
        return max(_LEAST, least * _GROWTH)
    return math.sqrt(max(least, most / _GROWTH) * most)
