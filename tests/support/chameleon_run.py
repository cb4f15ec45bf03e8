"""A run's records in a file and read for a report, without the program that would have made them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from chameleon_records import as_lines
from msgspec import structs

from millstream.bench.chameleon.report.panel import ConversationScores, conversation_scores
from millstream.bench.chameleon.report.runs import ConversationRun
from millstream.bench.chameleon.score_table import read_traces
from millstream.bench.chameleon.shown_items import ConversationReader
from millstream.bench.evaluation.page.items import RunItems
from millstream.metrics.chameleon.readings import Readings
from millstream.metrics.chameleon.traces import Plan
from millstream.metrics.read_in_part import RunReads
from millstream.report.page import page as page_of
from millstream.report.sections import PageContents


def written_run(
    folder: Path,
    records: Iterable[Mapping[str, Any]],
    label: str = "run",
    failures: Iterable[Mapping[str, Any]] = (),
    asked: Plan | None = None,
    **more: Any,
) -> ConversationRun:
    """`more` are fields that a reader of manifests fills in."""
    folder.mkdir(parents=True, exist_ok=True)
    path, lines, failed = folder / "records.jsonl", as_lines(records), as_lines(failures)
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    (folder / "failures.jsonl").write_bytes(b"".join(line + b"\n" for line in failed))
    return structs.replace(read_run(label, path, lines, failed, asked or {}), **more)


def read_run(
    label: str, path: Path, lines: Iterable[bytes], failures: Iterable[bytes] = (), asked: Plan | None = None
) -> ConversationRun:
    """The run in the lines of a file of records, without a manifest."""
    items = RunItems(path.parent, ConversationReader(), pairs=asked or {})
    journals = {
        str(path): items.reading(lines, str(path)),
        "failures.jsonl": items.reading(failures, "failures.jsonl", is_failure=True),
    }
    return ConversationRun(label, path, read_traces(journals, RunReads()), items, asked or {})


def page(contents: PageContents) -> bytes:
    """A report's page of Chameleon's part alone, as the report writes it."""
    return page_of(contents.title, [contents])


def panel_of(*runs: ConversationRun, **chosen: Any) -> ConversationScores:
    return conversation_scores(runs, Readings(**chosen))
