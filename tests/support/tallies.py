"""Answers put into a tally by what they count as, with the first configuration of their case."""

from __future__ import annotations

from millstream.engine.pairs import Pair
from millstream.metrics.millstone.answers import AnswerTally

CONFIG_OF_CASE = {
    "clear-pro": "clear-pro-1",
    "clear-con": "clear-con-1",
    "balanced": "balanced-1",
}


def add_answer(
    tally: AnswerTally,
    model: str,
    temperature: float | None,
    issue: str,
    case: str,
    stance: str,
    template: int,
    trial: int,
) -> None:
    config = CONFIG_OF_CASE.get(case, case)
    tally.add(Pair(model, temperature), issue, template, config, trial, (stance, None, None))
