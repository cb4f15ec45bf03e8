"""What a quota counts: requests, or tokens; how an amount of it is divided into calls.

Owns that no call of the search for tokens is refused for the number of calls. The order of a search: search.
"""

from __future__ import annotations

import math

from .answers import SMALL, Answer
from .calls import ModelCalls
from .ranges import MINUTE_S

# The smallest amount of tokens worth sending, as a share of what was admitted.
_STEP = 0.01
# The search for tokens needs about so many calls a minute, and leaves a fifth of those that may be sent.
_CALLS, _SHARE = 300, 0.8
# With fewer calls a minute a burst of tokens doubles.
_FEW_CALLS = 60
# An amount of tokens is sent in up to so many calls, so that a refusal is one of few tokens.
_PARTS = 8
# From this size on a call shows how a provider counts tokens.
_LARGE = 200


class Requests:
    """Requests: each call is one. A burst grows by such a part of itself (`growth`) every moment, so that few of its
    calls are refused; what is found is as precise as `precise`, or is polled on; `unsure`: the share by which the
    provider's count may differ from the one that it reports."""

    growth, moment_s, precise, unsure = 1 / 12, 0.0625, 0.965, 0.0

    def step(self, amount: float) -> float:
        """Returns the smallest amount worth sending beside such an amount."""
        return 1.0

    def sizes(self, amount: float, step: float) -> list[int]:
        """Returns the prompt sizes of calls that use about this amount; none if no call may go."""
        return [SMALL] * math.floor(amount + 1e-6)

    def of_size(self, size: int) -> float:
        """Returns what a call of this prompt size probably uses."""
        return 1.0

    def of(self, one: Answer) -> float:
        """Returns what the call used, or would have used if it was not admitted."""
        return self.of_size(one.size)

    def note_failures(self, sizes: list[int]) -> None:
        """Notes the prompt sizes of calls that failed."""


class Tokens(Requests):
    """Tokens, sent in few and large calls. `largest`: the tokens of one prompt at the most; `limit`: the requests a
    minute that may go; `at_once`: those that a bucket has after a rest (None: it is no bucket)."""

    # Where input alone is limited, the usage of a call of hundreds of tokens has one of output too many.
    moment_s, precise, unsure = 0.25, 0.955, 0.002

    def __init__(self, calls: ModelCalls, largest: int, limit: float, at_once: float | None) -> None:
        self._calls, self._largest, self._limit = calls, largest, limit
        self._at_once = None if at_once is None else _SHARE * min(_CALLS, at_once)
        self._before, self._sent_before = len(calls.seen), len(calls.sent_at)
        self._calls_most = _SHARE * limit
        self.growth = 1 / 3 if self._calls_most >= _FEW_CALLS else 1.0
        self._beside = max((one.tokens - one.size for one in calls.seen if one.is_admitted), default=0)

    @property
    def _ratio(self) -> float:
        """The tokens that a provider counts for one of ours, by the largest call that was admitted."""
        seen = [one for one in self._calls.seen[self._before :] if one.is_admitted and one.size >= _LARGE]
        largest = max(seen, key=lambda one: one.size, default=None)
        return 1.0 if largest is None else max(0.1, (largest.tokens - self._beside) / largest.size)

    def step(self, amount: float) -> float:
        return max(self.of_size(SMALL), _STEP * amount)

    def of_size(self, size: int) -> float:
        return self._ratio * size + self._beside

    def of(self, one: Answer) -> float:
        return float(one.tokens) if one.is_admitted else self.of_size(one.size)

    def note_failures(self, sizes: list[int]) -> None:
        # A model's context may be smaller than was assumed.
        self._largest = max(SMALL, min([self._largest, *(size // 2 for size in sizes)]))

    def sizes(self, amount: float, step: float) -> list[int]:
        left = self._calls_left()
        if amount < self.of_size(SMALL) or left < 1:
            return []
        parts = min(_PARTS, self._calls_most / 40, amount / step)
        count = int(min(left, max(1, int(parts), math.ceil(amount / self.of_size(self._largest)))))
        size = math.floor((amount / count - self._beside) / self._ratio)
        return [max(SMALL, min(self._largest, size))] * count

    def _calls_left(self) -> float:
        """Returns how many calls may go, so that none is refused for their number."""
        calls, now_s = self._calls, self._calls.now()
        if self._at_once is None:
            in_flight = len(calls.sent_at) - len(calls.seen)
            recent = sum(one.is_admitted and one.done_s > now_s - MINUTE_S for one in calls.seen)
            return self._limit - 1 - recent - in_flight
        level = self._at_once
        times = [*calls.sent_at[self._sent_before :], now_s]
        for before_s, at_s in zip([times[0], *times], times, strict=False):
            level = min(self._at_once, level + (at_s - before_s) * self._calls_most / MINUTE_S) - 1
        return level + 1

    def free_s(self) -> float:
        """Returns when so many calls are free again as the search needs."""
        limit, now_s = self._limit, self._calls.now()
        if self._at_once is not None:
            return now_s + self._at_once * MINUTE_S / limit
        done = sorted(one.done_s for one in self._calls.seen if one.is_admitted)
        too_many = 0 if math.isinf(limit) else len(done) - math.floor(limit - min(_CALLS, _SHARE * limit))
        return done[too_many - 1] + MINUTE_S + 0.1 if too_many > 0 else now_s
