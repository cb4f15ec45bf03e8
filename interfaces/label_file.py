"""The file that labels are kept in: a CSV with a row for each sampled answer, filled in by a dialogue or a spreadsheet.

Owns its columns, what makes a cell inert, and the reading of what spreadsheets save. Changes no cell but labels, and
writes over nothing that it has not read. Knows neither how answers are drawn nor what the labels are compared with.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..bench.millstone.review import Answer, Key, Label
from ..engine.fault import LocalFault
from ..engine.run_folder import write_whole
from .output import inert
from .refusal import UsageError

COLUMNS = ("model", "temperature", "id", "issue", "question", "text", "label")
_NEEDED = ("model", "temperature", "id", "label")
_LABELS: Mapping[str, Label | None] = {"": None, "a": "A", "b": "B", "o": "other", "other": "other"}
_DELIMITERS = ",;\t"
# What begins a formula, in spreadsheets of any language.
_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
# A cell of Excel holds 32,767 UTF-16 units, two for some signs; what is longer runs over into other rows.
CELL_MAX = 16_000


@dataclass
class _Row:
    """One row, and where it began: its line in the file, its number in a spreadsheet."""

    cells: list[str]
    line: int
    number: int

    def __str__(self) -> str:
        return f"line {self.line}" if self.line == self.number else f"line {self.line} (row {self.number})"


class LabelFile:
    """The rows in their order: `keys` says which answer each is of."""

    def __init__(self, path: Path, header: list[str], rows: list[_Row], delimiter: str) -> None:
        self.path = path
        self._header = header
        self._rows = rows
        self._delimiter = delimiter
        self._places = {name.strip().casefold(): place for place, name in enumerate(header)}
        self._seen = _state(path)
        self.keys = [self._key(row) for row in rows]
        self._refuse_twins()
        self._labels = [self._label(row) for row in rows]

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"<LabelFile {self.path} [Rows: {len(self)}, Labelled: {self.labelled}]>"

    @property
    def labelled(self) -> int:
        return sum(label is not None for label in self._labels)

    def label(self, at: int) -> Label | None:
        return self._labels[at]

    def where(self, at: int) -> str:
        return f"{self.path} {self._rows[at]}"

    def set_label(self, at: int, label: Label | None) -> None:
        """Written before this returns: the whole file at once, so that a kill leaves the old one or the new one."""
        if _state(self.path) != self._seen:
            raise LocalFault(
                f"{self.path} was changed by another program meanwhile: the last label is not saved; start again"
            )
        self._labels[at] = label
        self._rows[at].cells[self._places["label"]] = label or ""
        self._write()

    def _write(self) -> None:
        written = io.StringIO()
        writer = csv.writer(written, delimiter=self._delimiter, lineterminator="\n")
        writer.writerow(self._header)
        writer.writerows(row.cells for row in self._rows)
        try:
            write_whole(self.path, written.getvalue().encode())
        except OSError as error:
            raise LocalFault(
                f"{self.path} can't be written ({error.strerror}): make room there, or name another file with --csv"
            ) from error
        self._seen = _state(self.path)

    def _cell(self, row: _Row, name: str) -> str:
        text = row.cells[self._places[name]].strip()
        return text[1:] if text.startswith("'") and text[1:].startswith(_FORMULA) else text

    def _key(self, row: _Row) -> Key:
        model, temperature, name = (self._cell(row, column) for column in ("model", "temperature", "id"))
        try:
            # Some spreadsheets write a comma for the point.
            return Key(model, float(temperature.replace(",", ".")) if temperature else None, name)
        except ValueError:
            raise UsageError(
                f"{self.path} {row}: temperature: expected a number or nothing, got {_short(temperature)}: a "
                f"spreadsheet may have changed it"
            ) from None

    def _label(self, row: _Row) -> Label | None:
        said = self._cell(row, "label")
        if said.casefold() not in _LABELS:
            raise UsageError(
                f"{self.path} {row}: label: expected A, B, O (other) or nothing (not labelled), got {_short(said)}"
            )
        return _LABELS[said.casefold()]

    def _refuse_twins(self) -> None:
        first: dict[Key, _Row] = {}
        for key, row in zip(self.keys, self._rows, strict=True):
            if key in first:
                raise UsageError(f"{self.path} {row}: id {key} already stands in {first[key]}: keep one of both rows")
            first[key] = row


def begin(path: Path, answers: Sequence[Answer], questions: Mapping[tuple[str, int], str]) -> LabelFile:
    """Write a new file with nothing labelled."""
    if path.exists():
        raise FileExistsError(path)
    rows = []
    for number, answer in enumerate(answers, 2):
        question = questions.get((answer.issue, answer.template), "")
        temperature = "" if answer.temperature is None else repr(answer.temperature)
        cells = (answer.model, temperature, answer.id, answer.issue, question, answer.text or "", "")
        rows.append(_Row([inert_cell(cell) for cell in cells], number, number))
    file = LabelFile(path, list(COLUMNS), rows, ",")
    file._write()
    return file


def read(path: Path) -> LabelFile:
    """What a dialogue, a person or a spreadsheet has saved. Whatever is wrong in it is told with its line."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: expected a readable file of labels, got: {error.strerror}") from error
    text = _decoded(data)
    if text is None:
        raise UsageError(f"{path}: expected a CSV file of labels, got something else: save it as CSV again")
    header, delimiter = _header_of(path, text)
    rows = []
    for row in _rows(path, text, delimiter):
        if row.number == 1 or not any(cell.strip() for cell in row.cells):
            continue
        extra = row.cells[len(header) :]
        if len(row.cells) < len(header) or any(cell.strip() for cell in extra):
            raise UsageError(f"{path} {row}: expected {len(header)} cells, got {len(row.cells)}: save it as CSV again")
        rows.append(_Row(row.cells[: len(header)], row.line, row.number))
    if not rows:
        raise UsageError(f"{path}: expected rows of answers, got a header alone: name another file with --csv")
    return LabelFile(path, header, rows, delimiter)


def inert_cell(text: str) -> str:
    """The text with nothing in it that a spreadsheet would compute or a terminal obey, and no longer than a cell."""
    lines = "\n".join(inert(line.expandtabs(4)) for line in text.splitlines())
    if len(lines) > CELL_MAX:
        lines = f"{lines[:CELL_MAX]}\n[{len(lines) - CELL_MAX:,} more characters: see records.jsonl]"
    return f"'{lines}" if text.startswith(("\t", "\r")) or lines.lstrip().startswith(_FORMULA) else lines


def _decoded(data: bytes) -> str | None:
    """Text in the encodings that spreadsheets save in; None is no text."""
    try:
        if data.startswith((b"\xff\xfe", b"\xfe\xff")):
            return data.decode("utf-16")
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        # Western Windows: only texts can be garbled by this where it is wrong, and they are not read back.
        return None if b"\0" in data else data.decode("cp1252", "replace")


def _header_of(path: Path, text: str) -> tuple[list[str], str]:
    """The columns, and the delimiter under which they are those that are needed."""
    for delimiter in _DELIMITERS:
        header = next(_rows(path, text.partition("\n")[0], delimiter), _Row([], 1, 1)).cells
        names = [name.strip().casefold() for name in header]
        if all(name in names for name in _NEEDED):
            for name in _NEEDED:
                if names.count(name) > 1:
                    raise UsageError(f"{path}: expected one column {name}, got {names.count(name)}")
            return header, delimiter
    first = text.partition("\n")[0].strip()
    raise UsageError(
        f"{path}: expected the columns {', '.join(_NEEDED)} in its first line, got {_short(first) if first else 'none'}"
    )


def _rows(path: Path, text: str, delimiter: str) -> Iterator[_Row]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    number, line = 0, 1
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise UsageError(f"{path} line {line}: expected CSV, got what is none ({error}): save it again") from error
        number += 1
        yield _Row(cells, line, number)
        line = reader.line_num + 1


def _state(path: Path) -> tuple[int, int, int] | None:
    """Changes whenever the file does."""
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_ino, state.st_mtime_ns, state.st_size


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:59]}…")
