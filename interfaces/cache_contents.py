"""What a cache holds: entries, sizes and ages by endpoint and model, from one pass over it.

Pure arithmetic on entries; opens and prints nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import orjson
from msgspec import Struct

from ..engine.cache import CacheStatistics, Entry
from .output import table


class Group(Struct):
    """The entries of one endpoint and model."""

    endpoint: str
    model: str
    entries: int = 0
    bytes: int = 0
    oldest: float = float("inf")
    newest: float = float("-inf")


class Contents(Struct, frozen=True):
    """Everything there is to say of a cache. `bytes` of groups are those of answers; the file's size is more."""

    statistics: CacheStatistics
    groups: tuple[Group, ...]

    def as_dict(self) -> dict[str, Any]:
        return {
            "cache": self.statistics.path,
            "entries": self.statistics.entries,
            "entries_of_live_runs": self.statistics.private_entries,
            "failures": self.statistics.failures,
            "bodies": self.statistics.bodies,
            "texts": self.statistics.texts,
            "file_bytes": self.statistics.bytes,
            "oldest": _iso(min((group.oldest for group in self.groups), default=None)),
            "newest": _iso(max((group.newest for group in self.groups), default=None)),
            "groups": [
                {
                    "endpoint": group.endpoint,
                    "model": group.model,
                    "entries": group.entries,
                    "bytes": group.bytes,
                    "oldest": _iso(group.oldest),
                    "newest": _iso(group.newest),
                }
                for group in self.groups
            ],
        }


def take_stock(entries: Iterable[tuple[bytes, Entry]], statistics: CacheStatistics) -> Contents:
    # Parameters are few and entries many: the JSON of each distinct one is read once.
    by_params: dict[tuple[str, bytes], Group] = {}
    groups: dict[tuple[str, str], Group] = {}
    for _, entry in entries:
        mark = (entry.identity, entry.params)
        group = by_params.get(mark)
        if group is None:
            model = _model_of(entry.params)
            group = by_params[mark] = groups.setdefault((entry.identity, model), Group(entry.identity, model))
        group.entries += 1
        group.bytes += len(entry.response.body)
        at = entry.received_at
        if at < group.oldest:
            group.oldest = at
        if at > group.newest:
            group.newest = at
    return Contents(statistics, tuple(sorted(groups.values(), key=lambda one: (-one.entries, one.endpoint, one.model))))


def told(contents: Contents) -> str:
    """For a person."""
    statistics = contents.statistics
    lines = [f"{statistics.path}: {statistics.entries:,} answers in a file of {size(statistics.bytes)}"]
    if statistics.private_entries:
        lines.append(f"{statistics.private_entries:,} more belong to live runs that have not ended")
    if statistics.failures or statistics.bodies or statistics.texts:
        lines.append(
            f"{statistics.failures:,} failures of searches and pages, {statistics.bodies:,} bodies that lie apart, "
            f"{statistics.texts:,} texts made of pages"
        )
    if contents.groups:
        rows = [("endpoint", "model", "answers", "size", "oldest", "newest")]
        rows += [
            (g.endpoint, g.model, f"{g.entries:,}", size(g.bytes), _minute(g.oldest), _minute(g.newest))
            for g in contents.groups
        ]
        lines += ["", table(rows)]
    return "\n".join(lines)


def size(count: float) -> str:
    """Bytes in the largest unit that leaves a number above one."""
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024:
            return f"{count:,.0f} {unit}" if unit == "bytes" else f"{count:,.1f} {unit}"
        count /= 1024
    return f"{count:,.1f} GiB"


def _model_of(params: bytes) -> str:
    try:
        found = orjson.loads(params)
    except orjson.JSONDecodeError:
        return "?"
    # Searches and pages have none.
    return str(found.get("model", "")) if isinstance(found, dict) else "?"


def _minute(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")


def _iso(at: float | None) -> str | None:
    return None if at is None else datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
