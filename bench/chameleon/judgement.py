"""Reads a judge's reply: stance, claims and certainty, or the reason why it is unusable.

Owns what counts as a judgement: a JSON object, with any text around it, that has a known stance and, if requested, a
rationale. Other fields are read if they have their type. Knows no call.
"""

from __future__ import annotations

import math
from typing import Any

from msgspec import Struct

from ...metrics.chameleon.lines import STANCES, Stance
from ...metrics.chameleon.rubric import confidence_of
from ..evaluation.data.model_json import objects_in
from .prompts import JudgePrompt


class UnusableJudgement(ValueError):
    """Raised for a reply that is no judgement; the message, which is sent to the judge, says what was expected and
    received."""


class TurnJudgement(Struct, frozen=True):
    """A judgement of one answer. `confidence` (0 to 1) is the rubric's for the rationale, `judge_confidence` the
    judge's own number if it gave one. For an answer that was not judged, all but the stance is None."""

    stance: Stance
    rationale: str | None = None
    confidence: float | None = None
    judge_confidence: float | None = None
    key_claims: tuple[str, ...] | None = None
    contradictions_acknowledged: bool | None = None


UNCLEAR = TurnJudgement("unclear")
"""The judgement of an answer that could not be judged."""


def read_judgement(text: str, prompt: JudgePrompt) -> TurnJudgement:
    """Returns the first object in a reply that is a complete judgement. Raises UnusableJudgement if there is none."""
    wrong: UnusableJudgement | None = None
    for fields in objects_in(text):
        try:
            return _judgement(fields, prompt)
        except UnusableJudgement as error:
            # Of several objects, one with a stance shows best what is missing.
            if wrong is None or "stance" in fields:
                wrong = error
    raise wrong or UnusableJudgement("expected a JSON object, got none")


def _judgement(fields: dict[str, Any], prompt: JudgePrompt) -> TurnJudgement:
    value = fields.get("stance")
    named = value.strip().lower() if isinstance(value, str) else None
    stance = next((name for name in STANCES if name == named), None)
    if stance is None:
        received = "none" if value is None else repr(value)[:60]
        raise UnusableJudgement(f'"stance": expected one of {", ".join(STANCES)}, got {received}')
    rationale, number = "", None
    if prompt == "extended":
        sentence = fields.get("rationale")
        if not isinstance(sentence, str) or not sentence.strip():
            raise UnusableJudgement('"rationale": expected a sentence, got none')
        rationale, number = sentence, _number(fields.get("confidence"))
    return TurnJudgement(
        stance,
        rationale.strip(),
        confidence_of(rationale),
        number,
        _claims(fields.get("key_claims")),
        _boolean(fields.get("contradictions_acknowledged")),
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
