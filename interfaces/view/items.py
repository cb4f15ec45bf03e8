"""The items of runs by models, for the table that the report has too: records are read on from where the last look
ended.

Keeps numbers of each line and the words of each item, no answer: an item that is opened is read again. Those of a large
run are on disk too, so that another server need not read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from ...bench.evaluation.door.registry import benchmark_of
from ...bench.evaluation.door.served_rows import ONE_ROW_EACH
from ...bench.evaluation.door.treatments import pairs_in
from ...bench.evaluation.page.items import Matrix, RunItems
from ...bench.evaluation.page.kept_items import LINES_LEAST, keep, load
from ...bench.evaluation.running.served import rows_in
from ...engine.folder_file import lines_in
from ...engine.runs.run_folder import FAILURES, read_manifest

# A million cells are some fifty megabytes for a browser.
CELLS_MAX = 1_200_000
# Runs whose numbers are kept: a hundred bytes a line.
RUNS_KEPT = 4
_APART = "These runs have no item in common: each cell is of one run alone."


class _ReadItems:
    """The items of one run so far. `cache`: where those of a large run are kept."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self._folder = folder
        self._cache = cache
        self._rewind()

    def _rewind(self) -> None:
        manifest = self._manifest = read_manifest(self._folder)
        benchmark = benchmark_of(self._folder)
        # Who answered is known when a run has ended; before, each model has its own row.
        rows = rows_in(self._folder, manifest) if manifest.get("ended") else ONE_ROW_EACH
        reader, pairs = benchmark.item_reader(manifest), pairs_in(rows.specification(manifest["specification"]))
        self.items = RunItems(self._folder, reader, rows, pairs)
        self._decode = msgspec.json.Decoder(reader.Line).decode
        self._files: dict[str, int] = {}
        load(self.items, manifest, self._cache)

    def read_on(self) -> RunItems:
        for name, part in self.items.read.items():
            with suppress(FileNotFoundError):
                status = (self._folder / name).stat()
                if status.st_size < part.size or status.st_ino != self._files.setdefault(name, status.st_ino):
                    self._rewind()  # `retry` begins the file of failures anew, `rescore` replaces the records
                    return self.read_on()
        for name in self.items.read:
            with suppress(FileNotFoundError):
                self._read_file(name)
        keep(self.items, self._manifest, self._cache, self.items.kept + max(self.items.kept // 4, LINES_LEAST))
        return self.items

    def _read_file(self, name: str) -> None:
        add, decode, part = self.items.add, self._decode, self.items.read[name]
        line_of = self.items.rows.line if self.items.rows.names else bytes
        for written in lines_in(self._folder / name, part.size):
            if not written.endswith(b"\n"):
                return  # the rest comes
            try:
                if line := line_of(written):
                    add(decode(line), part.size, is_failure=name == FAILURES)
            except (msgspec.MsgspecError, UnicodeError):
                pass  # what is wrong with a line, `verify` says
            part.add(written)


class ItemTables:
    """The tables of all runs that were looked into lately. `cache`: the folder in which what was read of large runs is
    kept."""

    def __init__(self, cache: Path) -> None:
        self._cache = cache
        self._runs: dict[Path, _ReadItems] = {}
        self._latest: tuple[list[tuple[RunItems, int]], Matrix] | None = None

    def columns(self, folders: Mapping[str, Path]) -> dict[str, Any]:
        """Returns the object of the table, of these runs by their names."""
        matrix = self._matrix(folders)
        most = max(1, CELLS_MAX // max(1, len(matrix.models)))
        if len(matrix.items) <= most:
            of_runs = [run.items.keys() for run in matrix.runs]
            apart = all(of_runs) and not set(of_runs[0]).intersection(*of_runs[1:])
            return {**matrix.columns(), "notes": [_APART] if apart else []}
        kept = sorted(np.argsort(-matrix.spread(), kind="stable")[:most].tolist())
        note = f"{most:,} of {len(matrix.items):,} items are shown, those where models differ most."
        return {**matrix.columns(kept), "notes": [note]}

    def details(self, folders: Mapping[str, Path], item: str) -> dict[str, Any] | None:
        """Returns the object of one item; None: no run has it."""
        matrix = self._matrix(folders)
        return matrix.details(item) if item in matrix.items else None

    def _matrix(self, folders: Mapping[str, Path]) -> Matrix:
        runs = [self._kept(folder).read_on() for folder in folders.values()]
        mark = [(run, len(run)) for run in runs]
        if self._latest is None or self._latest[0] != mark:
            names = {folder: name for name, folder in folders.items()} if len(runs) > 1 else {}
            self._latest = mark, Matrix(runs, names)
        return self._latest[1]

    def _kept(self, folder: Path) -> _ReadItems:
        self._runs[folder] = run = self._runs.pop(folder, None) or _ReadItems(folder, self._cache)
        for oldest in tuple(self._runs)[:-RUNS_KEPT]:
            del self._runs[oldest]
        return run
