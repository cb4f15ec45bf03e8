"""A map of texts to numbers, in a few bytes each, since a million lines must not need a million objects.

Owns the tables alone. What is counted, and under what, is the batch's own business.
"""

from __future__ import annotations

import hashlib
from array import array

_SHARDS = 256
_LEAST = 8


class Digests:
    """A map of texts to numbers, by eight bytes of each text's hash: of a million texts two are confused once in thirty
    million files. It has many small tables, so that growing one is quick."""

    def __init__(self) -> None:
        self._shards = [_Shard() for _ in range(_SHARDS)]

    def first(self, text: bytes, number: int) -> int:
        """Stores a number for a text that has none yet. Returns the number that it had before; 0: it had none."""
        if earlier := self.add(text, number):
            self.add(text, -number)
        return earlier

    def add(self, text: bytes, count: int) -> int:
        """Adds `count` to the number of a text. Returns what the number was before; 0 for a new text."""
        key = _key_of(text)
        shard = self._shards[key % _SHARDS]
        place = shard.place_of(key)
        before = shard.numbers[place]
        if shard.keys[place]:
            shard.numbers[place] = before + count
        else:
            shard.put(place, key, count)
        return before


class _Shard:
    """A hash table with open addressing: a key lies at the first free place from the one that its bits give."""

    __slots__ = ("keys", "numbers", "used")

    def __init__(self) -> None:
        self.keys = array("Q", bytes(8 * _LEAST))
        self.numbers = array("Q", bytes(8 * _LEAST))
        self.used = 0

    def place_of(self, key: int) -> int:
        keys, mask = self.keys, len(self.keys) - 1
        place = key // _SHARDS & mask
        while keys[place] and keys[place] != key:
            place = place + 1 & mask
        return place

    def put(self, place: int, key: int, number: int) -> None:
        self.keys[place], self.numbers[place] = key, number
        self.used += 1
        if self.used * 3 > len(self.keys) * 2:
            self._grow()

    def _grow(self) -> None:
        keys, numbers = self.keys, self.numbers
        size = 2 * len(keys)
        self.keys, self.numbers = array("Q", bytes(8 * size)), array("Q", bytes(8 * size))
        for key, number in zip(keys, numbers, strict=True):
            if key:
                place = self.place_of(key)
                self.keys[place], self.numbers[place] = key, number


def _key_of(text: bytes) -> int:
    # 0 marks a free place.
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") or 1
