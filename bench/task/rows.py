"""The rows of a task: checked, identified and grouped.

Owns what a row may hold, which id it has and which group it belongs to. Knows no file and no prompt.
"""

from __future__ import annotations

import copy
import datetime
import decimal
import hashlib
import json
import math
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from ..evaluation.data.data_rows import RowEntry as RowEntry
from ..evaluation.data.data_rows import TaskError as TaskError
from ..evaluation.data.data_rows import shown as shown

ID, GROUP = "id", "group"
_ID_CHARS_MAX = 200
_HASH_DIGITS = 16
_WHOLE_MAX = 1 << 63
# The rows are held in memory while they are asked.
_CHARS_MAX = 1 << 30


class TaskRow(Struct, frozen=True):
    """One row of a task's data.

    id: unique in the task.
    data: the columns, as the prompt and the scorer get them.
    where: the place of the row in the data, for messages.
    group: the group that the row belongs to; None where the task has no groups.
    order: the letters of the row's options in the order in which they are shown; empty: that of the data.
    """

    id: str
    data: Mapping[str, Any]
    where: str
    group: str | None = None
    order: str = ""

    def value(self, column: str) -> Any:
        """Returns the value of a column. Raises TaskError if the row has no such column."""
        if column not in self.data:
            raise TaskError(f"{self.where}: no column {shown(column)}: it has {', '.join(map(str, self.data))}")
        return self.data[column]

    def copied(self) -> dict[str, Any]:
        """Returns a copy of the columns for a user's function, which may change it."""
        return copy.deepcopy(dict(self.data))

    def as_json(self) -> dict[str, Any]:
        """Returns the columns as a record holds them."""
        return {name: json_value(value, f"{self.where}: column {name}") for name, value in self.data.items()}


def rows_of(entries: Iterable[RowEntry], group: str | None = None, where: str = "the data") -> tuple[TaskRow, ...]:
    """Returns the checked rows in their order. `where` names the data in the message that it has none.

    The id of a row is its column `id`; where the data has no such column, a hash of the row's content, with `-2`, `-3`
    and so on for later rows of the same content. `group` names the column that groups the rows; None: the column
    `group`, where there is one.
    """
    checked = list(_checked(entries))
    if not checked:
        raise TaskError(f"{where} has no rows: expected at least one")
    has_ids = any(ID in data for data, _ in checked)
    column = group if group is not None else next((GROUP for data, _ in checked if GROUP in data), None)
    seen: dict[str, str] = {}
    copies: Counter[str] = Counter()
    rows = []
    for data, where in checked:
        row = TaskRow("", data, where)
        content = row.as_json()
        if has_ids:
            name = _given_id(row.value(ID), where)
            if name in seen:
                raise TaskError(f"{where}: id {shown(name)} stands in {seen[name]} too: each row needs its own")
            seen[name] = where
        else:
            name = _content_hash(content)
            copies[name] += 1
            name = name if copies[name] == 1 else f"{name}-{copies[name]}"
        rows.append(TaskRow(name, data, where, None if column is None else _group_name(row.value(column))))
    return tuple(rows)


def digest_of(rows: Iterable[TaskRow]) -> str:
    """Returns the SHA-256 of the rows' ids, groups and contents, in their order."""
    found = hashlib.sha256()
    for row in rows:
        found.update(canonical([row.id, row.group, row.as_json()]) + b"\n")
    return found.hexdigest()


def json_value(value: Any, where: str) -> Any:
    """Returns a value in a form that JSON can hold: dates as ISO 8601, bytes as their length and hash, NaN as null.
    Raises TaskError for other types."""
    match value:
        case None | bool():
            return value
        case str():
            return _writable(value, where)
        case int():
            return value if -_WHOLE_MAX <= value < _WHOLE_MAX else str(value)
        case float():
            return value if math.isfinite(value) else None
        case Mapping():
            return {_writable(str(name), where): json_value(inner, where) for name, inner in value.items()}
        case list() | tuple():
            return [json_value(inner, where) for inner in value]
        case datetime.date() | datetime.time():
            return value.isoformat()
        case decimal.Decimal():
            return str(value)
        case bytes():
            return f"<{len(value):,} bytes, sha256 {hashlib.sha256(value).hexdigest()[:_HASH_DIGITS]}>"
    # Numbers and arrays of numpy and the like.
    plain = getattr(value, "tolist", None)
    if callable(plain) and type(listed := plain()) is not type(value):
        return json_value(listed, where)
    raise TaskError(f"{where}: a {type(value).__name__} cannot be written as JSON: give texts, numbers or lists")


def is_missing(value: Any) -> bool:
    """Returns whether a value is null or NaN."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def _checked(entries: Iterable[RowEntry]) -> Iterator[tuple[dict[str, Any], str]]:
    size = 0
    for entry in entries:
        data = _data_of(entry)
        size += sum(len(value) for value in data.values() if isinstance(value, str | bytes))
        if size > _CHARS_MAX:
            raise TaskError(
                f"{entry.where}: expected at most {_CHARS_MAX:,} characters in all rows, got more: give --limit"
            )
        yield data, entry.where


def _data_of(entry: RowEntry) -> dict[str, Any]:
    content, where = entry
    if not isinstance(content, Mapping):
        raise TaskError(
            f"{where}: expected a mapping of column names to values, got {shown(content)} (a {type(content).__name__})"
        )
    if not content:
        raise TaskError(f"{where}: expected a row with columns, got an empty one")
    for name in content:
        if not isinstance(name, str):
            raise TaskError(f"{where}: expected a text as the name of a column, got {shown(name)}")
    return dict(content)


def _given_id(value: Any, where: str) -> str:
    value = json_value(value, f"{where}: id")
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(text, str):
        raise TaskError(f"{where}: id: expected a text or a whole number, got {shown(value)}")
    is_plain = text.strip() == text and all(unicodedata.category(sign)[0] != "C" for sign in text)
    if not text or not is_plain or len(text) > _ID_CHARS_MAX:
        raise TaskError(
            f"{where}: id: expected 1 to {_ID_CHARS_MAX} characters without control characters and without space at "
            f"the ends, got {shown(text)}"
        )
    return text


def _group_name(value: Any) -> str:
    return "(none)" if is_missing(value) or str(value).strip() == "" else str(value).strip()


def _writable(text: str, where: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise TaskError(f"{where}: character {error.start} is half of a surrogate pair, which no file holds") from error
    return text


def canonical(content: Any) -> bytes:
    """Returns JSON of which equal contents have the same."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def _content_hash(content: Mapping[str, Any]) -> str:
    return hashlib.sha256(canonical(content)).hexdigest()[:_HASH_DIGITS]
