"""Carries the scorers of a corrected task file into a run's folder: into records, scores and manifest.

Sends nothing. The files of before are kept beside. The manifest, which names the scorers, is written last: what a kill
in between left, the next rescoring first puts back, and `verify` says.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import Struct, to_builtins

from ...configuration.errors import UsageError
from ...engine.fault import LocalFault
from ...engine.folder_file import open_regular, read_whole, write_whole
from ...engine.runs.data_file import DatasetError
from ...engine.runs.journal import sealed
from ...engine.runs.run_folder import (
    MANIFEST,
    RECORDS,
    check_hashes_of,
    holding,
    note_in_manifest,
    read_manifest,
    specification_hash,
)
from ...format import command_text
from ..evaluation.door.judgement import JUDGEMENTS
from ..evaluation.door.kept_options import kept_options
from ..evaluation.door.rescored import FIELD, Rescoring, beside, rescorings_in
from ..evaluation.door.run_items import options_in
from ..evaluation.running.journals import decoded, encode
from ..evaluation.running.record_lines import record_lines
from ..evaluation.running.scoring import SCORES, scored_run, scores_of, write_scores
from .asking import items_of
from .benchmark import BENCHMARK
from .files import TaskSource, load_task
from .options import split_name
from .parameters import Parameters
from .questions import json_of
from .records import Record
from .score_document import NAME
from .score_table import rescored

# What decides the questions, in a specification.
_QUESTIONS = ("data", "prompt", "parameters", "questions")


class RescoredRun(Struct):
    """A run that was scored again."""

    scores: dict[str, Any]
    """The contents of scores.json."""
    answers: int = 0
    """The number of answers."""
    changed: int = 0
    """The number of answers whose scores changed."""
    before: Rescoring | None = None
    """The files of before; None: the run has these scorers already, and nothing was written."""
    asks_otherwise: tuple[str, ...] = ()
    """In what the questions of the file differ from those of the run: such a file goes on with no run."""


def rescore(folder: Path, word: str) -> RescoredRun:
    """Scores a finished run's answers by the scorers of another task, `FILE` or `FILE:NAME`, and keeps these scores as
    the run's own. Raises UsageError for a folder or a task with which that can't be done."""
    with holding(folder):
        manifest = read_manifest(folder)
        check_hashes_of(folder / MANIFEST, manifest)
        specification = manifest["specification"]
        if specification.get("benchmark") != NAME:
            raise UsageError(f"{folder}: expected the run of a task, got one of {specification.get('benchmark')}")
        if manifest.get("ended") is None or not (folder / SCORES).exists():
            raise UsageError(f"{folder}: its run has no scores yet: {command_text('resume', folder)} first")
        _put_back(folder, manifest)
        source = load_task(*split_name(word), Parameters(specification.get("set")))
        fresh = _with_scorers(specification, source)
        _check_judges(folder, specification["score"], fresh["score"])
        # Read with `task`, records are scored by its scorers and figures, whichever scores they have.
        run = scored_run(BENCHMARK, folder, manifest, {"task": word})
        made = RescoredRun(scores_of(BENCHMARK, run.rows.lines(record_lines(folder / RECORDS)), run))
        if specification_hash(fresh) == manifest["specification_hash"]:
            return made
        made.asks_otherwise = _other_questions(manifest, source)
        made.before = _kept_beside(folder, manifest, source, word)
        try:
            write_whole(folder / RECORDS, _written_again(folder, source, specification["score"], made))
        except OSError as error:
            (folder / made.before.manifest).unlink()  # the records are those of before
            raise LocalFault(f"{folder}: its new scores can't be written ({error.strerror}): make room") from error
        write_scores(folder, made.scores)
        note_in_manifest(folder, **_changes(manifest, fresh, source, word, made.before))
    return made


def _with_scorers(specification: Mapping[str, Any], source: TaskSource) -> dict[str, Any]:
    """Returns a specification with the scorers and figures of another task for its own."""
    others = {name: value for name, value in specification.items() if name not in ("score", "figures")}
    score = {name: scorer.describe() for name, scorer in source.task.scorers().items()}
    figures = {name: figure.describe() for name, figure in source.task.own_figures().items()}
    return {**others, "score": json_of(score), **({"figures": json_of(figures)} if figures else {})}


def _other_questions(manifest: Mapping[str, Any], source: TaskSource) -> tuple[str, ...]:
    """Returns in what a task asks otherwise than a run; nothing if its data can't be read, or no file is known."""
    if not kept_options(manifest, NAME).get("file"):
        return ()
    try:
        asked = items_of(source, options_in(BENCHMARK, manifest)).specified
    except (UsageError, DatasetError, OSError):
        return ()
    before = manifest["specification"]
    return tuple(name for name in _QUESTIONS if json_of(asked.get(name)) != before.get(name))


def _check_judges(folder: Path, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Raises UsageError if other judges' verdicts stand beside those of a judge that is no scorer any more."""
    lost = [name for name, each in before.items() if each.get("scorer") == "judge" and after.get(name) != each]
    if lost and (folder / JUDGEMENTS).exists():
        raise UsageError(f"score {lost[0]}: {folder / JUDGEMENTS} compares other judges with this one: keep it")


def _put_back(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Puts records and scores back as a rescoring that was killed had found them: they may have its scores."""
    number = 1 + len(rescorings_in(manifest))
    copy = folder / beside(MANIFEST, number)
    try:
        if not copy.exists() or read_whole(copy) != read_whole(folder / MANIFEST):
            return
        for name in (RECORDS, SCORES):
            with os.fdopen(open_regular(folder / beside(name, number)), "rb") as kept:
                write_whole(folder / name, kept)
        copy.unlink()
    except OSError as error:
        raise LocalFault(f"{folder}: what a killed rescoring left can't be put back: {error}") from error


def _kept_beside(folder: Path, manifest: Mapping[str, Any], source: TaskSource, word: str) -> Rescoring:
    """Keeps the folder's files under names with the next number, and returns the note on them."""
    number = 1 + len(rescorings_in(manifest))
    # What a killed rescoring kept of a run that went on since is the only copy of its scores.
    while (folder / beside(MANIFEST, number)).exists():
        number += 1
    names = {name: beside(name, number) for name in (RECORDS, SCORES, MANIFEST)}
    try:
        # The copy of the manifest is made last: if it is there, the others are whole.
        for name, kept in names.items():
            partial = folder / f"{kept}.new"
            shutil.copyfile(folder / name, partial)
            partial.replace(folder / kept)
    except OSError as error:
        raise LocalFault(f"{folder}: the files of before can't be kept ({error.strerror}): make room") from error
    with (folder / names[RECORDS]).open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    path, task = split_name(word)
    return Rescoring(
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        file=path.name if task is None else f"{path.name}:{task}",
        sha256=source.origin["sha256"],
        records=names[RECORDS],
        records_sha256=digest,
        scores=names[SCORES],
        manifest=names[MANIFEST],
    )


def _written_again(folder: Path, source: TaskSource, before: Mapping[str, Any], made: RescoredRun) -> Iterator[bytes]:
    """Yields the records as journal lines with their new scores, and counts them."""
    assert made.before is not None
    path = folder / made.before.records
    records = decoded(record_lines(path), Record, str(path))
    old = decoded(record_lines(path), Record, str(path))
    for record, now in zip(old, rescored(records, source.task.scorers(), before), strict=True):
        made.answers += 1
        made.changed += (record.score, record.scores) != (now.score, now.scores)
        yield sealed(encode(now))


def _changes(
    manifest: Mapping[str, Any], fresh: Mapping[str, Any], source: TaskSource, word: str, before: Rescoring
) -> dict[str, Any]:
    """Returns the fields of the manifest that change: `resume` then goes on with the file that scored."""
    options, dataset = dict(manifest.get("options") or {}), dict(manifest.get("dataset") or {})
    if kept_options(manifest, NAME).get("file"):
        path, name = split_name(word)
        file = str(path.absolute()) + (f":{name}" if name else "")
        options[NAME] = {**options[NAME], "file": file}
        dataset["declared"] = dict(source.origin)
    return {
        "specification": dict(fresh),
        "specification_hash": specification_hash(fresh),
        "options": options,
        "dataset": dataset,
        FIELD: [*map(to_builtins, rescorings_in(manifest)), to_builtins(before)],
    }
