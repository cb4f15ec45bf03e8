"""The orientation labels of a MillStone run's folder: which were used, and whether their wordings agree.

Looks in the manifest of a run. bench/millstone/labels compares labels with wordings.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import structs

from ...configuration.errors import UsageError
from ...engine.runs.run_folder import read_manifest
from .dataset import DatasetError, IssueDataset
from .labels import Sides, kept_labels, labels_used, wordings_of
from .work import dataset_of

NO_MANIFEST = "no manifest tells which data set was asked"
AS_RECORDED = f"labels as recorded; whether they agree with their wording is not known, since {NO_MANIFEST}"
GONE = "the data set is no longer where it was when the run was made, or can't be read"
OTHER = "the data set is no longer the one that was asked: its digest differs"


def other_labels(folder: Path, dataset: Mapping[str, Any], difference: Mapping[str, Any]) -> str:
    """Returns why a command can't continue a folder whose run differs only in how labels are read; empty if more
    differs. `dataset`: what the command's manifest would hold; `difference`: what differs from the folder's
    specification."""
    labels = dataset.get("labels")
    if not labels or set(difference) != {"data"}:
        return ""
    there = read_manifest(folder)["specification"].get("data")
    if there == labels["digest_as_given"]:
        there_used, used, instead = "as given", "by their wording (--fix-orientation)", "leave --fix-orientation out"
    elif there == labels["digest_by_wording"]:
        there_used, used, instead = "by their wording (--fix-orientation)", "as given", "add --fix-orientation"
    else:
        return ""
    return (
        f"{folder} holds a run that read its orientation labels {there_used}, and this command reads them {used}: the "
        f"scores differ, so choose another --out (the answers are in the cache), or {instead}"
    )


def run_dataset(manifest: Mapping[str, Any] | None) -> IssueDataset | str:
    """Returns the data set of a run, or a text that says why it is not available unchanged."""
    if manifest is None:
        return NO_MANIFEST
    try:
        dataset = dataset_of(manifest)
    except (DatasetError, OSError):
        return GONE
    return dataset if dataset.digest == manifest["specification"].get("data") else OTHER


def mislabelled(manifest: Mapping[str, Any] | None, is_corrected: bool) -> str | None:
    """Returns a sentence on the labels that a run's scores follow, if its manifest has some that differ from their
    wording or can't be compared with it; else None. `is_corrected`: its answers are now read by the wordings."""
    labels = labels_used(manifest)
    if labels is None or not (labels.mismatches or labels.unread):
        return None
    return structs.replace(labels, is_corrected=True).used if is_corrected else labels.used


def digest_by_wording(manifest: Mapping[str, Any] | None) -> str | None:
    """Returns the digest of a run's data set with all labels corrected by their wordings; None if no manifest has
    it."""
    return kept_labels(manifest).get("digest_by_wording")


def sides_of(folder: Path, manifest: Mapping[str, Any] | None) -> Sides:
    """Returns the side that answering A means by issue and template, for the labels that differ from their wording.
    Raises UsageError if no manifest has the wordings."""
    if labels_used(manifest) is None:
        raise UsageError(
            f"--fix-orientation: {folder}: the wordings of its prompts are needed, and {NO_MANIFEST}: leave the option "
            "out"
        )
    return wordings_of(manifest)
