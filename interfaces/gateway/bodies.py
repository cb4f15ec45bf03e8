"""A request's body as the JSON object that it has to be: whole, in time, and not too large.

Knows no dialect. What is wrong is the client's own mistake, told as such.
"""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
from aiohttp import web

from ..dialects.dialect import Refused

BODY_BYTES_MAX = 16 << 20
BODY_S = 60.0
_PACKED = ("", "identity", "gzip", "deflate")
PACKED_OTHERWISE = "the body is packed in a way that is not read here: send it as it is, or in gzip"


async def body_of(request: web.BaseRequest, *, within_s: float) -> bytes:
    """The bytes, unpacked where they came packed."""
    packed = request.headers.get("Content-Encoding", "").strip().lower()
    if packed not in _PACKED:
        raise Refused(PACKED_OTHERWISE, status=415)
    too_large = Refused(f"the body is larger than {BODY_BYTES_MAX >> 20} MiB: cut it", None, "too_large", 413)
    if (request.content_length or 0) > BODY_BYTES_MAX:
        raise too_large
    if request.headers.get("Expect", "").lower() == "100-continue" and request.transport is not None:
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    content = request.content
    try:
        if content.is_eof() and content.total_bytes <= BODY_BYTES_MAX:
            return await content.read()
        chunks, size = [], 0
        async with asyncio.timeout(within_s):
            while chunk := await content.readany():
                chunks.append(chunk)
                size += len(chunk)
                if size > BODY_BYTES_MAX:
                    raise too_large
    except TimeoutError as error:
        raise Refused(f"the body did not come whole within {within_s:g} s: send it again", status=408) from error
    except web.RequestPayloadError as error:
        raise Refused(f"the body can't be read ({error}): send it whole, unpacked or in gzip") from error
    return b"".join(chunks)


def object_of(body: bytes) -> dict[str, Any]:
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Refused(f"the body is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise Refused(f"expected a JSON object as the body, got {type(found).__name__}")
    return found
