"""The two files of a lane beside the cache: the ledger of its last minute (see ledger), and a note of its API key's
variable, its declaration, and the limits that answers reported.

Owns their names and what an unwritable folder means. The note is a small file, replaced whole, so that the next process
starts with what this one learned. It holds nothing of the API key itself. If it is lost, the next answers report the
same again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct, structs

from ..fault import LocalFault
from ..lane import Lane
from ..limits import DAY_S, Limit, declared_quota
from .ledger import Ledger, LedgerFiles

LEDGER = ".ledger"
NOTE = ".lane"
# A limit that no answer has reported for this long may have been changed.
FORGOTTEN_AFTER_S = DAY_S
# A changed limit is written at once, unless the file was written just before; an unchanged one gets a new date once a
# minute.
_WRITE_EVERY_S = 5.0
_REFRESH_EVERY_S = 60.0


class ReportedLimit(Struct, frozen=True):
    """A limit, and when an answer reported it (seconds since 1970)."""

    limit: Limit
    at: float


class Reached(Struct, frozen=True):
    """How far a lane without a known quota came by itself: its calls in flight, the calls per second that refusals
    showed (None: they did not), and when (seconds since 1970)."""

    in_flight: Annotated[int, Meta(ge=0)] = 0
    per_s: Annotated[float, Meta(gt=0)] | None = None
    at: float = 0.0


class LaneNote(Struct, frozen=True):
    """The content of a lane's note file. `key`: the environment variable that holds the API key, empty if there is
    none. `opened_at`: when a process last opened the lane with this declaration, in seconds since 1970."""

    model: str
    key: str
    address: str
    declared: Lane
    seen: tuple[ReportedLimit, ...] = ()
    opened_at: float = 0.0
    reached: Reached = Reached()

    def fresh(self, now: float) -> tuple[ReportedLimit, ...]:
        """Returns the reported limits that are less than a day old; `now` is in seconds since 1970."""
        return tuple(seen for seen in self.seen if -FORGOTTEN_AFTER_S < now - seen.at < FORGOTTEN_AFTER_S)


class LaneMemory:
    """One process's open lane note. `path` None: it is kept in memory alone. `clock` returns seconds since 1970."""

    def __init__(self, note: LaneNote, path: Path | None = None, *, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._clock = clock
        now = clock()
        before = None if path is None else read_note(path)
        if before is not None:
            note = structs.replace(note, seen=before.fresh(now), reached=before.reached)
        self._note = structs.replace(note, opened_at=now)
        self._is_changed = False
        self._write(now)

    @property
    def limits(self) -> tuple[Limit, ...]:
        return tuple(seen.limit for seen in self._note.seen)

    @property
    def reached(self) -> Reached:
        return self._note.reached

    @property
    def is_old(self) -> bool:
        """Whether what was reached may have changed since: then it is a start, and tested soon."""
        return abs(self._clock() - self.reached.at) > FORGOTTEN_AFTER_S

    def remember(self, in_flight: int, per_s: float | None) -> None:
        """Takes in how far the lane came by itself, which is written once a minute and at the end."""
        if (in_flight, per_s) == (self.reached.in_flight, self.reached.per_s):
            return  # nothing new: it has the age that it had
        now = self._clock()
        self._note = structs.replace(self._note, reached=Reached(in_flight, per_s, now))
        self._is_changed = True
        if not 0 <= now - self._written_at < _REFRESH_EVERY_S:
            self._write(now)

    def see(self, limits: Iterable[Limit]) -> bool:
        """Takes in the limits that an answer reported; they replace all earlier limits of the same amount. Returns
        whether any of them is new."""
        bounds = [limit for limit in limits if limit.limit is not None]
        if not bounds:
            return False
        now = self._clock()
        amounts = {limit.of for limit in bounds}
        others = [seen for seen in self._note.seen if seen.limit.of not in amounts]
        before = {(seen.limit.of, seen.limit.window_s, seen.limit.limit) for seen in self._note.seen}
        is_new = not before.issuperset((limit.of, limit.window_s, limit.limit) for limit in bounds)
        self._note = structs.replace(self._note, seen=(*others, *(ReportedLimit(limit, now) for limit in bounds)))
        self._is_changed |= is_new
        since = now - self._written_at
        if since >= (_WRITE_EVERY_S if self._is_changed else _REFRESH_EVERY_S) or since < 0:
            self._write(now)
        return is_new

    def close(self) -> None:
        if self._note.seen or self._is_changed:
            self._write(self._clock())

    def _write(self, now: float) -> None:
        self._written_at = now
        self._is_changed = False
        if self._path is None:
            return
        draft = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        try:
            draft.write_bytes(msgspec.json.encode(self._note))
            draft.replace(self._path)
        except OSError:
            # A full disk costs what was learned, not the run.
            with contextlib.suppress(OSError):
                draft.unlink()


def read_note(path: Path) -> LaneNote | None:
    """Returns the note in a file; None if the file is missing, unreadable or no note."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=LaneNote)
    except (OSError, msgspec.MsgspecError, UnicodeError):
        return None


def notes_in(folder: Path) -> Iterator[tuple[Path, LaneNote]]:
    """Yields the path and the note of every lane that was ever opened beside one cache, sorted by model and key."""
    notes = ((path, read_note(path)) for path in folder.glob(f"*{NOTE}"))
    yield from sorted(
        ((path, note) for path, note in notes if note is not None),
        key=lambda one: (one[1].model, one[1].key, one[1].address),
    )


def lane_stem(cache: Path, address: str, model: str, account: str) -> Path:
    """Returns the path of a lane's files without suffix: a hash of address, model and account, which reveals none."""
    name = hashlib.sha256("\0".join((address, model, account)).encode()).hexdigest()[:32]
    return lanes_folder(cache) / name


def lanes_folder(cache: Path) -> Path:
    return cache / "lanes"


def open_memory(stem: Path, note: LaneNote) -> LaneMemory:
    """Returns the memory of a lane whose ledger is kept elsewhere."""
    with contextlib.suppress(OSError):
        stem.parent.mkdir(parents=True, exist_ok=True)
    return LaneMemory(note, stem.with_suffix(NOTE))


def open_lane_files(stem: Path, note: LaneNote, files: LedgerFiles | None = None) -> tuple[Ledger, LaneMemory]:
    path = stem.with_suffix(LEDGER)
    try:
        ledger = Ledger(declared_quota(note.declared), path, files)
    except OSError as error:
        raise LocalFault(
            f"{path.parent} can't be written ({error.strerror}): the quota of {note.model} is kept there; make it "
            f"writable, or use another folder with --cache"
        ) from error
    return ledger, LaneMemory(note, stem.with_suffix(NOTE))
