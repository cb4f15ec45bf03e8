"""Reads a request's body as a JSON object: whole, in time, and not too large.

Knows no dialect. Whatever is wrong is the client's mistake, and is reported to it.
"""

from __future__ import annotations

import asyncio
import zlib
from typing import Any

import orjson

from ...providers.llm.serve_bounds import check_values
from ...providers.llm.serve_dialect import RequestRefusal
from ...providers.transport.decompression import Decompressor
from .body_memory import LONG_BYTES
from .http_connection import Connection
from .http_request import BODY_BYTES_MAX, HttpRequest, too_large

BODY_S = 60.0
_PACKED = ("", "identity", "gzip", "deflate")
_PACKED_OTHERWISE = "the body is packed in a way that is not read here: send it as it is, or in gzip"
# Decompressing more than this in the loop would hold up all other requests.
_UNPACKED_HERE_MAX = 16 << 10


def is_plain(request: HttpRequest) -> bool:
    """Whether the body is whole, uncompressed and short, so that it can be read at once."""
    return request.body.is_whole and not request.is_long


async def body_of(request: HttpRequest, back: Connection, *, within_s: float) -> bytes:
    """Waits for a request's body and returns it, decompressed. Raises RequestRefusal if it is not whole within
    `within_s` seconds, is too large or can't be decompressed."""
    packed = (request.header("content-encoding") or "").strip().lower()
    if packed not in _PACKED:
        raise RequestRefusal(_PACKED_OTHERWISE, status=415)
    if request.length > BODY_BYTES_MAX:
        raise too_large()
    # The time for the body begins only when there is memory for it.
    await request.admitted()
    body = request.body
    if not body.is_whole and not body.size and _waits(request):
        back.invite()
    try:
        async with asyncio.timeout(within_s):
            await body.whole()
    except TimeoutError as error:
        raise RequestRefusal(f"the body did not come whole within {within_s:g} s: send it again", status=408) from error
    data = body.data if body.size <= LONG_BYTES else await asyncio.to_thread(lambda: body.data)
    body.forget()
    if packed not in ("", "identity"):
        is_short = len(data) <= _UNPACKED_HERE_MAX
        data = _unpacked(data, packed) if is_short else await asyncio.to_thread(_unpacked, data, packed)
    if request.share is not None:
        request.share.shrink(len(data) if len(data) > LONG_BYTES else 0)
    return data


def object_of(body: bytes) -> dict[str, Any]:
    check_values(body)
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise RequestRefusal(f"the body is no JSON: {error}") from error
    if not isinstance(value, dict):
        raise RequestRefusal(f"expected a JSON object as the body, got {type(value).__name__}")
    return value


def _waits(request: HttpRequest) -> bool:
    """Whether the client sends the body only after it has received `100 Continue`."""
    return request.is_new and (request.header("expect") or "").strip().lower() == "100-continue"


def _unpacked(body: bytes, packed: str) -> bytes:
    unpacking = Decompressor(packed.encode())
    try:
        unpacked = unpacking.take(body, BODY_BYTES_MAX)
    except zlib.error as error:
        raise RequestRefusal(f"the body can't be unpacked ({error}): send it whole, unpacked or in gzip") from error
    if len(unpacked) > BODY_BYTES_MAX:
        raise too_large()
    if not unpacking.is_whole:
        raise RequestRefusal("the body can't be unpacked (it ends in the middle): send it whole, unpacked or in gzip")
    return unpacked
