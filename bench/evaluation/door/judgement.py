"""The line of one judge about one answer, in `judgements.jsonl`.

Owns the fields that all benchmarks share. A benchmark adds those of its records that a judge decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Self, TypeVar

from msgspec import UNSET, UnsetType, structs

from ....engine.call import Usage
from ....engine.pairs import Pair, PairCounts
from ....engine.runs.proof import ANSWERED
from ....engine.runs.run_folder import RunFiles
from .item_line import ItemLine
from .kept_answer import VerdictLine, key_of, verdict_lines
from .outside import CallCosts
from .record import StepPlace

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
    def is_failure(self) -> bool:
        """Whether the judge gave no judgement."""
        return self.status not in ANSWERED

    def as_written(self, place: StepPlace, spent: CallCosts) -> Self:
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


class JudgementLine(ItemLine, frozen=True, kw_only=True):
    """The fields of a judgement that the framework reads, as the line of a run whose models are judges."""

    judge: str = ""
    text_sha256: str = ""

    @property
    def pair(self) -> Pair:
        return Pair(self.judge, None)

    @property
    def item(self) -> str:
        return judgement_id(self)

    @property
    def line_id(self) -> str:
        return judgement_id(self)

    @property
    def answered(self) -> tuple[str]:
        return (self.judge,)

    def name_in(self, ended: PairCounts) -> None:
        ended.name(self.served_judge, None)


def judgement_id(line: Judgement | JudgementLine) -> str:
    """Returns the id of a judgement among those of its judge: its answer, with the text that was read."""
    return f"{key_of(line)} {line.text_sha256}"


def read_judgements(folder: Path, kind: type[_Line]) -> Iterator[_Line]:
    return verdict_lines(folder / JUDGEMENTS, kind, "judgement")
