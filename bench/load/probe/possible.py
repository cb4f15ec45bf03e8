"""Which limits are still possible after all that was seen: boxes, learned from and looked at ever more closely.

Knows which agree, not which are likely: whoever weighs them is made from it. Knows no clock and no provider.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .boxes import Boxes, Event, Mask, Numbers
from .steps import Window

# How fine boxes get, in logarithms of the limit and of a bucket's share, and in seconds.
_FINEST, _FINEST_SHARE, _FINEST_S = 0.0015, 0.003, 0.01
_MANY = 3_000
# Beyond the largest limit that matters: as good as none.
NO_LIMIT = 1e15


class Possible:
    """`boxes`: one of each kind that is possible; `weights`: how likely each of them is, with all that are none."""

    def __init__(self, boxes: Iterable[Boxes]) -> None:
        self._events: list[Event] = []
        self.boxes = [each for each in boxes if len(each)]
        self.weights: list[Numbers] = []
        self._weigh()

    def _weigh(self) -> None:
        raise NotImplementedError

    @property
    def is_void(self) -> bool:
        """Nothing agrees with all that was seen: it is no limit of these kinds."""
        return not self.boxes

    @property
    def low(self) -> float:
        return min(float(each.low.min()) for each in self.boxes)

    @property
    def high(self) -> float:
        return max(float(each.high.max()) for each in self.boxes)

    @property
    def kinds(self) -> list[Window]:
        return [each.kind for each in self.boxes]

    def learn(self, event: Event) -> None:
        self._events.append(event)
        for each in self.boxes:
            each.keep(each.take(event))
        self.boxes = [finer for finer in map(self._refined, self.boxes) if len(finer)]
        self._weigh()

    def _refined(self, boxes: Boxes) -> Boxes:
        """Smaller boxes where few are left."""
        while 0 < len(boxes) < _MANY:
            finer = _split(boxes)
            if finer is None:
                break
            for event in self._events:
                finer.keep(finer.take(event))
            boxes = finer
        return boxes


def normal(weights: list[Numbers]) -> list[Numbers]:
    total = sum(float(weight.sum()) for weight in weights)
    return [weight / total for weight in weights] if total > 0 else weights


def _split(boxes: Boxes) -> Boxes | None:
    """Each box halved both ways where it is not yet fine, with nothing learned yet; None: all are."""
    bounded: Mask = boxes.high < NO_LIMIT
    width = float(np.log(boxes.high[bounded] / boxes.low[bounded]).max()) if bounded.any() else 0.0
    low, high, least, most = boxes.low, boxes.high, boxes.least, boxes.most
    # Of a sliding window each number can be told from the next.
    is_wide = width > _FINEST or (boxes.kind == "sliding" and bool(((high - low)[bounded] > 1.0).any()))
    if is_wide:
        middle = np.where(bounded, np.sqrt(low * high), low)
        low, high = np.concatenate([low[bounded], middle]), np.concatenate([middle[bounded], high])
        least, most = np.concatenate([least[bounded], least]), np.concatenate([most[bounded], most])
    match boxes.kind:
        case "bucket":
            is_wide_too = bool(len(most)) and float(np.log(most / least).max()) > _FINEST_SHARE
            second = np.sqrt(least * most)
        case "fixed":
            is_wide_too = bool(len(most)) and float((most - least).max()) > _FINEST_S
            second = (least + most) / 2
        case "sliding":
            is_wide_too, second = False, least
    if is_wide_too:
        low, high = np.tile(low, 2), np.tile(high, 2)
        least, most = np.concatenate([least, second]), np.concatenate([second, most])
    if not (is_wide or is_wide_too):
        return None
    return type(boxes)(low, high, least, most, boxes.late_s)
