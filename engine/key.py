"""The key of a call: what makes two calls the same question.

SHA-256 of (key version, endpoint identity, canonical body, sample number). Credentials, streaming and
parameters that were not set are not in it.
"""

from __future__ import annotations

from hashlib import sha256

from .endpoint import Request

KEY_VERSION = 1
_PREFIX = b"millstream key %d\0" % KEY_VERSION


def key_of(request: Request, sample: int) -> bytes:
    # NUL can stand neither in a URL nor in JSON, so no two field lists run together into the same bytes.
    return sha256(b"%b%b\0%b\0%d" % (_PREFIX, request.identity.encode(), request.body, sample)).digest()
