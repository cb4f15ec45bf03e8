"""Defines what an item of several calls needs from the engine (ask, search, read), and counts what a turn's calls cost.

Protocols only, so that conversations run over any implementation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import UNSET, Struct, field

from ....engine.call import NOT_REPORTED, Call, Outcome, Reply, Usage, known_sum
from ....engine.estimate import prompt_weight
from ....engine.fault import StopReason

if TYPE_CHECKING:
    from ....providers.pages.page import Page
    from ....providers.search.joined import Found


# Between the names of a record whose calls were answered under several.
JOINT = " + "
# Characters: less than the 1,000 tokens of any family from which on read_in_part judges a prompt.
LONG_WEIGHT = 2_500


class Outside(Protocol):
    """The interface of the engine that items use. Each method raises Stopped if its lane sends nothing more."""

    async def ask(self, call: Call) -> Outcome: ...

    async def search(self, model: str, query: str, count: int) -> Found: ...

    async def read(self, url: str) -> Page: ...

    def halt(self, reason: StopReason, detail: str) -> None: ...


class FromCache(Struct, frozen=True, omit_defaults=True):
    """The part of a turn that the cache answered: tokens of the model's and of the judge's calls (None: none), whether
    it answered all of the judge's calls and the whole search, and the number of pages."""

    usage: Usage | None = None
    usage_judge: Usage | None = None
    judge: bool = False
    search: bool = False
    pages: int = 0


def long_prompts(outcome: Outcome, weight: int | None = None) -> tuple[tuple[int, int], ...]:
    """Returns the weight of a call's prompt and its reported tokens; nothing if it is short or has no report. `weight`:
    that of its texts, if somebody has summed it up."""
    usage = None if outcome.reply is None else outcome.reply.usage
    if usage is None or usage.input is None:
        return ()
    weight = prompt_weight(outcome.call, usage.input, weight)
    return () if weight < LONG_WEIGHT else ((weight, usage.input),)


class CallTotals(Struct):
    """Totals over calls of one kind: their number and tokens, the same for those from the cache, and who answered."""

    count: int = 0
    cached: int = 0
    usage: Usage | None = None
    usage_cached: Usage | None = None
    last: Reply = Reply("")
    long_prompts: tuple[tuple[int, int], ...] = ()
    _names: dict[str, None] = {}

    def add(self, outcome: Outcome) -> None:
        if outcome.reply is not None:
            self.last = outcome.reply
            self._names |= {} if self.last.served is None else {self.last.served: None}
        usage = None if outcome.reply is None else outcome.reply.usage or NOT_REPORTED
        self.long_prompts += long_prompts(outcome)
        self.count += 1
        self.usage = known_sum(self.usage, usage)
        if outcome.cached:
            self.cached += 1
            self.usage_cached = known_sum(self.usage_cached, usage)

    @property
    def are_cached(self) -> bool:
        return self.count == self.cached > 0

    @property
    def served(self) -> str | None:
        """The name under which the calls were answered, several joined by JOINT; None: no answer has one."""
        return JOINT.join(sorted(self._names)) or None


class CallCosts(Struct):
    """The costs of one turn's calls. A cost is None until a call with a price is added; `cost` includes judge and
    search. `own` are the calls of the model under test, `last` is the outcome of its last answer."""

    keys: list[str] = []
    attempts: int = 0
    maybe_billed: int = 0
    cost: float | None = None
    cost_judge: float | None = None
    cost_search: float | None = None
    own: CallTotals = field(default_factory=CallTotals)
    judge: CallTotals = field(default_factory=CallTotals)
    last: Outcome | None = None
    _is_search_cached: bool = False
    _pages_cached: int = 0

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

    def as_fields(self) -> dict[str, Any]:
        """Returns the costs as the fields of a record."""
        plain = ("cost", "cost_judge", "cost_search", "from_cache", "attempts", "maybe_billed")
        return {
            "keys": tuple(self.keys),
            "usage": self.own.usage,
            "usage_judge": self.judge.usage,
            "long_prompts": self.own.long_prompts or UNSET,
            "cached": self.own.are_cached,
            "served": self.own.served,
            "served_judge": self.judge.served,
            **{name: getattr(self.own.last, name) for name in ("fingerprint", "tier", "router")},
            **{name: getattr(self, name) for name in plain},
        }

    def add_call(self, outcome: Outcome, *, is_own: bool = True) -> None:
        """Adds a call; `is_own`: whether it went to the model under test."""
        self._add_outcome(outcome)
        if is_own:
            self.own.add(outcome)

    def add_answer(self, outcome: Outcome) -> None:
        """Adds the outcome of a call to the model under test, and keeps it as the last answer."""
        self.add_call(outcome)
        self.last = outcome

    def add_judgement(self, outcome: Outcome) -> None:
        self._add_outcome(outcome)
        self.judge.add(outcome)
        self.cost_judge = known_sum(self.cost_judge, outcome.cost)

    def add_tool(self, outcome: Outcome) -> None:
        """Adds a tool's result, which costs nothing."""
        self._add((outcome.key,), None)

    def add_search(self, results: Found) -> None:
        self._add(results.keys, results.cost)
        self.cost_search = known_sum(self.cost_search, results.cost)
        self.attempts += results.attempts
        self.maybe_billed += results.maybe_billed
        self._is_search_cached = results.cached

    def add_page(self, keys: Sequence[str], *, is_cached: bool) -> None:
        self._add(keys, None)
        # A page refused before any request has no call.
        self._pages_cached += is_cached and bool(keys)

    def add_unrecorded(self, other: CallCosts) -> None:
        """Adds the cost, without the calls, of a turn that gets no line."""
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
