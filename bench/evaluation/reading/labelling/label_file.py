"""The CSV file of one person's labels, with a row for each sampled answer, to be filled in in a spreadsheet.

Defines its columns, neutralises cells, and reads what spreadsheets save. Overwrites nothing. Does not draw the
sample or compare labels.
"""

from __future__ import annotations

import csv
import errno
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from .....configuration.errors import UsageError
from .....engine.fault import LocalFault
from .....engine.folder_file import write_whole
from .....engine.pairs import Pair
from .....engine.runs.data_file import read_bytes
from .....report.text import inert
from ...door.kept_answer import Key, Verdict, text_hash
from ...door.label import Label, choices_of, explained, history_text, listed
from .sample import SampleEntry

_NEEDED = ("model", "temperature", "id", "label")
_DELIMITERS = ",;\t"
# The characters that begin a formula, in spreadsheets of any language.
_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
# A cell of Excel holds 32,767 UTF-16 units, up to two for a character; longer texts spill into other rows.
CELL_MAX = 16_000
# What to do first about an error of writing.
_MENDED = {
    errno.ENOENT: "make its folder first, or ",
    errno.ENOSPC: "make room there, or ",
    errno.EDQUOT: "make room there, or ",
}


@dataclass
class _LabelRow:
    """A row with its first line in the file and its row number in a spreadsheet, both from 1."""

    cells: list[str]
    line: int
    number: int

    def __str__(self) -> str:
        return f"line {self.line}" if self.line == self.number else f"line {self.line} (row {self.number})"


class LabelSheet:
    """The rows and columns of a label file, without the header numbered from 0. `keys` has the answer of each row."""

    def __init__(self, path: Path, header: list[str], rows: list[_LabelRow]) -> None:
        self.path = path
        self._rows = rows
        self._places = {name.strip().casefold(): place for place, name in enumerate(header)}
        self.keys = [self._key(at) for at in range(len(rows))]
        self._check_keys_differ()

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"<LabelSheet {self.path} [Rows: {len(self)}]>"

    def where(self, at: int) -> str:
        return f"{self.path} {self._rows[at]}"

    def cell(self, at: int, name: str) -> str:
        """Returns the text of a column in row `at`, from 0; empty: there is none, or the file has no such column."""
        place = self._places.get(name)
        text = "" if place is None else self._rows[at].cells[place].strip()
        return text[1:] if text.startswith("'") and text[1:].startswith(_FORMULA) else text

    def is_of_text(self, at: int, label: Label) -> bool:
        """Returns whether row `at`, from 0, is about this label's text; also if the file doesn't say which text it
        shows."""
        return self.cell(at, "text_sha256") in ("", _short_hash(label))

    def _key(self, at: int) -> Key:
        temperature = self.cell(at, "temperature")
        try:
            # Some spreadsheets write a comma for the point.
            sent = float(temperature.replace(",", ".")) if temperature else None
        except ValueError:
            raise UsageError(
                f"{self.where(at)}: temperature: expected a number or nothing, got {_short(temperature)}: a "
                f"spreadsheet may have changed it"
            ) from None
        return Key(Pair(self.cell(at, "model"), sent, self.cell(at, "effort") or None), self.cell(at, "id"))

    def _check_keys_differ(self) -> None:
        first: dict[Key, int] = {}
        for at, key in enumerate(self.keys):
            if first.setdefault(key, at) != at:
                before = self._rows[first[key]]
                raise UsageError(f"{self.where(at)}: id {key} already stands in {before}: keep one of both rows")


def labels_in(sheet: LabelSheet, labels: Sequence[Label]) -> list[Verdict | None]:
    """Returns the label of each row; None: not labelled, or given to a text that is no longer the answer's. `labels`
    gives each row's choices. Raises UsageError for a cell that is none of them."""
    marks = [_read(sheet, at, label) for at, label in enumerate(labels)]
    return [
        one if sheet.is_of_text(at, label) else None for at, (one, label) in enumerate(zip(marks, labels, strict=True))
    ]


def changed_in(sheet: LabelSheet, labels: Sequence[Label]) -> int:
    """Returns how many labelled rows show a text that is no longer the answer's."""
    return sum(bool(sheet.cell(at, "label")) and not sheet.is_of_text(at, label) for at, label in enumerate(labels))


def _read(sheet: LabelSheet, at: int, label: Label) -> Verdict | None:
    cell = sheet.cell(at, "label")
    if not cell:
        return None
    for choice in label.choices:
        if cell.casefold() in (choice.letter.casefold(), choice.name.casefold()):
            return Verdict(choice.name, confidence=_certainty(sheet, at, label))
    raise UsageError(
        f"{sheet.where(at)}: label: expected {listed(label.choices)} or nothing (not labelled), got {_short(cell)}"
    )


def _certainty(sheet: LabelSheet, at: int, label: Label) -> float | None:
    cell = sheet.cell(at, "certainty")
    if not cell or not label.certainties:
        return None
    for step in label.certainties:
        if cell.casefold() in (step.name.casefold(), f"{step.value:g}", f"{step.value:g}".replace(".", ",")):
            return step.value
    steps = ", ".join(f"{step.value:g} ({step.name})" for step in label.certainties)
    raise UsageError(f"{sheet.where(at)}: certainty: expected {steps} or nothing, got {_short(cell)}")


def begin(path: Path, sample: Sequence[SampleEntry], labels: Mapping[Key, Verdict] = MappingProxyType({})) -> None:
    """Writes a new file with the labels that are given so far. Raises FileExistsError if the file exists."""
    if path.exists():
        raise FileExistsError(path)
    about = list(dict.fromkeys(name for _, label in sample for name in label.about))
    rows = [_cells(entry, about, labels.get(entry.key)) for entry in sample]
    # What most samples have not gets no column.
    is_shown = {
        "effort": any(row["effort"] for row in rows),
        "history": any(row["history"] for row in rows),
        "certainty": any(label.certainties for _, label in sample),
    }
    columns = [name for name in rows[0] if is_shown.get(name, True)]
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(map(inert_cell, columns))
    writer.writerows([inert_cell(row[name]) for name in columns] for row in rows)
    try:
        write_whole(path, written.getvalue().encode())
    except OSError as error:
        first = _MENDED.get(error.errno or 0, "")
        raise LocalFault(f"{path} can't be written ({error.strerror}): {first}name another file with --csv") from error


def _cells(entry: SampleEntry, about: Sequence[str], verdict: Verdict | None) -> dict[str, str]:
    """Returns the row of an answer, by column."""
    (pair, name), label = entry
    certainty = None if verdict is None else verdict.confidence
    return {
        "model": pair.model,
        "temperature": "" if pair.temperature is None else repr(pair.temperature),
        "id": name,
        "text_sha256": _short_hash(label),
        "effort": pair.effort or "",
        **{each: label.about.get(each, "") for each in about},
        "history": history_text(label.history),
        "question": label.question,
        "text": label.text,
        "label": "" if verdict is None else verdict.label or "",
        "certainty": "" if certainty is None else f"{certainty:g}",
    }


def read(path: Path) -> LabelSheet:
    """Reads a file that our dialogue, a person or a spreadsheet saved. Raises UsageError, which names the line."""
    text = _decoded(read_bytes(path))
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
        rows.append(_LabelRow(row.cells[: len(header)], row.line, row.number))
    if not rows:
        raise UsageError(f"{path}: expected rows of answers, got a header alone: name another file with --csv")
    return LabelSheet(path, header, rows)


def fill_in(sample: Sequence[SampleEntry]) -> str:
    """Returns what a person does with a sheet."""
    choices = explained(choices_of(label for _, label in sample))
    words = f"fill in `label` with {choices}, leave blank what is not labelled"
    steps = {step.value: step.name for _, label in sample for step in label.certainties}
    if not steps:
        return words
    return f"{words}; `certainty` with {', '.join(f'{value:g} ({name})' for value, name in steps.items())}, or nothing"


def inert_cell(text: str) -> str:
    """Returns the text without anything that a spreadsheet would compute or a terminal obey, cut to `CELL_MAX`
    characters."""
    lines = "\n".join(inert(line.expandtabs(4)) for line in text.splitlines())
    if len(lines) > CELL_MAX:
        lines = f"{lines[:CELL_MAX]}\n[{len(lines) - CELL_MAX:,} more characters: see records.jsonl]"
    return f"'{lines}" if text.startswith(("\t", "\r")) or lines.lstrip().startswith(_FORMULA) else lines


def _decoded(data: bytes) -> str | None:
    """Returns the text of bytes in one of the encodings that spreadsheets save; None if they are no text."""
    try:
        if data.startswith((b"\xff\xfe", b"\xfe\xff")):
            return data.decode("utf-16")
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        # The encoding of Western Windows. If it is wrong, only texts are garbled, and these are not read back.
        return None if b"\0" in data else data.decode("cp1252", "replace")


def _header_of(path: Path, text: str) -> tuple[list[str], str]:
    """Returns the columns, and the delimiter under which all required ones are found."""
    for delimiter in _DELIMITERS:
        header = next(_rows(path, text.partition("\n")[0], delimiter), _LabelRow([], 1, 1)).cells
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


def _rows(path: Path, text: str, delimiter: str) -> Iterator[_LabelRow]:
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
        yield _LabelRow(cells, line, number)
        line = reader.line_num + 1


def _short_hash(label: Label) -> str:
    """Returns the beginning of the hash of an answer's text; a spreadsheet takes it for no number."""
    return f"sha256:{text_hash(label.text)[:16]}"


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:59]}…")
