"""Forecasts a task's run.

Judges read answers that are not known yet: the forecast assumes one call for each answer, or two if a grade is missing.
"""

from __future__ import annotations

from collections import Counter

from msgspec import structs

from ...engine.estimate import OUTPUT_FIRST, TOKENS_PER_CHAR, chars_of
from ..evaluation.door.benchmark import RunBasis
from ..evaluation.door.expected import Expected, Load, Span
from .asking import TaskItems, weighing_calls
from .asking_scorer import AskingScorer
from .judge import Judge
from .steps_class import StepsTask

_JUDGEMENT_TOKENS = 100
_JUDGED = (
    "judges are asked at least once a row and at most twice an answer: equal answers to a row are judged once, and a "
    "reply without a grade is asked for again"
)
_SCORED = "a score function that asks models is taken to ask each of them as often as a judge is asked"


def with_judges(expected: Expected, items: TaskItems, answers: int) -> Expected:
    """Returns what a run is expected to take, its judges' calls among it: at least one for each row, since equal
    answers are judged once, at most two for every answer."""
    rows, trials, name = items.specified["items"], items.task.trials, items.task.name
    most = 2 * answers
    for call in items.judgements:
        chars = chars_of(call)
        tokens = Span(rows * chars // 2 * TOKENS_PER_CHAR, most * chars * TOKENS_PER_CHAR)
        output = Span(rows * _JUDGEMENT_TOKENS // 2, most * (call.max_tokens or OUTPUT_FIRST))
        expected.loads.setdefault(call.model, Load()).add(Span(rows, most), tokens, output)
    if any(isinstance(scorer, Judge) for scorer in items.scorers.values()):
        expected.remarks.append(_JUDGED)
    if any(isinstance(scorer, AskingScorer) for scorer in items.scorers.values()):
        expected.remarks.append(_SCORED)
    judges = list(dict.fromkeys(call.model for call in items.judgements))
    expected.what = f"{name}: {rows:,} rows, {trials:,} trials each"
    expected.more = {"task": name, "items": rows, "trials": trials, "judges": judges}
    return expected


def with_steps(expected: Expected, items: TaskItems, task: StepsTask, run: RunBasis) -> None:
    """Sets the calls that a benchmark of several steps makes: at least one an item, and at most `steps_max`, which all
    its models share."""
    most = items.lines * task.author.steps_max
    pairs = Counter(pair.model for pair in run.pairs)
    for model in expected.loads:
        least, times = items.lines * pairs[model], pairs[model] or len(run.pairs)
        expected.loads[model] = Load(Span(least, most * times), input=None)
    if expected.chain is not None:
        expected.chain = structs.replace(expected.chain, steps=task.author.steps_max)
    expected.remarks.insert(
        0, f"an item makes at most {task.author.steps_max:,} calls (steps_max), of all models together"
    )


def with_weighings(expected: Expected, items: TaskItems, run: RunBasis) -> None:
    """Sets the calls that weigh given answers: one for each, of one token."""
    for pair in run.pairs:
        calls = [call for item in items for call in weighing_calls(items, item.data, pair)]
        number, tokens = len(calls), sum(map(chars_of, calls)) * TOKENS_PER_CHAR
        expected.loads[pair.model] = Load(Span(number, number), Span(tokens / 2, tokens), Span(number, number))
    expected.remarks.insert(0, "a call weighs one answer of a row")
