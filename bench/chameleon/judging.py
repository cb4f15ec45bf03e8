"""Judges the kept answers of a Chameleon run anew: the run's prompts and rules, with any judge."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Struct, structs

from ...engine.call import Call
from ...engine.pairs import Pair
from ...metrics.chameleon.lines import STANCES
from ...metrics.chameleon.rubric import confidence_of
from ...metrics.chameleon.scores import scores as scores_of
from ...metrics.chameleon.traces import Traces
from ...providers.models import WINDOW, prompt_tokens
from ..evaluation.door.ask import Ask
from ..evaluation.door.item import Item
from ..evaluation.door.judging import JudgeScore, Judging
from ..evaluation.door.kept_answer import Verdict
from ..evaluation.door.kept_options import kept_options
from ..evaluation.running.journals import encode
from .conversation import Script
from .judge import JUDGED, AnsweredTurn, StanceJudgement, TurnJudge
from .prompts import PastTurn
from .records import Record as AnswerRecord
from .run_spec import planned_turns, readings_of_run

if TYPE_CHECKING:
    from ...wiring import Settings


# The fields that a record takes over from a judgement.
_JUDGED = (*JUDGED, "judge", "served_judge")
SCORES = ("score", "srr", "confidence", "changes")


class TurnJudging(Judging):
    """How the turns of one run are judged anew. `items` loads the run's conversations, which have the trial numbers of
    calls."""

    Record = AnswerRecord
    Line = StanceJudgement
    labels = STANCES

    def __init__(self, manifest: Mapping[str, Any], items: Callable[[], Iterable[Item]]) -> None:
        self._manifest = manifest
        self._items = items
        self._specification: Mapping[str, Any] = manifest["specification"]
        self._readings = readings_of_run(manifest)
        self.own, self.own_effort = self._specification["judge"], self._specification.get("judge_effort")
        self.rules = {name: self._specification[name] for name in ("prompt_version", "judge_prompt")}

    def judge(self, model: str, settings: Settings) -> _TurnReader:
        run = self._specification
        if model == self.own:
            temperature, tokens = run["judge_temperature"], run["prompt_tokens"][model]
        else:
            temperature = 0.0
            window = kept_options(self._manifest, "chameleon").get("window")
            tokens = prompt_tokens(window or settings.facts_of(model).window or WINDOW, run["max_tokens"])
        judge = TurnJudge(model, run["judge_prompt"], tokens, temperature, self.effort_of(model))
        return _TurnReader(judge, {item.id: item.data for item in self._items()})

    def is_judged(self, record: AnswerRecord) -> bool:
        # A refusal takes no stance: the run asks no judge about it.
        return record.status == "ok"

    def group(self, record: AnswerRecord) -> str:
        return record.conversation

    def verdict(self, record: AnswerRecord) -> Verdict:
        # A reply that could not be read leaves no confidence; its `unclear` is not the judge's word.
        if record.confidence is None:
            return Verdict(None, None)
        number = record.judge_confidence if self._readings.confidence == "number" else None
        return Verdict(record.stance, None, record.confidence if number is None else number)

    def applied(self, record: AnswerRecord, line: StanceJudgement) -> AnswerRecord:
        return structs.replace(record, raw_judgement=UNSET, **{name: getattr(line, name) for name in _JUDGED})

    def with_verdict(self, record: AnswerRecord, verdict: Verdict | None) -> AnswerRecord:
        stance = next((each for each in STANCES if verdict is not None and each == verdict.label), "unclear")
        return structs.replace(
            record,
            stance=stance,
            rationale=None,
            confidence=None if verdict is None else verdict.confidence,
            judge_confidence=None,
            contradictions_acknowledged=None,
        )

    def wrong_in(self, line: StanceJudgement) -> str | None:
        certain = None if line.rationale is None else confidence_of(line.rationale)
        return None if line.confidence == certain else f"confidence {line.confidence}; its rationale has {certain}"

    def scores(self, records: Iterable[AnswerRecord]) -> dict[Pair, dict[str, JudgeScore]]:
        traces = Traces()
        for record in records:
            traces.add(encode(record))
        planned = planned_turns(self._specification)
        models = scores_of(traces, self._readings, planned)["models"]
        by_pair = {}
        for pair in planned:
            if entry := models.get(pair.model, {}).get(pair.treatment):
                by_pair[pair] = {name: _score(entry[name], entry["conversations"]) for name in SCORES}
        return by_pair


class _TurnReader(Struct, frozen=True):
    """One judge that reads the turns of a run."""

    _judge: TurnJudge
    _scripts: Mapping[str, Script]

    def call(self, records: Sequence[AnswerRecord], at: int) -> Call:
        return self._judge.call(self._answered_turn(records, at))

    async def judged(self, records: Sequence[AnswerRecord], at: int, ask: Ask) -> StanceJudgement:
        return (await self._judge.judge(self._answered_turn(records, at), ask, ask.step)).judgement

    def _answered_turn(self, records: Sequence[AnswerRecord], at: int) -> AnsweredTurn:
        record = records[at]
        history = [PastTurn(each.question, each.own_text) for each in records[:at]]
        ranks = self._scripts[record.conversation].turns[record.turn - 1].sample
        sample = ranks.question if self._judge.prompt == "paper" else ranks.conversation
        answered = [exchange for exchange in history if exchange.answer.strip()]
        return AnsweredTurn(record.topic, answered, record.question, record.own_text, sample)


def _score(entry: Mapping[str, Any], conversations: int) -> JudgeScore:
    low, high = entry.get("ci95") or (None, None)
    return JudgeScore(entry["mean"], low, high, conversations)
