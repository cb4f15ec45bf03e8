"""Reads issues from folders in the released format, from the authors' checkout that holds two of them, and from data
set files.

Reads one file at a time; a file that can't be read is a finding and stops nothing. Checks no issue.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from ....engine.runs.data_file import (
    DatasetError,
    NotAFile,
    decode,
    named,
    parse_and_compare,
    read_bytes,
    refusal_of,
    shown,
)
from ..checks import Finding, fatal, plain
from ..dataset_file import contents_of_file

RELEASED = ("data", "data_new")


class CheckoutIssue(Struct, frozen=True):
    """One issue of a checkout: its file's name in reports, and its content, or the findings that say why there is
    none."""

    file: str
    issue: str
    content: Any = None
    findings: tuple[Finding, ...] = ()


def read_places(places: Sequence[Path]) -> Iterator[CheckoutIssue]:
    """Yields every issue of folders, checkouts and data set files in order, also several with one id."""
    for place in places:
        if place.is_dir():
            for folder in folders_of(place):
                yield from _read_folder(folder)
        else:
            yield from _read_file(place)


def folders_of(place: Path) -> list[Path]:
    """Returns the folders of issue files at a path: the path, or those of a checkout. Raises DatasetError for none."""
    folders = [folder for name in RELEASED if _files(folder := place / name)] or [place]
    if not _files(folders[0]):
        raise DatasetError(
            f"{place}: expected a folder of issue files, or one that holds {' or '.join(RELEASED)}, got a folder "
            "without any .json file"
        )
    return folders


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.json"))


def _read_folder(folder: Path) -> Iterator[CheckoutIssue]:
    for path in _files(folder):
        name, issue = plain(str(path)), path.stem
        try:
            data = read_bytes(path)
            content, repeated = parse_and_compare(decode(data, path), "")
        except DatasetError as error:
            yield CheckoutIssue(name, issue, findings=(unread(error, path),))
        else:
            yield CheckoutIssue(
                name, issue, content, (*_marked(data), *(_repeated(named(place)) for place in repeated))
            )


def unread(error: DatasetError, path: Path) -> Finding:
    """Returns the finding for a file that can't be read. It omits the file's name, which stands beside it in the
    report."""
    what = "not a file" if isinstance(error, NotAFile) else "unreadable"
    return fatal(what, str(error).removeprefix(str(path)).removeprefix(": "))


def _marked(data: bytes) -> tuple[Finding, ...]:
    is_marked = data.startswith(codecs.BOM_UTF8)
    return (Finding("byte order mark", "before the text: passed over", is_fault=False),) if is_marked else ()


def _repeated(field: str) -> Finding:
    return fatal("duplicate field", f"{field}: expected once, got more than once")


def _read_file(path: Path) -> Iterator[CheckoutIssue]:
    data = read_bytes(path)
    root, repeated = parse_and_compare(decode(data, path), str(path))
    contents = contents_of_file(root, str(path))
    of_issues: dict[str, list[Finding]] = {}
    for place in repeated:
        match place:
            case ("issues", str(issue), *inside):
                field = named(tuple(inside)) or f"issues[{shown(issue)}]"
                of_issues.setdefault(issue, []).append(_repeated(field))
            case _:
                raise refusal_of(place, str(path))
    findings = _marked(data)
    for issue, content in contents.items():
        where = plain(f"{path}: issues[{shown(issue)}]")
        yield CheckoutIssue(where, issue, content, (*findings, *of_issues.get(issue, ())))
        findings = ()  # findings on the file stand with its first issue only
