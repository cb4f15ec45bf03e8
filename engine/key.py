"""The cache key of a call: what makes two calls the same question.

SHA-256 of (key version, endpoint identity, canonical body, trial number). API keys, streaming and parameters that were
not set are not in it.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from .endpoint import Request

if TYPE_CHECKING:
    from hashlib import _Hash as HASH

KEY_VERSION = 1
_PREFIX = b"millstream key %d\0" % KEY_VERSION


def question_of(request: Request) -> HASH:
    """Returns the unfinished hash that the cache keys of all trials share; `sample_of` adds the trial number."""
    # NUL can stand neither in a URL nor in JSON, so no two field lists run together into the same bytes.
    return sha256(b"%b%b\0%b\0" % (_PREFIX, request.identity.encode(), request.body))


def sample_of(question: HASH, sample: int) -> bytes:
    whole = question.copy()
    whole.update(b"%d" % sample)
    return whole.digest()


def key_of(request: Request, sample: int) -> bytes:
    return sha256(b"%b%b\0%b\0%d" % (_PREFIX, request.identity.encode(), request.body, sample)).digest()
