"""Seeded damage to bytes, for tests that feed decoders garbage, and a kept corpus of what once broke one.

A mutant is made of sound inputs: cut, doubled, spliced, flipped, or with tokens that break readers put in.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

CORPUS = Path(__file__).parent.parent / "kept" / "corpus"
# Numbers and nestings beyond what readers hold, signs that end or open something, text that is no UTF-8.
TOKENS = (
    b"null", b"true", b"{}", b"[]", b'""', b"-1", b"1e999", b"NaN", b"9" * 400, b"[" * 3000, b'{"a":' * 500,
    b"\xff\xfe", b"\x00", b"data: ", b"\n\n", b"\r", b"[DONE]", b"event: error\n", b"}", b"]", b'"', b"\\", b":", b",",
    b'"choices":', b'"content":', b'"usage":', b'"error":{"message":1}', "\u2028".encode(), b"\xef\xbb\xbf",
)  # fmt: skip


def mutants(sound: Sequence[bytes], count: int, seed: int) -> Iterator[bytes]:
    """Yields `count` damaged inputs, each with one to four wounds."""
    chance = random.Random(seed)
    for _ in range(count):
        body = bytearray(chance.choice(sound))
        for _ in range(chance.randint(1, 4)):
            _wound(body, sound, chance)
        yield bytes(body)


def _wound(body: bytearray, sound: Sequence[bytes], chance: random.Random) -> None:
    begin = chance.randrange(len(body) + 1)
    end = min(len(body), begin + chance.choice((1, 2, 8, 40, 400)))
    match chance.randrange(6):
        case 0:
            del body[begin:end]
        case 1:
            body[begin:begin] = body[begin:end]
        case 2 if body:
            body[chance.randrange(len(body))] ^= 1 << chance.randrange(8)
        case 3:
            body[begin:begin] = chance.choice(TOKENS)
        case 4:
            body[begin:end] = chance.choice(TOKENS)
        case _:
            other = chance.choice(sound)
            start = chance.randrange(len(other) + 1)
            body[begin:end] = other[start : start + chance.choice((1, 8, 80, 800))]


def kept(kind: str) -> list[bytes]:
    """Returns the inputs of the corpus for one kind of decoder; those that once broke one stay there for good."""
    return [path.read_bytes() for path in sorted((CORPUS / kind).glob("*"))]
