"""A run's records as the general part of a report takes them: counts, scores, and the numbers of every answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from ....configuration.errors import UsageError
from ....engine.pairs import Pair
from ....engine.runs.journal import read_lines
from ....engine.runs.run_folder import FAILURES, RECORDS
from ..door.item_line import StepTotals
from ..door.item_reader import ItemReader
from ..door.served_rows import ONE_ROW_EACH, ScoredRun, ServedRows
from ..door.treatments import pairs_in
from ..running.record_lines import record_lines
from ..running.recount import recount
from ..running.scoring import part_of, scored_run
from .items import RunItems

if TYPE_CHECKING:
    from ..door.benchmark import ItemBenchmark


class ReadRun(Struct, kw_only=True):
    """The records of one folder: counts, item scores, and the byte at which each line begins."""

    path: Path
    """The run's folder."""
    manifest: Mapping[str, Any] | None
    """The run's manifest; None where another program wrote the records."""
    counted: StepTotals
    """How the lines of each pair ended, and what they cost."""
    items: RunItems
    """Its lines as the table of items by models takes them."""
    rows: ServedRows = ONE_ROW_EACH
    """The rows of the records' answers."""
    scores: Mapping[str, Any] = field(default_factory=dict)
    """The benchmark's part of scores.json."""

    @property
    def pairs(self) -> list[Pair]:
        """The pairs of the run, in the order of its specification, then others that have lines."""
        specification = (self.manifest or {}).get("specification") or {}
        return list(dict.fromkeys([*pairs_in(specification), *self.counted.pairs]))

    @property
    def answers(self) -> int:
        """The number of answers in its records."""
        return sum(ended.answered for ended in self.counted.pairs.values())

    @property
    def lines(self) -> int | None:
        """The number of lines (answers and final failures) that each pair has once it is complete; None: the manifest
        doesn't say."""
        specification = (self.manifest or {}).get("specification") or {}
        lines = specification.get("lines")
        return lines if isinstance(lines, int) else None


def read_run(
    benchmark: ItemBenchmark[Any], path: Path, manifest: Mapping[str, Any] | None, readings: Mapping[str, Any]
) -> ReadRun:
    """Reads and scores one folder, by the run's readings; `readings` replace some of these."""
    scored, records = scored_run(benchmark, path, manifest, readings), path / RECORDS
    run = counted_run(scored, benchmark.item_reader(manifest))
    run.scores = part_of(benchmark, scored.rows.lines(record_lines(records) if records.exists() else ()), scored)
    return run


def counted_run(scored: ScoredRun, reader: ItemReader) -> ReadRun:
    """Reads one folder, without scores. Raises UsageError if it has no records, RecordError if a line is none."""
    path, records = scored.folder, scored.folder / RECORDS
    items = RunItems(path, reader, scored.rows, pairs_in(scored.specification or {}))
    run = ReadRun(path=path, manifest=scored.manifest, counted=StepTotals(), items=items, rows=scored.rows)
    try:
        answers = record_lines(records) if records.exists() else iter(())
        failures = read_lines(path / FAILURES)
        journals: dict[str, Iterable[bytes]] = {
            str(records): items.reading(answers, str(records)),
            str(path / FAILURES): items.reading(failures, str(path / FAILURES), is_failure=True),
        }
        recount(run.counted, journals)
    except OSError as error:
        raise UsageError(f"{error.filename or path}: expected a readable file, got: {error.strerror}") from error
    if run.manifest is None and not items.items:
        raise UsageError(f"{records}: expected records, got none: nothing to report")
    return run
