"""Limits on one request: the length of a model's name, the number of messages, the number of JSON values.

Reading a request takes far more memory than its bytes: a value of three bytes becomes an object of a hundred. Pure; the
limits are checked before the JSON is parsed.
"""

from __future__ import annotations

import re
from collections.abc import Sized

from .serve_dialect import RequestRefusal

MODEL_NAME_MAX = 200
MESSAGES_MAX = 10_000
# A parser takes some 15 ms for this many, and nothing else runs meanwhile.
VALUES_MAX = 100_000
# Bytes that are counted in less than a millisecond.
_PIECE = 1 << 18
# A part of a string: matching it takes a few milliseconds at most, and reads no byte twice.
_WITHIN = re.compile(rb'[^"\\]{0,262144}+(?:\\.[^"\\]{0,64}+){0,4096}+', re.DOTALL)
_QUOTE = 0x22


def check_messages(messages: Sized, where: str) -> None:
    if len(messages) > MESSAGES_MAX:
        message = f"'{where}' has {len(messages):,} entries; at most {MESSAGES_MAX:,} are read: send fewer"
        raise RequestRefusal(message, where, "too_large", 413)


def check_values(body: bytes) -> None:
    """Raises RequestRefusal for JSON of more than VALUES_MAX values. For valid JSON it never counts too many, whatever
    its texts hold."""
    most = VALUES_MAX
    if len(body) < most or _marks(body, 0, len(body)) < most:
        return
    count, at = 0, 0
    while count <= most and at < len(body):
        quote = body.find(b'"', at)
        count += _marks(body, at, quote if quote >= 0 else len(body))
        at = _after_string(body, quote + 1) if quote >= 0 else len(body)
    if count > most:
        raise RequestRefusal(f"the body has more than {most:,} JSON values: send fewer", None, "too_large", 413)


def _after_string(body: bytes, at: int) -> int:
    """Returns the index just after the closing quote of the string that starts at `at`; the body's length if it never
    closes."""
    while at < len(body):
        match = _WITHIN.match(body, at)
        if match is None or match.end() == at:
            return at + 1
        at = match.end()
        if at < len(body) and body[at] == _QUOTE:
            return at + 1
    return at


def _marks(body: bytes, begin: int, end: int) -> int:
    """Returns the number of values from `begin` to `end`, counted by commas and opening brackets: every value but the
    first of an object or list has a comma before it."""
    if end - begin <= _PIECE:
        return body.count(b",", begin, end) + body.count(b"{", begin, end) + body.count(b"[", begin, end)
    return sum(
        body.count(mark, at, min(at + _PIECE, end)) for at in range(begin, end, _PIECE) for mark in (b",", b"{", b"[")
    )
