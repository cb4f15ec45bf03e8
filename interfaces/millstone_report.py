"""MillStone's part of a report: its folders read, and everything that a page shows of them.

Owns how its records become contents; which files those end up in is reporting's. Heavy imports wait until it is asked.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs

from ..bench.millstone.dataset import Dataset
from ..bench.millstone.labels import FIX, Labels, recorded_told
from ..bench.millstone.survey import Folder, folder_labels, read_folder, sampled, standings, survey
from ..engine.journal import read_lines
from ..engine.run_folder import FAILURES, MANIFEST, RECORDS
from .millstone_work import over_of
from .orientation_labels import asked_dataset, digest_by_wording, labels_used, sides_of
from .origins import origin_of
from .record_lines import record_lines
from .refusal import UsageError

if TYPE_CHECKING:
    from ..metrics.intervals import Over
    from ..metrics.report.contents import Contents
    from ..metrics.report.survey import Options


def read(path: Path, manifest: Mapping[str, Any] | None, *, fix_orientation: bool = False) -> Folder:
    """One folder. Without a manifest there must be records."""
    records = path / RECORDS
    sides = sides_of(path, manifest) if fix_orientation else {}
    try:
        lines = record_lines(records) if records.exists() else iter(())
        found = read_folder(records, lines, read_lines(path / FAILURES), manifest, sides)
    except OSError as error:
        raise UsageError(f"{error.filename or path}: expected a readable file, got: {error.strerror}") from error
    except (KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{path}: its {MANIFEST} is no MillStone run's ({error!r})") from error
    if manifest is None and not found.answers:
        raise UsageError(f"{records}: expected records, got none: nothing to report")
    return found


def contents_of(
    folders: Sequence[Folder], options: Options, flags: Sequence[str], over: Over | None = None
) -> Contents:
    """`over` None: what the runs' intervals are over, where that is the same."""
    from ..bench.millstone.examples import explorer
    from ..metrics.report.contents import Contents
    from ..metrics.report.findings import findings

    own = {over_of(folder.manifest) for folder in folders}
    options = structs.replace(options, over=over or (own.pop() if len(own) == 1 else "issues"))
    every = standings(folders)
    labels = folder_labels([folder.path for folder in folders])
    origins = []
    for folder in folders:
        answers = sum(ended.answered for ended in folder.ended.values())
        try:
            origins.append(origin_of(labels[folder.path], folder.manifest, answers, _labels_told(folder)))
        except (KeyError, TypeError, AttributeError) as error:
            raise UsageError(f"{folder.path}: its {MANIFEST} is no MillStone run's ({error!r})") from error
    asked = survey(folders, options, tuple(_label_remarks(folders, labels)), _digests(folders))
    issues = len({issue for shape in asked.shapes.values() for issue in shape.issues})
    who = every[0].model if len(every) == 1 else f"{len(every)} models"
    return Contents(
        title=f"MillStone: {who} on {issues} {'issue' if issues == 1 else 'issues'}",
        standings=every,
        findings=findings(asked),
        explorer=explorer(sampled(folders, _datasets(folders)), options.reading),
        origins=tuple(origins),
        issue_set=options.issue_set,
        over=options.over,
        choices=_choices(asked.options, is_by_wording=any(folder.sides for folder in folders)),
        command=shlex.join(["millstream", "report", *labels.values(), *flags]),
    )


def label_lines(folder: object) -> list[str]:
    """For a terminal: which labels differ from their wordings, if any does."""
    if not isinstance(folder, Folder):
        return []
    found = _labels(folder)
    return [f"{folder.path}: {found.used}"] if isinstance(found, Labels) and (found.mismatches or found.unread) else []


def _labels(folder: Folder) -> Labels | str:
    """The labels that a report goes by."""
    try:
        found = labels_used(folder.manifest, folder.labels)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise UsageError(f"{folder.path}: its {MANIFEST} is no MillStone run's ({error!r})") from error
    if isinstance(found, str) or not folder.sides:
        return found
    return structs.replace(found, is_corrected=True)


def _digests(folders: Sequence[Folder]) -> dict[Path, str]:
    """Of the data sets by their wordings, where the answers are read so: the same for runs that differ in labels."""
    if not any(folder.sides for folder in folders):
        return {}
    found = {folder.path: digest_by_wording(folder.manifest) for folder in folders}
    return {path: digest for path, digest in found.items() if digest is not None}


def _labels_told(folder: Folder) -> str:
    found = _labels(folder)
    return found.used if isinstance(found, Labels) else recorded_told(folder.labels, found)


def _label_remarks(folders: Sequence[Folder], names: Mapping[Path, str]) -> Iterator[str]:
    """Scores follow labels, so a reader has to know of each that its wording contradicts."""
    for folder in folders:
        found = _labels(folder)
        whose = f"Run {names[folder.path]}: orientation" if len(folders) > 1 else "Orientation"
        if isinstance(found, str):
            if folder.labels:
                yield f"{whose} {recorded_told(folder.labels, found)}."
        elif found.mismatches and not found.is_corrected:
            yield (
                f"{whose} {found.used}. Every score and share here follows the labels; {FIX} reads the same answers by "
                "the wordings."
            )
        elif found.mismatches or found.unread:
            yield f"{whose} {found.used}."


def _choices(options: Options, *, is_by_wording: bool) -> tuple[tuple[str, str], ...]:
    from ..metrics.coverage import SILENCE_NOTES

    readings = {
        "recorded": "as each run recorded them",
        "paper": "read from the texts by the paper's patterns",
        "careful": "read from the texts carefully",
    }
    is_whole = options.issue_set == 107
    return (
        ("Stances", readings[options.reading]),
        ("Silence", SILENCE_NOTES[options.silence or "unscored"]),
        ("Orientation labels", "by the wordings" if is_by_wording else "as each run used them"),
        ("Issues", "all" if is_whole else "without the three that the published scores leave out"),
        ("Intervals", "over issues" if options.over == "issues" else "over trials of the same issues"),
        ("Consistent, in table 2", f"a mean share above {options.consistent_percent}%"),
        (
            "Topics, in figure 4",
            f"an issue counts in {'the last' if options.last_topic_only else 'each'} of its topics",
        ),
        (
            "Arguments, in figure 6",
            "change from the same template's baseline" if options.relative_to_baseline else "by their pro share",
        ),
    )


def _datasets(folders: Sequence[Folder]) -> dict[Path, Dataset | str]:
    """Each folder's data set, or why its prompts can't be made again."""
    return {folder.path: asked_dataset(folder.manifest) for folder in folders if folder.manifest is not None}
