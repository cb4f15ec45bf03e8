"""Reads run folders into the survey of a report: every model's answers, its planned prompts, and what is missing.

Owns how models of several folders get different names. Records of another program need no manifest.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from msgspec import Struct, structs

from ....configuration.errors import UsageError
from ....engine.pairs import Pair, PairCounts
from ....engine.runs.journal import read_lines
from ....engine.runs.run_folder import FAILURES, MANIFEST, RECORDS
from ....metrics.millstone.answers import AnswerRows
from ....metrics.millstone.gaps import Shape, inferred
from ....metrics.millstone.silence import Silence
from ....metrics.naming import row_names
from ....report.labels import folder_labels, told_apart
from ....report.standings import AnswerStatus
from ...evaluation.door.item_line import StepTotals
from ...evaluation.door.kept_options import kept_options
from ...evaluation.door.served_rows import ONE_ROW_EACH, ScoredRun, ServedRows
from ...evaluation.page.items import RunItems
from ...evaluation.running.journals import decoded
from ...evaluation.running.record_lines import record_lines
from ...evaluation.running.recount import recount
from ...evaluation.running.served import rows_in
from ..labels import AS_RECORDED, FIX, OrientationLabels, Sides, kept_labels, labels_used
from ..manner import manner_of
from ..options import Readings
from ..published_counts import CountsTable, named_counts
from ..records import GridLine
from ..recount import GridTally, shapes_of
from ..reference import CONTROVERSIAL, LEFT_OUT, topics
from ..shown_items import GridReader
from ..work import silence_of
from .survey import ReportSurvey


class AnswerFolder(Struct, frozen=True):
    """The answers of one run folder, by pair, with the counts of how they ended. `answers` is ordered by name; `asked`
    are the pairs of the manifest. `shape` is the planned grid (None: not known). `rows` are those of the served names;
    `sides` are the orientations by which its answers were read (empty: as recorded), `labels` the labels that a report
    uses (None: no manifest has them)."""

    path: Path
    manifest: Mapping[str, Any] | None
    answers: Mapping[Pair, AnswerRows]
    ended: Mapping[Pair, PairCounts]
    asked: tuple[Pair, ...]
    shape: Shape | None
    items: RunItems
    rows: ServedRows = ONE_ROW_EACH
    sides: Sides = MappingProxyType({})
    labels: OrientationLabels | None = None

    def pairs(self) -> list[Pair]:
        """Returns the pairs of the manifest, then those that only the records have."""
        return list(dict.fromkeys((*self.asked, *self.answers, *self.ended)))

    def shape_of(self, pair: Pair) -> Shape | None:
        """Returns the planned grid of a pair; without a manifest, the grid that the folder's answers suggest."""
        if self.shape is not None and pair in self.asked:
            return self.shape
        answers = self.answers.get(pair)
        return None if answers is None else inferred(answers, tuple(self.answers.values()))


def read(path: Path, manifest: Mapping[str, Any] | None, readings: Readings) -> AnswerFolder:
    """Reads one folder; `manifest` None: it has none. Raises UsageError if it has neither a manifest nor records."""
    records = path / RECORDS
    try:
        rows = rows_in(path, manifest)
        manifest = rows.manifest(manifest)
        whole = {} if manifest is None else shapes_of(manifest["specification"])
        run = ScoredRun(
            folder=path, manifest=manifest, readings=readings, source=str(records), is_each_once=True, rows=rows
        )
        counted, tally = StepTotals(), GridTally(run)
        items = RunItems(path, GridReader(manifest), rows, whole)
        lines = items.reading(record_lines(records), run.source) if records.exists() else ()
        for line in decoded(lines, GridLine, run.source):
            pair = line.pair
            counted.add(pair, line)
            tally.add(pair, line)
        failures = items.reading(read_lines(path / FAILURES), str(path / FAILURES), is_failure=True)
        ended = recount(counted, {FAILURES: failures}).pairs
        labels = labels_used(manifest, is_corrected=bool(tally.sides))
        answers = {each.pair: each for each in tally.answers(run).models()}
    except OSError as error:
        raise UsageError(f"{error.filename or path}: expected a readable file, got: {error.strerror}") from error
    except (KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{path}: its {MANIFEST} is no MillStone run's ({error!r})") from error
    if manifest is None and not answers:
        raise UsageError(f"{records}: expected records, got none: nothing to report")
    shape = next(iter(whole.values()), None)
    return AnswerFolder(path, manifest, answers, ended, tuple(whole), shape, items, rows, tally.sides, labels)


def survey(folders: Sequence[AnswerFolder], readings: Readings, tables: Sequence[CountsTable] = ()) -> ReportSurvey:
    """Returns the answers of all folders and the counts of all tables, each model under a unique name. A reading that
    `readings` leaves open is that of the runs, if they agree."""
    digests = _digests(folders)
    named = names(folders)
    shapes, manners, every = {}, {}, []
    samples, planned, alone = set(), set(), set()
    for folder in folders:
        for pair in folder.pairs():
            name, shape = named[folder.path, pair], folder.shape_of(pair)
            if shape is not None:
                shapes[name] = shape
            if folder.shape is not None and pair in folder.asked:
                planned.add(name)
            manners[name] = manner_of(
                folder.manifest,
                pair,
                digest=digests.get(folder.path),
                is_recorded=readings.stance is None,
            )
            if _is_sample(folder.manifest):
                samples.add(name)
            if not folder.rows.is_ranked(pair):
                alone.add(name)
            if pair in folder.answers:
                every.append(dataclasses.replace(folder.answers[pair], name=name))
    return ReportSurvey(
        answers=tuple(every),
        shapes=shapes,
        topics=topics(),
        left_out=LEFT_OUT,
        controversial=CONTROVERSIAL,
        readings=structs.replace(
            readings,
            silence=readings.silence or _silence_of_all(folders),
        ),
        planned=frozenset(planned),
        alone=frozenset(alone),
        manners=manners,
        samples=frozenset(samples),
        label_remarks=tuple(_label_remarks(folders)),
        counts=named_counts(tables),
    )


def _silence_of_all(folders: Sequence[AnswerFolder]) -> Silence:
    """Returns "literal" if every run used it, else "unscored": models are compared under one reading."""
    readings = {silence_of(folder.manifest or {}) for folder in folders}
    return "literal" if readings == {"literal"} else "unscored"


def _is_sample(manifest: Mapping[str, Any] | None) -> bool:
    """Returns whether the issues were those that come with the package, as when no data set is named."""
    kept = kept_options(manifest, "millstone")
    return "model" in kept and kept.get("dataset") is None


def standings(folders: Sequence[AnswerFolder]) -> tuple[AnswerStatus, ...]:
    named = names(folders)
    statuses = []
    for folder in folders:
        for pair in folder.pairs():
            ended, shape = folder.ended.get(pair, PairCounts()), folder.shape_of(pair)
            statuses.append(
                AnswerStatus(
                    model=named[folder.path, pair],
                    expected=ended.answered + ended.failures if shape is None else len(shape),
                    answered=ended.answered,
                    refused=ended.refused,
                    failed=dict(sorted(ended.failed.items())),
                    is_told=folder.shape is not None and pair in folder.asked,
                )
            )
    return tuple(statuses)


def names(folders: Sequence[AnswerFolder]) -> dict[tuple[Path, Pair], str]:
    """Returns a unique name for each pair: the model's, with its treatment if it has several, with its folder if
    another folder has the same name."""
    labels = folder_labels([folder.path for folder in folders])
    plain = {(folder.path, pair): name for folder in folders for pair, name in row_names(folder.pairs()).items()}
    twice = {name for name, times in Counter(plain.values()).items() if times > 1}
    return told_apart(plain, {key: labels[key[0]] for key in plain}, twice)


def _digests(folders: Sequence[AnswerFolder]) -> dict[Path, str]:
    """Returns each data set's digest with corrected labels, by folder, if answers are read by the wordings: runs that
    differ only in labels then have the same. Else empty."""
    if not any(folder.sides for folder in folders):
        return {}
    digests = {folder.path: kept_labels(folder.manifest).get("digest_by_wording") for folder in folders}
    return {path: digest for path, digest in digests.items() if digest is not None}


def _label_remarks(folders: Sequence[AnswerFolder]) -> Iterator[str]:
    """Yields a remark for each folder with labels that their wordings contradict, since scores follow labels."""
    names = folder_labels([folder.path for folder in folders])
    for folder in folders:
        labels = folder.labels
        whose = f"Run {names[folder.path]}: orientation" if len(folders) > 1 else "Orientation"
        if labels is None:
            yield f"{whose} {AS_RECORDED}."
        elif labels.mismatches and not labels.is_corrected:
            yield (
                f"{whose} {labels.used}. Every score and share here follows the labels; {FIX} reads the same answers "
                "by the wordings."
            )
        elif labels.is_remarkable:
            yield f"{whose} {labels.used}."
