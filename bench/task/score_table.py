"""Formats a task's scores, and scores records by another task's scorers.

A task is executed only if `--task` names its file.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from msgspec import UNSET, structs

from ...engine.call import Reply
from ...engine.runs.run_folder import MANIFEST, read_manifest
from ...report.text import table
from .asking_scorer import AskingScorer
from .described import options_of
from .figures import Figure
from .files import load_task
from .grading import Asking, grades_in
from .judge import Judge
from .options import split_name
from .parameters import Parameters
from .records import Record, scored, silence_of
from .rows import TaskError, TaskRow
from .score_document import COLUMNS, FIGURES, figure_cells, score_cells
from .scorers import Score
from .steps_class import Method
from .task import AnyScorer

# What a model's entry has by name: a name's column, and that of its value.
_TABLES = {
    "scores": ("score", "mean"),
    "figures": ("figure", "value"),
    "variants": ("variant", "score"),
    "groups": ("group", "score"),
}


def by_scorers_of(
    word: str, records: Iterable[Record], specification: Mapping[str, Any]
) -> tuple[Iterator[Record], Mapping[str, Any], Mapping[str, Figure]]:
    """Returns the records with scores by another task's scorers, the specification with these, and the task's figures.
    `word` is the value of `--task`."""
    # A file that no longer reads one of the run's parameters may score it all the same.
    task = load_task(*split_name(word), Parameters(specification.get("set"))).task
    scorers = task.scorers()
    described = {"score": {name: scorer.describe() for name, scorer in scorers.items()}}
    return rescored(records, scorers, specification["score"]), {**specification, **described}, task.own_figures()


def rescored(
    records: Iterable[Record], scorers: Mapping[str, AnyScorer], before: Mapping[str, Any]
) -> Iterator[Record]:
    """Yields the records with new scores by these scorers. A judge is not asked again: its recorded grades are used if
    it is the same judge."""
    for name, scorer in scorers.items():
        if isinstance(scorer, Judge) and before.get(name) != scorer.describe():
            raise TaskError(
                f"score {name}: its judge is not the run's own, and score sends nothing: run the task again"
            )
    asks = any(isinstance(scorer, AskingScorer) for scorer in scorers.values())
    with asyncio.Runner() if asks else nullcontext() as runner:
        for record in records:
            scores = scores_of(
                scorers, record.reply(), record.as_row(), grades_in(record, scorers, runner), record.result
            )
            yield structs.replace(record, **scored(scores))


def scores_of(
    scorers: Mapping[str, AnyScorer], reply: Reply, row: TaskRow, judged: Mapping[str, Score], result: Any = UNSET
) -> dict[str, Score]:
    """Returns an answer's scores by scorer. `judged` has those of judges; nothing is sent. `result`: what the `run` of
    a benchmark of several steps returned, which its own method scores whatever the last answer was."""
    if result is not UNSET and any(isinstance(scorer, Method) for scorer in scorers.values()):
        return {
            name: scorer.score_result(result, row) for name, scorer in scorers.items() if isinstance(scorer, Method)
        }
    if (silence := silence_of(reply)) is not None:
        return dict.fromkeys(scorers, Score(None, problem=silence))
    unjudged = Score(None, problem="not judged")
    return {
        name: judged.get(name, unjudged) if isinstance(scorer, Asking) else scorer.score(reply, row)
        for name, scorer in scorers.items()
    }


def told(source: str, scores: Mapping[str, Any]) -> str:
    """Returns scores as tables and sentences for people."""
    (name, part), *_ = scores.items()
    rows: list[tuple[str, ...]] = [("model", *COLUMNS)]
    rows += [(model, *score_cells(entry)) for model, entry in part["models"].items()]
    remarks = (*part.get("remarks", ()), *part.get("compared", ()), *part["unmeasured"])
    return "\n".join((f"{source}: {name}", table(rows), *more_tables(part), *remarks))


def more_tables(part: Mapping[str, Any]) -> list[str]:
    """Returns the tables of the scores by name, figures, variants of the prompt and groups, as far as there are any."""
    tables = []
    for key, (word, value) in _TABLES.items():
        named = [
            (
                model,
                each,
                *figure_cells(entry),
                f"{entry['items']:,}" + f" of {of_model['items']:,}" * (key == "scores"),
            )
            for model, of_model in part["models"].items()
            for each, entry in of_model.get(key, {}).items()
        ]
        if named:
            tables.append(table([("model", word, value, *FIGURES[1:], "items"), *named]))
    return tables


def manner_of(folder: Path) -> dict[str, str]:
    """Returns how a folder's records were made, as names with texts. Empty without a manifest."""
    if not (folder / MANIFEST).exists():
        return {}
    specified = read_manifest(folder)["specification"]
    return {"task": str(specified["task"]), "items": f"{specified['items']:,}", **options_of(specified)}
