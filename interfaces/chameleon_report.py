"""Chameleon's part of a report: its folders read, the readings it goes by, and everything that a page shows of them.

Owns how its records become contents; which files those end up in is reporting's. Heavy imports wait until it is asked.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, structs

from ..bench.chameleon.asked import asked_of, readings_of_run
from ..bench.millstone.survey import folder_labels
from ..engine.journal import read_lines
from ..engine.run_folder import FAILURES, MANIFEST, RECORDS
from ..metrics.chameleon.readings import Readings
from .chameleon_origins import origin_of
from .output import note
from .record_lines import record_lines
from .refusal import UsageError

if TYPE_CHECKING:
    from ..metrics.report.chameleon.contents import ConversationContents
    from ..metrics.report.chameleon.runs import Run


class ConversationFolder(Struct, frozen=True):
    """What one folder holds. `readings` are the run's own; without a manifest, the defaults."""

    path: Path
    manifest: Mapping[str, Any] | None
    run: Run
    readings: Readings

    @property
    def turns(self) -> int:
        return sum(troubles.turns for troubles in self.run.traces.troubles.values())


def read(path: Path, manifest: Mapping[str, Any] | None) -> ConversationFolder:
    """One folder. Without a manifest there must be records."""
    from ..metrics.report.chameleon.runs import read_run

    records = path / RECORDS
    try:
        specification = {} if manifest is None else manifest["specification"]
        asked = {} if manifest is None else asked_of(specification)
        readings = Readings() if manifest is None else readings_of_run(manifest)
        lines = record_lines(records) if records.exists() else iter(())
        failures = read_lines(path / FAILURES)
        run = read_run(path.name, records, lines, failures, asked, specification.get("data"))
        if specification:
            specification = {**specification, "readings": structs.asdict(readings), **_window(manifest)}
        run = structs.replace(run, specification=specification, is_sample=_is_sample(manifest))
    except OSError as error:
        raise UsageError(f"{error.filename or path}: expected a readable file, got: {error.strerror}") from error
    except (KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{path}: its {MANIFEST} is no Chameleon run's ({error!r})") from error
    except ValueError as error:
        raise UsageError(str(error)) from error
    if run.traces.repeated:
        raise UsageError(f"{records}: {run.traces.repeated[0]} stands there twice: keep one")
    found = ConversationFolder(path, manifest, run, readings)
    if manifest is None and not found.turns:
        raise UsageError(f"{records}: expected records, got none: nothing to report")
    return found


def _window(manifest: Mapping[str, Any] | None) -> dict[str, Any]:
    """What --window said, where the manifest tells: without it each model has its own."""
    kept = {} if manifest is None else (manifest.get("options") or {}).get("chameleon") or {}
    return {"window": kept.get("window")} if "model" in kept else {}


def _is_sample(manifest: Mapping[str, Any] | None) -> bool:
    """Whether the conversations were those that come with the package, as when no data set is named."""
    kept = {} if manifest is None else (manifest.get("options") or {}).get("chameleon") or {}
    return "model" in kept and kept.get("dataset") is None


def contents_of(
    folders: Sequence[ConversationFolder], given: Mapping[str, str], flags: Sequence[str]
) -> ConversationContents:
    """`given` are the readings that were asked for, by their fields; the others are the runs' own."""
    from ..metrics.report.chameleon.contents import contents

    labels = folder_labels([folder.path for folder in folders])
    origins = []
    for folder in folders:
        try:
            origins.append(origin_of(labels[folder.path], folder.manifest, folder.turns))
        except (KeyError, TypeError, AttributeError) as error:
            raise UsageError(f"{folder.path}: its {MANIFEST} is no Chameleon run's ({error!r})") from error
    return contents(
        [structs.replace(folder.run, label=labels[folder.path]) for folder in folders],
        structs.replace(_common(folders), **given),
        origins=origins,
        command=shlex.join(["millstream", "report", *labels.values(), *flags]),
    )


def _common(folders: Sequence[ConversationFolder]) -> Readings:
    """What stands side by side must be read alike."""
    own = {folder.readings for folder in folders}
    if len(own) == 1:
        return own.pop()
    note("millstream: these runs read their records differently: here all are read by the defaults, or as flags say")
    return Readings()
