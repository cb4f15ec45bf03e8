"""Judges the kept answers of a task's run anew: the task's own rubric and grades, with any judge.

The task's program is not run: the manifest holds the judge's rubric, and each record its row and prompt.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Struct, UnsetType, structs

from ...configuration.errors import UsageError
from ...engine.call import Call, Message, Reply
from ...engine.content import Image
from ...engine.pairs import Pair
from ..evaluation.door.ask import Ask
from ..evaluation.door.judgement import Judgement
from ..evaluation.door.judging import JudgeScore, Judging
from ..evaluation.door.kept_answer import Verdict
from ..evaluation.door.run_counts import entry_of
from ..evaluation.door.treatments import pairs_in
from .declared import scorer_from
from .grading import exchange_of
from .judge import Exchange, Judge, told
from .judge_call import JudgeCall
from .options import Readings
from .prompts import alone
from .records import Record as AnswerRecord
from .records import silence_of
from .rows import TaskError
from .score_document import scores_in
from .template import template
from .win_rate import WinRate

if TYPE_CHECKING:
    from ...wiring import Settings

_MEAN = "mean"
# The fields of a record's judge, with the names that they have in a judgement.
_NAMES = {
    **{name: name for name in ("score", "grade", "repaired")},
    "reason": "rationale",
    "text": "reply",
    "temperature": "judge_temperature",
}


class GradeJudgement(Judgement, frozen=True, kw_only=True):
    """A judgement of one answer to a task."""

    stance: str | None = None
    """The grade's name; None: the judge grades on a scale, or its reply could not be read."""
    score: float | None = None
    """The grade as a score; None: the reply could not be read."""
    rationale: str = ""
    """The judge's reason; empty: it gave none."""
    repaired: bool = False
    """Whether the judge was asked a second time, since its first reply had no valid grade."""
    grade: str | None = None
    """The grade as the judge wrote it."""
    reply: str = ""
    """The judge's last reply."""
    judge_temperature: float | UnsetType | None = UNSET
    """The temperature that was sent to the judge; None: none was."""


class GradeJudging(Judging):
    """How the answers of one task's run are judged anew. A task with several judges has its first one replaced."""

    Record = AnswerRecord
    Line = GradeJudgement

    def __init__(self, manifest: Mapping[str, Any], readings: Readings) -> None:
        self._specification = manifest["specification"]
        self._readings = readings
        self._name, self._judge = _judge_of(self._specification)
        self.own, self.own_effort = self._judge.model, self._judge.reasoning_effort
        self.labels = () if self._judge.scale else tuple(self._judge.grades)
        self.rules = {name: value for name, value in self._judge.describe().items() if name not in ("scorer", "model")}

    def judge(self, model: str, settings: Settings) -> _AnswerReader:
        asked = structs.replace(self._judge, model=model, reasoning_effort=self.effort_of(model))
        return _AnswerReader(self._name, asked, self._specification["prompt"])

    def is_judged(self, record: AnswerRecord) -> bool:
        return silence_of(record.reply()) is None

    def verdict(self, record: AnswerRecord) -> Verdict:
        own = next((each for each in record.judge or () if each.scorer == self._name), None)
        return Verdict(None, None) if own is None else self._verdict(own)

    def applied(self, record: AnswerRecord, line: GradeJudgement) -> AnswerRecord:
        fields = {name: getattr(line, other) for name, other in _NAMES.items()}
        replaced = JudgeCall(scorer=self._name, model=line.judge, **fields)
        others = [each for each in record.judge or () if each.scorer != self._name]
        return structs.replace(self._scored(record, line.score), judge=(replaced, *others))

    def with_verdict(self, record: AnswerRecord, verdict: Verdict | None) -> AnswerRecord:
        if verdict is None:
            return self._scored(record, None)
        return self._scored(record, verdict.grade if verdict.label is None else self._judge.grades[verdict.label])

    def wrong_in(self, line: GradeJudgement) -> str | None:
        read = self._judge.read(Reply(line.reply))[0].value
        return None if line.score == read else f"score {line.score}; the judge's reply means {read}"

    def scores(self, records: Iterable[AnswerRecord]) -> dict[Pair, dict[str, JudgeScore]]:
        # The judge may be one of several scorers; here its own grades are what is scored.
        graded = (self._main(record) for record in records)
        described = {self._name: self._specification["score"][self._name]}
        # Figures are of the task's own main score.
        specified = {**self._specification, "score": described, "figures": {}}
        found = scores_in(graded, specified, self._readings)
        entries = {pair: entry_of(found, pair) for pair in pairs_in(specified)}
        return {pair: {_MEAN: _score(entry)} for pair, entry in entries.items() if entry}

    def _verdict(self, call: JudgeCall) -> Verdict:
        if call.score is None:
            return Verdict(None, None)
        return Verdict(self._judge.grade_name(call.grade), call.score)

    def _main(self, record: AnswerRecord) -> AnswerRecord:
        own = record.scores or {}
        return structs.replace(record, score=own.get(self._name, record.score), scores=UNSET)

    def _scored(self, record: AnswerRecord, score: float | None) -> AnswerRecord:
        scores = record.scores
        if scores is not UNSET and self._name in scores:
            scores = {**scores, self._name: score}
        is_main = next(iter(self._specification["score"])) == self._name
        problem = None if score is not None else "no grade"
        changed = {"score": score, "problem": problem} if is_main else {}
        return structs.replace(record, scores=scores, **changed)


class _AnswerReader(Struct, frozen=True):
    """One judge that grades the answers of a run."""

    _name: str
    _judge: Judge
    _prompt: Mapping[str, Any]

    def call(self, records: Sequence[AnswerRecord], at: int) -> Call:
        record = records[at]
        return self._judge.call(self._exchange(record), record.as_row())

    async def judged(self, records: Sequence[AnswerRecord], at: int, ask: Ask) -> GradeJudgement:
        made, _ = await self._judge.send(self._name, self.call(records, at), ask)
        fields = {other: getattr(made, name) for name, other in _NAMES.items()}
        return GradeJudgement(stance=self._judge.grade_name(made.grade), **fields)

    def _exchange(self, record: AnswerRecord) -> Exchange:
        if record.transcript:
            return exchange_of(record.transcript.talk(), record.text)
        return Exchange(self._asked(record), told(record.reply()), _images_in(record))

    def _asked(self, record: AnswerRecord) -> str:
        """Returns the question as the run's judge read it: without the system prompt and the shots before it."""
        prompt = self._prompt["variants"][record.variant] if record.variant else self._prompt
        if (text := prompt.get("text")) is not None and not record.order:
            return template(text, "prompt").fill(record.as_row())
        if isinstance(record.prompt, str):
            return record.prompt
        turns = [(turn["role"], [part for part in turn["content"] if isinstance(part, str)]) for turn in record.prompt]
        if any(role == "assistant" for role, _ in turns):
            raise UsageError(
                f"judge: {record.id}: the prompt is made by a function and has answers in it: its records don't say "
                f"which turns are shots, so what the judge read can't be built again"
            )
        return alone(tuple(Message(role, "".join(texts)) for role, texts in turns))


def _images_in(record: AnswerRecord) -> tuple[Image, ...]:
    """Returns the images of a record's question. Raises UsageError for one of which the record has no address."""
    turns = [] if isinstance(record.prompt, str) else record.prompt
    parts = [part["image"] for turn in turns for part in turn["content"] if isinstance(part, dict) and "image" in part]
    if not all(isinstance(part, dict) for part in parts):
        raise UsageError(f"judge: {record.id}: its question has an image whose bytes records don't hold")
    return tuple(Image(**part) for part in parts)


def _judge_of(specification: Mapping[str, Any]) -> tuple[str, Judge]:
    for name, described in specification["score"].items():
        try:
            scorer = scorer_from(described, f"score {name}")
        except TaskError:
            continue  # a function
        if isinstance(scorer, Judge) and not isinstance(scorer, WinRate):
            return name, scorer
    raise UsageError(
        f"judge: no judge reads the answers of {specification['task']}, its scores come from "
        f"{', '.join(each['scorer'] for each in specification['score'].values())}: `millstream review` lets people "
        f"check them"
    )


def _score(entry: Mapping[str, Any]) -> JudgeScore:
    low, high = entry.get("ci95") or (None, None)
    return JudgeScore(entry.get("mean"), low, high, entry.get("items_scored", 0))
