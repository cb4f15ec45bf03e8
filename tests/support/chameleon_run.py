"""A run's records in a file and read for a report, without the program that would have made them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from chameleon_records import as_lines
from msgspec import structs

from millstream.metrics.chameleon.readings import Readings
from millstream.metrics.chameleon.traces import Asked
from millstream.metrics.report.chameleon.panel import Panel, panel
from millstream.metrics.report.chameleon.runs import Run, read_run


def written_run(
    folder: Path,
    records: Iterable[Mapping[str, Any]],
    label: str = "run",
    failures: Iterable[Mapping[str, Any]] = (),
    asked: Asked | None = None,
    data: str | None = None,
    **more: Any,
) -> Run:
    """`more` are fields that a reader of manifests fills in."""
    folder.mkdir(parents=True, exist_ok=True)
    path, lines = folder / "records.jsonl", as_lines(records)
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return structs.replace(read_run(label, path, lines, as_lines(failures), asked or {}, data), **more)


def panel_of(*runs: Run, **chosen: Any) -> Panel:
    return panel(runs, Readings(**chosen))
