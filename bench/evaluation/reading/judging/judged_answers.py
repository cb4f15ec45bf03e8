"""Judging as a benchmark: its models are the judges, its items a run's kept answers. Asks no model under test."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping
from functools import cache
from typing import Any

from msgspec import structs

from .....engine.call import Call
from .....engine.runs.pairs import Pair
from .....wiring import Settings
from ...door.ask import Ask, CallFailed
from ...door.benchmark import ItemBenchmark
from ...door.item import Item
from ...door.item_set import ItemSet
from ...door.judgement import Judgement, JudgementLine, read_judgements
from ...door.judges import Judges
from ...door.judging import AnswerJudge, Judging
from ...door.kept_answer import Key, key_of
from ...door.served_rows import ScoredRun
from .kept_answers import KeptAnswer, KeptAnswers
from .panel import JudgeReplies


class JudgedAnswers(ItemBenchmark[Judgement]):
    """Judges that read a run's kept answers, by the rules of the run's benchmark."""

    name = "judging"
    unit = "judgement"
    columns = ()
    Record = Judgement
    Line = JudgementLine

    def __init__(
        self, title: str, judging: Judging, answers: KeptAnswers, judges: tuple[str, ...], settings: Settings
    ) -> None:
        self.title = title
        self._judging = judging
        self._answers = answers
        self._judges = judges
        self._sent = Judges(settings)
        self._judge = cache(lambda model: judging.judge(model, settings))

    @property
    def is_asked_once(self) -> bool:
        return True

    def items(self, options: Any = None) -> ItemSet:
        described = {"path": str(self._answers.path), "answers": len(self._answers)}
        return ItemSet(
            lambda: (Item(f"{answer.key} {answer.text_sha256}", answer) for answer in self._answers),
            digest="kept",
            dataset=described,
            title=self.title,
        )

    def call(self, item: Item, options: Any, pair: Pair) -> Call:
        """Returns a judge's call about an answer, without requests for a repair."""
        return self._sent.as_sent(self._judge(pair.model).call(*self._records_of(item.data)))

    async def run(self, item: Item, ask: Ask, done: Mapping[int, Judgement]) -> AsyncIterator[Judgement]:
        """Yields the judgement of an answer, or its failure."""
        answer: KeptAnswer = item.data
        judge: AnswerJudge = self._judge(ask.pair.model)
        try:
            made = await judge.judged(*self._records_of(answer), ask)
        except CallFailed as error:
            made = Judgement(status=error.failure.kind, error=error.failure.detail)
        place = answer.key.pair._asdict()
        yield structs.replace(made, id=answer.key.id, **place, text_sha256=answer.text_sha256, judge=ask.pair.model)

    def cells(self, entry: Mapping[str, Any]) -> tuple[str, ...]:
        return ()

    def score_lines(self, lines: Iterable[bytes], run: ScoredRun) -> Mapping[str, Any]:
        """Returns the judges of whose replies too few could be read. Their verdicts are compared by a panel."""
        judging, judged = self._judging, defaultdict[Key, list[Judgement]](list)
        for line in read_judgements(run.folder, judging.Line):
            if line.judge in self._judges and self._answers.are_of(line):
                judged[line.answer].append(line)
        answered = Counter(line.judge for lines_of in judged.values() for line in lines_of)
        unread = Counter(
            line.judge
            for record in self._answers.records()
            for line in judged.get(key_of(record), ())
            if not judging.verdict(judging.applied(record, line)).is_read(judging.labels)
        )
        replies = (JudgeReplies(judge, answered[judge], unread[judge]) for judge in self._judges)
        return {"models": {}, "unmeasured": [each.unread_text for each in replies if each.is_unmeasured]}

    def _records_of(self, answer: KeptAnswer) -> tuple[list[Any], int]:
        """Returns the records of an answer's conversation, and its own place among them."""
        records = self._answers.records_of(answer)
        return records, next(at for at, record in enumerate(records) if key_of(record) == answer.key)
