"""The fields of a journal line that the framework reads: who answered, which step it is, and what is counted; and
these counts.

A benchmark whose records have other field names extends `ItemLine`. Other fields are the benchmark's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from ....engine.call import Usage, known_sum
from ....engine.pairs import Pair, PairCounts
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

    @property
    def pair(self) -> Pair:
        """The model under test and its treatment."""
        return Pair(self.model, self.temperature, self.effort)

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
    def line_id(self) -> str:
        """The line's id among those of its pair."""
        return self.id

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


_NONE = Usage(0, 0)
_NOTHING = FromCache()


class JudgeTotals(Struct):
    """Tokens and dollars of judging a pair's answers."""

    input_tokens: int = 0
    """Input tokens of calls that were sent, not of cached ones."""
    output_tokens: int = 0
    """Output tokens of calls that were sent, not of cached ones."""
    cost: float | None = None
    """Dollars; None: no line has a price."""


class StepTotals(Struct):
    """The counts of a run's steps so far."""

    pairs: dict[Pair, PairCounts] = field(default_factory=dict)
    """How the steps of each pair ended."""
    judging: dict[Pair, JudgeTotals] = field(default_factory=dict)
    """Tokens and dollars of judging each pair's answers."""
    searches: dict[Pair, float] = field(default_factory=dict)
    """The dollars of each pair's searches."""
    roles: dict[Pair, dict[str, int]] = field(default_factory=dict)
    """The number of failures of each pair, by the role of the failed call."""

    def of(self, pair: Pair) -> PairCounts:
        """Returns the counts of one pair; all 0 if it has no lines."""
        return self.pairs.get(pair) or PairCounts()

    def summary(
        self, folder: Path, manifest: Mapping[str, Any], unpriced: Sequence[str]
    ) -> tuple[Sequence[str], Mapping[str, Any]]:
        """Returns sentences on the run in a folder beside its scores, and the same for programs. `unpriced`: its models
        without a price."""
        return (), {}

    def add(self, pair: Pair, line: ItemLine) -> None:
        """Adds one journal line to the counts of its pair."""
        ended = self.pairs.get(pair) or self.pairs.setdefault(pair, PairCounts())
        judging = self.judging.get(pair) or self.judging.setdefault(pair, JudgeTotals())
        if line.status == "ok":
            ended.ok += 1
        elif line.status == "refused":
            ended.refused += 1
        else:
            ended.fail(line.status, line.error)
            roles = self.roles.setdefault(pair, {})
            roles[line.role] = roles.get(line.role, 0) + 1
        line.name_in(ended)
        ended.cached += line.cached and line.status in ANSWERED
        ended.truncated += line.truncated
        ended.maybe_billed += line.maybe_billed
        if line.cost_search is not None:
            self.searches[pair] = self.searches.get(pair, 0.0) + line.cost_search
        if line.cost_judge is not None:
            judging.cost = known_sum(judging.cost, line.cost_judge)
        # A line that is cached, and says no more of it, as other programs' do, had nothing sent.
        stored = line.from_cache or (None if line.cached else _NOTHING)
        usage, usage_judge = line.usage, line.usage_judge
        if usage is not None and stored is not None:
            _add_sent(ended, usage, stored.usage)
        if usage_judge is not None and stored is not None:
            _add_sent(judging, usage_judge, stored.usage_judge)
            ended.judged += not stored.judge
        if line.cost is not None:
            ended.cost = known_sum(ended.cost, line.cost)
            # An answer without any tokens, as of a server that reports none, is billed by an estimate too.
            has_none = line.status in ANSWERED and usage is None and usage_judge is None
            if has_none or not all(each is None or each.is_whole for each in (usage, usage_judge)):
                ended.at_worst += line.cost


def _add_sent(counts: PairCounts | JudgeTotals, usage: Usage, unsent: Usage | None) -> None:
    """Adds the tokens of a line's calls, without those that were not sent."""
    unsent = unsent or _NONE
    counts.input_tokens += (usage.input or 0) - (unsent.input or 0)
    counts.output_tokens += (usage.output or 0) - (unsent.output or 0)
