"""The released file format as JSON: files read and parsed, one data set file written, what came told in words.

Owns the shape of the single file and the errors about files. What makes an issue well-formed is the data set's to say.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FORMAT_VERSION = 1


class DatasetError(ValueError):
    """The data set, or a choice of its issues, isn't usable: file, field, what was expected, what came."""


def read_text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise DatasetError(f"{path}: expected UTF-8, came byte 0x{byte:02x} at offset {error.start}") from error
    except OSError as error:
        raise DatasetError(f"{path}: expected a readable file or folder, came: {error.strerror}") from error


def parse(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}"
        raise DatasetError(f"{where}: expected JSON, came something else at {place}: {error.msg}") from error
    except RecursionError as error:
        raise DatasetError(f"{where}: expected an issue, came JSON nested too deeply to read") from error
    except ValueError as error:  # a whole number of thousands of digits
        raise DatasetError(f"{where}: expected an issue, came a number too long to read") from error


def contents_of_file(root: Any, where: str) -> dict[str, Any]:
    """The issues of a data set file, unread, by their ids."""
    if not isinstance(root, dict) or "millstone_dataset" not in root:
        raise DatasetError(
            f'{where}: expected {{"millstone_dataset": {FORMAT_VERSION}, "issues": {{…}}}}, came {kind_of(root)}'
            " without millstone_dataset: for files of one issue each, give their folder"
        )
    version = root["millstone_dataset"]
    if version != FORMAT_VERSION or isinstance(version, bool):
        raise DatasetError(f"{where}: millstone_dataset: expected {FORMAT_VERSION}, came {shown(version)}")
    issues: dict[str, Any] = field(root, "issues", dict, where)
    if not issues:
        raise DatasetError(f"{where}: issues: expected at least one issue, came none")
    return issues


def encode(contents: Mapping[str, Any]) -> bytes:
    """One data set file of issues in the released shape: the same bytes for the same content."""
    root = {"millstone_dataset": FORMAT_VERSION, "issues": {name: contents[name] for name in sorted(contents)}}
    return (json.dumps(root, ensure_ascii=False, indent=1) + "\n").encode()


def field(content: Mapping[str, Any], name: str, kind: type, where: str) -> Any:
    expected = _KINDS[kind]
    if name not in content:
        raise DatasetError(f"{where}: {name}: expected {expected}, came nothing: the field is missing")
    if not isinstance(content[name], kind):
        raise DatasetError(f"{where}: {name}: expected {expected}, came {kind_of(content[name])}")
    return content[name]


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
