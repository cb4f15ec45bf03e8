"""The file that `data` writes: it is written whole or not at all, and replaces nothing. Knows no data set."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ..engine.fault import LocalFault
from ..engine.folder_file import write_whole
from .errors import UsageError


def out_file(text: str | None) -> Path:
    """Returns the path to write to. Raises UsageError if no file can be there."""
    if text is None:
        raise UsageError("--out: expected the data set file to write, got none")
    out = path_of(text)
    status = found_at(out, f"--out {out}: expected a file to write")
    if status is not None and stat.S_ISDIR(status.st_mode):
        raise UsageError(f"--out {out}: expected a file, got a folder: name a file in it")
    if status is not None and not stat.S_ISREG(status.st_mode):
        raise UsageError(f"--out {out}: expected a file, got a device or a pipe: choose another --out")
    if status is None and out.is_symlink():
        raise UsageError(f"--out {out}: expected a file, got a link that leads nowhere: choose another --out")
    return out


def path_of(text: str) -> Path:
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise UsageError(f"{text}: expected a path, got one that begins with a home nobody has") from error


def found_at(path: Path, expected: str) -> os.stat_result | None:
    """Returns the stat result of a path; None if nothing is there. Raises UsageError if the path can't be examined
    (too long, a link to itself)."""
    try:
        return path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UsageError(f"{expected}, got: {error.strerror}") from error


def make_room(out: Path) -> None:
    """Creates the file's folder, before anything is paid for. Raises LocalFault if it can't be written."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LocalFault(f"{out.parent} can't be made ({error.strerror}): choose another --out") from error
    if not os.access(out.parent, os.W_OK):
        raise LocalFault(f"{out.parent} can't be written: choose another --out")


def write_once(out: Path, data: bytes) -> bool:
    """Writes a new file and returns True. Returns False if it exists with the same content; raises if its content
    differs."""
    make_room(out)
    try:
        if out.exists():
            if out.stat().st_size == len(data) and out.read_bytes() == data:
                return False
            raise UsageError(
                f"--out {out} exists and holds something else: nothing was overwritten; choose another --out, or move "
                f"it away"
            )
        write_whole(out, data)
    except OSError as error:
        raise LocalFault(f"{out} can't be written ({error.strerror}): make room, or choose another --out") from error
    return True
