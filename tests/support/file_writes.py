"""What a program changes of the files below a folder, change by change: recorded, stopped at one, or replayed in part.

file_writes.c sees the changes between the program and the kernel; nothing of the program knows of it.
"""

from __future__ import annotations

import re
import struct
import subprocess
from collections import defaultdict
from pathlib import Path
from random import Random
from typing import NamedTuple

SOURCE = Path(__file__).with_suffix(".c")
BLOCK = 512
PAGE = 4096
_LENGTH = -1  # as the number of a block
_HEAD = struct.Struct("=8sIIQQ")


class FileWrite(NamedTuple):
    """One change of a file: `write`, `resize`, `create`, `mkdir`, `rename` or `remove`, or a `sync` of earlier ones.

    `at` is the place of a write, or a file's new size; `data` is what was written, or a renamed file's new name.
    """

    name: str
    file: str
    at: int
    data: bytes

    @property
    def point(self) -> tuple[str, str]:
        """The change's name and its file, with a star for what is drawn or counted in the file's name."""
        return self.name, re.sub(r"(?<=\.millstream-)[^/]+|[0-9a-f]{8,}|\d+", "*", self.file)

    @property
    def pages(self) -> int:
        """How many of the kernel's pages a write is in: a kill can fall between two."""
        return -(-(self.at + len(self.data)) // PAGE) - self.at // PAGE


class KillPoint(NamedTuple):
    """The `number`th change of this name, of files that match: the process dies before it, or after some pages."""

    name: str
    file: str
    number: int
    is_halfway: bool = False

    def __str__(self) -> str:
        return f"{'half of' if self.is_halfway else 'before'} {self.name} {self.file}, number {self.number}"


class WatchedFolder:
    """A folder whose changes are seen in every process that gets its `variables`."""

    def __init__(self, folder: Path, workplace: Path) -> None:
        self.folder = folder
        self._log = workplace / "file-writes.log"
        self._library = workplace / "file-writes.so"
        if not self._library.exists():
            subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", self._library, SOURCE, "-ldl"], check=True)

    def recording(self) -> dict[str, str]:
        """Returns the variables of a process whose changes `changes` returns afterwards."""
        self._log.unlink(missing_ok=True)
        return {**self._variables(), "WRITES_LOG": str(self._log)}

    def killing(self, point: KillPoint) -> dict[str, str]:
        """Returns the variables of a process that is killed at a point, if it gets there."""
        order = f"{point.name}\t{point.file}\t{point.number}\t{int(point.is_halfway)}"
        return {**self._variables(), "WRITES_DIE": order}

    def changes(self) -> list[FileWrite]:
        """Returns what was recorded, in its order."""
        data, at, found = self._log.read_bytes(), 0, list[FileWrite]()
        while at < len(data):
            name, path, _, place, size = _HEAD.unpack_from(data, at)
            at += _HEAD.size
            file, at = data[at : at + path].decode(), at + path
            found.append(FileWrite(name.rstrip(b"\0").decode(), file, place, data[at : at + size]))
            at += size
        return found

    def _variables(self) -> dict[str, str]:
        return {"LD_PRELOAD": str(self._library), "WRITES_BELOW": str(self.folder)}


class _File:
    """A file's changes, and how many of them are surely on disk."""

    def __init__(self) -> None:
        self.changes = list[FileWrite]()
        self.synced = 0

    def content(self, random: Random | None) -> bytes:
        """Returns the file after its changes; with `random`, each block and the length as of any moment since the last
        sync: a kernel writes blocks when and in what order it likes."""
        last = len(self.changes)
        moments = defaultdict[int, int](lambda: random.randint(self.synced, last) if random else last)
        data, size = bytearray(), 0
        for number, change in enumerate(self.changes):
            end = change.at + len(change.data)
            if change.name == "resize":
                data = data[: change.at]
            data.extend(bytes(max(0, end - len(data))))
            if number < moments[_LENGTH]:
                size = end if change.name == "resize" else max(size, end)
            for block in range(change.at // BLOCK, -(-end // BLOCK)):
                if number < moments[block]:
                    begin, stop = max(change.at, block * BLOCK), min(end, (block + 1) * BLOCK)
                    data[begin:stop] = change.data[begin - change.at : stop - change.at]
        return bytes(data[:size].ljust(size, b"\0"))


class _Disk:
    """The names on a disk, and the file behind each."""

    def __init__(self) -> None:
        self.folders = list[str]()
        self.files = dict[str, _File]()

    def copy(self) -> _Disk:
        """Returns the same names for the same files, for whatever is written to them later."""
        other = _Disk()
        other.folders, other.files = list(self.folders), dict(self.files)
        return other

    def take(self, change: FileWrite) -> None:
        match change.name:
            case "mkdir":
                self.folders.append(change.file)
            case "create":
                self.files[change.file] = _File()
            case "remove":
                self.files.pop(change.file, None)
                self.folders = [name for name in self.folders if name != change.file]
            case "rename":
                self.files[change.data.decode()] = self.files.pop(change.file)
            case "sync":
                # Of a folder it says nothing about a file.
                if found := self.files.get(change.file):
                    found.synced = len(found.changes)
            case _:
                self.files.setdefault(change.file, _File()).changes.append(change)


def put_back(changes: list[FileWrite], folder: Path, random: Random | None = None) -> None:
    """Makes a folder as it is after these changes; with `random`, as a power cut may leave it then. What was synced is
    there. Of the rest any block may be old, and of the names the last may be lost, as file systems with a journal do:
    the sync of a file keeps all names before it."""
    disk, names = _Disk(), None
    synced = max((number for number, change in enumerate(changes, 1) if change.name == "sync"), default=0)
    lost_from = random.randint(synced, len(changes)) if random else len(changes)
    for number, change in enumerate(changes):
        if number == lost_from:
            names = disk.copy()
        disk.take(change)
    names = names or disk
    for name in ("", *names.folders):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for name, file in names.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(file.content(random))
