"""What a conversation needs of the world: calls asked, searches made, pages read. The engine's facade is one.

Owns these words alone, so that conversations run over anything that has them, and what a turn's calls came to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from ...engine.admission import StopReason
from ...engine.call import Call, Failure, Hit, Outcome, Usage, known_sum


class Found(Protocol):
    """A search's results in order, or why there are none."""

    @property
    def hits(self) -> Sequence[Hit]: ...
    @property
    def failure(self) -> Failure | None: ...
    @property
    def keys(self) -> Sequence[str]: ...
    @property
    def cached(self) -> bool: ...
    @property
    def attempts(self) -> int: ...
    @property
    def maybe_billed(self) -> int: ...
    @property
    def cost(self) -> float | None: ...
    @property
    def remarks(self) -> Sequence[str]: ...


class Page(Protocol):
    """A page's text, or why it has none."""

    @property
    def url(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def title(self) -> str: ...
    @property
    def final_url(self) -> str: ...
    @property
    def hash(self) -> str: ...
    @property
    def keys(self) -> Sequence[str]: ...
    @property
    def cached(self) -> bool: ...


class Outside(Protocol):
    """Each raises Stopped where its lane sends nothing more."""

    async def ask(self, call: Call) -> Outcome: ...

    async def search(self, model: str, query: str, count: int) -> Found: ...

    async def read(self, url: str) -> Page: ...

    def halt(self, reason: StopReason, detail: str) -> None: ...


class FromCache(Struct, frozen=True, omit_defaults=True):
    """What of a turn came from the cache: the tokens of the model's own calls and of the judge's, whether all of the
    judge's calls did, the whole search, and how many pages."""

    usage: Usage | None = None
    usage_judge: Usage | None = None
    judge: bool = False
    search: bool = False
    pages: int = 0


class Calls:
    """Calls of one kind: how many, and how many of them came from the cache; what all of them took, and these."""

    __slots__ = ("cached", "count", "usage", "usage_cached")

    def __init__(self) -> None:
        self.count = 0
        self.cached = 0
        self.usage: Usage | None = None
        self.usage_cached: Usage | None = None

    def add(self, outcome: Outcome) -> None:
        usage = None if outcome.reply is None else outcome.reply.usage
        self.count += 1
        self.usage = known_sum(self.usage, usage)
        if outcome.cached:
            self.cached += 1
            self.usage_cached = known_sum(self.usage_cached, usage)

    @property
    def are_cached(self) -> bool:
        return self.count == self.cached > 0


class Spent:
    """What the calls of one turn came to. A cost is None as long as none of its calls has a price; `cost` is of all,
    those of judge and search among them. `own` are the calls of the model under test."""

    __slots__ = (
        "_is_search_cached",
        "_pages_cached",
        "attempts",
        "cost",
        "cost_judge",
        "cost_search",
        "judge",
        "keys",
        "maybe_billed",
        "own",
    )

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.attempts = 0
        self.maybe_billed = 0
        self.cost: float | None = None
        self.cost_judge: float | None = None
        self.cost_search: float | None = None
        self.own = Calls()
        self.judge = Calls()
        self._is_search_cached = False
        self._pages_cached = 0

    @property
    def from_cache(self) -> FromCache | None:
        if not (self.own.cached or self.judge.cached or self._is_search_cached or self._pages_cached):
            return None
        return FromCache(
            self.own.usage_cached,
            self.judge.usage_cached,
            self.judge.are_cached,
            self._is_search_cached,
            self._pages_cached,
        )

    def add_call(self, outcome: Outcome, *, is_own: bool = True) -> None:
        """Not `is_own`: another model's, whose queries are shared."""
        self._add_outcome(outcome)
        if is_own:
            self.own.add(outcome)

    def add_judgement(self, outcome: Outcome) -> None:
        self._add_outcome(outcome)
        self.judge.add(outcome)
        self.cost_judge = known_sum(self.cost_judge, outcome.cost)

    def add_search(self, found: Found) -> None:
        self._add(found.keys, found.cost)
        self.cost_search = known_sum(self.cost_search, found.cost)
        self.attempts += found.attempts
        self.maybe_billed += found.maybe_billed
        self._is_search_cached = found.cached

    def add_page(self, keys: Sequence[str], *, is_cached: bool) -> None:
        self._add(keys, None)
        # One that was refused before anything was asked has no call.
        self._pages_cached += is_cached and bool(keys)

    def add_unrecorded(self, other: Spent) -> None:
        """What was paid for a turn that gets no line: its calls are another turn's, its cost must stand somewhere."""
        self._add((), other.cost)
        self.cost_judge = known_sum(self.cost_judge, other.cost_judge)
        self.cost_search = known_sum(self.cost_search, other.cost_search)
        self.maybe_billed += other.maybe_billed

    def _add_outcome(self, outcome: Outcome) -> None:
        self._add((outcome.key,) if outcome.key else (), outcome.cost)
        self.attempts += outcome.attempts
        self.maybe_billed += outcome.maybe_billed

    def _add(self, keys: Sequence[str], cost: float | None) -> None:
        self.keys += keys
        self.cost = known_sum(self.cost, cost)
