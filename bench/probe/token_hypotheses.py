"""The limits of tokens that are still possible, and the calls that give most information on them.

Owns their prior: round numbers, usual tokens to a request, headers and waits. None of these makes a limit impossible,
and none keeps one possible. Knows no clock and no provider.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from copy import copy

import numpy as np

from .boxes import KINDS, Boxes, Event, Numbers
from .choice import Cells, Levels, Means, RoundChoice, best, quantiles
from .hints import Guess, Guesses
from .hypotheses import NO_LIMIT, Hypotheses, crossed, levels_of, normalized
from .phase import ANY, Spans
from .steps import Window

# How fine the first boxes are, in logarithms of the limit and of a bucket's share, and in seconds.
_FIRST, _FIRST_SHARE, _FIRST_S = 0.03, 0.08, 3.0
# Shares of a minute's worth that a bucket may hold.
_SHARES = (0.02, 1.0)
# Providers' numbers are round: how common each first pair of digits is among published limits of tokens.
_MANTISSAS = {1.0: 4, 1.2: 1, 1.5: 2, 1.6: 1, 2.0: 4, 2.5: 2, 3.0: 2, 4.0: 2, 5.0: 3, 6.0: 2, 8.0: 2, 9.0: 1}
# Shares that buckets commonly hold.
_COMMON_SHARES = (1.0, 0.5, 0.25, 0.1)
# The weight of "no limit", by whether headers report one (None: there are no headers).
_NONE_WEIGHTS = {None: 0.4, False: 1.5, True: 0.05}
# This share of the weight is spread evenly over the limits, so that an unlikely one is tried too.
_EVEN = 0.3
# Until it is empty a bucket that fills fast and holds little looks like one that fills slowly and holds much: limits up
# to this many times the largest of a window are kept for it.
_BEYOND = 30.0
# Limits within 1% of each other need not be told apart.
_APART = 0.01
# Published limits lie around 500 tokens a request, two thirds within a factor of exp(1.3); a tenth anywhere.
_USUAL, _USUAL_SPREAD, _UNUSUAL = 500.0, 1.3, 0.1
# An answer takes about this long; a drain is under way until then.
_LATER_S = 0.5
# A choice that gives this many bits is taken at once; a drain only if its assumption is likely, and if the calls after
# it give half as much again for each call.
_TELLING, _LIKELY, _BETTER = 0.4, 0.5, 1.5


class TokenHypotheses(Hypotheses):
    """The possible limits: from `least` to `most` tokens a minute, or none, under each of these kinds of window; a
    fixed window begins within `phases`, spans of seconds in the clock's minute."""

    def __init__(self, kinds: Iterable[Window], least: float, most: float, late_s: float, phases: Spans = ANY) -> None:
        self.late_s = late_s
        self._phases = phases
        self.least, self.most = least, most
        self._guesses = Guesses()
        super().__init__(self._first(kind) for kind in kinds)

    def _first(self, kind: Window) -> Boxes:
        # Until it refills, a bucket with a high rate and a small capacity looks like one with a low rate and a large
        # capacity.
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
        if kind == "bucket":
            holds = np.outer(low, least).ravel(), np.outer(high, most).ravel()
            return KINDS[kind](np.repeat(low, len(least)), np.repeat(high, len(least)), *holds, self.late_s)
        return crossed(kind, low, high, least, most, self.late_s)

    # Where to look

    def guess(self, guesses: Guesses) -> None:
        self._guesses = guesses
        self._weigh()

    def _weigh(self) -> None:
        """Sets `weights` from the prior, mixed with an even weight over all limits, so that each possible one is
        tested; sets `limited`, the probability of a limit that matters."""
        likely = normalized([self._weight_of(each) for each in self.boxes])
        # The probability of a limit that matters.
        self.limited = sum(float(one[each.low < self.most].sum()) for one, each in zip(likely, self.boxes, strict=True))
        even = normalized(_spread(self.boxes))
        self.weights = [(1 - _EVEN) * one + _EVEN * other for one, other in zip(likely, even, strict=True)]

    def _weight_of(self, boxes: Boxes) -> Numbers:
        """Returns the prior weight of each box: half spread over all numbers, half over round ones, more where a guess
        supports one."""
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
            middle = np.sqrt(boxes.low * high)
            # Without a limit the share still is that of the first boxes.
            most = np.where(is_none, boxes.least * math.exp(_FIRST_SHARE), boxes.most) / middle
            least = boxes.least / middle
            second = np.log(most / least) / math.log(_SHARES[1] / _SHARES[0])
            common = tuple(Guess(one * 0.98, one * 1.001, 0.25) for one in _COMMON_SHARES)
            for guess in (*common, *guesses.shares):
                second = second + guess.weight * _overlap(least, most, guess)
            weight = weight * second
            for guess in guesses.capacities:
                is_so = (boxes.least < guess.high) & (boxes.most > guess.low)
                weight = weight * np.where(is_so, 1.0, 1 / (1 + 5 * guess.weight))
        elif boxes.kind == "fixed":
            weight = weight * (boxes.most - boxes.least)
        return np.asarray(weight, dtype=np.float64)

    def _cells(self) -> list[Cells]:
        return cells_of(self.boxes, self.weights)

    # What to send

    def choose(self, means: Means) -> RoundChoice:
        """Returns the round that gives the most information by itself, or a drain (using up what is surely left) if the
        calls after it then give more."""
        chosen = best(self, means)
        if chosen is not None and chosen.bits > _TELLING:
            return chosen
        drain = self._draining(means)
        if chosen is None:
            return drain
        drained = _DrainOutcome(self, drain)
        if drained.likely < _LIKELY:
            return chosen
        later_s = drain.at_s + _LATER_S
        later = means._replace(
            ready=lambda count: max(later_s, means.ready(count)), calls_left=means.calls_left - drain.calls
        )
        after = best(drained, later)
        if after is None or after.bits * chosen.calls < _BETTER * chosen.bits * (drain.calls + after.calls):
            return chosen
        return drain

    def _draining(self, means: Means) -> RoundChoice:
        """Returns a round that uses up what every hypothesis has left, or what most of them have, within what may be
        sent at once."""
        lower = [each.levels(means.ready(1))[0] for each in self.boxes]
        likely = max(quantiles(level, weight, (0.5,))[0] for level, weight in zip(lower, self.weights, strict=True))
        largest = min(means.amount_most, means.at_once * means.largest)
        amount = 0.995 * min(float(level.min()) for level in lower)
        if amount < 0.5 * min(likely, largest):
            amount = 0.9 * likely
        amount = min(largest, max(means.smallest, amount))
        count = max(1, math.ceil(amount / means.largest - 1e-9))
        return RoundChoice(means.ready(count), count, amount / count, 0.0)


class _DrainOutcome:
    """The hypotheses after a drain that was admitted, and the probability of that."""

    def __init__(self, hypotheses: TokenHypotheses, drain: RoundChoice) -> None:
        self._boxes = [copy(each) for each in hypotheses.boxes]
        until_s, amount = drain.at_s + hypotheses.late_s, drain.calls * drain.a_call
        event = Event(drain.at_s, until_s, amount, drain.calls, None, drain.at_s)
        pairs = zip(self._boxes, hypotheses.weights, strict=True)
        left = [np.where(each.take(event), weight, 0.0) for each, weight in pairs]
        self.likely = sum(float(weight.sum()) for weight in left)
        self._weights = normalized(left)

    def levels(self, at_s: float) -> Levels:
        return levels_of(self._boxes, self._weights, cells_of(self._boxes, self._weights), at_s).sampled()


def cells_of(boxes: list[Boxes], weights: list[Numbers]) -> list[Cells]:
    """Returns the cell number of each box: limits within 1% of each other share one. The likeliest limit lies in the
    middle of its cell, since to tell it from its neighbours is worth nothing."""
    lows = [np.log(each.low) for each in boxes]
    middle = np.concatenate(lows)[np.concatenate(weights).argmax()]
    cells = [np.floor((low - middle) / _APART + 0.5).astype(np.intp) for low in lows]
    first = min(int(cell.min()) for cell in cells if len(cell))
    return [cell - first for cell in cells]


def _spread(boxes: list[Boxes]) -> list[Numbers]:
    """Returns weights under which each limit counts alike, however many boxes hold it; "no limit" gets 0."""
    places = [np.floor(np.log(each.low) / _APART).astype(np.intp) for each in boxes]
    first = min((int(place.min()) for place in places if len(place)), default=0)
    counts = np.bincount(np.concatenate([place - first for place in places])) if places else np.zeros(1)
    return [(each.high < NO_LIMIT) / counts[place - first] for each, place in zip(boxes, places, strict=True)]


def _usual(a_request: Numbers) -> Numbers:
    """Returns how usual each number of tokens a request is among providers' quotas (0.1 to 1.1)."""
    off = np.log(a_request / _USUAL) / _USUAL_SPREAD
    return np.asarray(_UNUSUAL + np.exp(-0.5 * off * off), dtype=np.float64)


def _overlap(low: Numbers, high: Numbers, guess: Guess) -> Numbers:
    common = np.minimum(high, guess.high) - np.maximum(low, guess.low)
    return np.asarray(np.maximum(common, 0.0) / (guess.high - guess.low), dtype=np.float64)


def _round_share(low: Numbers, high: Numbers, least: float, most: float) -> Numbers:
    """Returns for each box the share of all round numbers that lies in it; rounder numbers count more."""
    tens = range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 1)
    numbers = [(mantissa * 10.0**ten, weight) for ten in tens for mantissa, weight in _MANTISSAS.items()]
    numbers = [(number, weight) for number, weight in numbers if least <= number <= most] or [(least, 1)]
    places = np.array([number for number, _ in numbers])
    sums = np.concatenate([[0.0], np.cumsum([weight for _, weight in numbers])])
    share = sums[np.searchsorted(places, high, side="left")] - sums[np.searchsorted(places, low, side="left")]
    return np.asarray(share / sums[-1], dtype=np.float64)
