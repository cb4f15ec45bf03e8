"""The contents of a cache: entries, sizes and ages by endpoint and model, from one pass over it.

Pure arithmetic on entries; opens and prints nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import orjson
from msgspec import Struct, structs

from ...engine.store.cache import CacheStatistics, StoredAnswer
from ...format import size_text
from ...report.text import table


class CacheGroup(Struct):
    """The stored answers of one endpoint and model: their number, their bodies' bytes, and the times of the oldest and
    newest in seconds since 1970."""

    endpoint: str
    model: str
    entries: int = 0
    bytes: int = 0
    oldest: float = float("inf")
    newest: float = float("-inf")


def as_json(statistics: CacheStatistics, groups: Sequence[CacheGroup]) -> dict[str, Any]:
    return {
        "cache": statistics.path,
        "entries": statistics.entries,
        "entries_of_live_runs": statistics.private_entries,
        "failures": statistics.failures,
        "bodies": statistics.bodies,
        "texts": statistics.texts,
        "file_bytes": statistics.bytes,
        "oldest": _iso(min((group.oldest for group in groups), default=None)),
        "newest": _iso(max((group.newest for group in groups), default=None)),
        "groups": [
            {**structs.asdict(group), "oldest": _iso(group.oldest), "newest": _iso(group.newest)} for group in groups
        ],
    }


def groups_of(entries: Iterable[tuple[bytes, StoredAnswer]]) -> list[CacheGroup]:
    """Returns the groups of a cache's answers, the largest first. Their `bytes` are those of bodies; the file is
    larger."""
    # Parameters are few and entries many: the JSON of each distinct one is read once.
    by_params: dict[tuple[str, bytes], CacheGroup] = {}
    groups: dict[tuple[str, str], CacheGroup] = {}
    for _, entry in entries:
        mark = (entry.identity, entry.params)
        group = by_params.get(mark)
        if group is None:
            model = _model_of(entry.params)
            group = by_params[mark] = groups.setdefault((entry.identity, model), CacheGroup(entry.identity, model))
        group.entries += 1
        group.bytes += len(entry.response.body)
        at = entry.received_at
        if at < group.oldest:
            group.oldest = at
        if at > group.newest:
            group.newest = at
    return sorted(groups.values(), key=lambda one: (-one.entries, one.endpoint, one.model))


def tell(statistics: CacheStatistics, groups: Sequence[CacheGroup]) -> str:
    """Returns the contents as text for a person."""
    lines = [f"{statistics.path}: {statistics.entries:,} answers in a file of {size_text(statistics.bytes)}"]
    if statistics.private_entries:
        lines.append(f"{statistics.private_entries:,} more belong to live runs that have not ended")
    if statistics.failures or statistics.bodies or statistics.texts:
        lines.append(
            f"{statistics.failures:,} failures of searches and pages, {statistics.bodies:,} bodies that lie apart, "
            f"{statistics.texts:,} texts made of pages"
        )
    if groups:
        rows = [("endpoint", "model", "answers", "size", "oldest", "newest")]
        rows += [
            (g.endpoint, g.model, f"{g.entries:,}", size_text(g.bytes), _minute(g.oldest), _minute(g.newest))
            for g in groups
        ]
        lines += ["", table(rows)]
    return "\n".join(lines)


def _model_of(params: bytes) -> str:
    try:
        fields = orjson.loads(params)
    except orjson.JSONDecodeError:
        return "?"
    # Searches and pages have none.
    return str(fields.get("model", "")) if isinstance(fields, dict) else "?"


def _minute(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")


def _iso(at: float | None) -> str | None:
    return None if at is None else datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
