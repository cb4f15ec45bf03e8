"""Runs over a Ray cluster, and what of them two runs have in common."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

GRID = ("run", "millstone", "--model", "sim/open", "--limit", "1", "--no-report", "--no-progress")
PROMPTS = 990
_SIZE = ("--conversations", "3", "--turns", "3", "--pages", "4", "--no-progress", "--no-report")
TALKS = ("run", "chameleon", "--model", "sim/open", "--judge", "sim/judge", "--temperature", "0", *_SIZE)
# What differs between two runs of the same calls.
_OF_ONE_RUN = frozenset({"latency_ms", "answer_id", "crc", "search_ms", "pages_ms", "fetched_at"})


def records_of(folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """The records by their models and ids, without what only this run has. Fails if one stands there twice."""
    lines = [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]
    records = {
        (line["model"], line["id"]): {name: value for name, value in line.items() if name not in _OF_ONE_RUN}
        for line in lines
    }
    assert len(records) == len(lines)
    return records


def scores_of(folder: Path) -> Any:
    return json.loads((folder / "scores.json").read_text())
