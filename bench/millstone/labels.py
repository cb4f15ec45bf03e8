"""Compares the orientation labels of a data set with their wordings: which differ, which can't be read, and the set
with them corrected.

Owns the comparison, its sentences, and what a run's manifest has of it. A label is used as given unless a correction
is requested. `orientation` reads the wordings. Reads no file and prints nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, convert, structs, to_builtins

from ...configuration.errors import UsageError
from ...format import first_of
from .dataset import IssueDataset, of_issues
from .issue import Side
from .orientation import by_wording, clause_of_a, verdicts_on

SHOWN = 5
FIX = "--fix-orientation"
NO_MANIFEST = "no manifest tells which data set was asked"
AS_RECORDED = f"labels as recorded; whether they agree with their wording is not known, since {NO_MANIFEST}"

Sides = Mapping[tuple[str, int], Side]
"""The side that answering A means, by issue and template (from 1)."""


class Mismatch(Struct, frozen=True):
    """A paraphrase whose `label` its wording contradicts (`wording` is the side that it says); `template` counts from
    1. `clause`: the words that show it."""

    issue: str
    template: int
    label: Side
    wording: Side
    clause: str = ""

    def __str__(self) -> str:
        return f"{self.issue}/{self.template}: labelled {self.label}, worded {self.wording}"


class OrientationLabels(Struct, frozen=True):
    """The labels of some paraphrases, compared with their wordings. `unread`: issue and template of those whose wording
    does not say which side A is. `is_corrected`: the mismatches were read by their wording, not as labelled."""

    checked: int
    mismatches: tuple[Mismatch, ...] = ()
    unread: tuple[tuple[str, int], ...] = ()
    is_corrected: bool = False

    @property
    def is_remarkable(self) -> bool:
        """Whether some label differs from its wording, or can't be compared with it."""
        return bool(self.mismatches or self.unread)

    @property
    def used(self) -> str:
        """The sentence that says which labels were used."""
        some = first_of(self.mismatches, SHOWN, "; ")
        if not self.mismatches:
            text = f"labels as given; {self.checked - len(self.unread):,} of {self.checked:,} agree with their wording"
        elif self.is_corrected:
            text = f"labels corrected by wording: {len(self.mismatches):,} of {self.checked:,} differed: {some}"
        else:
            differ = (
                "1 differs from its" if len(self.mismatches) == 1 else f"{len(self.mismatches):,} differ from their"
            )
            text = f"labels as given, {differ} wording (of {self.checked:,}): {some}"
        return f"{text}; {self._unread()}" if self.unread else text

    def _unread(self) -> str:
        some = first_of([f"{issue}/{template}" for issue, template in self.unread], SHOWN)
        return f"{len(self.unread):,} can't be checked, since their wording doesn't say which side A is: {some}"

    def lines(self, place: Path) -> list[str]:
        """Returns lines for a terminal: one for each mismatch, or, of many, their number and the first few."""
        many = len(self.mismatches)
        as_given = f"used as labelled; {FIX} reads it by its wording"
        what = f"corrected by the wording ({FIX})" if self.is_corrected else as_given
        lines = []
        if many > SHOWN:
            lines.append(
                f"{many:,} of {self.checked:,} orientation labels differ from their wording; each is {what}; the first "
                f"{SHOWN}:"
            )
        lines += [
            f"{_where(place, each.issue)}: template {each.template} is labelled {each.label}, but its wording says "
            f"{each.wording} (“{each.clause}”): {what}"
            for each in self.mismatches[:SHOWN]
        ]
        if self.unread:
            lines.append(f"of {self.checked:,} orientation labels {self._unread()}; they are used as given")
        return lines

    def as_json(self) -> dict[str, Any]:
        """Returns the comparison as plain values, for a manifest and for programs."""
        return {
            "used": "by wording" if self.is_corrected else "as given",
            "checked": self.checked,
            "differ": len(self.mismatches),
            "mismatches": to_builtins(self.mismatches),
            "unread": [f"{issue}/{template}" for issue, template in self.unread],
            "summary": self.used,
        }


def labels_used(manifest: Mapping[str, Any] | None, *, is_corrected: bool = False) -> OrientationLabels | None:
    """Returns the labels of a run, which `as_json` wrote into its manifest; None if that has none. `is_corrected`: its
    answers are now read by the wordings. Raises KeyError, TypeError or ValueError for other JSON."""
    entry = kept_labels(manifest)
    return (
        OrientationLabels(
            checked=int(entry["checked"]),
            mismatches=tuple(convert(list(entry["mismatches"]), list[Mismatch])),
            unread=tuple(
                (issue, int(template)) for issue, _, template in (one.rpartition("/") for one in entry["unread"])
            ),
            is_corrected=is_corrected or entry["used"] == "by wording",
        )
        if entry
        else None
    )


def wordings_of(manifest: Mapping[str, Any] | None) -> Sides:
    """Returns the side that answering A means by issue and template, for the labels that differ from their wording;
    empty if no manifest has the wordings."""
    labels = labels_used(manifest)
    return {(each.issue, each.template): each.wording for each in labels.mismatches} if labels else {}


def sides_of(folder: Path, manifest: Mapping[str, Any] | None) -> Sides:
    """Returns the same. Raises UsageError if no manifest has the wordings."""
    if not kept_labels(manifest):
        raise UsageError(
            f"--fix-orientation: {folder}: the wordings of its prompts are needed, and {NO_MANIFEST}: leave the option "
            "out"
        )
    return wordings_of(manifest)


def kept_labels(manifest: Mapping[str, Any] | None) -> Mapping[str, Any]:
    return ((manifest or {}).get("dataset") or {}).get("labels") or {}


def compared(dataset: IssueDataset, templates: Sequence[int]) -> OrientationLabels:
    """Returns the labels of these templates (from 1), compared with their wordings."""
    mismatches: list[Mismatch] = []
    unread: list[tuple[str, int]] = []
    checked = 0
    for issue in dataset.issues:
        wordings = verdicts_on(issue.paraphrases)
        for template, (paraphrase, wording) in enumerate(zip(issue.paraphrases, wordings, strict=True), 1):
            if template not in templates:
                continue
            checked += 1
            if wording is None:
                unread.append((issue.id, template))
            elif wording != paraphrase.orientation:
                clause = _quoted(paraphrase.question, wording)
                mismatches.append(Mismatch(issue.id, template, paraphrase.orientation, wording, clause))
    return OrientationLabels(checked, tuple(mismatches), tuple(unread))


def corrected(dataset: IssueDataset) -> IssueDataset:
    """Returns the data set with every label corrected that its wording contradicts. Its prompts stay the same."""
    issues = tuple([structs.replace(issue, paraphrases=by_wording(issue.paraphrases)) for issue in dataset.issues])
    return dataset if issues == dataset.issues else of_issues(dataset.name, issues)


def _quoted(question: str, wording: Side) -> str:
    clause = clause_of_a(question)
    named = any(name in clause for name in ("favor", "favour", "against"))
    return clause if named else f"{clause}, which is the position {'in favor' if wording == 'pro' else 'against'}"


def _where(place: Path, issue: str) -> str:
    return str(place / f"{issue}.json") if place.is_dir() else f"{place}: issue {issue}"
