"""Says when a number of calls can be sent without a refusal for their number, given what was found of requests.

Every call sent counts, admitted or not. Knows no clock and no provider.
"""

from __future__ import annotations

import math
from bisect import bisect_right

from .result import FoundQuota

_MINUTE_S = 60.0
_MARGIN_S = 0.6


class Pace:
    """The calls sent so far against the quota of requests that was found; assumes that none was sent in the minute
    before `since_s`. `at_once` is the most that may ever go together (infinite: no quota was found)."""

    def __init__(self, found: FoundQuota, since_s: float) -> None:
        self._sent: list[float] = []
        self._rate = self._level = 0.0
        self._at_s = since_s
        self.at_once = math.inf
        if found.window == "bucket" and found.rpm is not None:
            self._rate = found.rpm / _MINUTE_S
            self.at_once = self._level = float(max(1, int(found.burst or 1)))
        elif found.rpm is not None or found.burst is not None:
            # If only the burst is known, that much is free again within a minute.
            self.at_once = max(1, int(min(found.rpm or math.inf, found.burst or math.inf)))

    def note(self, at_s: float, count: int) -> None:
        self._level = self._level_at(at_s) - count
        self._at_s = at_s
        if not self._rate:
            self._sent += [at_s] * count

    def _level_at(self, at_s: float) -> float:
        return min(self.at_once, self._level + self._rate * (at_s - self._at_s)) if self._rate else 0.0

    def ready(self, count: int, now_s: float) -> float:
        """Returns the first moment, `now_s` or later, at which `count` calls may be sent at once."""
        if self._rate:
            missing = count - self._level_at(now_s)
            return now_s + missing / self._rate + _MARGIN_S if missing > 0 else now_s
        first = bisect_right(self._sent, now_s - _MINUTE_S - _MARGIN_S)
        excess = len(self._sent) - first + count - self.at_once
        return now_s if excess <= 0 else self._sent[first + int(excess) - 1] + _MINUTE_S + _MARGIN_S
