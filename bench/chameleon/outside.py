"""What a conversation needs of the world: calls asked, searches made, pages read. The engine's facade is one.

Owns these words alone, so that conversations run over anything that has them, and what a turn's calls came to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ...engine.admission import StopReason
from ...engine.call import Call, Failure, Hit, Outcome


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


class Spent:
    """What the calls of one turn came to. A cost is None as long as none of its calls has a price; `cost` is of all,
    those of judge and search among them."""

    __slots__ = ("attempts", "cost", "cost_judge", "cost_search", "is_cached", "keys", "maybe_billed")

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.is_cached = True
        self.attempts = 0
        self.maybe_billed = 0
        self.cost: float | None = None
        self.cost_judge: float | None = None
        self.cost_search: float | None = None

    def add_call(self, outcome: Outcome) -> None:
        self._add((outcome.key,) if outcome.key else (), outcome.cost, is_cached=outcome.cached)
        self.attempts += outcome.attempts
        self.maybe_billed += outcome.maybe_billed

    def add_judgement(self, outcome: Outcome) -> None:
        self.add_call(outcome)
        self.cost_judge = _sum(self.cost_judge, outcome.cost)

    def add_search(self, found: Found) -> None:
        self._add(found.keys, found.cost, is_cached=found.cached)
        self.cost_search = _sum(self.cost_search, found.cost)
        self.attempts += found.attempts
        self.maybe_billed += found.maybe_billed

    def add_page(self, keys: Sequence[str], *, is_cached: bool) -> None:
        # One that was refused before anything was asked has no call.
        self._add(keys, None, is_cached=is_cached or not keys)

    def _add(self, keys: Sequence[str], cost: float | None, *, is_cached: bool) -> None:
        self.keys += keys
        self.is_cached = self.is_cached and is_cached
        self.cost = _sum(self.cost, cost)

    def add_unrecorded(self, other: Spent) -> None:
        """What was paid for a turn that gets no line: its calls are another turn's, its cost must stand somewhere."""
        self._add((), other.cost, is_cached=True)
        self.cost_judge = _sum(self.cost_judge, other.cost_judge)
        self.cost_search = _sum(self.cost_search, other.cost_search)
        self.maybe_billed += other.maybe_billed


def _sum(known: float | None, more: float | None) -> float | None:
    return known if more is None else (known or 0.0) + more
