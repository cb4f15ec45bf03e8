"""The bytes of what a cache and a snapshot hold: answers, final failures, and the hashes of bodies that they share.

Pure encode and decode: opens nothing, and what can't be read is None. Bodies of BODY_APART bytes or more are stored
apart, by their hash.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Callable
from typing import TypeVar

import msgspec
from msgspec import Struct, structs

from ..call import Failure
from ..endpoint import Request, Response

BODY_APART = 4096
KEY_BYTES = 32
# What was made of a body begins with the time it was kept.
KEPT_AT = struct.Struct("<d")
# The year 10000, in seconds since 1970: later dates can't be shown.
_END_OF_TIME = 253_402_300_800


class StoredAnswer(Struct, frozen=True, array_like=True, gc=False):
    """One stored answer. `identity`, `params` and `prompt_mark` are its endpoint, its parameters and a checksum of its
    prompt, by which a later miss is explained; `sample` is the call's trial. `received_at`: seconds since 1970.
    `body_hash`: the SHA-256 of a body that is stored apart, else empty. `url`: a page's address, empty for models
    and searches."""

    identity: str
    params: bytes
    prompt_mark: int
    sample: int
    received_at: float
    response: Response
    body_hash: bytes = b""
    url: str = ""


class StoredFailure(Struct, frozen=True, array_like=True):
    """One stored final failure of a search or a page, with the response if one was received. The other fields are those
    of `StoredAnswer`."""

    identity: str
    received_at: float
    failure: Failure
    response: Response | None = None
    body_hash: bytes = b""
    url: str = ""


Stored = TypeVar("Stored", StoredAnswer, StoredFailure)

encode = msgspec.msgpack.Encoder().encode
_decode_entry = msgspec.msgpack.Decoder(StoredAnswer).decode
_decode_failed = msgspec.msgpack.Decoder(StoredFailure).decode


def entry_of(stored: bytes | memoryview) -> StoredAnswer | None:
    try:
        entry = _decode_entry(stored)
    except msgspec.DecodeError:
        return None  # written by another version
    return entry if 0 <= entry.received_at < _END_OF_TIME else None


def failed_of(stored: bytes | memoryview) -> StoredFailure | None:
    try:
        failed = _decode_failed(stored)
    except msgspec.DecodeError:
        return None
    return failed if 0 <= failed.received_at < _END_OF_TIME else None


def with_body(entry: Stored | None, body_of: Callable[[bytes], bytes | None]) -> Stored | None:
    """Returns the entry with the body that is stored apart, if one is; None if that is lost."""
    if entry is None or not entry.body_hash or entry.response is None:
        return entry
    body = body_of(entry.body_hash)
    return None if body is None else structs.replace(entry, response=structs.replace(entry.response, body=body))


def later_of(entry: StoredAnswer | None, failed: StoredFailure | None) -> StoredAnswer | StoredFailure | None:
    """Returns the later of a call's answer and final failure; None if there is neither."""
    return entry if failed is None or (entry is not None and entry.received_at >= failed.received_at) else failed


def prompt_mark(request: Request) -> int:
    """Returns a checksum of the prompt, by which misses are explained; the cache key alone decides about a hit."""
    return zlib.crc32(request.prompt) << 32 | (len(request.prompt) & 0xFFFFFFFF)


def derived_key(source: bytes, how: bytes) -> bytes:
    """Returns the key under which a value derived from a body is kept. It begins with `source`, the body's SHA-256, so
    that all values of a body are found; `how` is everything else that decides the value."""
    return source + hashlib.sha256(how).digest()
