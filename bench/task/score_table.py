"""Scores a folder's records for `score`, and formats a task's scores.

Owns when scores.json is written, and how records are scored by another task's scorers. A task is executed only if
`--task` names its file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson
from msgspec import structs

from ...configuration.errors import UsageError
from ...engine.runs.run_folder import MANIFEST, RECORDS, read_manifest
from ...report.text import table
from ..evaluation.item_work import said_of
from ..evaluation.journals import decoded, each_once
from ..evaluation.kept_options import kept_options
from ..evaluation.reads import with_reads
from ..evaluation.record_lines import record_lines
from ..evaluation.served import rows_in
from .files import load_task
from .judge import Judge
from .options import Readings, split_name
from .records import Record, scored, silence_of
from .rows import TaskError
from .score_document import COLUMNS, NAME, NO_MANIFEST, score_cells, scores_in
from .scorers import Score
from .task import AnyScorer


def score_folder(folder: Path, readings: Readings) -> tuple[dict[str, Any], str]:
    """Scores a folder's records and returns the contents of scores.json, and what that file keeps in their place
    (empty: the readings are the run's own)."""
    path = folder / RECORDS
    manifest = read_manifest(folder) if (folder / MANIFEST).exists() else None
    specified, own = NO_MANIFEST, Readings()
    if manifest is not None:
        specified, own = manifest["specification"], kept_readings(manifest)
    given = {name: value for name in ("combine", "unreadable", "read") if (value := getattr(readings, name))}
    settled = structs.replace(own, **given)
    try:
        rows = rows_in(folder, manifest)
        specified = rows.specification(specified)
        records = each_once(decoded(rows.lines(record_lines(path)), Record, str(path)), str(path))
        if readings.task is not None:
            loaded = load_task(*split_name(readings.task))
            records = rescored(records, loaded.task.scorers(), specified["score"])
            described = {name: scorer.describe() for name, scorer in loaded.task.scorers().items()}
            specified = {**specified, "score": described}
        part = with_reads(lambda every: scores_in(every, specified, settled), records, settled.read)
    except OSError as error:
        raise UsageError(f"{path}: expected a readable file, got: {error.strerror}") from error
    found = {specified["task"]: part}
    if not any(entry["answers"] for entry in part["models"].values()):
        raise UsageError(f"{path}: expected records, got none: nothing to score")
    is_own = readings.task is None and settled == own
    return rows.scores(found), "" if is_own else "the run's own scores; these are only shown"


def kept_readings(manifest: Mapping[str, Any]) -> Readings:
    """Returns the readings of a run's own scores, from its manifest."""
    kept = kept_options(manifest, NAME)
    return Readings(combine=kept.get("combine"), unreadable=kept.get("unreadable"), read=kept.get("read"))


def rescored(
    records: Iterator[Record], scorers: Mapping[str, AnyScorer], before: Mapping[str, Any]
) -> Iterator[Record]:
    """Yields the records with new scores by these scorers. A judge is not asked again: its recorded grades are used if
    it is the same judge."""
    for name, scorer in scorers.items():
        if isinstance(scorer, Judge) and before.get(name) != scorer.describe():
            raise TaskError(
                f"score {name}: its judge is not the run's own, and score sends nothing: run the task again"
            )
    for record in records:
        reply, row = record.reply(), record.as_row()
        silence = silence_of(reply)
        graded = {each.scorer: each for each in record.judge or ()}
        found: dict[str, Score] = {}
        for name, scorer in scorers.items():
            if silence is not None:
                found[name] = Score(None, problem=silence)
            elif isinstance(scorer, Judge):
                judged = graded.get(name)
                problem = None if judged is not None and judged.score is not None else "not judged"
                found[name] = Score(None if judged is None else judged.score, problem=problem)
            else:
                found[name] = scorer.score(reply, row)
        yield structs.replace(record, **scored(found))


def told(source: str, scores: Mapping[str, Any]) -> str:
    """Returns scores as tables and sentences for people."""
    (name, found), *_ = scores.items()
    rows: list[tuple[str, ...]] = [("model", *COLUMNS)]
    rows += [(model, *score_cells(entry)) for model, entry in found["models"].items()]
    groups = [
        (model, group, *score_cells({**entry, "items_scored": entry["items"]})[:2], f"{entry['items']:,}")
        for model, of_model in found["models"].items()
        for group, entry in of_model["groups"].items()
    ]
    named = [
        (model, scorer, *score_cells({**entry, "items_scored": entry["items"]})[:2])
        for model, of_model in found["models"].items()
        for scorer, entry in of_model.get("scores", {}).items()
    ]
    parts = [f"{source}: {name}", table(rows)]
    if named:
        parts.append(table([("model", "score", "mean", COLUMNS[1]), *named]))
    if groups:
        parts.append(table([("model", "group", *COLUMNS[:2], "items"), *groups]))
    return "\n".join((*parts, *said_of(found), *found["unmeasured"]))


def manner_of(folder: Path) -> dict[str, str]:
    """Returns how a folder's records were made, as names with texts; folders with other prompts, data or scorers are
    not compared. Empty without a manifest."""
    if not (folder / MANIFEST).exists():
        return {}
    specified = read_manifest(folder)["specification"]
    score = ", ".join(f"{name}: {each['scorer']}" for name, each in specified["score"].items())
    return {
        "task": specified["task"],
        "items": f"{specified['items']:,}",
        "trials": str(specified["trials"]),
        "parameters": ", ".join(f"{name} {value}" for name, value in specified["parameters"].items()) or "none",
        "prompts": str(specified["questions"])[:12],
        "scorers": f"{score} ({sha256(orjson.dumps(specified['score'])).hexdigest()[:12]})",
    }
