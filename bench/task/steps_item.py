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
from ...format import count_text
from ..evaluation.door.ask import Ask, CallFailed, StepFailed
from ..evaluation.door.defect import RAISED, BenchmarkDefect, leaves
from ..evaluation.door.record import Record as BaseRecord
from .asking import QuestionTrial, TaskItems
from .grading import UNGRADED, exchange_of, graded
from .records import Record, scored, silence_of
from .rows import TaskError, json_value
from .score_table import scores_of
from .steps_ask import ItemEnded, StepAsk
from .steps_class import StepsTask


class _NotAsked(Exception):
    """Stands for calls that an author's code left out, whatever it returned without them."""


async def carried_out(items: TaskItems, task: StepsTask, trial: QuestionTrial, ask: Ask) -> Record:
    """Runs an item and returns its record. Raises StepFailed if it has no result, what ended sending if something did,
    and BenchmarkDefect for a mistake that every item would make."""
    row = trial.question.row
    steps = StepAsk(ask, task.rules(), f"{row.id}/{trial.number}")
    raised: BaseException | None = None
    result: Any = None
    try:
        try:
            result = _plain(await task.author.run(row.copied(), steps))
        except asyncio.CancelledError as error:
            current = asyncio.current_task()
            if current is None or current.cancelling():
                raise
            raised = error  # a task of the author's own was cancelled
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 (a border: the code is somebody else's)
            raised = error
        # Calls that were begun and not awaited belong to the item.
        await steps.finish()
    finally:
        await steps.close()
    # Even if the author's code caught it, a stop leaves the item pending.
    ask.check_ended()
    if steps.ended is not None and isinstance(steps.ended.error, Stopped | LocalFault):
        raise steps.ended.error
    if steps.ended is None and raised is None and (missed := _missed(steps)):
        raised = _NotAsked(missed)
    fields: dict[str, Any] = {"trial": trial.number, "row": row.as_json(), "transcript": steps.transcript.written()}
    if raised is not None or steps.ended is not None:
        _raise_failure(raised, steps.ended, task, fields)
    text = result if isinstance(result, str) else None
    answer = Reply(text if text is not None else _last_text(ask))
    grades = UNGRADED
    if silence_of(answer) is None:
        talk = fields["transcript"].talk()
        exchange = exchange_of(talk, text)
        grades = await graded(items.scorers, exchange, answer, row, ask)
    scores = scores_of(items.scorers, answer, row, grades.scores, result)
    return Record(text=text, result=result, judge=grades.calls or UNSET, **fields, **scored(scores))


def _plain(result: Any) -> Any:
    """Returns a result as JSON holds it; a reply is its text."""
    return json_value(result.text if isinstance(result, Reply) else result, "the result of run()")


def _missed(steps: StepAsk) -> str:
    """Returns which calls an item's code left out; empty: none."""
    if steps.unawaited:
        return f"did not await {count_text(steps.unawaited, 'call')} of ask: write `await ask(…)`"
    return "" if steps.transcript.has_calls else "ended without a call: what it returned is no model's"


def _last_text(ask: Ask) -> str:
    last = ask.costs().last
    return "" if last is None or last.reply is None else last.reply.text


def _raise_failure(
    raised: BaseException | None, ended: ItemEnded | None, task: StepsTask, fields: dict[str, Any]
) -> None:
    """Raises an item's end as one of the framework's errors; a failure's record has the transcript."""
    every = [*leaves(raised)] if raised is not None else []
    error = ended if ended is not None else next((each for each in every if isinstance(each, CallFailed)), every[0])
    place = _place_in(error, task)
    if isinstance(error, ItemEnded) and isinstance(error.error, BenchmarkDefect):
        raise BenchmarkDefect(f"{error.error}{place}") from error
    if isinstance(error, ItemEnded) and isinstance(error.error, StepFailed):
        failed = error.error.record
    elif isinstance(error, CallFailed):
        failed = error.record
    else:
        text = str(error)
        # It has not the attributes of a reply, such as `text`.
        hint = ": write `await ask(…)`" if "coroutine" in text and "await" not in text else ""
        if not isinstance(error, _NotAsked | TaskError):
            text = f"run() raised {type(error).__name__}: {text}{hint}{place}"
        else:
            text = f"{'run() ' if isinstance(error, _NotAsked) else ''}{text}{hint}"
        failed = Record(status=RAISED, role="code", error=" ".join(text.split()))
    assert isinstance(failed, BaseRecord)
    record = Record(status=failed.status, role=failed.role, error=failed.error, **fields)
    raise StepFailed(1, record, str(record.error)) from error


def _place_in(error: BaseException, task: StepsTask) -> str:
    """Returns ` (doubt.py line 7)`: the last line of the author's file that an error came through."""
    file = type(task.author).run.__code__.co_filename
    places = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
    lines = [line for name, line in places if name == file]
    return f" ({Path(file).name} line {lines[-1]})" if lines else ""
