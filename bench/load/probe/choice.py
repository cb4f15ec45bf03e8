"""Chooses the next calls of a probe of tokens: when, how many and how large, so that they tell most about the limit.

Pure: what is believed and what may be sent come in. Knows no clock and no provider.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from copy import copy
from typing import NamedTuple

import numpy as np

from .belief import Belief
from .boxes import Boxes, Event, Numbers

_WAITS_S = (0.0, 0.3, 1.0, 3.0, 6.0, 12.0, 24.0, 40.0, 62.0)
_QUANTILES = (0.06, 0.15, 0.28, 0.4, 0.5, 0.6, 0.72, 0.85, 0.94)
# Limits are told apart by so much, in logarithms; of many calls at once, so many outcomes.
_APART, _OUTCOMES, _BINS = 0.01, 64, 1_024
# What a second and a call must bring, in bits: a call the more, the fewer there are.
_A_SECOND, _ALL_CALLS = 0.002, 6.0
_SPLIT_MOST, _SAME = 24, 0.004
# Where calls are few, amounts just below and above a likely one are tried too.
_FEW, _NEARLY = 40, (0.985, 0.996, 1.0, 1.004, 1.012)
_ENOUGH, _TELLING, _LIKELY = 0.01, 0.4, 0.5
# An answer takes about so long.
_LATER_S = 0.5


class Means(NamedTuple):
    """What may be sent: `ready(count)` is the first moment for so many calls at once. `in_vain`: amounts that told
    nothing just now."""

    ready: Callable[[int], float]
    at_once: int
    tokens_a_call: float
    least_a_call: float
    calls_left: float
    tokens_at_once: float = math.inf
    in_vain: tuple[float, ...] = ()


class Choice(NamedTuple):
    at_s: float
    calls: int
    a_call: float
    bits: float


class Levels(NamedTuple):
    """What may be left at one moment, for every limit and kind."""

    lower: Numbers
    upper: Numbers
    weight: Numbers
    place: Numbers


def choose(belief: Belief, means: Means) -> Choice:
    """What tells most by itself, or what uses up what is surely there, if that lets the calls after it tell more."""
    earliest = means.ready(1)
    best = _best(belief.boxes, belief.weights, earliest, means)
    if best is not None and best.bits > _TELLING:
        return best
    drain = _draining(belief, earliest, means)
    if best is None:
        return drain
    emptied = [copy(each) for each in belief.boxes]
    event = Event(drain.at_s, drain.at_s + belief.late_s, drain.calls * drain.a_call, drain.calls, None, drain.at_s)
    left = [np.where(each.take(event), weight, 0.0) for each, weight in zip(emptied, belief.weights, strict=True)]
    likely = sum(float(weight.sum()) for weight in left)
    if likely < _LIKELY:
        return best
    left = [weight / likely for weight in left]
    fewer = means._replace(calls_left=means.calls_left - drain.calls)
    after = _best(emptied, left, drain.at_s + _LATER_S, fewer)
    return best if after is None or after.bits * best.calls < 1.5 * best.bits * (drain.calls + after.calls) else drain


def _draining(belief: Belief, at_s: float, means: Means) -> Choice:
    """What is there in any case, or in most, or as much as can be sent at once."""
    lower = [each.levels(at_s)[0] for each in belief.boxes]
    likely = max(_middle(level, weight) for level, weight in zip(lower, belief.weights, strict=True))
    largest = min(means.tokens_at_once, means.at_once * means.tokens_a_call)
    amount = 0.995 * min(float(level.min()) for level in lower)
    if amount < 0.5 * min(likely, largest):
        amount = 0.9 * likely
    amount = min(largest, max(means.least_a_call, amount))
    count = max(1, math.ceil(amount / means.tokens_a_call - 1e-9))
    return Choice(max(at_s, means.ready(count)), count, amount / count, 0.0)


def _middle(level: Numbers, weight: Numbers) -> float:
    order = np.argsort(level)
    sums = np.cumsum(weight[order])
    return float(level[order[min(len(order) - 1, int(np.searchsorted(sums, sums[-1] / 2)))]])


def _best(boxes: list[Boxes], weights: list[Numbers], earliest: float, means: Means) -> Choice | None:
    """None: nothing that can be sent would tell anything."""
    best, best_worth = None, -math.inf
    largest = min(means.tokens_at_once, means.at_once * means.tokens_a_call)
    a_second, a_call = _A_SECOND * min(1.0, means.calls_left / 20), _ALL_CALLS / max(1.0, means.calls_left)
    nearly = _NEARLY if means.calls_left < _FEW else (1.0,)
    for wait_s in _WAITS_S:
        at_s = earliest + wait_s
        levels = _levels_at(boxes, weights, at_s)
        tried = {round(near * middle, 1) for middle in _quantiles(levels) for near in nearly}
        for amount in sorted({min(largest, max(means.least_a_call, one)) for one in tried}):
            if any(abs(amount / told_nothing - 1) < _SAME for told_nothing in means.in_vain):
                continue
            for count in _counts(amount, means):
                if means.ready(count) > at_s + 1e-6:
                    continue
                told = bits(levels, amount / count, count)
                worth = told - a_second * wait_s - a_call * count
                if told > _ENOUGH and worth > best_worth:
                    best, best_worth = Choice(at_s, count, amount / count, told), worth
    return best


def _counts(amount: float, means: Means) -> Iterable[int]:
    """As few calls as can hold it, or some more, which tell more."""
    fewest = max(1, math.ceil(amount / means.tokens_a_call - 1e-9))
    most = min(means.at_once, _SPLIT_MOST, int(means.calls_left / 24), int(amount / max(200.0, means.least_a_call)))
    return sorted({fewest, *(count for count in (4, 12, most) if fewest < count <= most)})


def _levels_at(boxes: list[Boxes], weights: list[Numbers], at_s: float) -> Levels:
    levels = [each.levels(at_s) for each in boxes]
    low, weight = np.log(np.concatenate([each.low for each in boxes])), np.concatenate(weights)
    # The likeliest limit stands in the middle of its place: to tell it from its like is worth nothing.
    place = np.floor((low - low[weight.argmax()]) / _APART + 0.5).astype(np.intp)
    return Levels(
        np.concatenate([lower for lower, _ in levels]),
        np.concatenate([upper for _, upper in levels]),
        weight,
        place - place.min(),
    )


def _quantiles(levels: Levels) -> list[float]:
    """Amounts that are as likely to be there as each of these shares says."""
    upper = np.minimum(levels.upper, 4 * levels.lower + 1)
    middle = np.log((levels.lower + np.maximum(upper, levels.lower)) / 2 + 1)
    least, most = float(middle.min()), float(middle.max())
    if most <= least:
        return [math.exp(least) - 1]
    bins = ((middle - least) * ((_BINS - 1) / (most - least))).astype(np.intp)
    sums = np.cumsum(np.bincount(bins, levels.weight, _BINS))
    places = np.searchsorted(sums, np.array(_QUANTILES) * sums[-1])
    return [math.exp(least + (place + 0.5) * (most - least) / (_BINS - 1)) - 1 for place in places]


def bits(levels: Levels, a_call: float, count: int) -> float:
    """How much the number of those admitted would tell of the limit."""
    share = max(1, math.ceil((count + 1) / _OUTCOMES))
    kinds = count // share + 1
    joint = np.zeros(kinds * (int(levels.place.max()) + 1))
    for level in (levels.lower, levels.upper):
        admitted = np.clip(level / a_call, 0, count).astype(np.intp) // share
        joint += np.bincount(levels.place * kinds + admitted, levels.weight / 2, len(joint))
    table = joint.reshape(-1, kinds)
    return entropy(table.sum(axis=0)) + entropy(table.sum(axis=1)) - entropy(joint)


def entropy(weights: Numbers) -> float:
    shares = weights[weights > 0]
    return float(-(shares * np.log2(shares)).sum())
