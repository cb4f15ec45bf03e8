"""Finds JSON in the texts of models: fenced, with prose around it, after drafts. Does not check its content."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

_LOOKED_AT_MAX = 50
_DECODER = json.JSONDecoder(strict=False)
_OBJECT = re.compile(r"\{")
_LIST = re.compile(r"\[")


def objects_in(text: str) -> Iterator[dict[str, Any]]:
    """Yields the outermost JSON objects in a text, in order; text that is no JSON is skipped."""
    yield from _values(text, _OBJECT)


def lists_in(text: str) -> Iterator[list[Any]]:
    """Yields the outermost JSON lists in a text, in order; text that is no JSON is skipped."""
    yield from _values(text, _LIST)


def _values(text: str, begin: re.Pattern[str]) -> Iterator[Any]:
    end = 0
    for match in islice(begin.finditer(text), _LOOKED_AT_MAX):
        if match.start() < end:
            continue
        try:
            value, end = _DECODER.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            continue
        yield value
