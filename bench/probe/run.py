"""Runs a probe: one model after the other, of each first its requests a minute and then its tokens.

Owns the order, and what is noted of each search. `search` decides what is sent, `calls` sends it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from .answers import SMALL
from .calls import Bounds, Caps, ModelCalls, ModelEnd, Outside, Watcher
from .headers import is_unused, left_of, limit_of, window_of
from .least import MINUTE_S
from .result import FoundQuota
from .search import APART_S, Search
from .token_search import TokenSearch, free_s

# A minute and the way of a call.
_REST_S = MINUTE_S + 1.0
# More tokens than these of each request are no limit in practice.
_WORTH, _WORTH_A_REQUEST = 500_000, 6_000


class Probe:
    """A probe of several models, one after the other, under one cap of calls and one of cost. `lanes`, `calls` and
    `cost` are right at any instant."""

    def __init__(self, outside: Outside, bounds: Bounds, watcher: Watcher | None = None) -> None:
        self._outside, self._bounds = outside, bounds
        self._watcher = Watcher() if watcher is None else watcher
        self._caps = Caps(bounds)
        self.budget = self._caps.budget
        self.lanes: dict[str, FoundQuota] = {}

    @property
    def calls(self) -> int:
        return self._caps.calls

    @property
    def cost(self) -> float:
        return self.budget.spent

    async def run(self, models: Iterable[str]) -> None:
        rested_s = self._outside.now() + _REST_S
        for model in models:
            quota = self.lanes[model] = FoundQuota()
            self._watcher.begins(model)
            calls = ModelCalls(model, self._outside, self._caps, self._watcher)
            try:
                await self._search(quota, calls, rested_s)
            except ModelEnd as why:
                quota.ended = str(why)
            finally:
                await calls.close()
                quota.has_usage = calls.has_usage

    async def _search(self, quota: FoundQuota, calls: ModelCalls, rested_s: float) -> None:
        bounds = self._bounds
        await calls.await_quiet()
        await calls.send([SMALL])
        first = await calls.answers()
        quota.header_rpm, quota.header_tpm = limit_of("requests", first), limit_of("tokens", first)
        calls.check([SMALL])
        if not is_unused(first):
            # What others sent before the probe no longer counts then.
            await calls.wait(rested_s - (APART_S if quota.header_rpm is None else 0.0))
        requests = Search(calls, quota.header_rpm, bounds.requests, left_of("requests", first))
        quota.rpm = await requests.run()
        quota.tested_rpm = requests.tested
        quota.burst = None if quota.rpm is None else requests.burst
        quota.window = window_of(calls.seen)
        if not calls.has_usage or (quota.rpm is None and requests.refusals()):
            # A refusal of tokens could not be told from one of requests.
            return
        await calls.wait(free_s(requests, calls))
        most = max(_WORTH, _WORTH_A_REQUEST * requests.limit) if math.isinf(bounds.tokens) else bounds.tokens
        left = left_of("tokens", calls.seen)
        tokens = TokenSearch(calls, quota.header_tpm, most, left, largest=bounds.tokens_a_call, requests=requests)
        quota.tpm = await tokens.run()
        quota.tested_tpm = tokens.tested
        if quota.rpm is not None and quota.tpm is not None and quota.tpm <= tokens.small * quota.rpm:
            # The small calls that found the limit of requests used these tokens: they were refused for that.
            quota.rpm = quota.burst = None
