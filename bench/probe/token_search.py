"""Finds the tokens a minute of a model, with few and large calls.

Owns how an amount of tokens is divided into calls, and that none of them is refused for the number of calls. The order
of a search: search.
"""

from __future__ import annotations

import math

from .answers import SMALL, TimedAnswer
from .calls import ModelCalls
from .least import MINUTE_S
from .search import SPARE_S, STEP, Search

# The search needs about so many calls a minute, and leaves a fifth of those that may be sent.
_CALLS, _SHARE = 300, 0.8
# A burst grows by a third of itself.
_GROWTH, _MOMENT_S = 1 / 3, 0.25
# With fewer calls a minute a burst doubles.
_FEW_CALLS = 60
# An amount is sent in up to so many calls, each smaller than the one before it by this ratio.
_PARTS, _RATIO = 8, 0.75
# From this size on a call shows how a provider counts tokens.
_LARGE = 200


class TokenSearch(Search):
    """The search for tokens a minute, with few and large calls. `largest`: the tokens of one prompt at the most;
    `requests`: the search for requests, which came first."""

    # Where input alone is limited, the usage of a call of hundreds of tokens has one of output too many.
    unsure = 0.002

    def __init__(
        self,
        sender: ModelCalls,
        header: float | None,
        most: float,
        left: float | None,
        *,
        largest: int,
        requests: Search,
    ) -> None:
        super().__init__(sender, header, most, left)
        self._largest = largest
        self._requests = requests
        self._calls_most = _SHARE * requests.limit
        small = [one.answer.tokens - one.size for one in sender.seen if one.is_admitted]
        self._beside = max(small, default=0)

    @property
    def growth(self) -> float:
        return _GROWTH if self._calls_most >= _FEW_CALLS else 1.0

    @property
    def moment_s(self) -> float:
        return _MOMENT_S

    @property
    def _ratio(self) -> float:
        """The tokens that a provider counts for one of ours, by the largest call that was admitted."""
        seen = [one for one in self._sender.seen[self._before :] if one.is_admitted and one.size >= _LARGE]
        largest = max(seen, key=lambda one: one.size, default=None)
        return 1.0 if largest is None else max(0.1, (largest.answer.tokens - self._beside) / largest.size)

    @property
    def small(self) -> float:
        """The tokens of the smallest call."""
        return self.amount_of_size(SMALL)

    def step(self) -> float:
        return max(self.small, STEP * max(self._full, self._used()))

    def amount_of_size(self, size: int) -> float:
        return self._ratio * size + self._beside

    def amount_of(self, one: TimedAnswer) -> float:
        return float(one.answer.tokens) if one.is_admitted else self.amount_of_size(one.size)

    def note_failures(self, sizes: list[int]) -> None:
        # A model's context may be smaller than was assumed.
        self._largest = max(SMALL, min(self._largest, *(size // 2 for size in sizes))) if sizes else self._largest

    @property
    def is_short_of_calls(self) -> bool:
        return self._requests.refills and self._calls_left() < 1

    def sizes(self, amount: float, *, in_parts: bool) -> list[int]:
        largest, left = self.amount_of_size(self._largest), self._calls_left()
        if amount < self.small or left < 1:
            return []
        most = left / 4 if in_parts else self._calls_most / 40
        count = max(1, int(min(_PARTS, most, amount / self.step())), int(min(left, math.ceil(amount / largest))))
        # Calls of one amount would leave more: their order on the way is not known.
        row = [_RATIO**place for place in range(count)]
        parts = [min(largest, amount * each / sum(row)) for each in row]
        return [max(SMALL, math.floor((part - self._beside) / self._ratio)) for part in parts]

    def _calls_left(self) -> float:
        """Returns how many calls may go, so that none is refused for their number."""
        sender, now_s = self._sender, self._sender.now()
        if not self._requests.refills:
            in_flight = len(sender.sent_at) - len(sender.seen)
            recent = sum(one.is_admitted and one.done_s > now_s - MINUTE_S for one in sender.seen)
            return self._requests.limit - 1 - recent - in_flight
        level = at_once = _at_once(self._requests)
        times = sender.sent_at[self._sent_before :]
        at_s = times[0] if times else now_s
        for sent_s in times:
            level = min(at_once, level + (sent_s - at_s) * self._calls_most / MINUTE_S) - 1
            at_s = sent_s
        return level + (now_s - at_s) * self._calls_most / MINUTE_S

    def first(self) -> float:
        return max(self._used() / 2, 10 * self.step())


def _at_once(requests: Search) -> float:
    """Returns how many calls a bucket has at `free_s`."""
    return _SHARE * min(_CALLS, requests.burst)


def free_s(requests: Search, sender: ModelCalls) -> float:
    """Returns when so many calls are free again as the search for tokens needs."""
    limit, now_s = requests.limit, sender.now()
    if requests.refills:
        return now_s + _at_once(requests) * MINUTE_S / max(1.0, limit)
    wanted = min(_CALLS, _SHARE * limit)
    done = sorted(one.done_s for one in sender.seen if one.is_admitted)
    too_many = 0 if math.isinf(limit) else len(done) - math.floor(limit - wanted)
    return done[too_many - 1] + MINUTE_S + SPARE_S if too_many > 0 else now_s
