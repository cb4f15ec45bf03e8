"""What there is to export: runs, sweeps of them and batches, and their records as plain values, one after the other.

Owns where records of each kind lie and how what other programs wrote is read. Knows no table format.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import orjson
from msgspec import Struct

from ...engine.run_folder import FAILURES, MANIFEST, RECORDS, read_manifest
from ..batch.place import BESIDE, Place, place_at
from ..record_lines import record_lines
from ..refusal import UsageError
from ..which import benchmark_of


class Source(Struct, frozen=True):
    """One run. `place`: its folder, or a batch's output. `manifest` None: another program's records. `errors`: those
    of a batch, where they lie apart."""

    place: Path
    benchmark: str
    manifest: dict[str, Any] | None
    errors: Path | None = None

    @property
    def name(self) -> str:
        return self.place.name

    @property
    def default_target(self) -> Path:
        if self.benchmark == "batch":
            return self.place.with_name(f"{self.place.name}.parquet")
        return self.place / "records.parquet"

    @property
    def metadata(self) -> dict[str, str]:
        """Which run a table is of, for whoever finds it alone."""
        manifest = self.manifest or {}
        specification = manifest.get("specification") or {}
        models = specification.get("models") or [specification.get("model")]
        found = {
            "benchmark": self.benchmark,
            "run": self.name,
            "models": orjson.dumps([model for model in models if model]).decode(),
            "manifest_hash": manifest.get("manifest_hash"),
            "specification_hash": manifest.get("specification_hash"),
            "data": specification.get("data") or specification.get("input"),
            "started": manifest.get("started"),
            "ended": manifest.get("ended"),
            "version": (manifest.get("versions") or {}).get("millstream"),
        }
        return {f"millstream.{name}": str(value) for name, value in found.items() if value}


def sources_at(place: Path) -> list[Source]:
    """The run of a folder, those of a sweep's folder, or the batch that a file is the output of."""
    batch = place_at(place)
    if place.is_file() or (batch is not None and batch.out.is_file()):
        return [_batch(batch or Place(place))]
    if not place.is_dir():
        raise UsageError(f"{place}: expected a run's folder or a batch's output, got nothing there")
    if (place / MANIFEST).exists() or (place / RECORDS).exists():
        return [_run(place)]
    inside = [path for path in sorted(place.iterdir()) if (path / RECORDS).is_file() and path.suffix != BESIDE]
    if not inside:
        raise UsageError(f"{place}: expected a run's folder, or one that holds such, got neither: no {RECORDS} there")
    return [_run(path) for path in inside]


def _run(folder: Path) -> Source:
    manifest = read_manifest(folder) if (folder / MANIFEST).exists() else None
    return Source(folder, benchmark_of(folder), manifest)


def _batch(place: Place) -> Source:
    manifest = read_manifest(place.folder) if (place.folder / MANIFEST).exists() else None
    return Source(place.out, "batch", manifest, place.errors)


def records_of(source: Source, decode: Callable[[bytes], Any]) -> Iterator[dict[str, Any]]:
    """Records, then final failures. `decode` says what is wrong with a line that is none."""
    for name in (RECORDS, FAILURES):
        path = source.place / name
        if name == RECORDS and not path.exists():
            raise UsageError(f"{path}: expected a readable file, got none")
        if path.exists():
            for number, line in enumerate(record_lines(path), 1):
                if line.strip():
                    yield read_record(line, decode, f"{path} line {number}")


def read_record(line: bytes, decode: Callable[[bytes], Any], where: str) -> dict[str, Any]:
    """The fields as they stand there; one that is missing stays so. Half a character, which some programs write as an
    escape and no table can hold, is replaced."""
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
