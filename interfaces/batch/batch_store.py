"""The output of a batch and the folder beside it: writes rows with their notes, and reads what is there.

A note goes to the folder's journal before its row goes to the output: a row without a note is not believed, and a kill
leaves every line either done or to be sent. Knows rows and notes, not calls.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from ...configuration.errors import UsageError
from ...engine.fault import DamagedJournal, LocalFault
from ...engine.folder_file import open_to_append
from ...engine.pairs import PairCounts
from ...engine.runs.journal import Journal, lines_with_holes, read_lines, set_damaged_aside
from ...engine.runs.run_folder import MANIFEST, RunFolder, WrongSpecification
from .notes import RETIRED, Notes
from .output import Output
from .place import BatchPlace
from .rows import Note, NotedRow, line_of

REPLACED = "replaced.jsonl"
DAMAGED = "damaged.jsonl"
_SET_ASIDE = "with --set-aside-damaged the same command moves such lines away and asks for them again"


class Rows(Journal):
    """A journal of output rows without checksums, since the output has another program's format; notes hold them."""

    def append(self, row: bytes) -> None:
        self._pending.append(row + b"\n")


class BatchStore:
    """The output of one batch, open for this process. Use as a context manager. `tag` begins the id of every row;
    `last` is the number of the input's last line, from 1. `set_aside`: damaged rows are moved to their own file."""

    def __init__(
        self,
        place: BatchPlace,
        specification: Mapping[str, Any],
        tag: str,
        last: int,
        *,
        retry: bool = False,
        set_aside: bool = False,
    ) -> None:
        self.place = place
        self._tag = tag
        self._last = last
        self._may_set_aside = set_aside
        is_new = not (place.folder / MANIFEST).exists()
        if is_new:
            _check_is_free(place)
        with ExitStack() as opened, _as_fault(place.out):
            self.folder = opened.enter_context(_folder(place, specification, retry=retry, set_aside=set_aside))
            self._outputs = [opened.enter_context(closing(Output(path))) for path in place.files]
            if is_new:
                _check_is_free(place)  # another batch may have written there meanwhile
            # Before the first row: an output without a manifest beside it is another program's.
            self.folder.write_manifest()
            self._files = opened.enter_context(ExitStack())
            self._rows: dict[Path, Rows] = {}
            self._open_rows()
            with self._notes() as notes:
                self.spent = notes.cost
                if self._read_rows(notes, PairCounts()):
                    self._files.close()
                    self._take_out(notes)
                    self._open_rows()
            self._opened = opened.pop_all()

    def __enter__(self) -> BatchStore:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    @property
    def already(self) -> int:
        return len(self.done) - self.done.count(0)

    @property
    def fault(self) -> LocalFault | None:
        return self.folder.fault or next((rows.fault for rows in self._rows.values() if rows.fault is not None), None)

    def keep(self, written: NotedRow) -> None:
        """Adds a row and its note to those that `flush` writes."""
        self.note(written.note)
        is_error = self.place.errors is not None and not written.note.is_answer
        self._rows[self.place.files[is_error]].append(written.row)

    def note(self, note: Note) -> None:
        journal = self.folder.records if note.is_answer else self.folder.failures
        journal.append(msgspec.json.encode(note))

    def flush(self) -> None:
        # Notes first: see above.
        self.folder.records.flush()
        self.folder.failures.flush()
        for rows in self._rows.values():
            rows.flush()

    def count(self) -> PairCounts:
        """Returns how the rows on disk ended, read from their notes. The cost, in dollars, is that of every call ever
        sent for them."""
        ended = PairCounts()
        with _as_fault(self.place.out), self._notes() as notes:
            self._read_rows(notes, ended)
            ended.cost = self.spent = notes.cost
        return ended

    def close_rows(self) -> None:
        self._files.close()

    def put_in_order(self) -> None:
        """Rewrites the output in the order of the input's lines, unless it has that order already."""
        with _as_fault(self.place.out):
            for output in self._outputs:
                output.put_in_order(self._tag, self._last)

    def _open_rows(self) -> None:
        for path in self.place.files:
            self._rows[path] = rows = Rows(path, self.folder.spare)
            self._files.callback(rows.close)

    def _notes(self) -> Notes:
        for path in self.place.retired if self._may_set_aside else ():
            set_damaged_aside(path)
        return Notes(self.place, _refuse)

    def _read_rows(self, notes: Notes, ended: PairCounts) -> int:
        """Counts the rows in `ended`, and returns how many more have to be removed."""
        self.done, taken_out = bytearray(self._last + 1), 0
        for path in self.place.files:
            for _, aside in self._judged(path, notes, ended):
                taken_out += aside is not None
        return taken_out

    def _judged(self, path: Path, notes: Notes, ended: PairCounts) -> Iterator[tuple[bytes, str | None]]:
        """Yields every row with the file it is moved to. One that stays (None) is counted in `ended`, and its line in
        `done` is its kind plus one."""
        holes = lines_with_holes(path)
        for number, row in enumerate(read_lines(path), 1):
            if number in holes:
                yield row, REPLACED
                continue
            line = line_of(row, self._tag)
            if line is None or not 0 < line <= self._last:
                yield row, self._damaged(f"{path} line {number} is no row of this batch")
                continue
            match = notes.of(line, zlib.crc32(row))
            if match is None and notes.is_known(line):
                yield row, self._damaged(f"{path} line {number} was changed")
            elif match is None or match[0] == RETIRED or self.done[line]:
                yield row, REPLACED
            else:
                self.done[line] = match[0] + 1
                count_note(ended, match[1])
                yield row, None

    def _damaged(self, what: str) -> str:
        if not self._may_set_aside:
            raise DamagedJournal(f"{what}: {_SET_ASIDE}")
        return DAMAGED

    def _take_out(self, notes: Notes) -> None:
        """Removes the rows whose requests are sent again: failures under `retry`, rows that a power cut left without
        a note, and damaged rows."""
        self.done = bytearray(self._last + 1)
        for output in self._outputs:
            output.rewrite(self._kept(self._judged(output.path, notes, PairCounts())))

    def _kept(self, judged: Iterator[tuple[bytes, str | None]]) -> Iterator[bytes]:
        with ExitStack() as opened:
            moved: dict[str, BinaryIO] = {}
            for row, aside in judged:
                if aside is None:
                    yield row + b"\n"
                    continue
                if aside not in moved:
                    moved[aside] = opened.enter_context(open_to_append(self.folder.folder / aside))
                moved[aside].write(row + b"\n")


def count_note(ended: PairCounts, note: Note) -> None:
    if note.status == "ok":
        ended.ok += 1
    elif note.status == "refused":
        ended.refused += 1
    else:
        ended.fail(note.status, note.error if isinstance(note.error, str) else "")
    ended.cached += note.cached and note.is_answer
    ended.truncated += note.truncated
    ended.maybe_billed += note.maybe_billed
    ended.charge(note.usage, note.cost, is_answered=note.is_answer, is_cached=note.cached)


def _refuse(path: Path, number: int, mistake: str) -> None:
    raise DamagedJournal(f"{path} line {number} is {mistake}: {_SET_ASIDE}")


@contextmanager
def _as_fault(out: Path) -> Iterator[None]:
    """Turns an OSError into a LocalFault that names the file."""
    try:
        yield
    except OSError as error:
        problem = f"{error.filename or out} can't be used ({error.strerror}): fix that, or choose another OUT"
        raise LocalFault(problem) from error


def _folder(place: BatchPlace, specification: Mapping[str, Any], *, retry: bool, set_aside: bool) -> RunFolder:
    try:
        return RunFolder(place.folder, specification, retry=retry, set_aside=set_aside)
    except WrongSpecification as error:
        difference = str(error).partition("(")[2].rpartition(")")[0]
        raise UsageError(
            f"{place.out} is the output of another batch ({difference}): choose another OUT, or remove "
            f"{place.out.name} and {place.folder.name} to begin anew"
        ) from error
    except LocalFault as error:
        raise type(error)(str(error).replace("another --out", "another OUT")) from error


def _check_is_free(place: BatchPlace) -> None:
    for path in place.files:
        if path.exists() and not path.is_file():
            raise UsageError(f"{path}: expected a file to write, got something else: stdout is written as `-`")
        if path.exists() and path.stat().st_size > 0:
            raise UsageError(
                f"{path} is there already and was not written by this batch ({place.folder.name} is missing): choose "
                f"another, or remove it"
            )
