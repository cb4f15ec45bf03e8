"""Reads the binary event streams of AWS (application/vnd.amazon.eventstream): each complete message, checked.

A message is a prelude (its length, the length of its headers, their CRC), headers, a payload, and a CRC over it all.
Pure: knows no socket, and not what messages mean.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from zlib import crc32

from msgspec import Struct

_PRELUDE = struct.Struct(">III")
_CRC = struct.Struct(">I")
_LENGTH = struct.Struct(">H")
_SMALLEST = _PRELUDE.size + _CRC.size
_BYTES, _TEXT = 6, 7
# The sizes of header types without a length of their own: two booleans, integers, a time, a UUID.
_SIZES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}


class BrokenStream(ValueError):
    """Raised for a damaged stream: nothing after the damage can be read."""


class EventMessage(Struct, frozen=True):
    """One message: its text headers by name, its payload, and its length in bytes."""

    headers: dict[str, str]
    payload: bytes
    size: int


def messages_of(body: bytes) -> Iterator[EventMessage]:
    """Yields each complete message; a last one that is cut is left out. Raises BrokenStream if a check fails."""
    at, end = 0, len(body)
    while end - at >= _PRELUDE.size:
        total, size, checksum = _PRELUDE.unpack_from(body, at)
        if crc32(body[at : at + 8]) != checksum:
            raise BrokenStream("a message whose prelude fails its check")
        if total < _SMALLEST + size:
            raise BrokenStream("a message that is shorter than its headers")
        if end - at < total:
            return
        last = at + total - _CRC.size
        if crc32(body[at:last]) != _CRC.unpack_from(body, last)[0]:
            raise BrokenStream("a message that fails its check")
        behind = at + _PRELUDE.size + size
        yield EventMessage(_headers_of(body[at + _PRELUDE.size : behind]), body[behind:last], total)
        at += total


def _headers_of(block: bytes) -> dict[str, str]:
    headers: dict[str, str] = {}
    at = 0
    try:
        while at < len(block):
            name_end = at + 1 + block[at]
            kind, begin = block[name_end], name_end + 1
            if kind in (_BYTES, _TEXT):
                begin += _LENGTH.size
                size = _LENGTH.unpack_from(block, name_end + 1)[0]
            else:
                size = _SIZES[kind]
            if begin + size > len(block):
                raise BrokenStream("a header that is longer than its message")
            if kind == _TEXT:
                name = block[at + 1 : name_end].decode()
                headers[name] = block[begin : begin + size].decode()
            at = begin + size
    except (IndexError, KeyError, struct.error, UnicodeDecodeError) as error:
        raise BrokenStream("a message with headers of an unknown shape") from error
    return headers
