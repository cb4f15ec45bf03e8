"""Where issues come from: folders of the released shape, the authors' checkout that holds two of them, data set files.

Reads one file at a time; a file that can't be read is a finding and stops nothing. Checks no issue.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from ..dataset_file import DatasetError, contents_of_file, parse, read_text, shown
from .checks import Finding, plain

RELEASED = ("data", "data_new")


class Source(Struct, frozen=True):
    """One issue as it was found: its file, as it is told, and its content, or the finding that stands for it."""

    file: str
    issue: str
    content: Any = None
    findings: tuple[Finding, ...] = ()


def read_places(places: Sequence[Path]) -> Iterator[Source]:
    """Every issue of folders, checkouts and data set files in their order; of two with one id the later counts."""
    for place in places:
        if place.is_dir():
            for folder in folders_of(place):
                yield from _read_folder(folder)
        else:
            yield from _read_file(place)


def folders_of(place: Path) -> list[Path]:
    """The folders of issue files in a place: itself, or those that a checkout holds. Raises DatasetError for none."""
    folders = [folder for name in RELEASED if _files(folder := place / name)] or [place]
    if not _files(folders[0]):
        raise DatasetError(
            f"{place}: expected a folder of issue files, or one that holds {' or '.join(RELEASED)}, came a folder "
            "without any .json file"
        )
    return folders


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.json"))


def _read_folder(folder: Path) -> Iterator[Source]:
    for path in _files(folder):
        name, issue = plain(str(path)), path.stem
        try:
            yield Source(name, issue, parse(read_text(path), ""))
        except DatasetError as error:
            yield Source(name, issue, findings=(Finding("unreadable", _why(error, path), is_fatal=True),))


def _why(error: DatasetError, path: Path) -> str:
    """What was expected and what came, without the file, which the report names beside it."""
    return plain(str(error).removeprefix(str(path)).removeprefix(": "))


def _read_file(path: Path) -> Iterator[Source]:
    contents = contents_of_file(parse(read_text(path), str(path)), str(path))
    for issue, content in contents.items():
        yield Source(plain(f"{path}: issues[{shown(issue)}]"), issue, content)
