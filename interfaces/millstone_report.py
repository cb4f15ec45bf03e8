"""MillStone's part of a report: its folders read, and everything that a page shows of them.

Owns how its records become contents; which files those end up in is reporting's. Heavy imports wait until it is asked.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..bench.millstone.dataset import Dataset, DatasetError, load
from ..bench.millstone.survey import Folder, folder_labels, read_folder, sampled, standings, survey
from ..engine.journal import read_lines
from ..engine.run_folder import FAILURES, MANIFEST, RECORDS
from .millstone_work import SAMPLE
from .origins import origin_of
from .record_lines import record_lines
from .refusal import UsageError

if TYPE_CHECKING:
    from ..metrics.report.contents import Contents
    from ..metrics.report.survey import Options


def read(path: Path, manifest: Mapping[str, Any] | None) -> Folder:
    """One folder. Without a manifest there must be records."""
    records = path / RECORDS
    try:
        lines = record_lines(records) if records.exists() else iter(())
        found = read_folder(records, lines, read_lines(path / FAILURES), manifest)
    except OSError as error:
        raise UsageError(f"{error.filename or path}: expected a readable file, got: {error.strerror}") from error
    except (KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{path}: its {MANIFEST} is no MillStone run's ({error!r})") from error
    if manifest is None and not found.answers:
        raise UsageError(f"{records}: expected records, got none: nothing to report")
    return found


def contents_of(folders: Sequence[Folder], options: Options, flags: Sequence[str]) -> Contents:
    from ..bench.millstone.examples import explorer
    from ..metrics.report.contents import Contents
    from ..metrics.report.findings import findings

    every = standings(folders)
    labels = folder_labels([folder.path for folder in folders])
    origins = []
    for folder in folders:
        answers = sum(ended.answered for ended in folder.ended.values())
        try:
            origins.append(origin_of(labels[folder.path], folder.manifest, answers))
        except (KeyError, TypeError, AttributeError) as error:
            raise UsageError(f"{folder.path}: its {MANIFEST} is no MillStone run's ({error!r})") from error
    asked = survey(folders, options)
    issues = len({issue for shape in asked.shapes.values() for issue in shape.issues})
    who = every[0].model if len(every) == 1 else f"{len(every)} models"
    return Contents(
        title=f"MillStone: {who} on {issues} {'issue' if issues == 1 else 'issues'}",
        standings=every,
        findings=findings(asked),
        explorer=explorer(sampled(folders, _datasets(folders)), options.reading),
        origins=tuple(origins),
        issue_set=options.issue_set,
        choices=_choices(options),
        command=shlex.join(["millstream", "report", *labels.values(), *flags]),
    )


def _choices(options: Options) -> tuple[tuple[str, str], ...]:
    readings = {
        "recorded": "as each run recorded them",
        "paper": "read from the texts by the paper's patterns",
        "careful": "read from the texts carefully",
    }
    is_whole = options.issue_set == 107
    return (
        ("Stances", readings[options.reading]),
        ("Issues", "all" if is_whole else "without the three that the published scores leave out"),
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
    loaded: dict[Path, Dataset | str] = {}
    found: dict[Path, Dataset | str] = {}
    for folder in folders:
        if folder.manifest is None:
            continue
        kept = _kept_path(folder.manifest)
        if kept not in loaded:
            try:
                loaded[kept] = load(kept)
            except (DatasetError, OSError):
                loaded[kept] = "the data set is no longer where it was when the run was made, or can't be read"
        found[folder.path] = loaded[kept]
    return found


def _kept_path(manifest: Mapping[str, Any]) -> Path:
    kept = (manifest.get("options") or {}).get("millstone", {}).get("dataset")
    return SAMPLE if kept is None else Path(kept)
