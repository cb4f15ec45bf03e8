"""Finds JSON in the texts of models: fenced, with prose around it, after drafts. The caller checks its content."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, TypeVar

_Usable = TypeVar("_Usable")

_LOOKED_AT_MAX = 50
_DECODER = json.JSONDecoder(strict=False)
_OBJECT = re.compile(r"\{")
_LIST = re.compile(r"\[")


class UnusableAnswer(ValueError):
    """Raised for an answer of a model that can't be used; the message, which is sent to the model, says what was
    expected and received."""


def first_usable(text: str, read: Callable[[dict[str, Any]], _Usable], mark: str) -> _Usable:
    """Returns what `read` makes of the first object in a text that it can use. Raises UnusableAnswer if there is none.
    Of several errors, that of an object with the field `mark` is raised, which shows best what is missing."""
    wrong: UnusableAnswer | None = None
    for fields in objects_in(text):
        try:
            return read(fields)
        except UnusableAnswer as error:
            if wrong is None or mark in fields:
                wrong = error
    raise wrong or UnusableAnswer("expected a JSON object, got none")


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
