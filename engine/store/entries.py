"""What a cache and a snapshot hold, as bytes: answers, final failures, and what names the body that both may share.

Pure encode and decode: opens nothing, and what can't be read is None. Bodies from BODY_APART on lie apart, by content.
"""

from __future__ import annotations

import hashlib
import struct
import zlib

import msgspec
from msgspec import Struct

from ..call import Failure
from ..endpoint import Request, Response

BODY_APART = 4096
KEY_BYTES = 32
# What was made of a body begins with the time it was kept.
KEPT_AT = struct.Struct("<d")
# The year 10000, in seconds since 1970: no calendar tells what lies behind it.
_END_OF_TIME = 253_402_300_800


class StoredAnswer(Struct, frozen=True, array_like=True):
    """One stored answer, with what is needed to explain a miss later. `body_hash`: the SHA-256 of a body that lies
    apart. `url`: the page that was asked for; models and searches have none."""

    identity: str
    params: bytes
    prompt_mark: int
    sample: int
    received_at: float
    response: Response
    body_hash: bytes = b""
    url: str = ""


class StoredFailure(Struct, frozen=True, array_like=True):
    """One stored final failure of a search or a page, with the response where one came."""

    identity: str
    received_at: float
    failure: Failure
    response: Response | None = None
    body_hash: bytes = b""
    url: str = ""


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


def prompt_mark(request: Request) -> int:
    """Tells prompts apart well enough to explain a miss; the key alone decides."""
    return zlib.crc32(request.prompt) << 32 | (len(request.prompt) & 0xFFFFFFFF)


def derived_key(source: bytes, how: bytes) -> bytes:
    """Under which something made from a body is kept: `source` is the SHA-256 of that body, so that whoever packs the
    body finds what was made of it; `how` is whatever else decides the result."""
    return source + hashlib.sha256(how).digest()
