"""The items of runs by models, for the table that the report has too: records are read on from where the last look
ended.

Keeps numbers of each line and the words of each item, no answer: an item that is opened is read again.
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
from ...bench.evaluation.running.served import rows_in
from ...engine.folder_file import lines_in
from ...engine.runs.run_folder import FAILURES, RECORDS, read_manifest

# A million cells are some fifty megabytes for a browser.
CELLS_MAX = 1_200_000
# Runs whose numbers are kept: a hundred bytes a line.
RUNS_KEPT = 4
_APART = "These runs have no item in common: each cell is of one run alone."


class _ReadItems:
    """The items of one run so far."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._rewind()

    def _rewind(self) -> None:
        manifest = read_manifest(self._folder)
        benchmark = benchmark_of(self._folder)
        # Who answered is known when a run has ended; before, each model has its own row.
        rows = rows_in(self._folder, manifest) if manifest.get("ended") else ONE_ROW_EACH
        reader, pairs = benchmark.item_reader(manifest), pairs_in(rows.specification(manifest["specification"]))
        self.items = RunItems(self._folder, reader, rows, pairs)
        self._decode = msgspec.json.Decoder(reader.Line).decode
        self._read_to = {RECORDS: 0, FAILURES: 0}

    def read_on(self) -> RunItems:
        for name, begin in tuple(self._read_to.items()):
            with suppress(FileNotFoundError):
                if (self._folder / name).stat().st_size < begin:
                    self._rewind()  # `retry` begins the file of failures anew
                    return self.read_on()
        for name in self._read_to:
            with suppress(FileNotFoundError):
                self._read_file(name)
        return self.items

    def _read_file(self, name: str) -> None:
        add, decode, place = self.items.add, self._decode, self._read_to[name]
        line_of = self.items.rows.line if self.items.rows.names else bytes
        for written in lines_in(self._folder / name, place):
            if not written.endswith(b"\n"):
                return  # the rest comes
            try:
                if line := line_of(written):
                    add(decode(line), place, is_failure=name == FAILURES)
            except (msgspec.MsgspecError, UnicodeError):
                pass  # what is wrong with a line, `verify` says
            place = self._read_to[name] = place + len(written)


class ItemTables:
    """The tables of all runs that were looked into lately."""

    def __init__(self) -> None:
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
        self._runs[folder] = run = self._runs.pop(folder, None) or _ReadItems(folder)
        for oldest in tuple(self._runs)[:-RUNS_KEPT]:
            del self._runs[oldest]
        return run
