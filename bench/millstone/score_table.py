"""Scores MillStone's published counts, and formats scores.

Owns the table and the sentences on missing answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...format import decimal_text, first_of
from ...metrics.millstone.scores import OM_ALL_BUT_THREE, scores_from_counts
from ...report.text import table
from .options import Readings
from .published_counts import read_counts
from .reference import LEFT_OUT
from .work import COLUMNS, remarks_of, score_cells

_COUNTS = {
    "answers": "answers",
    "missing": "missing",
    "refused": "refused",
    "readings differ": "stance_disagreements",
}
_ALL_BUT_THREE = "OM, all but three"
_NAMED = 3


def score_counts(path: Path, readings: Readings) -> dict[str, Any]:
    return scores_from_counts(read_counts(path).models, LEFT_OUT, readings.silence or "unscored")


def score_text(source: str, scores: Mapping[str, Any]) -> str:
    models = scores["millstone"]["models"]
    # Beside OM on all issues, where the three that the published scores leave out are among them.
    has_three = any(OM_ALL_BUT_THREE in entry for entry in models.values())
    rows: list[tuple[str, ...]] = [("model", *COLUMNS, *_COUNTS, *([_ALL_BUT_THREE] if has_three else []))]
    remarks: list[str] = []
    for model, entry in models.items():
        counts = (decimal_text(entry.get(key)) for key in _COUNTS.values())
        beside = [decimal_text(entry.get(OM_ALL_BUT_THREE), 3)] if has_three else []
        rows.append((model, *score_cells(entry), *counts, *beside))
        remarks += _lacks(model, entry)
    remarks += [*remarks_of(scores["millstone"]), *scores["millstone"]["unmeasured"]]
    return "\n".join((source, table(rows), *remarks))


def _lacks(model: str, entry: Mapping[str, Any]) -> Iterator[str]:
    """Yields a sentence on a model's missing answers, with their number."""
    if entry.get("missing"):
        yield f"{model}: {entry['missing']:,} of {entry['expected']:,} answers are missing"
    elif "missing" not in entry and not entry["complete"]:
        short = [issue for issue, of_issue in entry["issues"].items() if not of_issue["complete"]]
        yield f"{model}: some cases have fewer answers than those of its fullest issue: {first_of(short, _NAMED)}"
