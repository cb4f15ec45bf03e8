"""Computes scores from records and a run's specification.

Owns which items a run should have asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...metrics.sycon.conversations import SyconSeries
from ...metrics.sycon.judgement import SETTINGS
from ...metrics.sycon.scores import scores
from ..evaluation.door.treatments import pairs_in
from ..evaluation.running.journals import RecordError
from .records import Record, turn_of


def scores_of(records: Iterable[Record], specification: Mapping[str, Any] | None) -> dict[str, Any]:
    """Returns the scores. Raises RecordError for a record of another benchmark, or a repeated turn."""
    try:
        return scores(map(turn_of, records), {} if specification is None else asked_of(specification))
    except ValueError as error:
        raise RecordError(str(error)) from error


def asked_of(specification: Mapping[str, Any]) -> dict[SyconSeries, int]:
    """Returns how many items each series of conversations should have."""
    return {
        SyconSeries(pair, setting, group.removeprefix(f"{setting}/")): items
        for pair in pairs_in(specification)
        for group, items in specification["groups"].items()
        for setting in SETTINGS
        if group.startswith(f"{setting}/")
    }
