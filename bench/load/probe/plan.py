"""When to ask a bucket for how much next: what is likely to narrow its rate most for each call that it costs.

Pure arithmetic over guesses: a provider's own words and round numbers say where to look, never what is true.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from .rate import FillRate, Guess, Region, area, cut, levels_at, met, rates

_COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 36, 54, 80, 120, 180, 270, 400, 600, 900, 1_350, 2_000, 3_000)
_GRID = 14
_PARTS = 5
_DECILES = 8
_NEAR = (0.002, 0.006, 0.012)
# No outcome is ruled out by guesses alone.
_DOUBT = 0.06
# What a round costs beside its calls: where many are allowed, as many more.
_ROUND_COST, _ROUND_SHARE = 0.35, 0.5
_AREA_SHARE = 0.6
_FINE = 0.012
_OUTCOMES = 7


class Next(NamedTuple):
    """Ask for so many at this time since the start."""

    at_s: float
    calls: int


def guesses(
    fill: FillRate, spikes: Iterable[tuple[float, float]], level_of: Callable[[float], float], low: float
) -> list[Guess]:
    """Buckets that agree with all that was seen: at the rates that something points at, and evenly between the ends.
    `level_of`: what is left at the start if a bucket holds a whole number. `low`: hardly any is slower."""
    least, most = rates(fill.region)
    low = max(least, min(low, most / 2), most / 1e4)
    ratio = max(most / low, 1.0 + 1e-9)
    pointed = [(rate, weight) for rate, weight in spikes if least <= rate <= most]
    pointed += [(rate, 6.0 / (1 + len(fill.lines))) for rate in met(fill.lines) if least <= rate <= most]
    even = [(low * ratio ** ((place + 0.5) / _GRID), 3.0 / _GRID) for place in range(_GRID)]
    found = []
    for rate, weight in (*pointed, *even):
        span = levels_at(fill.region, rate)
        if span is None:
            continue
        lowest, highest = span
        found += [
            Guess(lowest + (highest - lowest) * (part + 0.5) / _PARTS, rate, weight / _PARTS) for part in range(_PARTS)
        ]
        told = [line.amount - rate * line.at_s for line in fill.lines]
        found += [Guess(level, rate, weight * 2) for level in told if lowest <= level <= highest]
        whole = level_of(rate)
        if lowest <= whole <= highest:
            found.append(Guess(whole, rate, weight * 2))
    total = sum(guess.weight for guess in found) or 1.0
    return [guess._replace(weight=guess.weight / total) for guess in found]


def best(
    fill: FillRate,
    likely: Sequence[Guess],
    *,
    earliest_s: float,
    latest_s: float,
    holds: float,
    counts: tuple[int, int],
) -> Next | None:
    """The time and the number that promise most, of numbers between those two; None: nothing does."""
    known = _size(fill.region)
    round_cost = max(_ROUND_COST, _ROUND_SHARE * sum(guess.rate * guess.weight for guess in likely))
    chosen, score = None, 0.0
    for count in _COUNTS:
        if not counts[0] <= count <= max(counts):
            continue
        for at_s in _times(fill, likely, count, earliest_s):
            if at_s > latest_s:
                continue
            gain = _gain(fill, likely, Next(at_s, count), known, holds) / (count + round_cost)
            if gain > score:
                chosen, score = Next(at_s, count), gain
    return chosen


def _times(fill: FillRate, likely: Sequence[Guess], count: int, earliest_s: float) -> list[float]:
    """When so much may be there: between the guesses, and just before and after the likeliest."""
    wanted = fill.taken + count
    crossings = sorted((max(0.0, (wanted - guess.level) / guess.rate), guess.weight) for guess in likely)
    found, passed, due = {earliest_s}, 0.0, 1
    for place, (at_s, weight) in enumerate(crossings):
        passed += weight
        while due <= _DECILES and passed >= due / (_DECILES + 1):
            then = crossings[min(place + 1, len(crossings) - 1)][0]
            found.add((at_s + then) / 2)
            due += 1
    for guess in sorted(likely, key=lambda each: -each.weight)[:3]:
        at_s = (wanted - guess.level) / guess.rate
        for near in _NEAR:
            found |= {at_s * (1 - near) - fill.late_s / 2, at_s * (1 + near), at_s * (1 - near) - fill.late_s}
    return [at_s for at_s in found if at_s >= earliest_s]


def _gain(fill: FillRate, likely: Sequence[Guess], step: Next, known: float, holds: float) -> float:
    """By how much the region shrinks, on average over what may come."""
    outcomes: dict[int, float] = {}
    for guess in likely:
        there = guess.level + guess.rate * (step.at_s + fill.late_s / 2) - fill.taken
        admitted = min(step.calls, max(0, math.floor(min(there, holds))))
        outcomes[admitted] = outcomes.get(admitted, 0.0) + guess.weight
    gain = 0.0
    spread = {admitted: weight * (1 - _DOUBT) for admitted, weight in outcomes.items()}
    for admitted in {0, step.calls} | {max(0, step.calls - 1)}:
        spread[admitted] = spread.get(admitted, 0.0) + _DOUBT / 3
    for admitted, weight in _few_of(spread):
        region = fill.region
        if admitted:
            region = cut(region, step.at_s + fill.late_s, fill.taken + admitted, 1)
        if admitted < step.calls and admitted < holds - 1 + (not admitted):
            region = cut(region, step.at_s, fill.taken + fill.maybe + admitted + 1 + fill.lost, -1)
        if region:
            gain += weight * (known - _size(region))
    return gain


def _few_of(spread: dict[int, float]) -> list[tuple[int, float]]:
    """Neighbours stand for each other where there are many."""
    ordered = sorted(spread.items())
    each = max(1, math.ceil(len(ordered) / _OUTCOMES))
    parts = [ordered[start : start + each] for start in range(0, len(ordered), each)]
    return [(part[len(part) // 2][0], sum(weight for _, weight in part)) for part in parts]


def _size(region: Region) -> float:
    """How much is left to find: what is finer than needed counts no more."""
    least, most = rates(region)
    ratio = math.log(max(most / max(least, most / 1e4), 1.0))
    return math.log(max(ratio, _FINE)) + _AREA_SHARE * math.log(max(area(region) / most, 1e-6))
