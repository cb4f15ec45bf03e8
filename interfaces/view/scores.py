"""The scores of one run as they come: its records are read on from where the last look ended.

Keeps sums for each pair and what a benchmark gathers for its scores, no text. A run that has ended has those of its
scores.json. One look reads for a short time: of many records that are not read yet, it has the scores of the first.
"""

from __future__ import annotations

import time
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
from ...bench.evaluation.reading.run_comparison import compared_folders, comparison_lines
from ...bench.evaluation.running.scoring import SCORES
from ...bench.evaluation.running.served import rows_in
from ...engine.fault import LocalFault
from ...engine.folder_file import lines_in, read_whole
from ...engine.pairs import Pair, pair_of
from ...engine.runs.run_folder import RECORDS, read_manifest
from ...format import command_text
from ...report.escaping import visible

# So long does one look read; no other request reads records meanwhile.
READING_S = 0.7
# Longer records are not scored while other requests wait.
_COMPARED_BYTES = 1 << 26
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
    """The scores of the run in a folder, looked at again and again. `reading_s`: for so long does a look read."""

    def __init__(self, folder: Path, reading_s: float = READING_S) -> None:
        self._folder = folder
        self._reading_s = reading_s
        self._rewind()

    def _rewind(self) -> None:
        self._read_to = self._file = 0
        self._sums: dict[Pair, _Sums] = {}
        self._benchmark: ItemBenchmark[Any] | None = None
        self._tally: Tally | None = None
        self._run: ScoredRun | None = None

    def look(self) -> dict[str, Any]:
        """Returns a table: `columns`, `rows` of texts, whether it `is_final`, and the `share` of the records that it is
        of. Raises LocalFault or UsageError for a folder that holds no run."""
        manifest = read_manifest(self._folder)
        if manifest.get("ended") and (final := self._final(manifest)) is not None:
            return final
        share = self._read_on(manifest)
        if self._tally is not None and self._run is not None and self._sums:
            # Of a few answers many scores are unmeasured, and a benchmark may need more to compute any.
            with suppress(ArithmeticError, LookupError, ValueError):
                return self._table(self._run.specification or {}, self._tally.scores(self._run), share=share)
        rows = [
            [str(pair), f"{one.answers:,}", f"{one.refused:,}", f"{one.total / one.scored:.3f}" if one.scored else "-"]
            for pair, one in self._sums.items()
        ]
        return {"columns": _SO_FAR, "rows": rows, "is_final": False, "share": share}

    def _final(self, manifest: Mapping[str, Any]) -> dict[str, Any] | None:
        """Returns the scores that the run wrote at its end; None: there are none."""
        self._benchmark = benchmark = benchmark_of(self._folder)
        specification = rows_in(self._folder, manifest).specification(manifest["specification"])
        with suppress(OSError, LocalFault, ValueError, LookupError):
            scores = orjson.loads(read_whole(self._folder / SCORES))
            return self._table(specification, scores[benchmark.scores_name(specification)], is_final=True)
        return None

    def _table(
        self, specification: Mapping[str, Any], part: Mapping[str, Any], *, is_final: bool = False, share: float = 1.0
    ) -> dict[str, Any]:
        assert self._benchmark is not None
        rows = [[str(pair), *self._benchmark.cells(entry_of(part, pair))] for pair in pairs_in(specification)]
        return {"columns": self._benchmark.columns, "rows": rows, "is_final": is_final, "share": share}

    def _read_on(self, manifest: Mapping[str, Any]) -> float:
        """Returns the share of the records that is read then."""
        path, until = self._folder / RECORDS, time.monotonic() + self._reading_s
        with suppress(FileNotFoundError):
            status = path.stat()
            if status.st_size < self._read_to or status.st_ino != (self._file or status.st_ino):
                self._rewind()  # what was counted is no longer there, or `rescore` replaced it
            self._file = status.st_ino
            if self._run is None or self._benchmark is None:
                self._benchmark = benchmark_of(self._folder)
                readings = self._benchmark.readings_of(manifest)
                self._run = ScoredRun(folder=self._folder, manifest=manifest, readings=readings)
                self._tally = self._benchmark.tally(self._run)
            decode, of_tally = msgspec.json.Decoder(_Line).decode, msgspec.json.Decoder(self._benchmark.Line).decode
            for number, line in enumerate(self._lines(path), 1):
                with suppress(msgspec.MsgspecError, UnicodeError):
                    record = decode(line)
                    self._add(record)
                    if self._tally is not None:
                        self._tally.add(pair_of(record), of_tally(line))
                if not number % 256 and time.monotonic() > until:
                    return min(0.99, self._read_to / path.stat().st_size)
        return 1.0

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


def comparison_of(folders: Mapping[str, Path]) -> str:
    """Returns what `score` prints of the difference of two runs, by their names; empty if one has not ended, or they
    are of different benchmarks."""
    paths = folders.values()
    benchmarks = {benchmark_of(path) for path in paths}
    if len(folders) != 2 or len(benchmarks) != 1 or not all(read_manifest(path).get("ended") for path in paths):
        return ""
    if sum((path / RECORDS).stat().st_size for path in paths) > _COMPARED_BYTES:
        return f"Their difference: {command_text('score', *paths)}"
    return "\n".join(map(visible, comparison_lines(compared_folders(benchmarks.pop(), folders, {}))))
