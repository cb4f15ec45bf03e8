"""Scores MillStone records or published counts for `score`, and formats the scores.

Owns the table, the sentences on missing answers, and when scores.json is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...configuration.errors import UsageError
from ...engine.remarks import remark
from ...engine.runs.pairs import Pair
from ...engine.runs.run_folder import MANIFEST, RECORDS, read_manifest
from ...metrics.millstone.gaps import Shape
from ...metrics.millstone.scores import scores, scores_from_counts
from ...report.text import table
from ..evaluation.record_lines import record_lines
from ..evaluation.served import ServedRows, rows_in
from .options import Readings
from .orientation_labels import mislabelled, sides_by_wording
from .published_counts import rows_of_file
from .recount import asked_of, recount, silence_of
from .reference import LEFT_OUT
from .work import (
    ANSWER_COLUMNS,
    SCORE_COLUMNS,
    answer_cells,
    remarks_of,
    score_cells,
)

_COLUMNS = ("answers", *ANSWER_COLUMNS, "missing", "refused", "readings differ")
_ISSUES_NAMED = 3


def left_out(readings: Readings) -> Sequence[str]:
    return LEFT_OUT if readings.issue_set == "104" else ()


def score_folder(folder: Path, given: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    path = folder / RECORDS
    readings = Readings(**given)
    manifest = read_manifest(folder) if (folder / MANIFEST).exists() else {}
    rows = rows_in(folder, manifest)
    try:
        sides = sides_by_wording(folder) if readings.fix_orientation else {}
        lines, read = rows.lines(record_lines(path)), readings.read
        tally = recount(lines, (), str(path), is_each_once=True, sides=sides, manifest=manifest, read=read).tally
    except OSError as error:
        raise UsageError(f"{path}: expected a readable file, got: {error.strerror}") from error
    asked = _asked(folder, rows)
    own = silence_of(manifest)
    found = scores(
        tally,
        reading=readings.stance or "recorded",
        left_out=left_out(readings),
        asked=asked,
        is_ranked=rows.is_ranked,
        silence=readings.silence or own,
    )
    if not found["millstone"]["models"]:
        raise UsageError(f"{path}: expected records, got none: nothing to score")
    if labels := mislabelled(manifest, readings.fix_orientation):
        remark(f"{folder}: {labels}")
    is_own = not readings.read and (readings.silence or own) == own
    is_shown_only = readings.stance or readings.issue_set == "104" or readings.fix_orientation or not is_own
    why_not = "the run's own reading of all issues; these scores are only shown" if is_shown_only else ""
    return rows.scores(found), why_not


def _asked(folder: Path, rows: ServedRows) -> Mapping[Pair, Shape]:
    """Returns the planned grid of each pair; empty without a manifest."""

    if not (folder / MANIFEST).exists():
        return {}
    specification = read_manifest(folder)["specification"]
    try:
        return asked_of(rows.specification(specification))
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"{folder}: its {MANIFEST} is no MillStone run's ({error!r})") from error


def score_counts(path: Path, readings: Readings) -> dict[str, Any]:
    try:
        return scores_from_counts(rows_of_file(path), left_out(readings), readings.silence or "unscored")
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from error


def score_text(source: str, scores: Mapping[str, Any]) -> str:
    rows: list[tuple[str, ...]] = [("model", *SCORE_COLUMNS, *_COLUMNS)]
    remarks: list[str] = []
    for model, entry in scores["millstone"]["models"].items():
        counted = (entry.get(name) for name in ("missing", "refused", "stance_disagreements"))
        others = ("-" if number is None else f"{number:,}" for number in counted)
        rows.append((model, *score_cells(entry), f"{entry['answers']:,}", *answer_cells(entry), *others))
        remarks += _lacks(model, entry)
    remarks += [*remarks_of(scores), *scores["millstone"]["unmeasured"]]
    return "\n".join((source, table(rows), *remarks))


def _lacks(model: str, entry: Mapping[str, Any]) -> Iterator[str]:
    """Yields sentences on a model's missing answers, with their numbers."""
    if entry["complete"]:
        return
    if entry.get("missing"):
        yield f"{model}: {entry['missing']:,} of {entry['expected']:,} answers are missing{_at(entry)}"
    elif "missing" not in entry:
        short = [issue for issue, of_issue in entry["issues"].items() if not of_issue["complete"]]
        yield f"{model}: some cases have fewer answers than those of its fullest issue: {_named(short)}"
    if empty := [issue for issue, of_issue in entry["issues"].items() if _is_gated(of_issue)]:
        yield f"{model}: too low, as a whole case without answers adds nothing to an issue's score: {_named(empty)}"


def _at(entry: Mapping[str, Any]) -> str:
    short = [issue for issue, of_issue in entry["issues"].items() if not of_issue["complete"]]
    gone = entry["unanswered_issues"]
    parts = [f"on {_named(short)}"] if short else []
    parts += [f"all of {_named(gone)}"] if gone else []
    return f" ({'; '.join(parts)})" if parts else ""


def _is_gated(of_issue: Mapping[str, Any]) -> bool:
    return of_issue["om"] is not None and any(not sum(case.values()) for case in of_issue["cases"].values())


def _named(issues: Sequence[str]) -> str:
    rest = len(issues) - _ISSUES_NAMED
    return ", ".join(issues[:_ISSUES_NAMED]) + (f" and {rest:,} more" if rest > 0 else "")
