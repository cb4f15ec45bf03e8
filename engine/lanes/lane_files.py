"""The two files of a lane beside the cache: the ledger of its last minute, and the note of its limits.

Owns their names and what an unwritable folder means. Their contents are the business of `ledger` and `lane_memory`.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from ..fault import LocalFault
from ..limits import declared_quota
from .lane_memory import SUFFIX, LaneMemory, LaneNote
from .ledger import Ledger, LedgerFiles

_LEDGER = ".ledger"


def lane_stem(cache: Path, address: str, model: str, account: str) -> Path:
    """Returns the path of a lane's files without suffix: a hash of address, model and account, which reveals none."""
    name = hashlib.sha256("\0".join((address, model, account)).encode()).hexdigest()[:32]
    return lanes_folder(cache) / name


def lanes_folder(cache: Path) -> Path:
    return cache / "lanes"


def ledger_path(stem: Path) -> Path:
    return stem.with_suffix(_LEDGER)


def note_path(stem: Path) -> Path:
    return stem.with_suffix(SUFFIX)


def open_lane_files(stem: Path, note: LaneNote, files: LedgerFiles | None = None) -> tuple[Ledger, LaneMemory]:
    path = ledger_path(stem)
    try:
        ledger = Ledger(declared_quota(note.declared), path, files)
    except OSError as error:
        raise LocalFault(
            f"{path.parent} can't be written ({error.strerror}): the quota of {note.model} is kept there; mend it, "
            f"or use another folder with --cache"
        ) from error
    return ledger, LaneMemory(note, note_path(stem))
