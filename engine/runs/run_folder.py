"""The folder of one run: its lock, its manifest, its two journals and the spare room for a full disk.

One process writes a run. The same command continues it; another specification is rejected, with what differs. Knows
rows and ids, not what they measure.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import orjson
from msgspec import Struct

from ..exit_codes import WRONG_USAGE
from ..fault import LocalFault, RunHeld
from ..folder_file import WHOLE_MAX, keep_whole, open_regular, read_whole, write_whole
from ..spare_room import SpareRoom
from .journal import Journal, read_lines, replaced

MANIFEST = "manifest.json"
RECORDS = "records.jsonl"
FAILURES = "failures.jsonl"
# Increased whenever earlier folders can no longer be read: a version reads one format.
FORMAT = 1
_TOLD_MAX = 60
_DIFFERENCES_MAX = 6
_DIGEST = re.compile("[0-9a-f]{64}")
# As our own lines have it; within a text its quotes would be escaped.
_REDIRECT = b'"status":"redirect"'


class RunFiles(Struct, frozen=True):
    """The names of a run's files in its folder. A folder holds one run under the default names; judgements of its
    answers are another run beside it, under names of their own."""

    manifest: str = MANIFEST
    """Specification, options, and when the run started and ended."""
    records: str = RECORDS
    """The journal of answers."""
    failures: str = FAILURES
    """The journal of final failures."""


RUN_FILES = RunFiles()


class WrongSpecification(Exception):
    """Raised for a folder that holds another run; the message says what differs. `asked` has the requested values of
    the fields that differ, by name."""

    exit_code = WRONG_USAGE

    def __init__(self, said: str, asked: Mapping[str, Any] = MappingProxyType({})) -> None:
        super().__init__(said)
        self.asked = asked


def specification_hash(specification: Mapping[str, Any]) -> str:
    return hashlib.sha256(orjson.dumps(specification, option=orjson.OPT_SORT_KEYS)).hexdigest()


def manifest_hash(manifest: Mapping[str, Any]) -> str:
    """Returns the SHA-256, in hex, of everything in a manifest but its own hash."""
    return specification_hash({name: value for name, value in manifest.items() if name != "manifest_hash"})


def read_manifest(folder: Path, name: str = MANIFEST) -> dict[str, Any]:
    """Returns the manifest of a run. Raises LocalFault, which says what is wrong with the folder."""
    path = folder / name
    try:
        manifest = orjson.loads(read_whole(path))
    except FileNotFoundError:
        raise LocalFault(f"{folder} holds no run: {name} is missing") from None
    except (OSError, orjson.JSONDecodeError) as error:
        raise LocalFault(f"{path} can't be read ({error}): the folder is damaged") from error
    if not isinstance(manifest, dict) or not isinstance(manifest.get("specification"), dict):
        raise LocalFault(f"{path} is no manifest: it has no specification")
    if manifest.get("format") != FORMAT:
        raise LocalFault(
            f"{path} has format {manifest.get('format')}, this version reads {FORMAT}: read the folder with the "
            "version that wrote it, or begin anew with another --out"
        )
    return manifest


def no_folder_at(folder: Path) -> str:
    """Returns why a path is no folder, and what to give; empty: it is one."""
    if folder.is_dir():
        return ""
    if folder.exists():
        return f"{folder} is a file: give the run's folder, as {folder.parent}"
    return f"{folder} does not exist: give the folder of a run"


def no_run_at(folder: Path) -> str:
    """Returns why a path is no folder, or one of another program, and what to give; empty: it is neither."""
    if folder.suffix == ".eval" or next(folder.glob("*.eval"), None) is not None:
        return f"{folder} holds logs of Inspect, which millstream does not read: `inspect view` shows them"
    return no_folder_at(folder)


@contextmanager
def holding(folder: Path) -> Iterator[None]:
    """Holds the run's lock during the block, so that nobody else writes the run. Raises RunHeld if it is taken."""
    fd = _lock(folder)
    try:
        yield
    finally:
        os.close(fd)


def note_in_manifest(folder: Path, **changes: Any) -> None:
    """Changes fields of a run's manifest. The caller holds the run's lock."""
    manifest = {**read_manifest(folder), **changes}
    _write_manifest(folder / MANIFEST, manifest)


def _write_manifest(path: Path, manifest: dict[str, Any]) -> None:
    manifest["manifest_hash"] = manifest_hash(manifest)
    data = orjson.dumps(manifest, option=orjson.OPT_INDENT_2)
    if len(data) > WHOLE_MAX:
        raise LocalFault(f"{path} would be longer than {WHOLE_MAX >> 20} MiB, which nobody reads: ask fewer rows a run")
    keep_whole(path, data)


def check_hashes_of(path: Path, manifest: Mapping[str, Any]) -> None:
    """Raises LocalFault if a manifest was changed since it was written."""
    for of, noted, digest in (
        ("its specification", manifest.get("specification_hash"), specification_hash(manifest["specification"])),
        ("it", manifest.get("manifest_hash"), manifest_hash(manifest)),
    ):
        if noted != digest:
            raise LocalFault(
                f"{path}: {of} was changed since it was written (its hash is {digest[:12]}…, {str(noted)[:12]}… is "
                f"noted): put back the file as it was, or choose another --out; `millstream verify` tells what is "
                f"sound"
            )


class RunFolder:
    """A run folder that is open for writing. Use as a context manager; leaving it frees the lock. `set_aside`: damaged
    lines are moved to files of their own; `retry`: all recorded failures are tried again, not only redirects; `files`:
    the names of its files."""

    def __init__(
        self,
        folder: Path,
        specification: Mapping[str, Any],
        *,
        set_aside: bool = False,
        retry: bool = False,
        files: RunFiles = RUN_FILES,
    ) -> None:
        self.folder = folder
        self.files = files
        # Whatever was opened is closed again, in the opposite order, even where opening or closing one of them fails.
        with ExitStack() as opened:
            opened.callback(os.close, _lock(folder))
            try:
                self.manifest = self._begin(specification)
                self.spare = SpareRoom(folder)
                opened.callback(self.spare.give_back)
                if self.has_failures:
                    _retire(folder / files.failures, of_all=retry)
                self.records = Journal(folder / files.records, self.spare, set_aside=set_aside)
                opened.callback(self.records.close)
                self.failures = Journal(folder / files.failures, self.spare, set_aside=set_aside)
                opened.callback(self.failures.close)
            except OSError as error:
                raise LocalFault(f"{folder} can't be written ({error.strerror}): choose another --out") from error
            self._opened = opened.pop_all()

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def fault(self) -> LocalFault | None:
        return self.records.fault or self.failures.fault

    @property
    def has_failures(self) -> bool:
        """Whether a final failure is on disk."""
        return _holds_something(self.folder / self.files.failures)

    def check_is_own(self) -> None:
        """Raises LocalFault if the folder was deleted or replaced since it was opened: another run may own its path."""
        if self.records.is_replaced:
            raise replaced(self.folder)

    def write_manifest(self, **changes: Any) -> None:
        self.check_is_own()
        # A change that can't be written holds nowhere: the next write must not bring it.
        changed = {**self.manifest, **changes}
        _write_manifest(self.folder / self.files.manifest, changed)
        self.manifest.update(changed)

    def close(self) -> None:
        self._opened.close()

    def _begin(self, specification: Mapping[str, Any]) -> dict[str, Any]:
        digest, files = specification_hash(specification), self.files
        if not (self.folder / files.manifest).exists():
            # A kill between the first open and the first manifest leaves an empty file, which is nobody's run.
            if _holds_something(self.folder / files.records):
                raise WrongSpecification(
                    f"{self.folder} holds {files.records} but no {files.manifest}: choose another --out"
                )
            return {"format": FORMAT, "specification": dict(specification), "specification_hash": digest}
        manifest = read_manifest(self.folder, files.manifest)
        check_hashes_of(self.folder / files.manifest, manifest)
        if manifest["specification_hash"] != digest:
            differences = list(_differences("", manifest["specification"], specification))
            raise WrongSpecification(
                f"{self.folder} holds another run ({_text_of(differences)}): choose another --out",
                {each.name: each.asked for each in differences},
            )
        return manifest


def _lock(folder: Path) -> int:
    with ExitStack() as opened:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            fd = open_regular(folder / ".lock", os.O_RDWR | os.O_CREAT)
            opened.callback(os.close, fd)
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(fd, 0)
            os.pwrite(fd, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
        except BlockingIOError as error:
            raise RunHeld(f"{folder} is being written by {_holder(fd)}: wait until it has ended") from error
        except OSError as error:
            raise LocalFault(f"{folder} can't be written ({error.strerror}): choose another --out") from error
        opened.pop_all()
    return fd


def _holder(fd: int) -> str:
    """Returns the text in a lock file that names its holder. Waits up to half a second for the holder to write it, then
    returns `another process`."""
    for _ in range(50):
        time.sleep(0.01)
        holder = os.pread(fd, 200, 0).decode("utf-8", "replace").strip()
        if holder:
            return holder
    return "another process"


def _retire(path: Path, *, of_all: bool) -> None:
    """Moves failures that are asked again to a file with its own number: all, or those that ended with a redirect."""
    if not of_all and not any(_REDIRECT in line for line in read_lines(path)):
        return
    number = 1
    while (aside := path.with_name(f"{path.stem}-{number}.jsonl")).exists():
        number += 1
    if of_all:
        path.rename(aside)
        return
    # Killed between the two, the next start does it once more.
    write_whole(aside, (line + b"\n" for line in read_lines(path)))
    write_whole(path, (line + b"\n" for line in read_lines(path) if _REDIRECT not in line))


def _holds_something(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


class _Difference(NamedTuple):
    name: str
    there: Any
    asked: Any

    @property
    def is_digest(self) -> bool:
        """Whether the values are digests, or one is and the other is missing."""
        return all(_DIGEST.fullmatch(str(each)) for each in (self.there, self.asked) if each is not None)

    @property
    def text(self) -> str:
        there, wanted = _short(self.there), _short(self.asked)
        if there == wanted:
            there, wanted = _parting(repr(self.there), repr(self.asked))
        return f"{self.name}: {there} in that run, {wanted} in this"


def _text_of(differences: Sequence[_Difference]) -> str:
    """Returns the differences as a text: what a person chose, the widest choices first; of digests only the names."""
    chosen = sorted((each for each in differences if not each.is_digest), key=lambda each: each.name.count("."))
    parts = [each.text for each in chosen[:_DIFFERENCES_MAX]]
    if more := len(chosen) - len(parts):
        parts.append(f"{more} more values")
    if digests := [each.name for each in differences if each.is_digest]:
        parts.append(f"{', '.join(digests)} {'differs' if len(digests) == 1 else 'differ'}")
    return "; ".join(parts)


def _differences(name: str, there: Any, wanted: Any) -> Iterator[_Difference]:
    """Yields what differs, key by key; for long lists of the same length the first element that differs."""
    if isinstance(there, Mapping) and isinstance(wanted, Mapping):
        for key in sorted(there.keys() | wanted.keys()):
            if there.get(key) != wanted.get(key):
                yield from _differences(f"{name}.{key}" if name else key, there.get(key), wanted.get(key))
        return
    are_lists = isinstance(there, list | tuple) and isinstance(wanted, list | tuple)
    if are_lists and len(there) == len(wanted) and _short(there) == _short(wanted):
        at = next(at for at, (one, other) in enumerate(zip(there, wanted, strict=True)) if one != other)
        yield from _differences(f"{name}[{at}]", there[at], wanted[at])
        return
    yield _Difference(name, there, wanted)


def _short(value: object) -> str:
    """Returns a value as a short text; a long list is shown by its number of elements."""
    if value is None:
        return "none"
    text = ", ".join(map(_short, value)) if isinstance(value, list | tuple) else str(value)
    if len(text) <= _TOLD_MAX:
        return text
    return f"{len(value)} of them" if isinstance(value, list | tuple) else f"{text[: _TOLD_MAX - 1]}…"


def _parting(one: str, other: str) -> tuple[str, str]:
    """Returns an extract of each text around the first place where they differ."""
    places = range(min(len(one), len(other)))
    alike = next((at for at in places if one[at] != other[at]), len(places))
    begin = max(0, alike - _TOLD_MAX // 2)
    first, second = (("…" if begin else "") + text[begin : begin + _TOLD_MAX] for text in (one, other))
    return first, second


def whole_lines(folder: Path, name: str) -> int:
    return sum(1 for _ in read_lines(folder / name))
