"""The fields of a journal line that the framework reads: who answered, which step it is, and what is counted.

A benchmark whose records have other field names extends `ItemLine`. Other fields are the benchmark's.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from ....engine.call import Usage
from ....engine.runs.pairs import PairCounts
from ....engine.runs.proof import ANSWERED
from .item import item_of
from .outside import FromCache


class JudgeLine(Struct, frozen=True):
    """A judge in a line, for benchmarks with several."""

    model: str


class NamedLine(Struct, frozen=True, kw_only=True):
    """The fields of a line that state who answered."""

    model: str
    temperature: float | None = None
    effort: str | None = None
    status: str = "ok"
    served: str | None = None
    fingerprint: str | None = None
    served_judge: str | None = None
    judge: str | tuple[JudgeLine, ...] | None = None

    def name_in(self, ended: PairCounts) -> None:
        """Counts the names of an answer. Which of several judges has which name is not known: they are not counted."""
        if self.status in ANSWERED:
            ended.name(self.served, self.fingerprint)
        if self.served_judge is not None and self.judge:
            judge, *others = (self.judge,) if isinstance(self.judge, str) else (each.model for each in self.judge)
            names = ended.judges.setdefault(judge, {})
            if not others:
                names[self.served_judge] = names.get(self.served_judge, 0) + 1


class ItemLine(NamedLine, frozen=True, kw_only=True):
    """The fields of a line of an item."""

    id: str
    step: int = 1
    truncated: bool = False
    text: str | None = None
    usage: Usage | None = None
    usage_judge: Usage | None = None
    cost: float | None = None
    cost_judge: float | None = None
    cost_search: float | None = None
    cached: bool = False
    from_cache: FromCache | None = None
    maybe_billed: int = 0
    role: str = ""
    error: str = ""

    @property
    def item(self) -> str:
        """The id of the item that the line belongs to, for items of several steps."""
        return item_of(self.id, self.step)

    @property
    def is_cut_empty(self) -> bool:
        """Whether the answer was cut off before its first word."""
        return self.truncated and not (self.text or "").strip()

    @property
    def answered(self) -> Iterable[str]:
        """The lanes that must have answered for this record to exist."""
        return (self.model,)
