"""The report of a data set import: sentences for a person, or one JSON object for a program.

Pure functions of the import's result. Reports every file with a finding, and what to do next.
"""

from __future__ import annotations

import signal
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from ....format import command_text
from ....report.text import inert, wrapped
from ..dataset import IssueDataset
from .gathering import FileReports, State
from .rephrase import ParaphraseRun

_STATES: Mapping[State, str] = {
    "used": "used",
    "superseded": "superseded by a later folder",
    "left out": "left out",
}


class ImportResult(Struct, frozen=True, kw_only=True):
    """The outcome of one import. `dataset` is the data set in the written file `out` (None: no file was made),
    `is_written`: it was written now. `rephrasing` are the calls for paraphrases (None: none was needed),
    `interrupted_by` the signal's number; `keeps_answers`: the answers are in the cache, so that the same command
    goes on from there."""

    gathered: FileReports
    exit_code: int
    out: str
    dataset: IssueDataset | None = None
    is_written: bool = False
    rephrasing: ParaphraseRun | None = None
    interrupted_by: int | None = None
    keeps_answers: bool = True


def import_text(result: ImportResult, width: int | None = None) -> str:
    """Returns the report as text. Findings wider than `width` columns are wrapped (None: lines of any length)."""
    failures = {} if result.rephrasing is None else result.rephrasing.failures
    blocks = (
        [
            f"{file.file}: {one.what}{'' if one.is_fault else ' (remark)'}: {one.detail} ({file.state})"
            for file in result.gathered.files
            for one in file.findings
        ],
        [f"{issue}: not rephrased: {why}" for issue, why in failures.items()],
    )
    parts = [
        "\n".join(line for text in block for line in ([inert(text)] if width is None else wrapped(text, width)))
        for block in blocks
        if block
    ]
    return "\n\n".join([*parts, "\n".join(_summary(result))])


def _summary(result: ImportResult) -> list[str]:
    gathered = result.gathered
    states = ", ".join(
        f"{gathered.count(state):,} {words}" for state, words in _STATES.items() if gathered.count(state)
    )
    faults, remarks = _counts(gathered)
    lines = [f"{len(gathered.files):,} issue files: {states}; {faults:,} faults, {remarks:,} remarks"]
    if gathered.left_out():
        lines.append(f"left out: {', '.join(gathered.left_out())}")
    if result.rephrasing is not None:
        lines += _of_rephrasing(result, result.rephrasing)
    if result.dataset is None:
        lines.append("nothing was written")
        return lines
    figures = _figures(result.dataset, gathered)
    lines.append(
        f"{figures['issues']:,} issues with {figures['pros']:,} pro and {figures['cons']:,} con arguments, "
        f"{figures['sources']:,} sources, {figures['citations']:,} citations"
    )
    lines.append(f"digest {result.dataset.digest}")
    lines.append(result.out if result.is_written else f"{result.out}: holds the same already, and was left as it is")
    lacking = len(gathered.without_paraphrases())
    if lacking:
        lines.append(
            f"{lacking:,} issues have no paraphrases, so this set can't be run yet: a model writes them with "
            f"`{command_text('data', 'millstone', result.out, '--rephrase', 'MODEL', '--out', 'FILE')}`"
        )
    return lines


def _of_rephrasing(result: ImportResult, rephrasing: ParaphraseRun) -> list[str]:
    cost = "no price" if rephrasing.cost is None else f"${rephrasing.cost:,.4f}"
    lines = [
        f"{len(rephrasing.paraphrases):,} issues rephrased by {rephrasing.model}, {len(rephrasing.failures):,} failed: "
        f"{rephrasing.answers:,} answers, {rephrasing.cached:,} of them from the cache"
        f"{f', {cost}' if rephrasing.answers else ''}"
    ]
    if rephrasing.maybe_billed:
        unsure = rephrasing.maybe_billed
        lines.append(f"{unsure:,} attempts brought no whole answer and may have been billed all the same")
    if rephrasing.pending:
        why = "; ".join(dict.fromkeys(" ".join(stop.detail.split()) for stop in rephrasing.stops))
        if result.interrupted_by is not None:
            why = f"interrupted by {signal.Signals(result.interrupted_by).name}"
        kept = "what was answered is in the cache, and the same command asks for the rest alone"
        if not result.keeps_answers:
            kept = "mode live keeps no answer for another command"
        lines.append(f"{len(rephrasing.pending):,} issues are pending: {why}; {kept}")
    return lines


def _counts(gathered: FileReports) -> tuple[int, int]:
    total = sum(len(file.findings) for file in gathered.files)
    return gathered.faults, total - gathered.faults


def _figures(dataset: IssueDataset, gathered: FileReports) -> dict[str, int]:
    return {
        "issues": len(dataset.issues),
        "pros": sum(issue.count("pro") for issue in dataset.issues),
        "cons": sum(issue.count("con") for issue in dataset.issues),
        "sources": sum(len(draft.sources) for draft in gathered.drafts),
        "citations": sum(len(argument.citations) for issue in dataset.issues for argument in issue.arguments),
    }


def as_json(result: ImportResult) -> dict[str, Any]:
    gathered, rephrasing = result.gathered, result.rephrasing
    faults, remarks = _counts(gathered)
    return {
        "exit_code": result.exit_code,
        "out": None if result.dataset is None else result.out,
        "written": result.is_written,
        "digest": None if result.dataset is None else result.dataset.digest,
        "totals": None if result.dataset is None else _figures(result.dataset, gathered),
        "without_paraphrases": [draft.id for draft in gathered.without_paraphrases()],
        "left_out": list(gathered.left_out()),
        "faults": faults,
        "remarks": remarks,
        "files": [
            {
                "file": file.file,
                "issue": file.issue,
                "state": file.state,
                "findings": [{"what": one.what, "detail": one.detail, "fault": one.is_fault} for one in file.findings],
            }
            for file in gathered.files
        ],
        "rephrased": None if rephrasing is None else _rephrased_as_json(rephrasing, result.interrupted_by),
    }


def _rephrased_as_json(rephrasing: ParaphraseRun, interrupted_by: int | None) -> dict[str, Any]:
    return {
        "model": rephrasing.model,
        "issues": sorted(rephrasing.paraphrases),
        "failed": rephrasing.failures,
        "pending": list(rephrasing.pending),
        "answers": rephrasing.answers,
        "cached": rephrasing.cached,
        "cost": rephrasing.cost,
        "maybe_billed": rephrasing.maybe_billed,
        "stops": [{"lane": stop.lane, "reason": stop.reason, "detail": stop.detail} for stop in rephrasing.stops],
        "signal": interrupted_by,
    }
