"""Asks the judge, one fixed model, about every answer, and once more if its reply can't be read.

Owns the repair request and what counts as a judgement: a JSON object, with any text around it, that has a known stance
and, if requested, a rationale. Other fields are read if they have their type. Shared by all conversations of a run;
knows none of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from msgspec import Struct, structs

from ...engine.call import Call, Message, Outcome
from ...metrics.chameleon.lines import STANCES, Stance
from ...metrics.chameleon.rubric import confidence_of
from ..evaluation.data.model_json import UnusableAnswer, first_usable
from ..evaluation.door.ask import Ask, CallFailed
from ..evaluation.door.judgement import Judgement
from .context import fit_judge
from .prompts import JudgePrompt, PastTurn, repair_messages

RAW_MAX = 16_000


class StanceJudgement(Judgement, frozen=True, kw_only=True):
    """A judgement of one turn's answer."""

    stance: Stance = "unclear"
    """The answer's stance; `unclear` too if the judge's reply could not be read."""
    confidence: float | None = None
    """The certainty of the rationale by the rubric, from 0 to 1; None: the reply could not be read."""
    rationale: str | None = None
    """The judge's reason."""
    key_claims: tuple[str, ...] | None = None
    """The claims that the judge found in the answer."""
    contradictions_acknowledged: bool | None = None
    """Whether the answer acknowledges contradictions, by the judge; None: it did not say."""
    judge_confidence: float | None = None
    """The judge's own number, from 0 to 1; None: it gave none."""
    judge_temperature: float | None = None
    """The temperature that was sent to the judge; None: none was."""
    judge_repaired: bool = False
    """Whether the judge was asked a second time, for a readable reply."""


JUDGED = StanceJudgement.__struct_fields__[len(Judgement.__struct_fields__) :]
"""The names of its own fields, which a turn's record has too."""
UNCLEAR = StanceJudgement()
"""The judgement of an answer that could not be judged."""


def read_judgement(text: str, prompt: JudgePrompt) -> StanceJudgement:
    """Returns the first object in a reply that is a complete judgement. Raises UnusableAnswer if there is none."""
    return first_usable(text, lambda fields: _judgement(fields, prompt), "stance")


def _judgement(fields: dict[str, Any], prompt: JudgePrompt) -> StanceJudgement:
    value = fields.get("stance")
    named = value.strip().lower() if isinstance(value, str) else None
    stance = next((name for name in STANCES if name == named), None)
    if stance is None:
        received = "none" if value is None else repr(value)[:60]
        raise UnusableAnswer(f'"stance": expected one of {", ".join(STANCES)}, got {received}')
    rationale, number = "", None
    if prompt == "extended":
        sentence = fields.get("rationale")
        if not isinstance(sentence, str) or not sentence.strip():
            raise UnusableAnswer('"rationale": expected a sentence, got none')
        rationale, number = sentence, _number(fields.get("confidence"))
    return StanceJudgement(
        stance=stance,
        rationale=rationale.strip(),
        confidence=confidence_of(rationale),
        judge_confidence=number,
        key_claims=_claims(fields.get("key_claims")),
        contradictions_acknowledged=_boolean(fields.get("contradictions_acknowledged")),
    )


def _number(value: Any) -> float | None:
    """Returns a number from 0 to 1, also if written as a text; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and 0 <= number <= 1 else None


def _boolean(value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    return {"true": True, "false": False}.get(value.strip().lower()) if isinstance(value, str) else None


def _claims(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list):
        return ()
    return tuple(claim.strip() for claim in value if isinstance(claim, str) and claim.strip())


class RepairFailed(CallFailed):
    """Raised if the judge was asked a second time, for a readable reply, and this call failed for good."""


class JudgeResult(Struct, frozen=True):
    """The judgement of an answer, unclear if the judge's reply was unreadable; `raw` is a reply that was unreadable
    even when it was asked for a second time, else None. `forgotten` is how many turns were omitted from the judge's
    prompt."""

    judgement: StanceJudgement = UNCLEAR
    raw: str | None = None
    forgotten: int = 0


class AnsweredTurn(NamedTuple):
    """A turn as its judge is asked about it: the answer, and the turns before it. `sample` is the trial number of the
    judge's calls."""

    topic: str
    history: Sequence[PastTurn]
    question: str
    answer: str
    sample: int = 0


class TurnJudge(Struct, frozen=True):
    """The judge model, which reads an answer and returns its judgement. `tokens` is the most that its prompt may have;
    the oldest turns are left out first. `temperature`, `effort` None: none is sent."""

    model: str
    prompt: JudgePrompt
    tokens: int
    temperature: float | None = 0.0
    effort: str | None = None

    def call(self, turn: AnsweredTurn) -> Call:
        """Returns the first call about an answer."""
        return self._call(self._messages(turn)[0], turn.sample)

    async def judge(self, turn: AnsweredTurn, ask: Ask, step: int) -> JudgeResult:
        """Asks about the answer of a step, twice if the first reply can't be read. Raises CallFailed if a call
        fails."""

        async def asked(messages: tuple[Message, ...], failed: type[CallFailed]) -> Outcome:
            outcome = await ask.outcome(self._call(messages, turn.sample), role="judge", step=step)
            if outcome.failure is not None:
                raise failed(outcome.call, "judge", step, outcome.failure)
            return outcome

        messages, kept = self._messages(turn)
        forgotten = len(turn.history) - kept if self.prompt == "extended" else 0
        outcome = await asked(messages, CallFailed)
        read, text, is_repaired = self._read(outcome), _text(outcome), False
        if isinstance(read, UnusableAnswer) and not _is_refused(outcome):
            outcome = await asked(repair_messages(messages, text[:RAW_MAX], str(read)), RepairFailed)
            read, is_repaired = self._read(outcome), True
            text = _text(outcome) or text
        raw, judgement = (text[:RAW_MAX], UNCLEAR) if isinstance(read, UnusableAnswer) else (None, read)
        sent = {"judge_temperature": outcome.call.temperature, "judge_repaired": is_repaired}
        return JudgeResult(structs.replace(judgement, **sent), raw, forgotten)

    def _read(self, outcome: Outcome) -> StanceJudgement | UnusableAnswer:
        if _is_refused(outcome):
            return UnusableAnswer("the judge refused")
        try:
            return read_judgement(_text(outcome), self.prompt)
        except UnusableAnswer as error:
            return error

    def _messages(self, turn: AnsweredTurn) -> tuple[tuple[Message, ...], int]:
        return fit_judge(self.prompt, turn.topic, turn.history, turn.question, turn.answer, self.tokens)

    def _call(self, messages: tuple[Message, ...], sample: int) -> Call:
        return Call(self.model, messages, temperature=self.temperature, reasoning_effort=self.effort, trial=sample)


def _is_refused(outcome: Outcome) -> bool:
    return outcome.reply is not None and outcome.reply.refused


def _text(outcome: Outcome) -> str:
    return "" if outcome.reply is None else outcome.reply.text
