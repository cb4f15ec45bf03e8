"""Reads issues from tables of one row an issue: CSV, TSV, JSON lines, a JSON list, Parquet, or a data set saved by the
library of Hugging Face.

Owns the columns and the refusal of a table that lacks them. Checks no argument, citation or label.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import structs

from ....engine.runs.data_file import DatasetError, parse
from ...evaluation.data.data_rows import SUFFIXES, RowEntry, entries_of_file, suffix_of
from ...evaluation.data.hugging_face import entries_of_folder
from ..checks import Finding, fatal, plain
from .checkout import CheckoutIssue, read_places
from .templates import fill

PHRASES = ("issue_phrase", "pro_phrase", "con_phrase")
_COLUMNS = ("id", "question", "pros", "cons", "sources", "paraphrases", *PHRASES)
_NUMBERED = {"pro": "pros", "con": "cons", "source": "sources"}
_NUMBER = re.compile(r"(pro|con|source)_([1-9][0-9]*)")
_SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".ods", ".numbers")
_ID_CHARS_MAX = 80
_EXAMPLE = (
    'for example the JSON line {"question": "Should towns ban cars?", "pros": ["Air gets cleaner [1]."], "cons": '
    '["Shops lose trade."], "sources": {"[1]": "City report"}}, or a CSV file with the columns '
    "question,pro_1,pro_2,con_1,con_2,source_1,issue_phrase,pro_phrase,con_phrase"
)


def read_issues(places: Sequence[Path]) -> Iterator[CheckoutIssue]:
    """Yields every issue of tables, folders, checkouts and data set files in order, also several with one id."""
    for place in places:
        yield from read_table(place) if is_table(place) else read_places((place,))


def is_table(place: Path) -> bool:
    """Returns whether a path is read as a table. A .json file is one if it holds a list."""
    if place.is_dir():
        return bool(_saved_folders(place))
    suffix = suffix_of(place)
    if suffix in _SPREADSHEETS:
        raise DatasetError(f"{place}: a spreadsheet: save it as CSV (UTF-8), a row an issue; {_EXAMPLE}")
    if suffix == ".json":
        with place.open("rb") as file:
            return file.read(64).removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"[")
    return suffix in SUFFIXES


def read_table(place: Path) -> Iterator[CheckoutIssue]:
    """Yields the issues of a table in the order of its rows. Raises DatasetError for a table of another shape."""
    entries = list(_entries(place))
    if not entries:
        raise DatasetError(f"{place}: expected a row an issue, got no row; {_EXAMPLE}")
    for entry in entries:
        if not isinstance(entry.content, Mapping):
            raise DatasetError(f"{entry.where}: expected an object, an issue each; {_EXAMPLE}")
    columns = tuple(dict.fromkeys(str(name) for entry in entries for name in entry.content))
    _check_columns(columns, place)
    others = [name for name in columns if name not in _COLUMNS and not _NUMBER.fullmatch(name)]
    first = (Finding("other column", plain(f"not read: {', '.join(others)}"), is_fault=False),) if others else ()
    rows_of: dict[str, str] = {}
    for entry in entries:
        issue = _issue(entry)
        if issue.issue in rows_of:
            what = f"{issue.issue} stands at {rows_of[issue.issue]} already: give each row its own in a column id"
            issue = structs.replace(issue, findings=(*issue.findings, fatal("duplicate id", what)))
        rows_of.setdefault(issue.issue, entry.where)
        yield structs.replace(issue, findings=(*first, *issue.findings))
        first = ()


def _saved_folders(place: Path) -> list[Path]:
    if (place / "state.json").is_file():
        return [place]
    if (place / "dataset_dict.json").is_file():
        return sorted(path.parent for path in place.glob("*/state.json"))
    return []


def _entries(place: Path) -> Iterable[RowEntry]:
    if not place.is_dir():
        return entries_of_file(place)
    folders = _saved_folders(place)
    if len(folders) > 1:
        names = ", ".join(folder.name for folder in folders)
        raise DatasetError(f"{place}: has the splits {names}: give the folder of one, as {folders[0]}")
    return entries_of_folder(folders[0])


def _check_columns(columns: Sequence[str], place: Path) -> None:
    """Raises DatasetError if a column is missing, or if an unknown one is probably a misspelled one."""
    named = {_NUMBERED[match[1]] if (match := _NUMBER.fullmatch(name)) else name for name in columns}
    missing = [name for name in ("question", "pros", "cons") if name not in named]
    near = [
        f"{name} is probably {close[0]}"
        for name in columns
        if name not in _COLUMNS
        and not _NUMBER.fullmatch(name)
        and (close := difflib.get_close_matches(name.strip().casefold(), set(_COLUMNS) - named, n=1, cutoff=0.75))
    ]
    if missing or near:
        lack = f"lacks {', '.join(missing)}" if missing else "has a misspelled column"
        held = ", ".join(columns[:12]) + (f" and {len(columns) - 12} more" if len(columns) > 12 else "")
        hint = f" ({'; '.join(near)})" if near else ""
        raise DatasetError(plain(f"{place}: the table holds {held}; it {lack}{hint}; {_EXAMPLE}"))


def _issue(entry: RowEntry) -> CheckoutIssue:
    row = {str(name): value for name, value in entry.content.items() if not _is_empty(value)}
    content: dict[str, Any] = {"question": row.get("question", "")}
    findings: list[Finding] = []
    for numbered, name in _NUMBERED.items():
        content[name] = _listed(row, name, numbered, findings)
    content["sources"] = _sources(content["sources"])
    content["paraphrases"] = _paraphrases(row, findings)
    issue = str(row["id"]).strip() if "id" in row else _slug(content["question"])
    return CheckoutIssue(plain(entry.where), issue, content, tuple(findings))


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _listed(row: Mapping[str, Any], name: str, numbered: str, findings: list[Finding]) -> Any:
    """Returns the column's value, a cell's JSON parsed, or the numbered columns' values as a list."""
    numbers = sorted(
        (int(match[2]), column) for column in row if (match := _NUMBER.fullmatch(column)) and match[1] == numbered
    )
    if name in row and numbers:
        findings.append(fatal("two forms", f"{name} and {numbers[0][1]}: expected one of them"))
    if name not in row:
        # A source's number is its column's, also where a lower one is empty.
        return {f"[{n}]": row[column] for n, column in numbers} if name == "sources" else [row[c] for _, c in numbers]
    return _json_cell(row[name], name, numbered, findings)


def _json_cell(value: Any, name: str, numbered: str, findings: list[Finding]) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return parse(value, name)
    except DatasetError:
        other = f", or columns {numbered}_1, {numbered}_2" if numbered else ""
        findings.append(fatal("no JSON", f'{name}: expected JSON in the cell, as ["first", "second"]{other}'))
        return []


def _sources(value: Any) -> Any:
    """Returns sources by their marks, as "[1]"; a list is numbered from 1. Arrow fills absent fields with None."""
    if isinstance(value, list):
        return {f"[{n}]": source for n, source in enumerate(value, 1)}
    if isinstance(value, Mapping):
        return {str(mark): source for mark, source in value.items() if source is not None}
    return value


def _paraphrases(row: Mapping[str, Any], findings: list[Finding]) -> Any:
    names = [name for name in PHRASES if name in row]
    if "paraphrases" in row:
        if names:
            findings.append(fatal("two forms", f"paraphrases and {names[0]}: expected one of them"))
        return _json_cell(row["paraphrases"], "paraphrases", "", findings)
    if not names:
        detail = f"none: {', '.join(PHRASES)} fill the six templates without a model"
        findings.append(Finding("phrases", detail, is_fault=False))
        return []
    wrong = [name for name in PHRASES if not isinstance(row.get(name), str)]
    if wrong:
        findings.append(fatal("phrases", f"expected a text in each of {', '.join(PHRASES)}, none in {wrong[0]}"))
        return []
    filled = fill(*(str(row[name]).strip() for name in PHRASES))
    return [{"question": one.question, "orientation": one.orientation} for one in filled]


def _slug(question: Any) -> str:
    """Returns the question's words in lower case, joined by hyphens, at most 80 characters of whole words."""
    words = re.findall(r"[^\W_]+", str(question).casefold().replace("'", "").replace("’", ""))
    slug = "-".join(words)
    return slug if len(slug) <= _ID_CHARS_MAX else slug[: _ID_CHARS_MAX + 1].rpartition("-")[0] or slug[:_ID_CHARS_MAX]
