"""Sources as numbers: when two addresses are one source, and how a turn's are kept in few bytes.

Owns the mark of an address and of its host. What an address's normal form is, the engine's addresses know.
"""

from __future__ import annotations

import re
from array import array

from ...engine.addresses import hostname_of, normalised_url

_PLAIN = re.compile(r"https?://([a-z0-9.-]+)(?:/[!\"$->@-~]*[!\"$-.0->@-~])?")


def packed(marks: list[tuple[int, int]], at: int) -> bytes:
    """A set of addresses (`at` 0) or of hosts (1)."""
    return array("q", {mark[at] for mark in marks}).tobytes() if marks else b""


def marks_of(url: str) -> tuple[int, int]:
    """An address, normalised, and its host as numbers. 64 bits of a hash: among some hundred sources of a conversation
    two are taken for one in less than one of 10^14 conversations. What has no host is one of its own."""
    # Three million addresses a run: nearly all are in their normal form already.
    plain = _PLAIN.fullmatch(url)
    if plain is not None:
        return hash(url), hash(plain[1])
    whole = normalised_url(url)
    return hash(whole), hash(hostname_of(whole) or whole)


def unpacked(kept: bytes) -> frozenset[int]:
    return frozenset(memoryview(kept).cast("q"))
