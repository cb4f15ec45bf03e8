"""The line of one judge about one answer, in `judgements.jsonl`.

Owns the fields that all benchmarks share. A benchmark adds those of its records that a judge decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Self, TypeVar

from msgspec import UNSET, UnsetType, structs

from ....engine.call import Usage
from ....engine.runs.pairs import Pair
from ....engine.runs.proof import ANSWERED
from ....engine.runs.run_folder import RunFiles
from .kept_answer import VerdictLine, verdict_lines
from .record import StepPlace, StepSpent

JUDGEMENTS = "judgements.jsonl"
FILES = RunFiles("judgements.json", JUDGEMENTS, "judgements-failures.jsonl")
BUDGET = "judgements-budget"
_Line = TypeVar("_Line", bound="Judgement")


class Judgement(VerdictLine, frozen=True, kw_only=True):
    """What one judge said about one answer, or why it said nothing."""

    judge: str = ""
    """The model that judged."""
    status: str = "ok"
    """`ok`, or the kind of failure."""
    key: str = ""
    """The key of the judge's last call, under which the cache has its reply."""
    keys: tuple[str, ...] = ()
    """The keys of all its calls."""
    usage: Usage | None = None
    """The judge's tokens, those of replies from the cache included."""
    cost: float | None = None
    """The dollars of its calls; None: the judge has no price."""
    cached: bool = False
    """Whether all its replies are from the cache."""
    attempts: int = 0
    """The number of attempts of its calls."""
    maybe_billed: int = 0
    """The attempts without a whole reply that may have been billed all the same."""
    served_judge: str | None = None
    """The name under which the judge answered, as the server states it; several are joined by ` + `. None: it stated
    none."""
    error: str | UnsetType = UNSET
    """In a failure: what happened, and what to do."""

    @property
    def pair(self) -> Pair:
        """The judge, as the pair of a run whose items are answers."""
        return Pair(self.judge, None)

    @property
    def is_failure(self) -> bool:
        """Whether the judge gave no judgement."""
        return self.status not in ANSWERED

    def as_written(self, place: StepPlace, spent: StepSpent) -> Self:
        """Returns the judgement with what its calls cost."""
        return structs.replace(
            self,
            key=spent.keys[-1] if spent.keys else "",
            keys=tuple(spent.keys),
            usage=spent.judge.usage,
            served_judge=spent.judge.served,
            cost=spent.cost,
            cached=spent.judge.are_cached,
            attempts=spent.attempts,
            maybe_billed=spent.maybe_billed,
        )


def read_judgements(folder: Path, kind: type[_Line]) -> Iterator[_Line]:
    return verdict_lines(folder / JUDGEMENTS, kind, "judgement")
