"""Compares the messages of two failures without what differs in every answer, such as a request's id."""

from __future__ import annotations

import re

# A word of letters and digits as long as an id. The number of a prompt's tokens is shorter, and tells sizes apart.
_ID = re.compile(r"\b(?=[\w-]*\d)[\w-]{8,}\b")
_AMOUNT = re.compile(r"\d[\d.,]{2,}\d")


def without_ids(said: str) -> str:
    return _ID.sub("", said)


def gist_of(said: str) -> str:
    """Returns the message without ids and amounts, so that failures which differ only in these count as the same."""
    return _AMOUNT.sub("", without_ids(said))
