"""Which token limits are still possible after all that was seen, and how likely each is held to be.

Guesses (round numbers, what headers tell) only say where to look first: none makes a limit impossible, and none keeps
one possible. Knows no clock and no provider.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from .boxes import KINDS, Boxes, Numbers
from .hints import Guess, Guesses
from .phase import ANY, Spans
from .possible import NO_LIMIT, Possible, normal
from .steps import Window

# How fine the first boxes are, in logarithms of the limit and of a bucket's share, and in seconds.
_FIRST, _FIRST_SHARE, _FIRST_S = 0.03, 0.08, 3.0
_SHARES = (0.02, 1.0)
_MANTISSAS = {1.0: 4, 1.2: 1, 1.5: 2, 1.6: 1, 2.0: 4, 2.5: 2, 3.0: 2, 4.0: 2, 5.0: 3, 6.0: 2, 8.0: 2, 9.0: 1}
_COMMON_SHARES = (1.0, 0.5, 0.25, 0.1)
# That there is none, by whether headers tell one.
_NONE_WEIGHTS = {None: 0.4, False: 1.5, True: 0.05}
_EVEN, _BEYOND, _APART = 0.3, 30.0, 0.01
_USUAL, _USUAL_SPREAD, _UNUSUAL = 500.0, 1.3, 0.1


class Belief(Possible):
    """Limits from `least` to `most` tokens a minute, or none, under each of these kinds of window; fixed ones begin
    within `phases`."""

    def __init__(self, kinds: Iterable[Window], least: float, most: float, late_s: float, phases: Spans = ANY) -> None:
        self.late_s = late_s
        self._phases = phases
        self.least, self.most = least, most
        self._guesses = Guesses()
        super().__init__(self._first(kind) for kind in kinds)

    def _first(self, kind: Window) -> Boxes:
        # A bucket that holds little of much looks like one that holds much of little: until it fills.
        top = self.most * (_BEYOND if kind == "bucket" else 1)
        edges = np.geomspace(self.least, top, max(2, math.ceil(math.log(top / self.least) / _FIRST)))
        low, high = edges, np.append(edges[1:], NO_LIMIT)
        match kind:
            case "bucket":
                shares = np.geomspace(*_SHARES, math.ceil(math.log(_SHARES[1] / _SHARES[0]) / _FIRST_SHARE))
                least, most = shares[:-1], shares[1:]
            case "fixed":
                least, most = (
                    np.array([first for first, _ in self._phases]),
                    np.array([last for _, last in self._phases]),
                )
                if self._phases == ANY:
                    least, most = np.arange(0.0, 60.0, _FIRST_S), np.arange(_FIRST_S, 60.1, _FIRST_S)
            case "sliding":
                least = most = np.zeros(1)
        count = len(least)
        return KINDS[kind](
            np.repeat(low, count),
            np.repeat(high, count),
            np.tile(least, len(low)),
            np.tile(most, len(low)),
            self.late_s,
        )

    # Where to look

    def guess(self, guesses: Guesses) -> None:
        self._guesses = guesses
        self._weigh()

    def _weigh(self) -> None:
        """Nothing that is possible is left quite without weight, lest nobody tries it."""
        likely = normal([self._weight_of(each) for each in self.boxes])
        # How likely it is that there is a limit that matters.
        self.limited = sum(float(one[each.low < self.most].sum()) for one, each in zip(likely, self.boxes, strict=True))
        even = normal(_spread(self.boxes))
        self.weights = [(1 - _EVEN) * one + _EVEN * other for one, other in zip(likely, even, strict=True)]

    def _weight_of(self, boxes: Boxes) -> Numbers:
        """Of all numbers half, of round ones half; of those that something speaks for, more."""
        guesses = self._guesses
        is_none = boxes.high >= NO_LIMIT
        high = np.where(is_none, boxes.low * 1.001, boxes.high)
        weight = np.log(high / boxes.low) / math.log(self.most / self.least)
        weight = weight + _round_share(boxes.low, high, self.least, self.most)
        if guesses.requests:
            weight = weight * _usual(boxes.low / guesses.requests)
        for guess in guesses.limits:
            weight = weight + guess.weight * _overlap(boxes.low, high, guess)
        weight = np.where(is_none, _NONE_WEIGHTS[guesses.is_told], weight)
        if boxes.kind == "bucket":
            second = np.log(boxes.most / boxes.least) / math.log(_SHARES[1] / _SHARES[0])
            common = tuple(Guess(one * 0.98, one * 1.001, 0.25) for one in _COMMON_SHARES)
            for guess in (*common, *guesses.shares):
                second = second + guess.weight * _overlap(boxes.least, boxes.most, guess)
            weight = weight * second
            for guess in guesses.capacities:
                is_so = (boxes.low * boxes.least < guess.high) & (high * boxes.most > guess.low)
                weight = weight * np.where(is_so, 1.0, 1 / (1 + 5 * guess.weight))
        elif boxes.kind == "fixed":
            weight = weight * (boxes.most - boxes.least)
        return np.asarray(weight, dtype=np.float64)


def _spread(boxes: list[Boxes]) -> list[Numbers]:
    """Each limit as much as any other, in however many boxes it stands; none is not one."""
    places = [np.floor(np.log(each.low) / _APART).astype(np.intp) for each in boxes]
    first = min((int(place.min()) for place in places if len(place)), default=0)
    counts = np.bincount(np.concatenate([place - first for place in places])) if places else np.zeros(1)
    return [(each.high < NO_LIMIT) / counts[place - first] for each, place in zip(boxes, places, strict=True)]


def _usual(a_request: Numbers) -> Numbers:
    """How usual so many tokens to a request are among providers' quotas."""
    off = np.log(a_request / _USUAL) / _USUAL_SPREAD
    return np.asarray(_UNUSUAL + np.exp(-0.5 * off * off), dtype=np.float64)


def _overlap(low: Numbers, high: Numbers, guess: Guess) -> Numbers:
    common = np.minimum(high, guess.high) - np.maximum(low, guess.low)
    return np.asarray(np.maximum(common, 0.0) / (guess.high - guess.low), dtype=np.float64)


def _round_share(low: Numbers, high: Numbers, least: float, most: float) -> Numbers:
    """Which share of all round numbers, the rounder the more, lies in each box."""
    tens = range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 1)
    numbers = [(mantissa * 10.0**ten, weight) for ten in tens for mantissa, weight in _MANTISSAS.items()]
    numbers = [(number, weight) for number, weight in numbers if least <= number <= most] or [(least, 1)]
    places = np.array([number for number, _ in numbers])
    sums = np.concatenate([[0.0], np.cumsum([weight for _, weight in numbers])])
    share = sums[np.searchsorted(places, high, side="left")] - sums[np.searchsorted(places, low, side="left")]
    return np.asarray(share / sums[-1], dtype=np.float64)
