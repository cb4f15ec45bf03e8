"""The judging of a run's kept answers as a run of its own: its pairs are the judges, its items the answers.

Sends each judge's missing judgements by the way that every run has, and counts what the journals hold. Asks no model
under test.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct, structs

from .....engine.attempts.estimate import chars_of
from .....engine.call import Call
from .....engine.fault import Stop
from .....engine.runs.pairs import FinishedItems, Pair, PairCounts
from .....engine.runs.proof import ANSWERED
from .....engine.runs.run_folder import RunFolder
from .....wiring import Settings
from ...door.ask import Ask, CallFailed
from ...door.item import Item
from ...door.judgement import Judgement
from ...door.judges import Judges
from ...door.judging import AnswerJudge, Judging
from ...door.kept_answer import Key, key_of, unique_name
from ...door.work import RunCounts
from ...running.cost_bound import worst_costs
from ...running.item_run import ItemRun, Items
from ...running.journals import UNRECORDED, decoded
from ...running.sending import at_once_of
from ...running.steps import StepSweep
from .kept_answers import AnswerGroup, KeptAnswers
from .panel import JudgeReplies

if TYPE_CHECKING:
    from .....wiring.engine import Engine


class _UnjudgedGroup(NamedTuple):
    """A conversation, the judge that reads it, and the answers of which its judgements are missing."""

    judge: AnswerJudge
    group: AnswerGroup
    missing: frozenset[Key]


class JudgingWork(Struct, frozen=True):
    """Judges that are to read a run's kept answers."""

    benchmark: str
    """The benchmark of the run."""
    judging: Judging
    """How the benchmark's answers are judged."""
    answers: KeptAnswers
    """The answers."""
    judges: tuple[str, ...]
    """The judges that are asked."""
    settings: Settings
    """The settings by which calls are sent."""

    Record = Judgement
    item = "judgement"
    is_item_a_call = False
    score_columns: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        return self.benchmark

    @property
    def items(self) -> int:
        return len(self.answers)

    @property
    def lanes(self) -> tuple[str, ...]:
        return self.judges

    @property
    def max_tokens(self) -> dict[str, int | None]:
        return {call.model: call.max_tokens for call in self.first_calls()}

    def pairs(self) -> list[Pair]:
        return [Pair(judge, None) for judge in self.judges]

    def worst_calls(self, settings: Settings) -> dict[str, float]:
        nobody = FinishedItems({}, 0.0)
        calls = (max(self.calls(pair, nobody), key=chars_of, default=Call(pair.model, "")) for pair in self.pairs())
        return worst_costs(calls, settings)

    def first_calls(self) -> list[Call]:
        """Returns each judge's call about the first answer."""
        nobody = FinishedItems({}, 0.0)
        return [call for pair in self.pairs() for call in islice(self.calls(pair, nobody), 1)]

    def calls(self, pair: Pair, done: FinishedItems) -> Iterator[Call]:
        """Yields a judge's calls about all answers that are not done, without requests for a repair."""
        judge, judges = self.judging.judge(pair.model, self.settings), Judges(self.settings)
        for group, missing in self._missing(pair, done):
            records = self.answers.records_of(group)
            for at in _places(records, missing):
                yield from map(judges.as_sent, judge.calls(records, at))

    def read_done(self, folder: RunFolder) -> FinishedItems:
        lines = (
            line
            for journal in (folder.records, folder.failures)
            for line in decoded(journal.read(), Judgement, str(journal.path))
        )
        return self.finished(lines, float(folder.manifest.get(UNRECORDED, 0.0)))

    def finished(self, lines: Iterator[Judgement], unrecorded: float = 0.0) -> FinishedItems:
        """Returns which judgements these lines hold. A judgement of a text that has changed since is to be made
        again."""
        ids: dict[Pair, set[str]] = {}
        answered, cost = set(), unrecorded
        for line in lines:
            cost += line.cost or 0.0
            if self._counts(line):
                ids.setdefault(line.pair, set()).add(unique_name(line.answer))
                answered.update([] if line.is_failure else [line.judge])
        return FinishedItems(ids, cost, frozenset(answered))

    async def send(
        self, engine: Engine, folder: RunFolder, done: FinishedItems, item_ended: Callable[[], None]
    ) -> list[Stop]:
        sweep = StepSweep(engine, folder, item_ended)
        shared = Items(self, engine, None, sweep.write, Judges(self.settings))

        def groups(pair: Pair) -> Iterator[ItemRun]:
            judge = self.judging.judge(pair.model, self.settings)
            for group, missing in self._missing(pair, done):
                unjudged = _UnjudgedGroup(judge, group, missing)
                yield ItemRun(shared, Item(group.name, unjudged, steps=len(missing)), pair, [])

        at_once = at_once_of((self.settings.concurrency_of(judge), None) for judge in self.judges)
        return await sweep.run({pair: groups(pair) for pair in self.pairs()}, at_once)

    async def run(self, item: Item, ask: Ask, done: Mapping[int, Any]) -> AsyncIterator[Judgement]:
        """Yields a judge's judgements of one conversation, one after the other, also those that failed."""
        unjudged: _UnjudgedGroup = item.data
        records = self.answers.records_of(unjudged.group)
        for at in _places(records, unjudged.missing):
            key = key_of(records[at])
            try:
                made = await unjudged.judge.judged(records, at, ask)
            except CallFailed as error:
                made = Judgement(status=error.failure.kind, error=error.failure.detail)
            text = self.answers.texts[key]
            yield structs.replace(made, id=key.id, **key.pair._asdict(), text_sha256=text, judge=ask.pair.model)

    def count(self, folder: RunFolder) -> RunCounts:
        ended = {pair: PairCounts() for pair in self.pairs()}
        judged: dict[Key, list[Judgement]] = {}
        for journal in (folder.records, folder.failures):
            for line in decoded(journal.read(), self.judging.Line, str(journal.path)):
                if self._counts(line):
                    _count(ended[line.pair], line)
                    if not line.is_failure:
                        judged.setdefault(line.answer, []).append(line)
        unread = Counter(
            line.judge
            for record in self.answers.records()
            for line in judged.get(key_of(record), ())
            if not self.judging.verdict(self.judging.applied(record, line)).is_read(self.judging.labels)
        )
        replies = (JudgeReplies(pair.model, ended[pair].answered, unread[pair.model]) for pair in ended)
        return RunCounts(ended, {}, unmeasured=tuple(each.unread_text for each in replies if each.is_unmeasured))

    def score_cells(self, scores: Mapping[str, Any], pair: Pair) -> tuple[str, ...]:
        return ()

    def _counts(self, line: Judgement) -> bool:
        return line.judge in self.judges and self.answers.are_of(line)

    def _missing(self, pair: Pair, done: FinishedItems) -> Iterator[tuple[AnswerGroup, frozenset[Key]]]:
        before = done.of(pair)
        for group in self.answers.groups():
            missing = frozenset(key for key in group.answers if unique_name(key) not in before)
            if missing:
                yield group, missing


def _count(ended: PairCounts, line: Judgement) -> None:
    if line.status in ANSWERED:
        ended.ok += 1
    else:
        ended.fail(line.status, line.error or "")
    ended.name(line.served_judge, None)
    ended.cached += line.cached
    ended.maybe_billed += line.maybe_billed
    ended.charge(line.usage, line.cost, is_answered=line.status in ANSWERED, is_cached=line.cached)


def _places(records: list[Any], wanted: frozenset[Key]) -> Iterator[int]:
    return (at for at, record in enumerate(records) if key_of(record) in wanted)
