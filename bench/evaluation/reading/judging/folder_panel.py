"""Reads the panel of judges of a run: the verdicts of its own judge and of those in `judgements.jsonl`.

A verdict counts for the text that its judge read. Scores are computed over the answers that all judges read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from .....engine.runs.run_folder import RECORDS
from ...door.judgement import JUDGEMENTS, Judgement, read_judgements
from ...door.judging import Judging
from ...door.kept_answer import Key, key_of
from .kept_answers import KeptAnswers
from .panel import MAJORITY, JudgedAnswer, Panel, majority_of

Applied = Callable[[Any, JudgedAnswer], Any]


def read_panel(folder: Path, judging: Judging) -> Panel | None:
    """Returns the panel of a run's judges; None if the folder has no judgements."""
    if not (folder / JUDGEMENTS).exists():
        return None
    answers = KeptAnswers(folder / RECORDS, judging)
    lines = {
        judge: {key: line for key, line in by_key.items() if answers.are_of(line)}
        for judge, by_key in lines_of(folder, judging).items()
    }
    others = tuple(judge for judge in lines if judge != judging.own)
    judges = (judging.own, *others)
    judged = _judged_answers(judging, answers, {judge: lines[judge] for judge in others})
    again = lines.get(judging.own, {})
    read_by_all = {each.key: each for each in judged if len(each.verdicts) == len(judges)}

    def scored(applied: Applied) -> Any:
        return judging.scores(_records(judging, answers, read_by_all, applied))

    def under(judge: str) -> Any:
        by_key = lines.get(judge, {})
        return scored(lambda record, _: judging.applied(record, by_key[key_of(record)]))

    scores = {judging.own: scored(lambda record, _: record)}
    scores |= {judge: under(judge) for judge in others}
    scores[MAJORITY] = scored(lambda record, answer: judging.with_verdict(record, majority_of(answer)))
    return Panel(
        judges=judges,
        answers=judged,
        labels=judging.labels,
        scores=scores,
        scores_of=len(read_by_all),
        asked_again=len(again),
        same_again=sum(
            judging.verdict(judging.applied(record, again[key_of(record)])) == judging.verdict(record)
            for record in answers.records()
            if key_of(record) in again
        ),
    )


def lines_of(folder: Path, judging: Judging) -> dict[str, dict[Key, Any]]:
    """Returns each judge's line about each answer; the last of several, which are of different texts."""
    lines: dict[str, dict[Key, Any]] = {}
    for line in read_judgements(folder, judging.Line):
        lines.setdefault(line.judge, {})[line.answer] = line
    return lines


def _judged_answers(
    judging: Judging, answers: KeptAnswers, lines: Mapping[str, Mapping[Key, Judgement]]
) -> list[JudgedAnswer]:
    judged = []
    for record in answers.records():
        if not judging.is_judged(record):
            continue
        key = key_of(record)
        verdicts = {judging.own: judging.verdict(record)}
        for judge, by_key in lines.items():
            if (line := by_key.get(key)) is not None:
                verdicts[judge] = judging.verdict(judging.applied(record, line))
        judged.append(JudgedAnswer(key, verdicts))
    return judged


def _records(
    judging: Judging, answers: KeptAnswers, read_by_all: Mapping[Key, JudgedAnswer], applied: Applied
) -> Iterator[Any]:
    """Yields the records with one judge's verdicts. An answer that some judge has not read is left out for all; one
    that no judge reads, such as a refusal, stays as it is."""
    for record in answers.records():
        if not judging.is_judged(record):
            yield record
        elif (answer := read_by_all.get(key_of(record))) is not None:
            yield applied(record, answer)
