"""The scores that ask models: judges and async functions, about one answer; and the same once more from its record.

Owns which of them are asked and what the record keeps of their calls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from statistics import fmean
from typing import TypeAlias

from ...engine.call import Reply
from ..evaluation.door.ask import Ask
from .asking_scorer import AskingScorer
from .judge import Exchange, Judge
from .judge_call import JudgeCall
from .records import Record, silence_of
from .rows import TaskRow
from .scorers import Score
from .task import AnyScorer

Asking: TypeAlias = Judge | AskingScorer
"""The scorers that ask models."""


def exchange_of(talk: str, result: str | None) -> Exchange:
    """Returns a conversation as a judge reads it. `result`: the text that its `run` returned."""
    return Exchange("", "" if result is None or talk.endswith(result.strip()) else result, conversation=talk)


async def graded(
    scorers: Mapping[str, AnyScorer], exchange: Exchange, reply: Reply, row: TaskRow, ask: Ask
) -> tuple[dict[str, Score], tuple[JudgeCall, ...]]:
    """Asks the judges about an exchange, and carries out the async functions about its reply. Returns the scores by
    scorer, and the calls as the record keeps them; none about silence."""
    scores: dict[str, Score] = {}
    calls: tuple[JudgeCall, ...] = ()
    for name, scorer in scorers.items() if silence_of(reply) is None else ():
        if isinstance(scorer, Asking):
            scores[name], made = await scorer.grade(name, exchange, reply, row, ask)
            calls += made
    return scores, calls


def grades_in(record: Record, scorers: Mapping[str, AnyScorer], runner: asyncio.Runner | None) -> dict[str, Score]:
    """Returns the scores that asked models, from a record: the mean of a judge's recorded grades, and what the runner
    gets from a function with the recorded answers. Nothing is sent."""
    scores: dict[str, Score] = {}
    for name, scorer in scorers.items():
        calls = [each for each in record.judge or () if each.scorer == name]
        values = [each.score for each in calls if each.score is not None]
        if isinstance(scorer, AskingScorer) and runner is not None and silence_of(record.reply()) is None:
            scores[name] = runner.run(scorer.grade_again(calls, record.reply(), record.as_row()))
        elif isinstance(scorer, Judge):
            is_whole = len(values) == len(calls) == scorer.orders
            scores[name] = Score(fmean(values)) if is_whole else Score(None, problem=record.problem_of(name))
    return scores
