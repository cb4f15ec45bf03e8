"""Finds the requests a minute of a model, with calls of a few tokens.

Owns what such a call is. The order of a search: search.
"""

from __future__ import annotations

import math

from .answers import SMALL
from .least import MINUTE_S
from .search import SPARE_S, Search

# The search for tokens needs about so many calls a minute, and leaves a fifth of those that may be sent.
CALLS, SHARE = 300, 0.8


class RequestSearch(Search):
    """The search for requests a minute, with calls of a few tokens."""

    def step(self) -> float:
        return 1.0

    def sizes(self, amount: float, *, in_parts: bool) -> list[int]:
        return [SMALL] * math.floor(amount + 1e-6)

    def amount_of_size(self, size: int) -> float:
        return 1.0

    def first(self) -> float:
        return 1.0

    @property
    def calls_free(self) -> float:
        """How many calls a bucket has at `free_s`."""
        return SHARE * min(CALLS, self.burst)

    def free_s(self) -> float:
        """Returns when so many calls are free again as the tokens' search needs."""
        limit, now_s = self.limit, self._sender.now()
        if self.refills:
            return now_s + self.calls_free * MINUTE_S / max(1.0, limit)
        wanted = min(CALLS, SHARE * limit)
        done = sorted(one.done_s for one in self._sender.seen if one.is_admitted)
        too_many = 0 if math.isinf(limit) else len(done) - math.floor(limit - wanted)
        return done[too_many - 1] + MINUTE_S + SPARE_S if too_many > 0 else now_s
