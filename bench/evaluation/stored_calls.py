"""Finds the calls behind a run's line: rebuilt if it is one call, else by the cache keys in its records.

Decides which lines an id means. Opens no cache.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from ...configuration.errors import UsageError
from ...engine.call import Call
from ...engine.runs.pairs import Pair, pair_of
from ...engine.runs.run_folder import FAILURES, RECORDS
from .journals import decoded
from .record_lines import record_lines

_FLAGS = {"model": "--model", "effort": "--reasoning-effort", "temperature": "--temperature"}


class RunLine(Struct, frozen=True, kw_only=True):
    """A line of a run that a person asks about, whether it is written yet or not."""

    folder: Path
    """The run's folder."""
    manifest: Mapping[str, Any]
    """Its manifest."""
    options: Any
    """The benchmark's options of the run."""
    id: str
    """The id of a line, or of an item with several lines."""
    model: str | None = None
    """The model under test that was named; None: the run's only one."""
    temperature: float | UnsetType | None = UNSET
    """The temperature that was named; None: that none is sent; UNSET: the run's only one."""
    effort: str | None = None
    """The reasoning effort that was named; None: the run's only one."""

    def pair(self, pairs: Sequence[Pair]) -> Pair:
        """Returns the pair that a person named, or the run's only one. Raises UsageError if it is not one of the run's,
        or is ambiguous."""
        named = {"model": self.model or UNSET, "effort": self.effort or UNSET, "temperature": self.temperature}
        left = list(pairs)
        for field, given in named.items():
            known = list(dict.fromkeys(getattr(pair, field) for pair in left))
            one = _one(_FLAGS[field], given, known)
            left = [pair for pair in left if getattr(pair, field) == one]
        return left[0]


class StoredCall(Struct, frozen=True):
    """The call of a line, built as `resume` builds it."""

    call: Call
    """The call."""
    remarks: tuple[str, ...] = ()
    """Sentences that a reader of the call must know."""


class KeyedLine(Struct, frozen=True):
    """A journal line with the cache keys of its calls."""

    id: str
    """The line's id."""
    model: str
    """The model under test."""
    temperature: float | None = None
    """The temperature that was sent; None: none was."""
    effort: str | None = None
    """The reasoning effort that was sent; None: none was."""
    status: str = "ok"
    """`ok`, `refused`, or the kind of failure."""
    key: str = ""
    """The key of its call, where it has one."""
    keys: tuple[str, ...] = ()
    """The keys of its calls, where it has several."""

    @property
    def pair(self) -> Pair:
        return pair_of(self)

    @property
    def call_keys(self) -> tuple[str, ...]:
        """The cache keys of the line's calls, without repetition."""
        return tuple(dict.fromkeys(filter(None, (*self.keys, self.key))))


def keyed_lines(line: RunLine) -> list[KeyedLine]:
    """Returns the lines with the given id, all of one pair, failures last; empty if none is written yet. Raises
    UsageError if several pairs have such lines and none was named."""
    known: Sequence[str] = getattr(line.options, "model", ())
    if line.model is not None and known and line.model not in known:
        _one("--model", line.model, known)
    paths = [line.folder / name for name in (RECORDS, FAILURES)]
    found = [
        each
        for path in paths
        if path.exists()
        for each in decoded(record_lines(path), KeyedLine, str(path))
        if _is_of(each.id, line.id) and line.model in (None, each.model)
    ]
    if not found:
        return []
    pair = line.pair(list(dict.fromkeys(each.pair for each in found)))
    return [each for each in found if each.pair == pair]


def first_id(folder: Path) -> str:
    """Returns the id of a run's first line, as an example of its ids; empty: it has no line."""
    paths = [path for name in (RECORDS, FAILURES) if (path := folder / name).exists()]
    lines = (each for path in paths for each in decoded(record_lines(path), KeyedLine, str(path)))
    return next((each.id for each in lines), "")


def _is_of(name: str, wanted: str) -> bool:
    item, _, step = name.rpartition("/")
    return name == wanted or (item == wanted and step.isdecimal())


def _one(option: str, given: Any, known: Sequence[Any]) -> Any:
    if given is UNSET and len(known) == 1:
        return known[0]
    if given not in known:
        listed = ", ".join("none" if one is None else str(one) for one in known)
        if given is UNSET:
            raise UsageError(f"{option} is missing: give one of the run's ({listed})")
        raise UsageError(f"{option}: expected one of the run's ({listed}), got {'none' if given is None else given}")
    return given
