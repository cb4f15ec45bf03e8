"""Reads data files as JSON and describes what is wrong in them.

Bounds a file's size and opens regular files only. Which contents are well-formed is for the benchmark to decide.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from ..exit_codes import WRONG_USAGE
from ..folder_file import NotRegular, open_regular

BYTES_MAX = 64 << 20  # a hundred times the largest data set ever published

Place = tuple[str | int, ...]
"""The names and numbers (from 0) that lead to a field."""


class DatasetError(ValueError):
    """Raised for a data set, or a selection from it, that isn't usable. The message names the file and the field, what
    was expected and what was found."""

    exit_code = WRONG_USAGE


class NotAFile(DatasetError):
    """Raised for a pipe, a socket, a device or a folder where a file was expected."""


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Opens a file that a person names, which may be a link. Raises DatasetError if it can't be read, or is not a
    regular file: a pipe that nobody writes to would block the program for ever."""
    try:
        with os.fdopen(open_regular(path, through_links=True), "rb") as file:
            yield file
    except NotRegular as error:
        raise NotAFile(f"{path}: expected a file, got {error.kind}") from error
    except OSError as error:
        raise DatasetError(f"{path}: expected a readable file or folder, got: {error.strerror or error}") from error


def read_bytes(path: Path, most: int = BYTES_MAX) -> bytes:
    """Returns a file's content. Raises DatasetError as `opened` does, or if it has more than `most` bytes."""
    with opened(path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise DatasetError(f"{path}: expected a file of at most {most >> 20} MiB, got a larger one")
    return data


def read_text(path: Path) -> str:
    return decode(read_bytes(path), path)


def decode(data: bytes, path: Path, at: int = 0) -> str:
    """Returns UTF-8 bytes, which begin at a byte of a file, as text, without the byte order mark of some editors.
    Raises DatasetError for other bytes."""
    try:
        return data.decode("utf-8").removeprefix("" if at else "\ufeff")
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise DatasetError(f"{path}: expected UTF-8, got byte 0x{byte:02x} at offset {at + error.start}") from error


def parse(text: str, where: str) -> Any:
    """Returns the content of a JSON text. Raises DatasetError if it is invalid or repeats a field within an object."""
    root, repeated = parse_and_compare(text, where)
    if repeated:
        raise refusal_of(repeated[0], where)
    return root


def refusal_of(repeated: Place, where: str) -> DatasetError:
    return DatasetError(f"{where}: {named(repeated)}: expected once, got more than once")


def parse_and_compare(text: str, where: str) -> tuple[Any, tuple[Place, ...]]:
    """Returns the content of a JSON text (of repeated fields the last counts), and the places of repeated fields."""
    objects: list[tuple[dict[str, Any], list[str]]] = []

    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) < len(pairs):
            objects.append((made, [name for name, count in Counter(name for name, _ in pairs).items() if count > 1]))
        return made

    try:
        root = json.loads(text, object_pairs_hook=build)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}"
        raise DatasetError(f"{where}: expected JSON, got something else at {place}: {error.msg}") from error
    except RecursionError as error:
        raise DatasetError(f"{where}: expected data, got JSON nested too deeply to read") from error
    except ValueError as error:  # a whole number of thousands of digits
        raise DatasetError(f"{where}: expected data, got a number too long to read") from error
    return root, _places(root, objects) if objects else ()


def _places(root: Any, objects: list[tuple[dict[str, Any], list[str]]]) -> tuple[Place, ...]:
    # `objects` keeps those alive that were replaced by a later field, so that no id stands for two.
    repeated = {id(made): names for made, names in objects}
    places: list[Place] = []
    waiting: list[tuple[Place, Any]] = [((), root)]
    for place, value in waiting:  # it grows meanwhile
        if isinstance(value, dict):
            places += [(*place, name) for name in repeated.get(id(value), ())]
            waiting += [((*place, name), inner) for name, inner in value.items()]
        elif isinstance(value, list):
            waiting += [((*place, at), inner) for at, inner in enumerate(value)]
    return tuple(places)


def csv_rows(
    text: str | Iterable[str], error_at: Callable[[int, csv.Error], DatasetError], delimiter: str = ","
) -> Iterator[tuple[int, list[str]]]:
    """Yields the rows of a CSV text, or of its lines, that have any text, each with the number of its first line.
    `error_at` makes the error for a line that is no row."""
    lines = [text] if isinstance(text, str) else text
    parts = (part for line in lines for part in io.StringIO(line, newline=""))
    reader = csv.reader(parts, delimiter=delimiter, strict=True)
    while True:
        line = reader.line_num + 1
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise error_at(line, error) from error
        if row is None:
            return
        if any(cell.strip() for cell in row):
            yield line, row


def named(place: Place) -> str:
    """Returns a place as messages write it: paraphrases[2].orientation, sources["[1]"]. Numbers count from 0."""
    text = ""
    for step in place:
        if isinstance(step, str) and step.isidentifier():
            text += f".{step}" if text else step
        else:
            text += f"[{shown(step)}]"
    return text


def field(content: Mapping[str, Any], name: str, kind: type, where: str) -> Any:
    expected = _KINDS[kind]
    if name not in content:
        raise DatasetError(f"{where}: {name}: expected {expected}, got nothing: the field is missing")
    if not isinstance(content[name], kind):
        raise DatasetError(f"{where}: {name}: expected {expected}, got {kind_of(content[name])}")
    return content[name]


def text_of(value: Any, where: str, *, may_be_empty: bool = False, most: int | None = None) -> str:
    """Returns the value, if it is a text that can be sent and written. Raises DatasetError for any other value, for
    white space alone, for more than `most` characters and for a lone surrogate."""
    if not isinstance(value, str):
        raise DatasetError(f"{where}: expected a text, got {kind_of(value)}")
    if not (may_be_empty or value.strip()):
        raise DatasetError(f"{where}: expected a text, got an empty one")
    if most is not None and len(value) > most:
        raise DatasetError(f"{where}: expected at most {most:,} characters, got {len(value):,}")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise DatasetError(
            f"{where}: expected a text, got one with a lone surrogate at character {error.start}"
        ) from error
    return value


_KINDS: Mapping[type, str] = {
    dict: "an object",
    list: "a list",
    str: "a text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    type(None): "null",
}


def kind_of(value: Any) -> str:
    return _KINDS[type(value)]


def shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:59]}…"
