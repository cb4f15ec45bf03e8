"""A run asks pairs of a model and a temperature: what of each is done already, and how its items ended.

Plain values that every benchmark fills and every summary reads. Knows no benchmark.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from msgspec import Struct, field


class Pair(NamedTuple):
    """One model at one temperature. None: no temperature is sent."""

    model: str
    temperature: float | None

    def __str__(self) -> str:
        return self.model if self.temperature is None else f"{self.model} @ {self.temperature:g}"


class Done(Struct, frozen=True):
    """What a folder already holds: the ids of each pair, records and final failures, what they cost, and which models
    have answered."""

    ids: Mapping[Pair, set[str]]
    cost: float
    answered: frozenset[str] = frozenset()

    def count(self) -> int:
        return sum(map(len, self.ids.values()))

    def of(self, pair: Pair) -> set[str]:
        return self.ids.get(pair, set())


class Ended(Struct):
    """How the items of one pair ended. `held`: not asked, since what they build on failed. `cost` is None as long as
    no line has a price."""

    ok: int = 0
    refused: int = 0
    cached: int = 0
    truncated: int = 0
    maybe_billed: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    failed: dict[str, int] = field(default_factory=dict)
    held: int = 0

    @property
    def answered(self) -> int:
        return self.ok + self.refused

    @property
    def failures(self) -> int:
        return sum(self.failed.values())
