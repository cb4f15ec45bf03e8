"""The readings that options give, and the options that give readings: the hint to score again instead of running
again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import structs

from ...format import command_text
from ...metrics.chameleon.readings import Readings


def readings_of(options: Mapping[str, str], run: Readings | None = None) -> Readings:
    """Returns the readings that options give, for the others the run's, or the defaults without a run's."""
    given = {name: value for name, value in options.items() if name in Readings.__struct_fields__}
    return structs.replace(run or Readings(), **given)


def flags_of(readings: Readings) -> list[tuple[str, str]]:
    """Returns the options that give these readings, and their values."""
    return [(flag_of(name), value) for name, value in structs.asdict(readings).items()]


def flag_of(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def score_instead(folder: Path, values: Mapping[str, Any]) -> str:
    """Returns a hint that a run's records can be scored by these readings without a new run; empty if more than
    readings differs from its specification."""
    flags = {f"readings.{field.encode_name}": flag_of(field.name) for field in structs.fields(Readings)}
    if not values or values.keys() - flags.keys():
        return ""
    options = (word for name, value in values.items() for word in (flags[name], value))
    return f", or score its records so: {command_text('score', folder, *options)}"
