"""Finds the calls behind a run's line: rebuilt if it is one call, else by the cache keys in its records.

Decides which lines an id means. Opens no cache.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ....configuration.errors import UsageError
from ....engine.runs.run_folder import FAILURES, RECORDS
from ..door.benchmark import ItemBenchmark
from ..door.defect import benchmark_code
from ..door.item_line import NamedLine
from ..door.run_items import items_of, with_limit
from ..door.run_line import RunLine, StoredCall, one_of
from ..door.treatments import pairs_in
from ..running.journals import decoded
from ..running.record_lines import record_lines


class KeyedLine(NamedLine, frozen=True, kw_only=True):
    """A journal line with the cache keys of its calls: of one as `key`, of several as `keys`."""

    id: str
    key: str = ""
    keys: tuple[str, ...] = ()

    @property
    def call_keys(self) -> tuple[str, ...]:
        """The cache keys of the line's calls, without repetition."""
        return tuple(dict.fromkeys(filter(None, (*self.keys, self.key))))


def keyed_lines(line: RunLine) -> list[KeyedLine]:
    """Returns the lines with the given id, all of one pair, failures last; empty if none is written yet. Raises
    UsageError if several pairs have such lines and none was named."""
    models: Sequence[str] = getattr(line.options, "model", ())
    if line.model is not None and models and line.model not in models:
        one_of("--model", line.model, models)
    paths = [line.folder / name for name in (RECORDS, FAILURES)]
    lines = [
        each
        for path in paths
        if path.exists()
        for each in decoded(record_lines(path), KeyedLine, str(path))
        if _is_of(each.id, line.id) and line.model in (None, each.model)
    ]
    if not lines:
        return []
    pair = line.pair(list(dict.fromkeys(each.pair for each in lines)))
    return [each for each in lines if each.pair == pair]


def first_id(folder: Path) -> str:
    """Returns the id of a run's first line, as an example of its ids; empty: it has no line."""
    paths = [path for name in (RECORDS, FAILURES) if (path := folder / name).exists()]
    lines = (each for path in paths for each in decoded(record_lines(path), KeyedLine, str(path)))
    return next((each.id for each in lines), "")


def _is_of(name: str, wanted: str) -> bool:
    item, _, step = name.rpartition("/")
    return name == wanted or (item == wanted and step.isdecimal())


def call_of(benchmark: ItemBenchmark[Any], line: RunLine) -> StoredCall | None:
    """Returns the call of a one-call item, built as `resume` builds it; None: the line's own cache keys identify its
    calls. Raises UsageError if the run has no such item."""
    if not benchmark.has_calls:
        return None
    specification = line.manifest["specification"]
    pair = line.pair(pairs_in(specification))
    items = items_of(benchmark, line.options)
    item = next(items.left(lambda name: name != line.id), None)
    if item is None:
        first = next(iter(items.steps), "none")
        raise UsageError(f"{line.folder} has no item {line.id!r}: {items.ids_are} {first}")
    begun = specification.get("max_tokens")
    limit = benchmark.max_tokens_of(line.options, pair, begun if isinstance(begun, Mapping) else {})
    with benchmark_code(f"{benchmark.title}, item {item.id!r}"):
        call = benchmark.call(item, with_limit(line.options, limit), pair)
    return StoredCall(call, (items.have_changed,) if items.digest != specification.get("data") else ())
