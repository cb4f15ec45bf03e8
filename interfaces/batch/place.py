"""The files of a batch: its output, its errors if they lie apart, and the folder beside the output.

Owns their names, and how other verbs recognise them. Knows nothing of their contents.
"""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from ...configuration.errors import UsageError
from ...engine.fault import LocalFault
from ...engine.runs.run_folder import MANIFEST, read_manifest

BESIDE = ".millstream"


class BatchPlace(Struct, frozen=True):
    """The files that a batch writes. `errors` None: failed rows go into the output too."""

    out: Path
    errors: Path | None = None

    @property
    def folder(self) -> Path:
        """The folder beside the output, with the lock, the manifest and the notes of the rows."""
        return self.out.with_name(f"{self.out.name}{BESIDE}")

    @property
    def files(self) -> tuple[Path, ...]:
        return (self.out,) if self.errors is None else (self.out, self.errors)

    @property
    def retired(self) -> list[Path]:
        """The files with the notes of failures that were sent again, the oldest first."""
        return sorted(self.folder.glob("failures-*.jsonl"), key=lambda path: path.stat().st_mtime_ns)


def place_at(path: Path) -> BatchPlace | None:
    """Returns the batch whose output, or folder beside it, lies at the path; None: no batch does."""
    # A batch knows its output by the name behind all links.
    out = path.resolve() if path.is_symlink() else path
    if out.is_dir():
        if not out.name.endswith(BESIDE):
            return None
        out = out.with_name(out.name.removesuffix(BESIDE))
    folder = BatchPlace(out).folder
    try:
        specification = read_manifest(folder)["specification"] if (folder / MANIFEST).is_file() else {}
    except LocalFault:
        return None
    if specification.get("benchmark") != "batch":
        return None
    errors = specification.get("errors")
    return BatchPlace(out, None if errors is None else out.parent / str(errors))


def check_is_no_batch(path: Path) -> None:
    """Raises UsageError if the path is a batch and the verb takes runs of a benchmark only."""
    place = place_at(path)
    if place is not None:
        raise UsageError(
            f"{path}: expected a run of a benchmark, got a batch: `millstream batch IN {place.out}`, as it was begun, "
            f"goes on with it, and with --retry asks failed lines again; `verify` and `export` take {place.out} too"
        )
