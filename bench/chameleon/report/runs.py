"""Reads Chameleon runs for a report: the traces of their records, the planned turns, and the failures.

Owns the pass over the lines of a file, and the byte at which each turn begins, so that a few texts can be read again.
Records of another program need no manifest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any

from msgspec import Struct, field, structs

from ....configuration.errors import UsageError
from ....engine.runs.journal import read_lines
from ....engine.runs.pairs import Pair, pair_of
from ....engine.runs.run_folder import FAILURES, MANIFEST, RECORDS
from ....metrics.chameleon.readings import Readings
from ....metrics.chameleon.traces import Plan, Traces
from ....metrics.read_in_part import RunReads
from ...evaluation.door.kept_options import kept_options
from ...evaluation.door.served_rows import ONE_ROW_EACH, ServedRows
from ...evaluation.running.journals import decoded
from ...evaluation.running.reads import reads_of
from ...evaluation.running.record_lines import record_lines
from ...evaluation.running.served import rows_in
from ..run_spec import planned_turns, readings_of_run


class _Failure(Struct):
    """A failure's line, ours or another program's."""

    model: str
    temperature: float | None = None
    effort: str | None = None
    status: str = "unknown"
    conversation: str = ""
    turn: int = 0
    step: str = ""


class ConversationRun(Struct, frozen=True):
    """The run of one folder. `label` distinguishes it from the others; `asked` and `specification` are empty without a
    manifest. `data` is the digest of its data set (None: not known); `is_sample`: the data set is the package's.
    `steps` counts failures by the step of the turn, `held` the later turns that were not asked because of one.
    `readings` are the run's own; without a manifest, the defaults. `rows` are those of the served names."""

    label: str
    records: Path
    traces: Traces
    asked: Plan = MappingProxyType({})
    failed: dict[Pair, Counter[str]] = field(default_factory=dict)
    data: str | None = None
    steps: dict[Pair, Counter[str]] = field(default_factory=dict)
    held: Counter[Pair] = field(default_factory=Counter)
    specification: Mapping[str, Any] = MappingProxyType({})
    is_sample: bool = False
    manifest: Mapping[str, Any] | None = None
    readings: Readings = Readings()
    rows: ServedRows = ONE_ROW_EACH

    @property
    def turns(self) -> int:
        """The number of turns in its records."""
        return sum(troubles.turns for troubles in self.traces.troubles.values())

    def add_failures(self, lines: Iterable[_Failure]) -> None:
        """Counts failures by kind and by step, and the later turns that the first one of a conversation holds back."""
        first: dict[tuple[Pair, str], int] = {}
        for line in lines:
            pair = pair_of(line)
            place = pair, line.conversation
            self.failed.setdefault(pair, Counter())[line.status] += 1
            if line.step:
                self.steps.setdefault(pair, Counter())[line.step] += 1
            first[place] = min(line.turn, first.get(place, line.turn))
        for (pair, conversation), turn in first.items():
            self.held[pair] += max(0, self.asked.get(pair, {}).get(conversation, turn) - turn)


def read(path: Path, manifest: Mapping[str, Any] | None, read_as: str | None = None) -> ConversationRun:
    """Reads the run of a folder. Raises UsageError if it has neither a manifest nor records."""
    records = path / RECORDS
    try:
        rows = rows_in(path, manifest)
        manifest = rows.manifest(manifest)
        specification = {} if manifest is None else manifest["specification"]
        planned = {} if manifest is None else planned_turns(specification)
        readings = Readings() if manifest is None else readings_of_run(manifest)
        reads = reads_of("chameleon", manifest, read_as)
        lines = record_lines(records) if records.exists() else iter(())
        failures = read_lines(path / FAILURES)
        run = read_run(path.name, records, lines, failures, planned, specification.get("data"), reads, rows)
        if specification:
            specification = {**specification, "readings": structs.asdict(readings), **_window(manifest)}
        run = structs.replace(
            run,
            specification=specification,
            is_sample=_is_sample(manifest),
            manifest=manifest,
            readings=readings,
            rows=rows,
        )
    except OSError as error:
        raise UsageError(f"{error.filename or path}: expected a readable file, got: {error.strerror}") from error
    except (KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{path}: its {MANIFEST} is no Chameleon run's ({error!r})") from error
    except ValueError as error:
        raise UsageError(str(error)) from error
    if run.traces.repeated:
        raise UsageError(f"{records}: {run.traces.repeated[0]} stands there twice: keep one")
    if manifest is None and not run.turns:
        raise UsageError(f"{records}: expected records, got none: nothing to report")
    return run


def _window(manifest: Mapping[str, Any] | None) -> dict[str, Any]:
    """Returns the --window of a run under `window` (None: each model's own window); empty if the manifest doesn't have
    it."""
    kept = kept_options(manifest, "chameleon")
    return {"window": kept.get("window")} if "model" in kept else {}


def _is_sample(manifest: Mapping[str, Any] | None) -> bool:
    """Returns whether the conversations were those that come with the package, as when no data set is named."""
    kept = kept_options(manifest, "chameleon")
    return "model" in kept and kept.get("dataset") is None


def read_run(
    label: str,
    records: Path,
    lines: Iterable[bytes],
    failures: Iterable[bytes] = (),
    planned: Plan = MappingProxyType({}),
    data: str | None = None,
    reads: RunReads | None = None,
    rows: ServedRows = ONE_ROW_EACH,
) -> ConversationRun:
    """Returns the run in the lines, without their newlines, of a whole file of records, read in one pass. `data` is the
    digest of its data set, None: not known. Raises ValueError, which names the file and the line."""
    traces = Traces(reads)
    following = 0
    failed: list[bytes] = []
    for number, written in enumerate(lines, 1):
        offset, following = following, following + len(written) + 1
        if not (line := rows.line(written).strip()):
            continue
        try:
            if not traces.add(line, offset):
                failed.append(line)
        except ValueError as error:
            raise ValueError(f"{records}: line {number}: {error}") from error
    run = ConversationRun(label, records, traces, planned, data=data)
    run.add_failures(chain(decoded(failed, _Failure, str(records)), decoded(rows.lines(failures), _Failure, FAILURES)))
    return run
