"""The quotas of requests that are still possible, from the first burst that ended in a refusal on.

Owns their prior, what counts as proof of a kind of window, and when the limit and a bucket's capacity are known.
Headers and common sizes only say what to test first. Knows no clock and no provider.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Literal

import numpy as np

from .boxes import MINUTE_S, Boxes, Event, Numbers
from .choice import Cells, Means, RoundChoice, best, entropy, quantiles
from .hypotheses import FOUND_WITHIN, Hypotheses, crossed, normalized
from .steps import Window

# How fine the first boxes are, in logarithms of the limit and of a bucket's capacity, and in seconds.
_FIRST, _FIRST_CAPACITY, _FIRST_S = 0.03, 0.08, 3.0
# No bucket holds less than this share of a minute's worth: the smallest share in use is a tenth.
_SHARE_LEAST = 0.06
# Up to this limit each whole number is a box of its own; above it 3% is more than 4.
_EACH = 160
# Shares of a minute's worth that buckets commonly hold, and how much likelier each makes a box.
_COMMON, _COMMON_WEIGHT = (1.0, 0.5, 0.25, 0.1), 0.2
# Limits that headers report are likely, half and twice as much less so; so are windows that begin with the first call.
_TOLD = ((1.0, 4.0), (0.5, 1.0), (2.0, 1.0))
_WITH_THE_FIRST = 40.0
# Quotas of fewer requests a minute than this are rare.
_SLOWEST, _HARDLY = 4.5, 0.1
# A kind is known at this probability; a limit or capacity when this much of the probability lies within 4%; a window's
# limit may be below the number that is given with this probability.
_SURE, _LIKELY, _BELOW = 0.992, 0.9, 0.01
# Widths of cells in logarithms of the limit: windows' limits are told apart exactly, buckets' by half of what counts as
# found. Until the kind is known all buckets are one cell, or cells of a third where calls are few, so that none is
# wasted.
_APART, _APART_BUCKET, _APART_FEW, _FEW_IN_ALL = 0.01, 0.02, 0.3, 60
# This share of a bucket's weight is spread evenly, so that unlikely boxes are tried too.
_EVEN = 0.3
# After calls that were followed by a pause of `_GAP_S` have left a sliding minute, a round is tried `_AFTER_S` later.
_AFTER_S, _GAP_S = 0.4, 1.0
# The probabilities of a fixed window's end at the times that are tried.
_ENDED = (0.03, 0.1, 0.3, 0.5, 0.7, 0.9, 0.97)
# The bits that a second, and all calls that are left, must give: windows are told apart in few calls, so calls are
# cheap; measuring a bucket's rate can use any number of them.
_A_SECOND, _ALL_CALLS, _ALL_CALLS_BUCKET, _FEW = 0.004, 0.35, 3.0, 4.0
# An event that moves probabilities by less than this gave no information.
_CHANGED = 0.002
# An amount counts as surely left if two thirds of the probability have it; the least likely limit is the 30% quantile.
_OFTEN, _HARDLY_FEWER = 0.65, 0.3
# Calls risked at once: if probably hardly one is left; right after a refusal; else a third of all that were admitted.
_RISKED, _FEWEST, _FEW_OF, _FEW_ADMITTED = 16, 2, 3, 12
# A kind of window is believed once it has admitted this many calls again.
_SEVERAL = 3
_EPS = 1e-6


class RequestHypotheses(Hypotheses):
    """The possible quotas of requests. `burst` is every round from the first call to the first refusal; `told` is the
    limit a minute that headers report (None: none)."""

    def __init__(self, burst: Sequence[Event], told: float | None, late_s: float) -> None:
        self.late_s = late_s
        self._told = told
        self._kind_weights: dict[Window, float] | None = None
        admitted = int(sum(each.admitted for each in burst))
        self._admitted = admitted
        most = admitted + sum(each.maybe for each in burst)
        passed_s = burst[-1].by_s - burst[0].at_s
        # A burst may have spanned two windows of a minute.
        least = max(1, admitted // (1 + math.ceil(passed_s / MINUTE_S)))
        self._apart = _APART_FEW if most <= _FEW_IN_ALL else math.inf
        slowest = max(1.0, admitted / (1 + passed_s / MINUTE_S) - 1)
        self._first_s = (burst[0].at_s % MINUTE_S, burst[0].at_s % MINUTE_S + burst[0].by_s - burst[0].at_s)
        self._admitted_in_vain = self._released = self._possible = 0
        self._in_vain: list[int] = []
        self._is_empty = self._is_refused_again = False
        super().__init__(
            (
                self._buckets(slowest, (most + 1) / _SHARE_LEAST),
                self._windows("fixed", least, most),
                self._windows("sliding", least, most),
            )
        )
        for event in burst:
            self.learn(event._replace(told_s=None))
        # The burst doesn't tell the kinds apart: each is as likely as any other after it.
        totals = {each.kind: float(self._prior(each).sum()) for each in self.boxes}
        self._kind_weights = {kind: 1 / total for kind, total in totals.items() if total > 0}
        self._events[-1] = burst[-1]
        for each in self.boxes:
            each.hear(burst[-1])
        self._weigh()

    def _buckets(self, least: float, most: float) -> Boxes:
        limits = np.geomspace(least, most, math.ceil(math.log(most / least) / _FIRST) + 1)
        holds = np.geomspace(1.0, most + 2, max(3, math.ceil(math.log(most + 2) / _FIRST_CAPACITY)))
        boxes = crossed("bucket", limits[:-1], limits[1:], holds[:-1], holds[1:], self.late_s)
        boxes.keep((boxes.least <= boxes.high) & (boxes.most >= _SHARE_LEAST * boxes.low))
        return boxes

    def _windows(self, kind: Window, least: int, most: int) -> Boxes:
        if most <= _EACH:
            low = high = np.arange(float(least), most + 1)
        else:
            edges = np.geomspace(least, most + 0.5, math.ceil(math.log((most + 0.5) / least) / _FIRST) + 1)
            low, high = edges[:-1], edges[1:]
        if kind == "sliding":
            return crossed("sliding", low, high, np.zeros(1), np.zeros(1), self.late_s)
        begins = np.arange(0.0, MINUTE_S, _FIRST_S)
        return crossed("fixed", low, high, begins, begins + _FIRST_S, self.late_s)

    def _weigh(self) -> None:
        weights = [self._prior(each) for each in self.boxes]
        if self._kind_weights is not None:
            weights = [
                self._kind_weights[each.kind] * np.where(each.high < _SLOWEST, _HARDLY, 1.0) * one
                for each, one in zip(self.boxes, weights, strict=True)
            ]
        self.weights = normalized(weights)

    def _prior(self, boxes: Boxes) -> Numbers:
        """Returns the weight of each box before the kinds are compared, with the likelihood of its events included."""
        if boxes.kind == "bucket":
            weight = np.log(boxes.high / boxes.low)
        else:
            weight = np.where(boxes.high > boxes.low, boxes.high - boxes.low, 1.0)
        for times, much in _TOLD if self._told else ():
            told = times * (self._told or 0.0)
            weight = weight * np.where((boxes.low <= told + _EPS) & (boxes.high >= told - _EPS), 1 + much, 1.0)
        if boxes.kind == "bucket":
            share = np.log(boxes.most / boxes.least)
            for common in _COMMON:
                is_common = (boxes.least <= common * boxes.high) & (boxes.most >= common * boxes.low)
                share = share + np.where(is_common, _COMMON_WEIGHT, 0.0)
            weight = weight * share
        elif boxes.kind == "fixed":
            # Some providers' windows begin with the first call.
            first_s, by_s = self._first_s
            is_first = (boxes.least < by_s) & (boxes.most > first_s) | (boxes.least + MINUTE_S < by_s)
            weight = weight * (boxes.most - boxes.least) * np.where(is_first, _WITH_THE_FIRST, 1.0)
        return np.asarray(weight * boxes.chance, dtype=np.float64)

    def learn(self, event: Event) -> None:
        before = self._totals()
        super().learn(event)
        after = self._totals()
        is_vain = before.keys() == after.keys() and all(abs(before[kind] - after[kind]) < _CHANGED for kind in after)
        self._admitted_in_vain = event.calls if is_vain and event.refused is None else 0
        self._is_empty = event.refused is not None
        if self._kind_weights is not None:
            self._released += event.calls
            self._is_refused_again = self._is_refused_again or (self._released > 0 and self._is_empty)

    def _totals(self) -> dict[Window, float]:
        return {each.kind: float(one.sum()) for each, one in zip(self.boxes, self.weights, strict=True)}

    def note_sent(self, calls: int) -> None:
        """Records that a chosen round of this many calls was sent, and whether it ruled out 3% or more of the boxes."""
        possible = sum(len(each) for each in self.boxes)
        self._in_vain = [*self._in_vain, calls] if possible > 0.97 * self._possible else []
        self._possible = possible

    # What is known

    @property
    def kind(self) -> tuple[Window, float]:
        """The likeliest kind of window, and its probability (0 to 1)."""
        return max(self._totals().items(), key=lambda one: one[1])

    @property
    def is_bucket(self) -> bool:
        kind, likely = self.kind
        return kind == "bucket" and likely >= _SURE

    def window_limit(self, sure: float) -> int | None:
        """Returns the limit a minute of the likeliest kind of window, at most 4% below the true one with probability
        `sure`; None if it is not known that well."""
        place = int(np.argmax([float(weight.sum()) for weight in self.weights]))
        low, weight = self.boxes[place].low, self.weights[place] / self.weights[place].sum()
        order = np.argsort(low)
        low, sums = low[order], np.concatenate([[0.0], np.cumsum(weight[order])])
        first = np.searchsorted(low, low)
        whole = np.maximum(1.0, np.ceil(low - _EPS))
        last = np.searchsorted(low, np.maximum(whole, FOUND_WITHIN * whole) + _EPS, side="right")
        found = np.flatnonzero((sums[last] - sums[first] >= sure) & (sums[first] <= _BELOW))
        return int(whole[found[0]]) if len(found) else None

    def bucket_least(self, number: Literal["limit", "capacity"]) -> tuple[float, bool]:
        """Returns the least limit a minute, or the least capacity, that a bucket can have, and whether the true one is
        probably within 4% of it."""
        place = self.kinds.index("bucket")
        boxes, weight = self.boxes[place], self.weights[place]
        low, high = (boxes.low, boxes.high) if number == "limit" else (boxes.least, boxes.most)
        least = float(low.min())
        return least, bool(weight[high <= FOUND_WITHIN * least].sum() >= _LIKELY * weight.sum())

    @property
    def capacity_most(self) -> float:
        """The largest capacity, in calls at once, that a bucket can have."""
        return float(self.boxes[self.kinds.index("bucket")].most.max())

    @property
    def is_known(self) -> bool:
        """Whether kind and limit (and a bucket's capacity) are known, so that only the calls of `unproven` are left to
        send."""
        if self.is_void:
            return True
        kind, likely = self.kind
        if likely < _SURE:
            return False
        if kind == "bucket":
            return self.bucket_least("limit")[1] and self.bucket_least("capacity")[1]
        return self.window_limit(_SURE) is not None

    @property
    def unproven(self) -> int:
        """The number of calls that must still be admitted before a kind of window is believed: elimination alone is no
        proof. 0 for a sliding window that refused again."""
        if self.kind[0] == "sliding" and self._is_refused_again:
            return 0
        return max(0, min(_SEVERAL, 1 + self._admitted // 2) - self._released) if self._released else 1

    def likely_least(self) -> float:
        """Returns the 30% quantile of the limit a minute."""
        low, weight = np.concatenate([each.low for each in self.boxes]), np.concatenate(self.weights)
        return quantiles(low, weight, (_HARDLY_FEWER,))[0]

    # What to send

    def next(self, earliest_s: float, at_once: float, calls_left: float) -> RoundChoice | None:
        """Returns the calls that give the most information for their price; None if nothing gives any."""
        all_calls = _ALL_CALLS_BUCKET if self.is_bucket else _ALL_CALLS + _FEW / (calls_left + _FEW)
        call_price = all_calls / max(1.0, calls_left)
        most = at_once
        if not self.is_bucket:
            few = _FEWEST + (self._admitted > _FEW_ADMITTED)
            most = min(most, few if self._is_empty else max(_FEWEST, self._admitted // _FEW_OF))
        fewest = 1 + (2 * self._admitted_in_vain if self._admitted_in_vain > _SEVERAL and not self.is_bucket else 0)
        means = Means(
            lambda _: earliest_s, most, 1.0, 1.0, max(1, int(calls_left)), _A_SECOND, call_price,
            in_vain=self._in_vain if self.is_bucket else (), fewest=fewest,
        )  # fmt: skip
        chosen = best(self, means, self._turning_times(earliest_s))
        if self.is_bucket:
            return chosen
        emptying = self._emptying(earliest_s, min(at_once, means.calls_left), min(1.0, all_calls), call_price)
        return chosen if emptying is None or (chosen is not None and chosen.worth >= emptying.worth) else emptying

    def _emptying(self, at_s: float, most: float, all_calls: float, call_price: float) -> RoundChoice | None:
        """Returns a round of all calls that are surely left and one more, or None if none is. Soon after it a bucket
        admits one call again and a window none."""
        levels = self.levels(at_s)
        fewest, there = quantiles(levels.lower, levels.weight, (1 - _OFTEN, _OFTEN))
        count = math.floor(min(quantiles(levels.upper, levels.weight, (_OFTEN,))[0], 1.05 * there + 2))
        if fewest < 1:
            count = min(count, max(_RISKED, 3 * self._admitted_in_vain))
        if self._is_empty:
            count = min(count, _FEWEST)
        worth = entropy(np.bincount(levels.cell, levels.weight).astype(np.float64))
        worth -= min(all_calls, call_price * (count + 1))
        return (
            RoundChoice(at_s, int(max(1, min(count + 1, most))), 1.0, 0.0, worth) if there >= 1 and worth > 0 else None
        )

    def _turning_times(self, earliest_s: float) -> Iterable[float]:
        """Returns the times at which one more group of calls has surely left a sliding minute, and those at which fixed
        windows have ended with various probabilities."""
        taken = [each for each in self._events if each.calls]
        found = [taken[0].at_s + MINUTE_S - self.late_s]
        found += [each.by_s + MINUTE_S + _AFTER_S for each, after in pairwise(taken) if after.at_s > each.by_s + _GAP_S]
        for boxes, weight in zip(self.boxes, self.weights, strict=True):
            if boxes.kind == "fixed":
                ends = quantiles(earliest_s + ((boxes.least + boxes.most) / 2 - earliest_s) % MINUTE_S, weight, _ENDED)
                found += [*ends, *((one + other) / 2 for one, other in pairwise(ends))]
        return found

    def _tried(self) -> list[Numbers]:
        if not self.is_bucket:
            return self.weights
        count = sum(len(each) for each in self.weights)
        return [(1 - _EVEN) * each + _EVEN / count for each in self.weights]

    def _cells(self) -> list[Cells]:
        """Returns the cells by limit. Once the kind is known to be a bucket, they separate its limits and its
        capacities, except the number that is already known."""
        found: list[Cells] = []
        for each in self.boxes:
            apart = self._apart if each.kind == "bucket" else _APART
            cell = np.floor(np.log(each.low) / apart)
            if each.kind == "bucket" and self.is_bucket:
                limits = 0 if self.bucket_least("limit")[1] else np.floor(np.log(each.low) / _APART_BUCKET)
                holds = 0 if self.bucket_least("capacity")[1] else np.floor(np.log(each.least) / _APART_BUCKET)
                cell = np.asarray(limits * 1e4 + holds + np.zeros(len(each)))
            first = int(found[-1].max()) + 1 if found else 0
            found.append(first + np.unique(cell, return_inverse=True)[1].astype(np.intp))
        return found
