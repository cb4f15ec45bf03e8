"""Chameleon's readings by the options that say them.

Owns which option is which reading, and what to do instead of a run that would differ in nothing else.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import structs

from ..metrics.chameleon.readings import Readings
from .benchmark_options import ChameleonOptions

_FIELDS = {
    "sources": "documents",
    "sources-by": "by",
    "uncited": "empty",
    "unclear": "unclear",
    "confidence": "confidence",
    "confidence-of": "confidence_of",
}


def readings_of(options: argparse.Namespace | ChameleonOptions, run: Readings | None = None) -> Readings:
    """Those that were asked for, else the run's, else the defaults."""
    return structs.replace(run or Readings(), **given_readings(options))


def given_readings(options: argparse.Namespace | ChameleonOptions) -> dict[str, str]:
    """Those that were asked for, by their fields."""
    given = {field: getattr(options, name.replace("-", "_")) for name, field in _FIELDS.items()}
    return {field: value for field, value in given.items() if value is not None}


def score_instead(folder: Path, asked: Mapping[str, Any]) -> str:
    """Of what differs from a specification: readings alone need no other run, since its records can be read so too."""
    flags = {f"readings.{field}": f"--{name}" for name, field in _FIELDS.items()}
    if not asked or asked.keys() - flags.keys():
        return ""
    options = " ".join(f"{flags[name]} {value}" for name, value in asked.items())
    return f", or score its records so: millstream score {folder} {options}"
