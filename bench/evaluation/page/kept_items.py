"""What was read of a large run's lines, kept in the user's cache folder, so that its items are there at once.

Believed only if the run's files still begin with the very bytes that it was made of. It is not in the run's folder,
which may come from somebody else, or take no file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import msgspec
from msgspec import Struct

from ....engine.fault import LocalFault
from ....engine.folder_file import make_folder, open_to_read, write_whole
from ....engine.pairs import Pair
from ....engine.runs.run_folder import specification_hash
from ....engine.version import VERSION
from .items import ReadPart, RunItems

# To be raised when a reader gives something else of the same line.
FORMAT = 2
# Fewer lines are read again in half a second.
LINES_LEAST = 20_000
FOLDER = "items"
_BYTES_MOST = 1 << 30
_DIGEST_SIZE, _PIECE = 32, 1 << 20
_T = TypeVar("_T")


class _Kept(Struct, array_like=True):
    key: str
    read: dict[str, tuple[int, bytes]]
    items: list[str]
    groups: list[str]
    titles: list[str]
    expected: list[str]
    pairs: list[Pair]
    labels: list[str]
    statuses: list[str]
    lengths: list[int]


def keep(items: RunItems, manifest: Mapping[str, Any], cache: Path, least: int = LINES_LEAST) -> None:
    """Writes what was read of a run with at least so many lines. A disk that takes no file changes nothing."""
    if len(items) < max(1, least):
        return
    kept = _Kept(
        key=_key(items, manifest),
        read={name: (part.size, part.digest()) for name, part in items.read.items()},
        items=list(items.items),
        groups=items.groups,
        titles=items.titles,
        expected=items.expected,
        pairs=list(items.pairs),
        labels=list(items.labels),
        statuses=list(items.statuses),
        lengths=list(map(len, items.arrays)),
    )
    with suppress(OSError, LocalFault, UnicodeError):  # an id may be no text
        head = msgspec.msgpack.encode(kept)
        arrays = (memoryview(each).cast("B") for each in items.arrays)
        parts: list[bytes | memoryview] = [len(head).to_bytes(8), head, *arrays]
        whole = ReadPart()
        for part in parts:
            whole.add(part)
        path = _path_of(items, cache)
        make_folder(path.parent)
        write_whole(path, [whole.digest(), *parts], is_synced=False)
        _prune(path.parent)
        items.kept = len(items)


def load(items: RunItems, manifest: Mapping[str, Any], cache: Path) -> None:
    """Fills the items of a run of which nothing is read yet with what was kept; with nothing if that is not of these
    files, or not whole."""
    with suppress(OSError, LocalFault, msgspec.MsgspecError), open_to_read(_path_of(items, cache)) as file:
        digest = file.read(_DIGEST_SIZE)
        # Two processes that write at once may leave half a file.
        if _read_to(file).digest() != digest:
            return
        file.seek(_DIGEST_SIZE)
        kept = msgspec.msgpack.decode(file.read(int.from_bytes(file.read(8))), type=_Kept)
        if kept.key != _key(items, manifest):
            return
        read = {name: _part_of(items.path / name, size) for name, (size, _) in kept.read.items()}
        if any((part.size, part.digest()) != kept.read[name] for name, part in read.items()):
            return
        for each, length in zip(items.arrays, kept.lengths, strict=True):
            each.fromfile(file, length)
        items.read = read
        items.groups, items.titles, items.expected = kept.groups, kept.titles, kept.expected
        items.items, items.pairs = _numbered(kept.items), _numbered(kept.pairs)
        items.labels, items.statuses = _numbered(kept.labels), _numbered(kept.statuses)
        items.kept = len(items)


def _key(items: RunItems, manifest: Mapping[str, Any]) -> str:
    """Returns what the items follow from beside the lines."""
    rows, specification = items.rows, specification_hash(manifest["specification"])
    of_rows = sorted(map(repr, (*rows.names.items(), *rows.divided)))
    return repr((FORMAT, VERSION, specification, items.reader.source, of_rows))


def _numbered(names: list[_T]) -> dict[_T, int]:
    return {name: at for at, name in enumerate(names)}


def _path_of(items: RunItems, cache: Path) -> Path:
    return cache / FOLDER / hashlib.sha256(str(items.path.resolve()).encode(errors="surrogateescape")).hexdigest()


def _part_of(path: Path, size: int) -> ReadPart:
    if not size:
        return ReadPart()
    with open_to_read(path) as file:
        return _read_to(file, size)


def _read_to(file: BinaryIO, size: int | None = None) -> ReadPart:
    """Reads a file to its end, or until so many bytes were read."""
    part = ReadPart()
    while piece := file.read(_PIECE if size is None else min(_PIECE, size - part.size)):
        part.add(piece)
    return part


def _prune(folder: Path) -> None:
    """Removes the oldest files above the bound on all."""
    statuses = {path: path.stat() for path in folder.iterdir()}
    total = 0
    for path, status in sorted(statuses.items(), key=lambda each: -each[1].st_mtime):
        total += status.st_size
        if total > _BYTES_MOST:
            path.unlink(missing_ok=True)
