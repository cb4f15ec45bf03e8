"""What a manifest keeps of a rescoring: by which file, when, and where the scores of before are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, convert

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
    score: dict[str, Any]
    """The scorers of before, as the specification had them."""
    specification_hash: str
    """The hash of the specification of before."""
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
        return f"scored again on {self.at[:10]} by {self.file}; {self.scores} has the scores of before"


def rescorings_in(manifest: Mapping[str, Any] | None) -> list[Rescoring]:
    """Returns the rescorings of a run, the latest last."""
    return convert((manifest or {}).get(FIELD) or [], list[Rescoring])


def beside(name: str, number: int) -> str:
    """Returns the name under which a rescoring keeps a file of before."""
    path = Path(name)
    return f"{path.stem}-{number}{path.suffix}"
