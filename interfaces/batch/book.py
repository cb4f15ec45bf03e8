"""A batch's output on disk and the folder beside it: what is written of each row, and what is there already.

A note goes to the folder's journal before its row goes to the output, so a row without its note is none of ours to
believe, and a kill at any instant leaves every line either done or to be asked. Knows rows and notes, not calls.
"""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from ...engine.fault import DamagedJournal, LocalFault
from ...engine.journal import Journal, Reserve, is_intact, read_lines, set_damaged_aside
from ...engine.pairs import Ended
from ...engine.run_folder import MANIFEST, RunFolder, WrongSpecification
from ..refusal import UsageError
from .output import Output
from .place import Place
from .rows import Note, Written, line_of

REPLACED = "replaced.jsonl"
DAMAGED = "damaged.jsonl"
_SET_ASIDE = "with --set-aside-damaged the same command moves such lines away and asks for them again"


class Rows(Journal):
    """Lines in somebody else's shape, which has no room for a checksum: the notes hold it."""

    def append(self, row: bytes) -> None:
        self._pending.append(row + b"\n")


class Noted:
    """The checksums of every line's row, by what its note says it is: a kill between note and row leaves a note alone,
    and the line may end otherwise when it is asked again. Fifteen bytes a line."""

    KINDS = ANSWERED, FAILED, RETIRED = 0, 1, 2

    def __init__(self, last: int) -> None:
        self._sums = [array("I", bytes(4 * (last + 1))) for _ in self.KINDS]
        self._known = [bytearray(last + 1) for _ in self.KINDS]

    def add(self, kind: int, note: Note) -> None:
        if note.row_crc is not None and note.line < len(self._known[kind]):
            self._sums[kind][note.line] = note.row_crc
            self._known[kind][note.line] = True

    def kind_of(self, line: int, row_crc: int) -> int | None:
        """None: no note tells of this row."""
        return next((kind for kind in self.KINDS if self.has(kind, line, row_crc)), None)

    def has(self, kind: int, line: int, row_crc: int) -> bool:
        return bool(self._known[kind][line]) and self._sums[kind][line] == row_crc

    def is_known(self, line: int) -> bool:
        return any(known[line] for known in self._known)

    def forget(self, kind: int, line: int) -> None:
        self._known[kind][line] = False


class Book:
    """The output of one batch, held by this process. Use as a context manager. `tag` begins the id of every row; `last`
    is the number of the input's last line. `set_aside`: what is not what was written is moved away."""

    def __init__(
        self,
        place: Place,
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
            _refuse_what_is_there(place)
        with ExitStack() as opened, _as_fault(place.out):
            self.folder = opened.enter_context(_folder(place, specification, retry=retry, set_aside=set_aside))
            self._outputs = [_held(path, opened) for path in place.files]
            if is_new:
                _refuse_what_is_there(place)  # what another batch wrote meanwhile
            # Before the first row: an output without a manifest beside it is somebody else's.
            self.folder.write_manifest()
            self._files = opened.enter_context(ExitStack())
            self._rows: dict[Path, Rows] = {}
            self._open_rows()
            self._noted, self.spent = self._read_notes()
            self.done, taken_out = self._read_rows(self._noted)
            if taken_out:
                self._files.close()
                self._take_out(self._noted)
                self._open_rows()
            self._opened = opened.pop_all()

    def __enter__(self) -> Book:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    @property
    def already(self) -> int:
        return len(self.done) - self.done.count(0)

    @property
    def fault(self) -> LocalFault | None:
        return self.folder.fault or next((rows.fault for rows in self._rows.values() if rows.fault is not None), None)

    def keep(self, written: Written) -> None:
        """Take a row and its note; `flush` writes them."""
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

    def count(self, *, is_unchanged: bool = False) -> Ended:
        """How the rows on disk ended, as their notes have it; the cost is of all that was ever sent for them.
        `is_unchanged`: nothing was written since they were read."""
        with _as_fault(self.place.out):
            return self._counted(is_unchanged=is_unchanged)

    def _counted(self, *, is_unchanged: bool) -> Ended:
        if not is_unchanged:
            self._noted, self.spent = self._read_notes()
            self.done, _ = self._read_rows(self._noted)
        noted = self._noted
        ended = Ended()
        for kind, note in self._notes():
            # Of several notes of one line one is the row's.
            if note.row_crc is None or note.line > self._last or self.done[note.line] != kind + 1:
                continue
            if noted.has(kind, note.line, note.row_crc):
                noted.forget(kind, note.line)
                count_note(ended, note)
        ended.cost = self.spent
        return ended

    def close_rows(self) -> None:
        self._files.close()

    def put_in_order(self) -> None:
        """Rewrite the output in the input's order, if it is in another; its rows are whole either way."""
        with _as_fault(self.place.out):
            for output in self._outputs:
                output.put_in_order(self._tag, self._last)

    def _open_rows(self) -> None:
        reserve = Reserve(self.folder.folder / ".reserve")
        for path in self.place.files:
            self._rows[path] = rows = Rows(path, reserve)
            self._files.callback(rows.close)

    def _notes(self) -> Iterator[tuple[int, Note]]:
        decode = msgspec.json.Decoder(Note).decode
        for kind, journal in ((Noted.ANSWERED, self.folder.records), (Noted.FAILED, self.folder.failures)):
            try:
                for line in journal.read():
                    yield kind, decode(line)
            except DamagedJournal as error:
                raise DamagedJournal(f"{str(error).partition(':')[0]}: {_SET_ASIDE}") from error
            except (msgspec.MsgspecError, UnicodeError) as error:
                raise DamagedJournal(f"{journal.path} has a line that is no note ({error}): take it out") from error

    def _retired(self) -> Iterator[Note]:
        """Of failures that were asked again."""
        decode = msgspec.json.Decoder(Note).decode
        for path in self.place.retired:
            if self._may_set_aside:
                set_damaged_aside(path, must_be_sealed=True)
            for number, line in enumerate(read_lines(path), 1):
                if not is_intact(line, must_be_sealed=True):
                    raise DamagedJournal(f"{path} line {number} is damaged: {_SET_ASIDE}")
                yield decode(line)

    def _read_notes(self) -> tuple[Noted, float | None]:
        """What is known of every row, and what all calls cost; None: nothing has a price."""
        noted, cost, is_priced = Noted(self._last), 0.0, False
        for kind, note in chain(self._notes(), ((Noted.RETIRED, note) for note in self._retired())):
            noted.add(kind, note)
            if note.cost is not None:
                cost, is_priced = cost + note.cost, True
        return noted, cost if is_priced else None

    def _read_rows(self, noted: Noted) -> tuple[bytearray, int]:
        """Which lines are done, and how many rows are to be taken out."""
        done, taken_out = bytearray(self._last + 1), 0
        for path in self.place.files:
            for _, aside in self._judged(path, noted, done):
                taken_out += aside is not None
        return done, taken_out

    def _judged(self, path: Path, noted: Noted, done: bytearray) -> Iterator[tuple[bytes, str | None]]:
        """Every row, and the file that it is moved to, None: it stays; its line is marked in `done` then, by one more
        than the note's kind."""
        for number, row in enumerate(read_lines(path), 1):
            line, row_crc = line_of(row, self._tag), zlib.crc32(row)
            if line is None or not 0 < line <= self._last:
                yield row, self._damaged(f"{path} line {number} is no row of this batch")
                continue
            kind = noted.kind_of(line, row_crc)
            if kind is None and noted.is_known(line):
                yield row, self._damaged(f"{path} line {number} was changed")
            elif kind in (None, Noted.RETIRED) or done[line]:
                yield row, REPLACED
            else:
                done[line] = kind + 1
                yield row, None

    def _damaged(self, what: str) -> str:
        if not self._may_set_aside:
            raise DamagedJournal(f"{what}: {_SET_ASIDE}")
        return DAMAGED

    def _take_out(self, noted: Noted) -> None:
        """The rows that are asked again: failures of a retry, what a power cut left without its note, and damage."""
        self.done = bytearray(self._last + 1)
        for output in self._outputs:
            output.rewrite(self._kept(self._judged(output.path, noted, self.done)))

    def _kept(self, judged: Iterator[tuple[bytes, str | None]]) -> Iterator[bytes]:
        with ExitStack() as opened:
            moved: dict[str, BinaryIO] = {}
            for row, aside in judged:
                if aside is None:
                    yield row + b"\n"
                    continue
                if aside not in moved:
                    moved[aside] = opened.enter_context((self.folder.folder / aside).open("ab"))
                moved[aside].write(row + b"\n")


def count_note(ended: Ended, note: Note) -> None:
    if note.status == "ok":
        ended.ok += 1
    elif note.status == "refused":
        ended.refused += 1
    else:
        ended.fail(note.status, note.error if isinstance(note.error, str) else "")
    ended.cached += note.cached and note.is_answer
    ended.truncated += note.truncated
    ended.maybe_billed += note.maybe_billed
    if note.usage is not None and not note.cached:
        ended.input_tokens += note.usage.input
        ended.output_tokens += note.usage.output


@contextmanager
def _as_fault(out: Path) -> Iterator[None]:
    """What can't be read or written is told by its name."""
    try:
        yield
    except OSError as error:
        said = f"{error.filename or out} can't be used ({error.strerror}): mend that, or choose another OUT"
        raise LocalFault(said) from error


def _held(path: Path, opened: ExitStack) -> Output:
    output = Output(path)
    opened.callback(output.close)
    return output


def _folder(place: Place, specification: Mapping[str, Any], *, retry: bool, set_aside: bool) -> RunFolder:
    try:
        return RunFolder(place.folder, specification, retry=retry, set_aside=set_aside)
    except WrongSpecification as error:
        told = str(error).partition("(")[2].rpartition(")")[0]
        raise UsageError(
            f"{place.out} is the output of another batch ({told}): choose another OUT, or remove {place.out.name} and "
            f"{place.folder.name} to begin anew"
        ) from error
    except LocalFault as error:
        raise type(error)(str(error).replace("another --out", "another OUT")) from error


def _refuse_what_is_there(place: Place) -> None:
    for path in place.files:
        if path.exists() and not path.is_file():
            raise UsageError(f"{path}: expected a file to write, got something else: stdout is written as `-`")
        if path.exists() and path.stat().st_size > 0:
            raise UsageError(
                f"{path} is there already and was not written by this batch ({place.folder.name} is missing): choose "
                f"another, or remove it"
            )
