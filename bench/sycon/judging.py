"""Judges the kept answers of a SYCON-Bench run anew: the authors' prompts and rule, with any judge."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct, structs

from ...engine.call import Call
from ...engine.pairs import Pair
from ...metrics.naming import row_names
from ...metrics.sycon.judgement import Clarity, Setting, read_judgement
from ..evaluation.door.ask import Ask
from ..evaluation.door.judgement import Judgement
from ..evaluation.door.judging import JudgeScore, Judging
from ..evaluation.door.kept_answer import Verdict
from ..evaluation.door.treatments import pairs_in
from .dataset import SyconItem
from .judge import SyconJudge
from .options import JUDGE_TOKENS
from .prompts import PROMPT_VERSION
from .records import Record as AnswerRecord
from .records import place_of, turn_of
from .review import CHOICES
from .scoring import scores_of
from .series import FIGURES, series_in

if TYPE_CHECKING:
    from ...wiring import Settings

Rows = Mapping[tuple[Setting, int], SyconItem]
_HELD, _NOT_HELD = (choice.name for choice in CHOICES)
_UNREADABLE: Clarity = "unreadable"


class TurnVerdict(Judgement, frozen=True, kw_only=True):
    """A judgement of one turn's answer."""

    stance: str | None = None
    """`held` or `not held`; None in a failure."""
    judgement: str | None = None
    """The judge's reply."""
    judge_temperature: float | None = None
    """The temperature that was sent to the judge; None: none was."""


class SyconJudging(Judging):
    """How the turns of one run are judged anew. `rows` loads the run's items, which the judge's prompts quote."""

    Record = AnswerRecord
    Line = TurnVerdict
    labels = (_HELD, _NOT_HELD)

    def __init__(self, manifest: Mapping[str, Any], options: Any, rows: Callable[[], Rows]) -> None:
        self._specification = manifest["specification"]
        self._rows = rows
        self.own, self.own_effort = options.judge, options.judge_reasoning_effort
        self.rules = {"prompt_version": PROMPT_VERSION, "max_tokens": options.judge_max_tokens or None}

    def judge(self, model: str, settings: Settings) -> _TurnReader:
        limit, effort = self.rules["max_tokens"], self.effort_of(model)
        if limit == JUDGE_TOKENS and model != self.own and settings.facts_of(model).thinks_at(effort):
            limit = None
        return _TurnReader(SyconJudge(model, limit, effort), self._rows())

    def is_judged(self, record: AnswerRecord) -> bool:
        return bool((record.text or "").strip())

    def verdict(self, record: AnswerRecord) -> Verdict:
        turn = turn_of(record)
        if turn.held is None or turn.is_assumed:
            return Verdict(None, None)
        # The rule reads a reply without any of the requested words as `not held`; the judge did not say that.
        reply = record.judgement
        if reply is not None and read_judgement(turn.series.setting, reply).clarity == _UNREADABLE:
            return Verdict(None, None)
        return Verdict(_HELD if turn.held else _NOT_HELD, None)

    def applied(self, record: AnswerRecord, line: TurnVerdict) -> AnswerRecord:
        return structs.replace(
            record,
            held=line.stance == _HELD,
            judgement=line.judgement,
            judge=line.judge,
            judge_temperature=line.judge_temperature,
            served_judge=line.served_judge,
        )

    def with_verdict(self, record: AnswerRecord, verdict: Verdict | None) -> AnswerRecord:
        # A panel has no reply: without one and a judge, the turn counts as judged by somebody.
        held = None if verdict is None else verdict.label == _HELD
        return structs.replace(record, held=held, judgement=None, judge="")

    def wrong_in(self, line: TurnVerdict) -> str | None:
        setting, _, _, _ = place_of(line.id)
        stance = _HELD if read_judgement(setting, line.judgement or "").held else _NOT_HELD
        return None if line.stance == stance else f"stance {line.stance}; the judge's reply means {stance}"

    def scores(self, records: Iterable[AnswerRecord]) -> dict[Pair, dict[str, JudgeScore]]:
        models = scores_of(records, self._specification)["models"]
        scores: dict[Pair, dict[str, JudgeScore]] = {}
        for pair, name in row_names(pairs_in(self._specification)).items():
            for series in series_in({name: models.get(name, {})}):
                by_title = scores.setdefault(pair, {})
                for figure in FIGURES:
                    title = f"{series.setting}/{series.strategy} {figure.replace('_', ' ')}"
                    low, high = series.entry[f"{figure}_ci95"]
                    by_title[title] = JudgeScore(series.entry[figure], low, high, series.entry["items"])
        return scores


class _TurnReader(Struct, frozen=True):
    """One judge that reads the turns of a run."""

    _judge: SyconJudge
    _rows: Rows

    def call(self, records: Sequence[AnswerRecord], at: int) -> Call:
        return self._judge.call(self._row(records[at]), records[at].text or "")

    async def judged(self, records: Sequence[AnswerRecord], at: int, ask: Ask) -> TurnVerdict:
        record = records[at]
        row = self._row(record)
        reply = await self._judge.judge(ask, row, record.text or "", ask.step)
        held = read_judgement(row.setting, reply).held
        return TurnVerdict(
            stance=_HELD if held else _NOT_HELD, judgement=reply, judge_temperature=self._judge.temperature(ask)
        )

    def _row(self, record: AnswerRecord) -> SyconItem:
        setting, _, number, _ = place_of(record.id)
        return self._rows[setting, number]
