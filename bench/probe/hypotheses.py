"""The quotas that are still possible after everything sent and answered, and how likely each of them is.

A grid of boxes over (kind of window, limit a minute, second unknown), refined as boxes are ruled out. Priors only say
which to test first: no header and no round number makes a quota impossible. Knows no clock and no provider.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

import numpy as np

from .boxes import KINDS, Boxes, Event, Mask, Numbers
from .choice import Cells, Levels
from .steps import Window

# Boxes are halved until they are this fine, in logarithms of the limit and of a bucket's capacity, and in seconds: a
# tenth and less of the 4% within which a limit counts as found, since errors of a box add up over the rounds.
_FINEST, _FINEST_CAPACITY, _FINEST_S = 0.0015, 0.003, 0.01
# Halving stops at this number of boxes: replaying all rounds over 3,000 takes some 10 ms.
_MANY = 3_000
# Stands for "no limit": far above any quota.
NO_LIMIT = 1e15
# A limit is found when the boxes lie within this ratio: 4%, so that the ledger's 0.5% still leaves 95% of the quota.
FOUND_WITHIN = 1.04


class Hypotheses(ABC):
    """The quotas that are still possible: boxes of each kind of window, and `weights`, their probabilities, which sum
    to 1 over all kinds."""

    def __init__(self, boxes: Iterable[Boxes]) -> None:
        self._events: list[Event] = []
        self.boxes = [each for each in boxes if len(each)]
        self.weights: list[Numbers] = []
        self._weigh()

    @abstractmethod
    def _weigh(self) -> None:
        """Sets `weights`, the probability of each box (a range of quotas that are still possible), from the prior and
        the likelihood of the events."""

    @abstractmethod
    def _cells(self) -> list[Cells]:
        """Returns for each kind the cell number of each of its boxes. Limits in one cell count as equal when calls are
        chosen."""

    @property
    def is_void(self) -> bool:
        """Whether no quota of these kinds agrees with the events."""
        return not self.boxes

    @property
    def low(self) -> float:
        """The least limit a minute that is possible."""
        return min(float(each.low.min()) for each in self.boxes)

    @property
    def high(self) -> float:
        """The largest limit a minute that is possible."""
        return max(float(each.high.max()) for each in self.boxes)

    @property
    def kinds(self) -> list[Window]:
        return [each.kind for each in self.boxes]

    def learn(self, event: Event) -> None:
        """Rules out the boxes that disagree with the event, refines the others, and sets the weights anew."""
        self._events.append(event)
        for each in self.boxes:
            each.keep(each.take(event))
        self.boxes = [finer for finer in map(self._refined, self.boxes) if len(finer)]
        self._weigh()

    def _refined(self, boxes: Boxes) -> Boxes:
        """Returns the boxes halved again and again, with all events replayed, until they are fine enough or `_MANY`."""
        while 0 < len(boxes) < _MANY:
            finer = _split(boxes)
            if finer is None:
                break
            for event in self._events:
                finer.keep(finer.take(event))
            boxes = finer
        return boxes

    def levels(self, at_s: float) -> Levels:
        """Returns the least and the most that each hypothesis has left of its quota for a call sent at `at_s`."""
        return levels_of(self.boxes, self._tried(), self._cells(), at_s).sampled()

    def _tried(self) -> list[Numbers]:
        """Returns the weight of each box in choosing what to send: its probability, unless a subclass spreads it."""
        return self.weights

    def least_left(self, at_s: float) -> float:
        """Returns the amount that is left at `at_s` under every hypothesis, so for sure."""
        return min(float(each.levels(at_s)[0].min()) for each in self.boxes)


def levels_of(boxes: list[Boxes], weights: list[Numbers], cells: list[Cells], at_s: float) -> Levels:
    """Returns the least and the most that is left at `at_s` in each box of all kinds, with its weight and cell."""
    found = [each.levels(at_s) for each in boxes]
    return Levels(
        np.concatenate([lower for lower, _ in found]),
        np.concatenate([upper for _, upper in found]),
        np.concatenate(weights),
        np.concatenate(cells),
    )


def normalized(weights: list[Numbers]) -> list[Numbers]:
    """Returns the weights divided by their sum, or as they are if it is 0."""
    total = sum(float(weight.sum()) for weight in weights)
    return [weight / total for weight in weights] if total > 0 else weights


def crossed(kind: Window, low: Numbers, high: Numbers, least: Numbers, most: Numbers, late_s: float) -> Boxes:
    """Returns a box for every combination of a range of limits with a range of the second unknown."""
    count = len(least)
    return KINDS[kind](
        np.repeat(low, count), np.repeat(high, count), np.tile(least, len(low)), np.tile(most, len(low)), late_s
    )


def _split(boxes: Boxes) -> Boxes | None:
    """Returns each box halved in both dimensions where it is not yet fine, without any event learned; None if all are
    fine."""
    bounded: Mask = boxes.high < NO_LIMIT
    width = float(np.log(boxes.high[bounded] / boxes.low[bounded]).max()) if bounded.any() else 0.0
    low, high, least, most = boxes.low, boxes.high, boxes.least, boxes.most
    # Whole numbers of a sliding window's limit can all be told apart.
    is_wide = width > _FINEST or (boxes.kind == "sliding" and bool(((high - low)[bounded] > 1.0).any()))
    if is_wide:
        middle = np.where(bounded, np.sqrt(low * high), low)
        low, high = np.concatenate([low[bounded], middle]), np.concatenate([middle[bounded], high])
        least, most = np.concatenate([least[bounded], least]), np.concatenate([most[bounded], most])
    match boxes.kind:
        case "bucket":
            ratios = np.log(most / least)[high < NO_LIMIT]
            is_wide_too = bool(len(ratios)) and float(ratios.max()) > _FINEST_CAPACITY
            second = np.sqrt(least * most)
        case "fixed":
            spans = (most - least)[high < NO_LIMIT]
            is_wide_too = bool(len(spans)) and float(spans.max()) > _FINEST_S
            second = (least + most) / 2
        case "sliding":
            is_wide_too, second = False, least
    if is_wide_too:
        some = high < NO_LIMIT
        least, most = np.concatenate([least, second[some]]), np.concatenate([np.where(some, second, most), most[some]])
        low, high = np.concatenate([low, low[some]]), np.concatenate([high, high[some]])
    if not (is_wide or is_wide_too):
        return None
    return type(boxes)(low, high, least, most, boxes.late_s)
