"""A TOML or YAML file that a person wrote: its values, and the line of each key.

Owns the form of an error: `FILE: line N: [table] key: expected …, got …`. Knows no key by name.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from . import values
from .errors import UsageError, nearest
from .values import ValueKind

_T = TypeVar("_T")
Keys = tuple[str | int, ...]

_TOML_TABLE = re.compile(r"\s*(\[\[?)(.+?)\]\]?\s*(?:#.*)?")
_TOML_KEY = re.compile(r"\s*((?:\"[^\"]*\"|'[^']*'|[\w-]+)(?:\s*\.\s*(?:\"[^\"]*\"|'[^']*'|[\w-]+))*)\s*=")
_BARE = re.compile(r"[\w-]+")
_AT_LINE = re.compile(r"(.*) \(at line (\d+), column (\d+)\)")


class Document:
    """One TOML or YAML file. All its values are read through `table`, so that no key is overlooked."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            # Editors on Windows begin a file with a byte order mark.
            text = path.read_bytes().decode("utf-8-sig")
        except OSError as error:
            raise UsageError(f"{path}: expected a readable file, got: {error.strerror}") from error
        except UnicodeDecodeError as error:
            line = error.object[: error.start].count(b"\n") + 1
            raise UsageError(
                f"{path}: line {line}: expected UTF-8, got byte 0x{error.object[error.start]:02x}"
            ) from error
        is_yaml = path.suffix.lower() in (".yaml", ".yml")
        self.values, self._lines = _read_yaml(path, text) if is_yaml else _read_toml(path, text)

    def refusal(self, keys: Keys, problem: str) -> UsageError:
        """Returns the error for a key: file, line, table, key, and what is wrong."""
        line = next((self._lines[keys[:n]] for n in range(len(keys), 0, -1) if keys[:n] in self._lines), None)
        place = f"{self.path}: " if line is None else f"{self.path}: line {line}: "
        return UsageError(f"{place}{_named(keys)}{problem}")

    def table(
        self, keys: Keys, value: object, kinds: Mapping[str, ValueKind[Any]], needed: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        """Checks a table of the document and returns its values by name, with `_` for `-`. `keys` is the path to the
        table, for messages. Raises UsageError for a value of the wrong kind (a number in quotes is one), an unknown
        name, or a `needed` name that is missing."""
        rows = self.rows(keys, value)
        fields: dict[str, Any] = {}
        for name, entry in rows.items():
            kind = kinds.get(name) or kinds.get(name.replace("_", "-"))
            if kind is None:
                allowed = ", ".join(kinds) or "none"
                raise self.refusal((*keys, name), f"unknown key{nearest(name, kinds)}; allowed are {allowed}")
            if isinstance(entry, str) and isinstance(kind, values.Number | values.WholeNumber):
                raise self.refusal((*keys, name), f'expected {kind.expected}, got the text "{entry[:40]}"')
            fields[name.replace("-", "_")] = self.read((*keys, name), kind, entry)
        for name in needed:
            if name.replace("-", "_") not in fields:
                raise self.refusal(keys, f"expected {name}, got none: add it")
        return fields

    def read(self, keys: Keys, kind: ValueKind[_T], value: object) -> _T:
        """Returns a value as this kind. Raises UsageError, at the place `keys`, if it is none."""
        try:
            return values.read(kind, value)
        except ValueError as error:
            raise self.refusal(keys, str(error)) from error

    def rows(self, keys: Keys, value: object) -> dict[str, Any]:
        """Returns a table unchecked. Raises UsageError if the value is no table."""
        if not isinstance(value, dict):
            raise self.refusal(keys, f"expected a table, got {type(value).__name__}")
        wrong = next((name for name in value if not isinstance(name, str)), None)
        if wrong is not None:
            raise self.refusal(keys, f"expected names as keys, got {wrong!r}")
        return value


def _named(keys: Keys) -> str:
    """Returns the place of a key for a message: `[lanes."openai/gpt-6.2-sol"] rpm: `."""
    *tables, last = keys if len(keys) > 1 else (*keys, "")
    header = ""
    for key in tables:
        if isinstance(key, int):
            header += f" {key + 1}"
        else:
            quoted = key if _BARE.fullmatch(key) else f'"{key}"'
            header += f".{quoted}" if header else quoted
    return f"[{header}] {last}: " if last else f"[{header}]: "


def _read_toml(path: Path, text: str) -> tuple[dict[str, Any], dict[Keys, int]]:
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        problem = str(error).replace("at end of document", f"at line {len(text.splitlines()) or 1}, column 1")
        match = _AT_LINE.fullmatch(problem)
        place, what = (f"line {match[2]}: ", match[1]) if match is not None else ("", problem)
        raise UsageError(f"{path}: {place}expected TOML, got something else: {what}") from error
    return tables, _toml_lines(text)


def _toml_lines(text: str) -> dict[Keys, int]:
    """Returns the line of each key, from 1, by a scan of the text. It may also find keys inside a text of several
    lines, which are never looked up."""
    lines: dict[Keys, int] = {}
    table: Keys = ()
    arrays: dict[Keys, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if match := _TOML_TABLE.fullmatch(line):
            plain = _toml_keys(match[2])
            if match[1] == "[[":
                arrays[plain] = arrays.get(plain, -1) + 1
            table = ()
            for at in range(len(plain)):
                table = (*table, plain[at])
                if plain[: at + 1] in arrays:
                    table = (*table, arrays[plain[: at + 1]])
                lines.setdefault(table, number)
        elif match := _TOML_KEY.match(line):
            lines.setdefault((*table, *_toml_keys(match[1])), number)
    return lines


def _toml_keys(dotted: str) -> Keys:
    """Returns the parts of a dotted key, as in `lanes."openai/gpt-6.2-sol".rpm`; empty if it is not valid."""
    try:
        table = tomllib.loads(f"{dotted} = 0")
    except tomllib.TOMLDecodeError:
        return ()
    keys: Keys = ()
    at: Any = table
    while isinstance(at, dict):
        (key, at), *_ = at.items()
        keys = (*keys, key)
    return keys


def _read_yaml(path: Path, text: str) -> tuple[dict[str, Any], dict[Keys, int]]:
    import yaml

    lines: dict[Keys, int] = {}

    def walk(node: Any, keys: Keys) -> None:
        lines.setdefault(keys, node.start_mark.line + 1)
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                here = (*keys, str(key.value))
                if here in lines:
                    line = key.start_mark.line + 1
                    raise UsageError(f"{path}: line {line}: {_named(here)}given twice, first in line {lines[here]}")
                lines[here] = key.start_mark.line + 1
                walk(value, here)
        elif isinstance(node, yaml.SequenceNode):
            for at, value in enumerate(node.value):
                walk(value, (*keys, at))

    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        # An alias stands for its anchor, so a file of a few lines could otherwise grow without bound.
        if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(text, Loader=yaml.SafeLoader)):
            raise UsageError(f"{path}: expected YAML without aliases (*name), got some: write the values out")
        tables = yaml.safe_load(text) if root is not None else {}
        if root is not None:
            walk(root, ())
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = "" if mark is None else f"line {mark.line + 1}: "
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise UsageError(f"{path}: {place}expected YAML, got something else: {problem}") from error
    if not isinstance(tables, dict):
        raise UsageError(f"{path}: expected tables such as lanes and run, got {type(tables).__name__}")
    return tables, lines
