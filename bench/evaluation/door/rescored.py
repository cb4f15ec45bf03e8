"""What a manifest keeps of a rescoring: by which file, when, and where the scores of before are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, convert

from ....engine.fault import LocalFault
from ....engine.runs.run_folder import MANIFEST, read_manifest
from ....format import command_text

FIELD = "rescored"
"""The manifest's field: a list of rescorings, the latest last."""


class Rescoring(Struct, frozen=True, kw_only=True):
    """One rescoring of a run's answers; the files of before stand beside the new ones."""

    at: str
    """When."""
    file: str
    """The name of the file whose scorers gave the new scores."""
    sha256: str
    """Its digest."""
    records: str
    """The records of before."""
    records_sha256: str
    """Their digest."""
    scores: str
    """The scores of before."""
    manifest: str
    """The manifest of before."""

    @property
    def sentence(self) -> str:
        """What readers of the scores must know."""
        return f"scored again on {self.at[:10]} by {self.file}; the earlier scores are in {self.scores}"


def rescorings_in(manifest: Mapping[str, Any] | None) -> list[Rescoring]:
    """Returns the rescorings of a run, the latest last."""
    return convert((manifest or {}).get(FIELD) or [], list[Rescoring])


def killed_rescoring(folder: Path, manifest: Mapping[str, Any]) -> str:
    """Returns the name of the manifest that a rescoring kept which has not ended: records and scores may be its own.
    Empty: there is none."""
    rescorings = rescorings_in(manifest)
    name = beside(MANIFEST, 1 + len(rescorings))
    if name in [each.manifest for each in rescorings] or not (folder / name).exists():
        return ""
    before = read_manifest(folder, name)
    return name if before.get("specification_hash") == manifest.get("specification_hash") else ""


def require_whole(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Raises LocalFault if a folder's records may have the scores of a rescoring that has not ended."""
    if name := killed_rescoring(folder, manifest):
        raise LocalFault(
            f"{folder}: by {name}, a rescoring goes on or was killed, and the records may have its scores: "
            f"{command_text('rescore', folder)} --task FILE again"
        )


def beside(name: str, number: int) -> str:
    """Returns the name under which a rescoring keeps a file of before."""
    path = Path(name)
    return f"{path.stem}-{number}{path.suffix}"
