"""Joins issues of several places: checks each, and of two with one id takes the later.

Owns the report on every file, and the totals. Writes no file and prints nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from msgspec import Struct, structs

from ..checks import CheckRules, Draft, Finding, check, plain
from ..dataset import IssueDataset, of_issues
from ..dataset_file import encode
from ..issue import Paraphrase
from .checkout import CheckoutIssue

State = Literal["used", "superseded", "left out"]


class FileReport(Struct, frozen=True):
    """The report on one file: its findings, and whether its issue was used, superseded or left out."""

    file: str
    issue: str
    state: State
    findings: tuple[Finding, ...]


class FileReports(Struct, frozen=True):
    """The reports on all files in the order of reading, and the issues that can be used in the order of their ids."""

    files: tuple[FileReport, ...]
    drafts: tuple[Draft, ...]

    @property
    def faults(self) -> int:
        return sum(finding.is_fault for file in self.files for finding in file.findings)

    def count(self, state: State) -> int:
        return sum(file.state == state for file in self.files)

    def left_out(self) -> tuple[str, ...]:
        """Returns the ids of issues of which no file can be used."""
        kept = {draft.id for draft in self.drafts}
        return tuple(dict.fromkeys(file.issue for file in self.files if file.issue not in kept))

    def without_paraphrases(self) -> tuple[Draft, ...]:
        return tuple(draft for draft in self.drafts if not draft.paraphrases)

    def completed(self, paraphrases: Mapping[str, tuple[Paraphrase, ...]]) -> FileReports:
        """Returns the reports with these paraphrases added to issues that had none; an issue that still has none is
        left out."""
        drafts = {
            draft.id: draft if draft.paraphrases else structs.replace(draft, paraphrases=paraphrases[draft.id])
            for draft in self.drafts
            if draft.paraphrases or draft.id in paraphrases
        }
        files = tuple(
            structs.replace(file, state="left out") if file.state == "used" and file.issue not in drafts else file
            for file in self.files
        )
        return FileReports(files, tuple(drafts.values()))

    def contents(self) -> dict[str, Any]:
        return {draft.id: draft.content() for draft in self.drafts}

    def encoded(self) -> bytes:
        """Returns the bytes of the data set file."""
        return encode(self.contents())

    def dataset(self, name: str) -> IssueDataset:
        """Returns the data set that a reader of this import's file gets."""
        return of_issues(name, [draft.issue() for draft in self.drafts])


def gather(sources: Iterable[CheckoutIssue], rules: CheckRules) -> FileReports:
    """Checks all sources and returns their reports. If a source can't be used, an earlier one with its id stays."""
    checked: list[tuple[CheckoutIssue, Draft | None, tuple[Finding, ...]]] = []
    drafts: dict[str, Draft] = {}
    taken: dict[str, int] = {}
    for at, source in enumerate(sources):
        if any(finding.is_fatal for finding in source.findings):
            checked.append((source, None, source.findings))
            continue
        result = check(source.issue, source.content, rules)
        checked.append((source, result.draft, source.findings + result.findings))
        if result.draft is not None:
            drafts[source.issue], taken[source.issue] = result.draft, at
    files = tuple(
        FileReport(source.file, plain(source.issue), _state(draft, taken.get(source.issue) == at), findings)
        for at, (source, draft, findings) in enumerate(checked)
    )
    return FileReports(files, tuple(drafts[issue] for issue in sorted(drafts)))


def _state(draft: Draft | None, is_taken: bool) -> State:
    if draft is None:
        return "left out"
    return "used" if is_taken else "superseded"
