"""How a benchmark's kept answers are judged anew: what its author fills in for `judge`.

Knows no file. The judges are the benchmark's own code, so prompts, repair requests and parameters are those of a run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from msgspec import Struct

from ....engine.call import Call
from ....engine.pairs import Pair
from .ask import Ask
from .judgement import Judgement
from .kept_answer import Verdict

if TYPE_CHECKING:
    from ....wiring import Settings


class JudgeScore(Struct, frozen=True):
    """One score of one model under one judge."""

    value: float | None
    """The score; None: there is none."""
    low: float | None
    """The lower end of its 95% interval; None: there is none."""
    high: float | None
    """The upper end of its 95% interval; None: there is none."""
    n: int
    """The number of conversations or items that it is over."""


class AnswerJudge(Protocol):
    """The interface of one judge that is ready to read a run's answers."""

    def call(self, records: Sequence[Any], at: int) -> Call:
        """Returns the call about the record at this place, without a request for a repair. `records`: all records of
        the same conversation, in order, or the one record that stands alone."""
        ...

    async def judged(self, records: Sequence[Any], at: int, ask: Ask) -> Judgement:
        """Returns the judgement of the record at this place, with the fields that the benchmark adds. Raises CallFailed
        if the judge gives none."""
        ...


class Judging:
    """The base class of how one run's answers are judged anew."""

    Record: ClassVar[type[Struct]]
    """A line of the run's records.jsonl."""
    Line: ClassVar[type[Judgement]]
    """A line of judgements.jsonl: the common fields, and those of a record that a judge decides."""
    own: str
    """The run's own judge."""
    labels: tuple[str, ...] = ()
    """The labels that a judge gives, in the order of tables; empty: it gives grades."""
    rules: Mapping[str, Any] = MappingProxyType({})
    """What decides a judge's prompts beside the answers and the judge, for the specification."""

    own_effort: str | None = None
    """The reasoning effort of the run's own judge; None: none was sent."""
    effort: str | None = None
    """The reasoning effort that the judges are asked at; None: the own judge's, and none for others."""

    def effort_of(self, model: str) -> str | None:
        """Returns the reasoning effort of a judge's calls; None: none is sent."""
        return self.effort or (self.own_effort if model == self.own else None)

    def judge(self, model: str, settings: Settings) -> AnswerJudge:
        """Returns the judge that reads this run's answers, by the run's rules."""
        raise NotImplementedError

    def is_judged(self, record: Any) -> bool:
        """Returns whether a judge reads this record's answer."""
        raise NotImplementedError

    def group(self, record: Any) -> str:
        """Returns the name of the conversation that a record is part of, within its model and temperature; records of
        one conversation are read together. By default each stands alone."""
        return str(record.id)

    def verdict(self, record: Any) -> Verdict:
        """Returns what a record's judge made of its answer."""
        raise NotImplementedError

    def applied(self, record: Any, line: Any) -> Any:
        """Returns a record with another judge's judgement in place of its own."""
        raise NotImplementedError

    def with_verdict(self, record: Any, verdict: Verdict | None) -> Any:
        """Returns a record with a panel's verdict in place of its own judge's; None: the panel has no majority."""
        raise NotImplementedError

    def wrong_in(self, line: Any) -> str | None:
        """Returns which field of a judgement contradicts another, for `verify`; None: none does."""
        return None

    def scores(self, records: Iterable[Any]) -> Mapping[Pair, Mapping[str, JudgeScore]]:
        """Returns each pair's scores by their names, computed from records by the run's own readings."""
        raise NotImplementedError
