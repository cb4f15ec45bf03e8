"""Forecasts a task's run.

Judges read answers that are not known yet: the forecast assumes one call for each answer, or two if a grade is missing.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...engine.attempts.estimate import OUTPUT_FIRST, TOKENS_PER_CHAR, chars_of
from ...engine.call import Call
from ...engine.runs.pairs import Pair
from ..evaluation.door.expected import Expected, Load, Span
from ..evaluation.door.prepared_run import ItemsOfPilot, PreparedRun
from ..evaluation.planning.forecast import expected_of
from .work import TaskWork, longest_judgements

_JUDGEMENT_TOKENS = 100
_JUDGED = (
    "judges are asked at least once a row and at most twice an answer: equal answers to a row are judged once, and a "
    "reply without a grade is asked for again"
)
_NOT_PILOTED = (
    "the pilot asks no judge: its tokens, cost and time leave judging out, of which the table above has the bounds"
)


def forecast(prepared: PreparedRun, *, looks_into_cache: bool = True) -> Expected:
    """Returns what a run is expected to take, its judges' calls among it."""
    work = task_work(prepared)
    task, questions = work.asked.task, work.asked.questions

    def calls_of(pair: Pair) -> Iterator[Call]:
        return (question.call(task, pair, trial) for trial in range(task.trials) for question in questions)

    expected = expected_of(prepared, calls_of, lambda pair: task.max_tokens, looks_into_cache=looks_into_cache)
    if work.asked.judges:
        _add_judges(work, expected.loads)
        expected.remarks.append(_JUDGED)
    name = work.specification["task"]
    expected.what = f"{name}: {len(questions):,} rows, {task.trials:,} trials each"
    expected.more = {"task": name, "items": len(questions), "trials": task.trials, "judges": list(work.asked.judges)}
    return expected


def pilot_items(prepared: PreparedRun, size: int) -> ItemsOfPilot:
    """Returns `size` of the run's items for each pair: first trials of rows that are spread over the data."""
    work = task_work(prepared)
    task, questions = work.asked.task, work.asked.questions
    rows, every = len(questions), len(questions) * task.trials
    size = min(size, every)
    places = [at * (every if size > rows else rows) // size for at in range(size)]
    calls = {
        pair: [questions[place % rows].call(task, pair, place // rows) for place in places] for pair in work.pairs()
    }
    remark = _NOT_PILOTED if work.asked.judges else ""
    return ItemsOfPilot(run=prepared, items=size, of=every, noun="prompt", calls=calls, remark=remark)


def task_work(prepared: PreparedRun) -> TaskWork:
    work = prepared.work
    assert isinstance(work, TaskWork)
    return work


def _add_judges(work: TaskWork, loads: dict[str, Load]) -> None:
    """Adds the judges' calls to the loads: at least one for each row, since equal answers are judged once, at most two
    for every answer."""
    least, most = len(work.asked.questions), 2 * work.items * len(work.pairs())
    longest = max(work.asked.questions, key=lambda question: len(question.asked))
    for call in longest_judgements(work.asked, longest):
        chars = chars_of(call)
        tokens = Span(least * chars // 2 * TOKENS_PER_CHAR, most * chars * TOKENS_PER_CHAR)
        output = Span(least * _JUDGEMENT_TOKENS // 2, most * (call.max_tokens or OUTPUT_FIRST))
        loads.setdefault(call.model, Load()).add(Span(least, most), tokens, output)
