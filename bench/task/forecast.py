"""Forecasts a task's run.

Judges read answers that are not known yet: the forecast assumes one call for each answer, or two if a grade is missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...engine.attempts.estimate import OUTPUT_FIRST, chars_of
from ...engine.call import Call
from ...engine.runs.pairs import Pair
from ..evaluation.forecast import LaneCalls, forecast_of, lanes_under_test, look_up
from ..evaluation.preparation import PreparedRun
from .work import TaskWork, longest_judgements

if TYPE_CHECKING:
    from ..evaluation.pilot import Pilot

_JUDGEMENT_TOKENS = 100
_JUDGED = (
    "judges are asked at least once a row and at most twice an answer: equal answers to a row are judged once, and a "
    "reply without a grade is asked for again"
)
_NOT_PILOTED = (
    "the pilot asks no judge: its tokens, cost and time leave judging out, of which the table above has the bounds"
)


def forecast(prepared: PreparedRun, *, looks_into_cache: bool = True, pilot: Pilot | None = None) -> dict[str, Any]:
    """Returns a run's forecast as plain values, with the pilot's estimates if there was one."""
    work = task_work(prepared)

    def calls_of(pair: Pair) -> Iterator[Call]:
        for trial in range(work.asked.task.trials):
            for question in work.asked.questions:
                yield question.call(work.asked.task, pair, trial)

    missing = look_up(work.asked_pairs, calls_of, prepared.settings, looks_into_cache=looks_into_cache)
    lanes = lanes_under_test(prepared, missing, dict.fromkeys(missing, work.asked.task.max_tokens))
    _add_judges(work, lanes)
    remarks = [_JUDGED, *([_NOT_PILOTED] if pilot is not None else [])] if work.asked.judges else []
    rows, trials = len(work.asked.questions), work.asked.task.trials
    return {
        "task": work.specification["task"],
        "items": rows,
        "trials": trials,
        "judges": list(work.asked.judges),
        "what": f"{work.specification['task']}: {rows:,} rows, {trials:,} trials each",
        "remarks": remarks,
        **forecast_of(prepared, lanes, missing, pilot),
    }


def pilot_calls(prepared: PreparedRun, size: int) -> dict[Pair, list[Call]]:
    """Returns `size` of the run's calls for each pair: first trials of rows that are spread over the data."""
    work = task_work(prepared)
    questions, trials = work.asked.questions, work.asked.task.trials
    size = min(size, len(questions) * trials)
    chosen = {}
    for pair in work.asked_pairs:
        places = [(at * len(questions) * trials) // size for at in range(size)] if size > len(questions) else [
            (at * len(questions)) // size for at in range(size)
        ]  # fmt: skip
        chosen[pair] = [
            questions[place % len(questions)].call(work.asked.task, pair, place // len(questions)) for place in places
        ]
    return chosen


def task_work(prepared: PreparedRun) -> TaskWork:
    work = prepared.work
    assert isinstance(work, TaskWork)
    return work


def _add_judges(work: TaskWork, lanes: dict[str, LaneCalls]) -> None:
    """Adds the judges' calls to the lanes: at least one for each row, since equal answers are judged once, at most two
    for every answer."""
    if not work.asked.judges:
        return
    answers = work.items * len(work.asked_pairs)
    longest = max(work.asked.questions, key=lambda question: len(question.asked))
    for call in longest_judgements(work.asked, longest):
        chars = chars_of(call)
        least, most = len(work.asked.questions), 2 * answers
        sent = lanes.setdefault(call.model, LaneCalls([0, 0], [0, 0], [0, 0]))
        sent.calls = [sent.calls[0] + least, sent.calls[1] + most]
        before_chars = sent.chars or [0, 0]
        sent.chars = [before_chars[0] + least * chars // 2, before_chars[1] + most * chars]
        before = sent.output[1]
        told = None if before is None else before + most * (call.max_tokens or OUTPUT_FIRST)
        sent.output = [(sent.output[0] or 0) + least * _JUDGEMENT_TOKENS // 2, told]
