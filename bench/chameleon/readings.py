"""Translates the options of readings into the fields of `Readings`.

Owns which option sets which field, and the hint to score again instead of running again.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import structs

from ...format import command_text
from ...metrics.chameleon.readings import Readings

_FIELDS = {
    "sources": "documents",
    "sources_by": "by",
    "uncited": "empty",
    "confidence": "confidence",
}


def readings_of(options: Mapping[str, str], run: Readings | None = None) -> Readings:
    """Returns the readings that options give, for the others the run's, or the defaults without a run's."""
    return structs.replace(run or Readings(), **fields_of(options))


def fields_of(options: Mapping[str, str]) -> dict[str, str]:
    """Returns the given readings under the names of the fields of `Readings` instead of the option names."""
    return {_FIELDS[name]: value for name, value in options.items() if name in _FIELDS}


def flags_of(readings: Mapping[str, str]) -> list[tuple[str, str]]:
    """Returns the options that give these readings, which are by the fields of `Readings`, and their values."""
    return [(f"--{name.replace('_', '-')}", readings[field]) for name, field in _FIELDS.items()]


def score_instead(folder: Path, values: Mapping[str, Any]) -> str:
    """Returns a hint that a run's records can be scored by these readings without a new run; empty if more than
    readings differs from its specification."""
    flags = {f"readings.{field}": f"--{name.replace('_', '-')}" for name, field in _FIELDS.items()}
    if not values or values.keys() - flags.keys():
        return ""
    options = (word for name, value in values.items() for word in (flags[name], value))
    return f", or score its records so: {command_text('score', folder, *options)}"
