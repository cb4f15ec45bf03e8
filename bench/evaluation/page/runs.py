"""A run's records as the general part of a report takes them: counts, the score of every item, and where its lines
begin.

Keeps no text: the lines of the few items that are shown are read again.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct, field

from ....configuration.errors import UsageError
from ....engine.folder_file import line_at, open_to_read
from ....engine.pairs import Pair
from ....engine.runs.journal import read_lines
from ....engine.runs.run_folder import FAILURES, RECORDS
from ..door.item_line import StepTotals
from ..door.record import Record
from ..door.served_rows import ONE_ROW_EACH, ScoredRun, ServedRows
from ..door.treatments import pairs_in
from ..running.journals import RecordError
from ..running.record_lines import record_lines
from ..running.recount import recount
from ..running.scoring import part_of, scored_run

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
    rows: ServedRows = ONE_ROW_EACH
    """The rows of the records' answers."""
    figures: dict[str, dict[Pair, array[float]]] = field(default_factory=dict)
    """The scores of each item by pair, if records have a field `score`."""
    groups: dict[str, str] = field(default_factory=dict)
    """The group of each item that has one."""
    places: dict[str, array[int]] = field(default_factory=dict)
    """The bytes at which the lines of each item begin in the file of records."""
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
    run = counted_run(scored, benchmark.Record)
    run.scores = part_of(benchmark, scored.rows.lines(record_lines(records) if records.exists() else ()), scored)
    return run


def counted_run(scored: ScoredRun, kind: type[Record]) -> ReadRun:
    """Reads one folder, without scores. Raises UsageError if it has no records, RecordError if a line is none."""
    path, rows, records = scored.folder, scored.rows, scored.folder / RECORDS
    run = ReadRun(path=path, manifest=scored.manifest, counted=StepTotals(), rows=rows)
    try:
        lines = record_lines(records) if records.exists() else iter(())
        journals: dict[str, Iterable[bytes]] = {
            str(records): _noted(lines, run, kind, str(records)),
            str(path / FAILURES): rows.lines(read_lines(path / FAILURES)),
        }
        recount(run.counted, journals)
    except OSError as error:
        raise UsageError(f"{error.filename or path}: expected a readable file, got: {error.strerror}") from error
    if run.manifest is None and not run.places:
        raise UsageError(f"{records}: expected records, got none: nothing to report")
    return run


def _noted(lines: Iterable[bytes], run: ReadRun, kind: type[Record], name: str) -> Iterator[bytes]:
    """Yields the lines, and notes scores, groups and places of each on the way."""
    decode = msgspec.json.Decoder(kind).decode
    begin = 0
    for number, written in enumerate(lines, 1):
        place, begin = begin, begin + len(written) + 1
        if not (line := run.rows.line(written)):
            continue
        try:
            record = decode(line)
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise RecordError(f"{name}: line {number}: {error}") from error
        item = record.item or record.id
        run.places.setdefault(item, array("q")).append(place)
        if record.group:
            run.groups[item] = record.group
        score = getattr(record, "score", None)
        if isinstance(score, int | float):
            run.figures.setdefault(item, {}).setdefault(record.pair, array("d")).append(score)
        yield line


def records_of(run: ReadRun, item: str, kind: type[Record]) -> list[Any]:
    """Returns the records of one item, read again from the file."""
    with open_to_read(run.path / RECORDS) as file:
        lines = run.rows.lines(line_at(file, place) for place in run.places.get(item, ()))
        return [msgspec.json.decode(line, type=kind) for line in lines]
