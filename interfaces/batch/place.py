"""Where a batch's files lie: its output, errors apart, and the folder beside the output.

Owns their names, and what other verbs are told of them. Knows nothing of what they hold.
"""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from ...engine.fault import LocalFault
from ...engine.run_folder import MANIFEST, read_manifest
from ..refusal import UsageError

BESIDE = ".millstream"


class Place(Struct, frozen=True):
    """Where a batch writes: `errors` None: into the output too."""

    out: Path
    errors: Path | None = None

    @property
    def folder(self) -> Path:
        """What is kept beside the output: its lock, which input it is of, and what its rows cost."""
        return self.out.with_name(f"{self.out.name}{BESIDE}")

    @property
    def files(self) -> tuple[Path, ...]:
        return (self.out,) if self.errors is None else (self.out, self.errors)

    @property
    def retired(self) -> list[Path]:
        """Notes of failures that were asked again, the oldest first."""
        return sorted(self.folder.glob("failures-*.jsonl"), key=lambda path: path.stat().st_mtime_ns)


def place_at(path: Path) -> Place | None:
    """The batch whose output, or folder beside it, lies there; None: neither does."""
    # A batch knows its output by the name behind all links.
    out = path.resolve() if path.is_symlink() else path
    if out.is_dir():
        if not out.name.endswith(BESIDE):
            return None
        out = out.with_name(out.name.removesuffix(BESIDE))
    folder = Place(out).folder
    try:
        specification = read_manifest(folder)["specification"] if (folder / MANIFEST).is_file() else {}
    except LocalFault:
        return None
    if specification.get("benchmark") != "batch":
        return None
    errors = specification.get("errors")
    return Place(out, None if errors is None else out.parent / str(errors))


def refuse_batch(path: Path) -> None:
    """Of verbs that are for runs of a benchmark."""
    place = place_at(path)
    if place is not None:
        raise UsageError(
            f"{path}: expected a run of a benchmark, got a batch: `millstream batch IN {place.out}`, as it was begun, "
            f"goes on with it, and with --retry asks failed lines again; `verify` and `export` take {place.out} too"
        )
