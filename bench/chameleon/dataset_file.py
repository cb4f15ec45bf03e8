"""Files of conversations: one object, a list, JSON lines, a CSV with a conversation for each row, or a folder of these.

Owns the files' formats and the positions of their entries. `dataset` decides what is well-formed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ...engine.runs.data_file import DatasetError, kind_of, parse, read_text
from ..evaluation.data.data_rows import entries_of_file

SUFFIXES = (".json", ".jsonl", ".ndjson", ".csv", ".tsv")
# Columns that are no questions, by their names in the header.
_FIELDS = ("id", "topic", "domain", "initial_belief", "debate_strength")
# Columns of questions; the later ones may be called pushbacks.
_QUESTION = re.compile(r"question|(?:question|pushback|q)_?\d+")


class FileEntry(NamedTuple):
    """A conversation as it is in a file, unchecked. `where` is its position for messages; `name` is the file's if it
    holds nothing else, else empty."""

    content: Any
    where: str
    name: str = ""


def entries_of(path: Path) -> Iterator[FileEntry]:
    """Yields the conversations of a file, or of a folder's files in order of their names."""
    if not path.is_dir():
        yield from _entries_of_file(path)
        return
    files = sorted(file for file in path.iterdir() if file.suffix.lower() in SUFFIXES)
    if not files:
        raise DatasetError(f"{path}: expected a folder with {', '.join(SUFFIXES)} files, got one without any")
    for file in files:
        yield from _entries_of_file(file)


def _entries_of_file(path: Path) -> Iterator[FileEntry]:
    suffix = path.suffix.lower()
    if suffix in (".csv", ".tsv"):
        yield from _rows(path)
    elif suffix in (".jsonl", ".ndjson") or (suffix == ".json" and _is_lines(read_text(path))):
        yield from (FileEntry(*entry) for entry in entries_of_file(path))
    else:
        yield from _of_json(parse(read_text(path), str(path)), path)


def _of_json(root: Any, path: Path) -> Iterator[FileEntry]:
    if isinstance(root, list):
        for at, content in enumerate(root):
            yield FileEntry(content, f"{path}: [{at}]")
    elif isinstance(root, dict) and "questions" not in root and isinstance(root.get("conversations"), list):
        for at, content in enumerate(root["conversations"]):
            yield FileEntry(content, f"{path}: conversations[{at}]")
    elif isinstance(root, dict):
        yield FileEntry(root, str(path), path.stem)
    else:
        raise DatasetError(f"{path}: expected a conversation or a list of them, got {kind_of(root)}")


def _is_lines(text: str) -> bool:
    """Returns whether a file is JSON lines under another name: an object begins its second line too."""
    first, _, rest = text.lstrip().partition("\n")
    return first.startswith("{") and rest.lstrip().startswith("{")


def _rows(path: Path) -> Iterator[FileEntry]:
    """Yields a conversation for each row: its first question, then the following turns. Its topic is its first question
    and its domain the file, unless columns with these names exist."""
    for entry in entries_of_file(path):
        cells = {name.casefold().replace(" ", "_"): cell for name, cell in entry.content.items()}
        questions = [name for name in cells if name not in _FIELDS]
        if not questions or not all(map(_QUESTION.fullmatch, questions)):
            raise DatasetError(
                f"{path} line 1: expected a conversation a row, in the columns question_1, question_2, … and at most "
                f"{', '.join(_FIELDS)}, got the columns {', '.join(entry.content)[:200]}"
            )
        fields = {name: cells[name] for name in _FIELDS if cells.get(name, "").strip()}
        content = {"domain": path.stem, **fields, "questions": _asked(map(cells.__getitem__, questions), entry.where)}
        yield FileEntry({"topic": content["questions"][0], **content}, entry.where)


def _asked(cells: Iterable[str], where: str) -> list[str]:
    """Returns a row's questions, without the empty cells behind them."""
    questions = list(cells)
    while questions and not questions[-1].strip():
        questions.pop()
    if not questions:
        raise DatasetError(f"{where}: expected at least one question, got none")
    for at, question in enumerate(questions):
        if not question.strip():
            raise DatasetError(f"{where}: turn {at + 1}: expected a question, got an empty cell before later ones")
    return questions
