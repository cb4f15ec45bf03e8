"""The items of runs by models, for the table that the report has too.

Keeps numbers of each line and the words of each item, no answer: an item that is opened is read again. Those of a large
run are on disk too, so that another server need not read it. A request reads for a short time, from where the last one
ended: a table of the first records stands there at once, and says that it is one.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from ...bench.evaluation.door.registry import benchmark_of
from ...bench.evaluation.door.served_rows import ONE_ROW_EACH
from ...bench.evaluation.door.treatments import pairs_in
from ...bench.evaluation.page.items import Matrix, RunItems, SharedItems
from ...bench.evaluation.page.kept_items import LINES_LEAST, keep, load
from ...bench.evaluation.running.served import rows_in
from ...engine.folder_file import lines_in
from ...engine.runs.run_folder import FAILURES, MANIFEST, read_manifest

# A million cells are some fifty megabytes for a browser.
CELLS_MAX = 1_200_000
# Runs whose numbers are kept: a hundred bytes a line.
RUNS_KEPT = 4
# So long does one request read records, and no other request reads any meanwhile; the first one of a run this share of
# it, so that a table stands there at once.
READING_S, _FIRST = 0.7, 0.2
_APART = "These runs have no item in common: each cell is of one run alone."


class _ReadItems:
    """The items of one run so far. `cache`: where those of a large run are kept."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self._folder = folder
        self._cache = cache
        self._rewind()

    def _rewind(self) -> None:
        self._written = self._mark()
        manifest = read_manifest(self._folder)
        benchmark = benchmark_of(self._folder, manifest)
        self._has_ended = bool(manifest.get("ended"))
        # Who answered is known when a run has ended; before, each model has its own row.
        rows = rows_in(self._folder, manifest) if self._has_ended else ONE_ROW_EACH
        reader, pairs = benchmark.item_reader(manifest), pairs_in(rows.specification(manifest["specification"]))
        self.items = RunItems(self._folder, reader, rows, pairs)
        self._decode = msgspec.json.Decoder(reader.Line).decode
        self._files: dict[str, int] = {}
        # The rows of its data, which it names too, take more memory than all else.
        self._specified = {"specification": manifest["specification"]}
        self.share = 0.0
        load(self.items, manifest, self._cache)

    def _mark(self) -> int:
        return (self._folder / MANIFEST).stat().st_mtime_ns

    def read_on(self, within_s: float) -> RunItems:
        """Reads what is new for about so long. `share` says then how much of the files is read."""
        if self._is_other():
            self._rewind()
        until, total, is_whole = time.monotonic() + within_s * (1 if self.share else _FIRST), 0, True
        for name, part in self.items.read.items():
            with suppress(FileNotFoundError):
                is_whole &= self._read_file(name, until)
                total += max(part.size, (self._folder / name).stat().st_size)
        if not is_whole:
            self.share = min(0.99, sum(part.size for part in self.items.read.values()) / total)
            return self.items
        self.share = 1.0
        keep(self.items, self._specified, self._cache, self.items.kept + max(self.items.kept // 4, LINES_LEAST))
        return self.items

    def _is_other(self) -> bool:
        """Returns whether what was read is not what would be read now."""
        for name, part in self.items.read.items():
            with suppress(FileNotFoundError):
                status = (self._folder / name).stat()
                if status.st_size < part.size or status.st_ino != self._files.setdefault(name, status.st_ino):
                    return True  # `retry` begins the file of failures anew, `rescore` replaces the records
        if self._has_ended or self._written == (mark := self._mark()):
            return False
        self._written, manifest = mark, read_manifest(self._folder)
        self._has_ended = bool(manifest.get("ended"))
        return self._has_ended and bool(rows_in(self._folder, manifest).names)

    def _read_file(self, name: str, until: float) -> bool:
        """Adds the lines that are new, until this time. Returns whether none is left."""
        add, decode, part = self.items.add, self._decode, self.items.read[name]
        line_of = self.items.rows.line if self.items.rows.names else bytes
        for number, written in enumerate(lines_in(self._folder / name, part.size), 1):
            if not written.endswith(b"\n"):
                return True  # the rest comes
            try:
                if line := line_of(written):
                    add(decode(line), part.size, is_failure=name == FAILURES)
            except (msgspec.MsgspecError, UnicodeError):
                pass  # what is wrong with a line, `verify` says
            part.add(written)
            if not number % 256 and time.monotonic() > until:
                return False
        return True


class ItemTables:
    """The tables of all runs that were looked into lately. `cache`: the folder in which what was read of large runs is
    kept. `reading_s`: for so long a request may read records."""

    def __init__(self, cache: Path, reading_s: float = READING_S) -> None:
        self._cache = cache
        self._reading_s = reading_s
        self._runs: dict[Path, _ReadItems] = {}
        # The items of the runs that were asked for last, with the lengths of these, and their table.
        self._latest: tuple[list[tuple[RunItems, int]], SharedItems] | None = None
        self._table: tuple[object, bytes] = None, b""

    def share(self, folders: Mapping[str, Path]) -> float:
        """Reads on, and returns the share of these runs' records that is read."""
        return self._read_on(folders)[1]

    def columns(self, folders: Mapping[str, Path]) -> bytes:
        """Returns the object of the table, as JSON, of these runs by their names: of the share that is read of their
        records."""
        items, share = self._items(folders)
        if self._table[0] != (made_of := (self._latest, share)):
            self._table = made_of, _table_of(Matrix(items.runs, items.names), share)
        return self._table[1]

    def details(self, folders: Mapping[str, Path], item: str) -> dict[str, Any] | None:
        """Returns the object of one item; None: no run has it in what is read."""
        items, share = self._items(folders)
        return {**items.details(item), "share": share} if item in items.items else None

    def _items(self, folders: Mapping[str, Path]) -> tuple[SharedItems, float]:
        runs, share = self._read_on(folders)
        mark = [(run, len(run)) for run in runs]
        if self._latest is None or self._latest[0] != mark:
            names = {folder: name for name, folder in folders.items()} if len(runs) > 1 else {}
            self._latest = mark, SharedItems(runs, names)
        return self._latest[1], share

    def _read_on(self, folders: Mapping[str, Path]) -> tuple[list[RunItems], float]:
        kept = [self._kept(folder) for folder in folders.values()]
        runs = [each.read_on(self._reading_s / len(kept)) for each in kept]
        return runs, min(each.share for each in kept)

    def _kept(self, folder: Path) -> _ReadItems:
        self._runs[folder] = run = self._runs.pop(folder, None) or _ReadItems(folder, self._cache)
        for oldest in tuple(self._runs)[:-RUNS_KEPT]:
            del self._runs[oldest]
        return run


def _table_of(matrix: Matrix, share: float) -> bytes:
    most = max(1, CELLS_MAX // max(1, len(matrix.models)))
    if len(matrix.items) > most:
        kept = sorted(np.argsort(-matrix.spread(), kind="stable")[:most].tolist())
        note = f"{most:,} of {len(matrix.items):,} items are shown, those whose scores differ most."
        return matrix.columns(kept, share=share, notes=[note])
    of_runs = [run.items.keys() for run in matrix.runs]
    apart = all(of_runs) and not set(of_runs[0]).intersection(*of_runs[1:])
    return matrix.columns(share=share, notes=[_APART] if apart and share == 1 else [])
