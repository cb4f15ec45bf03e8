"""The scores of one run as they come: its records are read on from where the last look ended.

Keeps sums for each pair and what a benchmark gathers for its scores, no text. A run that has ended has those of its
scores.json.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import orjson
from msgspec import Struct

from ...bench.evaluation.door.benchmark import ItemBenchmark
from ...bench.evaluation.door.registry import benchmark_of
from ...bench.evaluation.door.run_counts import entry_of
from ...bench.evaluation.door.served_rows import ScoredRun, Tally
from ...bench.evaluation.door.treatments import pairs_in
from ...bench.evaluation.running.scoring import SCORES
from ...bench.evaluation.running.served import rows_in
from ...engine.fault import LocalFault
from ...engine.folder_file import lines_in, read_whole
from ...engine.pairs import Pair, pair_of
from ...engine.runs.run_folder import RECORDS, read_manifest

_SO_FAR = ("answers", "refused", "mean score so far")


class _Line(Struct):
    """The fields of a record that every benchmark has."""

    model: str = ""
    temperature: float | None = None
    effort: str | None = None
    status: str = ""
    score: Any = None


class _Sums(Struct):
    answers: int = 0
    refused: int = 0
    scored: int = 0
    total: float = 0.0


class RunScores:
    """The scores of the run in a folder, looked at again and again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._rewind()

    def _rewind(self) -> None:
        self._read_to = 0
        self._sums: dict[Pair, _Sums] = {}
        self._benchmark: ItemBenchmark[Any] | None = None
        self._tally: Tally | None = None
        self._run: ScoredRun | None = None

    def look(self) -> dict[str, Any]:
        """Returns a table: `columns`, `rows` of texts, and whether it `is_final`. Raises LocalFault or UsageError for a
        folder that holds no run."""
        manifest = read_manifest(self._folder)
        if manifest.get("ended") and (final := self._final(manifest)) is not None:
            return final
        self._read_on(manifest)
        if self._tally is not None and self._run is not None and self._sums:
            # Of a few answers many scores are unmeasured, and a benchmark may need more to compute any.
            with suppress(ArithmeticError, LookupError, ValueError):
                return self._table(self._run.specification or {}, self._tally.scores(self._run), is_final=False)
        rows = [
            [str(pair), f"{one.answers:,}", f"{one.refused:,}", f"{one.total / one.scored:.3f}" if one.scored else "-"]
            for pair, one in self._sums.items()
        ]
        return {"columns": _SO_FAR, "rows": rows, "is_final": False}

    def _final(self, manifest: Mapping[str, Any]) -> dict[str, Any] | None:
        """Returns the scores that the run wrote at its end; None: there are none."""
        self._benchmark = benchmark = benchmark_of(self._folder)
        specification = rows_in(self._folder, manifest).specification(manifest["specification"])
        with suppress(OSError, LocalFault, ValueError, LookupError):
            scores = orjson.loads(read_whole(self._folder / SCORES))
            return self._table(specification, scores[benchmark.scores_name(specification)], is_final=True)
        return None

    def _table(self, specification: Mapping[str, Any], part: Mapping[str, Any], *, is_final: bool) -> dict[str, Any]:
        assert self._benchmark is not None
        rows = [[str(pair), *self._benchmark.cells(entry_of(part, pair))] for pair in pairs_in(specification)]
        return {"columns": self._benchmark.columns, "rows": rows, "is_final": is_final}

    def _read_on(self, manifest: Mapping[str, Any]) -> None:
        path = self._folder / RECORDS
        with suppress(FileNotFoundError):
            if path.stat().st_size < self._read_to:
                self._rewind()  # what was counted is no longer there
            if self._run is None or self._benchmark is None:
                self._benchmark = benchmark_of(self._folder)
                readings = self._benchmark.readings_of(manifest)
                self._run = ScoredRun(folder=self._folder, manifest=manifest, readings=readings)
                self._tally = self._benchmark.tally(self._run)
            decode, of_tally = msgspec.json.Decoder(_Line).decode, msgspec.json.Decoder(self._benchmark.Line).decode
            for line in self._lines(path):
                with suppress(msgspec.MsgspecError, UnicodeError):
                    record = decode(line)
                    self._add(record)
                    if self._tally is not None:
                        self._tally.add(pair_of(record), of_tally(line))

    def _lines(self, path: Path) -> Iterator[bytes]:
        for line in lines_in(path, self._read_to):
            if not line.endswith(b"\n"):
                return  # the rest comes
            self._read_to += len(line)
            yield line

    def _add(self, record: _Line) -> None:
        sums = self._sums.setdefault(pair_of(record), _Sums())
        sums.answers += 1
        sums.refused += record.status == "refused"
        if isinstance(record.score, int | float):
            sums.scored += 1
            sums.total += record.score
