"""A line of a run that a person asks about, and the call behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from ....configuration.errors import UsageError
from ....engine.call import Call
from ....engine.pairs import Pair

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
        for field, value in named.items():
            values = list(dict.fromkeys(getattr(pair, field) for pair in left))
            one = one_of(_FLAGS[field], value, values)
            left = [pair for pair in left if getattr(pair, field) == one]
        return left[0]


class StoredCall(Struct, frozen=True):
    """The call of a line, built as `resume` builds it."""

    call: Call
    """The call."""
    remarks: tuple[str, ...] = ()
    """Sentences that a reader of the call must know."""


def one_of(option: str, value: Any, values: Sequence[Any]) -> Any:
    if value is UNSET and len(values) == 1:
        return values[0]
    if value not in values:
        listed = ", ".join("none" if one is None else str(one) for one in values)
        if value is UNSET:
            raise UsageError(f"{option} is missing: give one of the run's ({listed})")
        raise UsageError(f"{option}: expected one of the run's ({listed}), got {'none' if value is None else value}")
    return value
