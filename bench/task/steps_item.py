"""Carries out an item of a benchmark of several steps: its author's `run`, then the record with result and transcript.

Owns what becomes of an exception of the author's code: a stop is never one, and passes.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from traceback import walk_tb
from typing import Any

from msgspec import UNSET

from ...engine.call import Reply
from ...engine.fault import LocalFault, Stopped
from ..evaluation.door.ask import Ask, CallFailed, StepFailed
from ..evaluation.door.defect import RAISED, BenchmarkDefect, leaves
from ..evaluation.door.record import Record as BaseRecord
from ..tools.carrying_out import caught
from .asking import QuestionTrial, TaskItems
from .grading import exchange_of, graded
from .records import Record, scored
from .rows import TaskError, json_value
from .score_table import scores_of
from .steps_ask import ItemEnded, StepAsk
from .steps_class import StepsTask
from .transcript import transcript_of


async def carried_out(items: TaskItems, task: StepsTask, trial: QuestionTrial, ask: Ask) -> Record:
    """Runs an item and returns its record. Raises StepFailed if it has no result, what ended sending if something did,
    and BenchmarkDefect for a mistake that every item would make."""
    row = trial.question.row
    steps = StepAsk(ask, f"{row.id}/{trial.number}", task, task.author, task.toolset)

    async def ran() -> Any:
        """Returns a result as JSON holds it; a reply is its text."""
        result = await task.author.run(row.copied(), steps)
        return json_value(result.text if isinstance(result, Reply) else result, "the result of run()")

    try:
        # In a task of its own, so that the author's code can cancel nothing but itself.
        ((result, raised),) = await asyncio.gather(caught(ran()))
        # Calls that were begun and not awaited belong to the item.
        await steps.finish()
    finally:
        await steps.close()
    # Even if the author's code caught it, a stop leaves the item pending.
    ask.check_ended()
    transcript = transcript_of(steps.asked)
    fields: dict[str, Any] = {"trial": trial.number, "row": row.as_json(), "transcript": transcript}
    if ends := [each for each in (steps.ended, raised, steps.missed()) if each is not None]:
        raise _failure(ends[0], task, fields) from ends[0]
    text = result if isinstance(result, str) else None
    last = ask.costs().last
    answer = Reply(text if text is not None else "" if last is None or last.reply is None else last.reply.text)
    grades, calls = await graded(items.scorers, exchange_of(transcript.talk(), text), answer, row, ask)
    scores = scores_of(items.scorers, answer, row, grades, result)
    return Record(text=text, result=result, judge=calls or UNSET, **fields, **scored(scores))


def _failure(error: BaseException, task: StepsTask, fields: dict[str, Any]) -> Exception:
    """Returns an item's end as one of the framework's errors; a failure's record has the transcript."""
    every = [*leaves(error)]
    error = next((each for each in every if isinstance(each, CallFailed)), every[0])
    place = _place_in(error, task)
    end = error.error if isinstance(error, ItemEnded) else error
    if isinstance(end, Stopped | LocalFault):
        return end
    if isinstance(end, BenchmarkDefect):
        return BenchmarkDefect(f"{end}{place}")
    if isinstance(end, StepFailed):
        failed = end.record
        assert isinstance(failed, BaseRecord)
        record = Record(status=failed.status, role=failed.role, error=failed.error, **fields)
    else:
        text = str(end)
        # It has not the attributes of a reply, such as `text`.
        text += ": write `await ask(…)`" if "coroutine" in text and "await" not in text else ""
        text = text if isinstance(end, TaskError) else f"run() raised {type(end).__name__}: {text}{place}"
        record = Record(status=RAISED, role="code", error=" ".join(text.split()), **fields)
    return StepFailed(1, record, str(record.error))


def _place_in(error: BaseException, task: StepsTask) -> str:
    """Returns ` (doubt.py line 7)`: the last line of the author's file that an error came through."""
    file = type(task.author).run.__code__.co_filename
    places = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
    lines = [line for name, line in places if name == file]
    return f" ({Path(file).name} line {lines[-1]})" if lines else ""
