"""Reads and writes the single data set file: all issues in one JSON object.

Owns the format of this file; `dataset` decides whether an issue is well-formed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ...engine.runs.data_file import BYTES_MAX, DatasetError, field, kind_of, shown

FORMAT_VERSION = 1


def contents_of_file(root: Any, where: str) -> dict[str, Any]:
    """Returns the raw issues of a data set file by their ids. Raises DatasetError if it is no such file."""
    if _holds_conversations(root):
        raise DatasetError(f"{where}: expected issues, got conversations, which are another benchmark's")
    if not isinstance(root, dict) or "millstone_dataset" not in root:
        raise DatasetError(
            f'{where}: expected {{"millstone_dataset": {FORMAT_VERSION}, "issues": {{…}}}}, got {kind_of(root)}'
            " without millstone_dataset: for files of one issue each, give their folder"
        )
    version = root["millstone_dataset"]
    if version != FORMAT_VERSION or isinstance(version, bool):
        raise DatasetError(f"{where}: millstone_dataset: expected {FORMAT_VERSION}, got {shown(version)}")
    issues: dict[str, Any] = field(root, "issues", dict, where)
    if not issues:
        raise DatasetError(f"{where}: issues: expected at least one issue, got none")
    return issues


def _holds_conversations(root: Any) -> bool:
    first = root[0] if isinstance(root, list) and root else root
    return isinstance(first, dict) and ("questions" in first or "conversations" in first)


def encode(contents: Mapping[str, Any]) -> bytes:
    """Returns the bytes of a data set file with these issues, the same for the same content. Raises DatasetError if it
    exceeds the size that can be read."""
    root = {"millstone_dataset": FORMAT_VERSION, "issues": {name: contents[name] for name in sorted(contents)}}
    data = (json.dumps(root, ensure_ascii=False, indent=1) + "\n").encode()
    if len(data) > BYTES_MAX:
        raise DatasetError(
            f"expected a data set of at most {BYTES_MAX >> 20} MiB, got {len(contents):,} issues that need "
            f"{-(-len(data) >> 20):,}: make two of it"
        )
    return data
