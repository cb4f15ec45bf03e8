"""Finds what can be exported (runs, sweeps and batches) and reads their records as plain values, one by one.

Owns where records of each kind lie, and how records of other programs are read. Knows no table format.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import orjson
from msgspec import Struct

from ...bench.evaluation.door.registry import benchmark_of
from ...bench.evaluation.running.record_lines import record_lines
from ...configuration.errors import UsageError
from ...engine.runs.run_folder import FAILURES, MANIFEST, RECORDS, read_manifest
from ..batch.place import BESIDE, BatchPlace, place_at


class RecordSource(Struct, frozen=True):
    """The files of one run. `place`: its folder, or a batch's output. `manifest` None: another program's records.
    `errors`: a batch's own file of errors; None: it has none."""

    place: Path
    benchmark: str
    manifest: dict[str, Any] | None
    errors: Path | None = None

    @property
    def default_target(self) -> Path:
        if self.benchmark == "batch":
            return self.place.with_name(f"{self.place.name}.parquet")
        return self.place / "records.parquet"

    @property
    def metadata(self) -> dict[str, str]:
        """The description of the run that is stored inside its table."""
        manifest = self.manifest or {}
        specification = manifest.get("specification") or {}
        models = specification.get("models") or [specification.get("model")]
        fields = {
            "benchmark": self.benchmark,
            "run": self.place.name,
            "models": orjson.dumps([model for model in models if model]).decode(),
            "manifest_hash": manifest.get("manifest_hash"),
            "specification_hash": manifest.get("specification_hash"),
            "data": specification.get("data") or specification.get("input"),
            "started": manifest.get("started"),
            "ended": manifest.get("ended"),
            "version": (manifest.get("versions") or {}).get("millstream"),
        }
        return {f"millstream.{name}": str(value) for name, value in fields.items() if value}


def sources_at(place: Path) -> list[RecordSource]:
    """Returns the run of a folder, all runs of a sweep's folder, or the batch of an output file."""
    batch = place_at(place)
    if place.is_file() or (batch is not None and batch.out.is_file()):
        return [_batch(batch or BatchPlace(place.resolve()))]
    if not place.is_dir():
        raise UsageError(f"{place}: expected a run's folder or a batch's output, got nothing there")
    if (place / MANIFEST).exists() or (place / RECORDS).exists():
        return [_run(place)]
    inside = [path for path in sorted(place.iterdir()) if (path / RECORDS).is_file() and path.suffix != BESIDE]
    if not inside:
        raise UsageError(f"{place}: expected a run's folder, or one that holds such, got neither: no {RECORDS} there")
    return [_run(path) for path in inside]


def _run(folder: Path) -> RecordSource:
    manifest = read_manifest(folder) if (folder / MANIFEST).exists() else None
    return RecordSource(folder, benchmark_of(folder).name, manifest)


def _batch(place: BatchPlace) -> RecordSource:
    manifest = read_manifest(place.folder) if (place.folder / MANIFEST).exists() else None
    return RecordSource(place.out, "batch", manifest, place.errors)


def records_of(source: RecordSource, decode: Callable[[bytes], Any]) -> Iterator[dict[str, Any]]:
    """Yields records, then final failures. `decode` raises for a line that is no record."""
    for name in (RECORDS, FAILURES):
        path = source.place / name
        if name == RECORDS and not path.exists():
            raise UsageError(f"{path}: expected a readable file, got none")
        if path.exists():
            for number, line in enumerate(record_lines(path), 1):
                if line.strip():
                    yield read_record(line, decode, f"{path} line {number}")


def read_record(line: bytes, decode: Callable[[bytes], Any], where: str) -> dict[str, Any]:
    """Returns a line as a record without adding defaults: a missing field stays missing. Unpaired surrogates, which no
    table can hold, are replaced. Raises UsageError if the line is no record."""
    try:
        decode(line)
    except (msgspec.MsgspecError, UnicodeError) as error:
        line = _mended(line)
        try:
            decode(line)
        except (msgspec.MsgspecError, UnicodeError):
            raise UsageError(f"{where}: {error}") from error
    record: dict[str, Any] = orjson.loads(line)
    return record


def _mended(line: bytes) -> bytes:
    try:
        text = json.dumps(json.loads(line), ensure_ascii=False)
    except ValueError:
        return line
    return text.encode("utf-8", "replace")
