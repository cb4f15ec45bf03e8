"""Which sample a repeated call is: the numbers that tell identical calls apart, the same ones when a run is repeated.

Owns the count of identical calls. A call that gave no answer gives its number back, and a sample that a harness begins
anew is given the numbers that it had before. Knows no harness.
"""

from __future__ import annotations

from collections.abc import Hashable
from hashlib import blake2b

import msgspec
from msgspec import Struct

from ...engine.call import Call

_DIGEST_BYTES = 16
# The lower half of a trial number is the epoch's, the upper half counts.
_EPOCH_BITS = 32


class Place(Struct, frozen=True):
    """Who asks: one attempt at a sample in one epoch (from 1) of one run. An attempt that follows another at the same
    sample is to ask the same again."""

    run: Hashable
    sample: Hashable
    attempt: Hashable
    epoch: int = 1


class Trial(Struct, frozen=True):
    """A number that was taken, and what gives it back."""

    number: int
    _taken: set[int]
    _count: int

    def give_back(self) -> None:
        """No answer came: who asks the same again is given the same number."""
        self._taken.discard(self._count)


class Trials:
    """In each epoch of a run, identical calls get 0, 1, 2, … in the order in which they come."""

    def __init__(self) -> None:
        self._next: dict[Hashable, int] = {}
        self._had: dict[Hashable, list[int]] = {}
        self._taken: dict[Hashable, dict[Hashable, dict[bytes, set[int]]]] = {}

    def take(self, call: Call, place: Place) -> Trial:
        """The number of one more of these calls, whatever trial it names itself."""
        question = digest_of(call)
        sample = (place.run, place.sample, place.epoch)
        had = self._had.setdefault((*sample, question), [])
        taken = self._of_attempt(sample, place.attempt).setdefault(question, set())
        count = next((count for count in had if count not in taken), None)
        if count is None:
            everyone = (place.run, place.epoch, question)
            count = self._next.get(everyone, 0)
            self._next[everyone] = count + 1
            had.append(count)
        taken.add(count)
        return Trial(number_of(place.epoch, count), taken, count)

    def _of_attempt(self, sample: Hashable, attempt: Hashable) -> dict[bytes, set[int]]:
        """What this attempt has taken; what earlier ones had is forgotten."""
        attempts = self._taken.get(sample)
        if attempts is None or attempt not in attempts:
            attempts = self._taken[sample] = {attempt: {}}
        return attempts[attempt]


def number_of(epoch: int, count: int) -> int:
    return (epoch - 1) + (count << _EPOCH_BITS)


def digest_of(call: Call) -> bytes:
    """Of all that a call asks: its trial and its tag are not part of it."""
    bare = msgspec.structs.replace(call, trial=0, tag=None)
    return blake2b(msgspec.json.encode(bare), digest_size=_DIGEST_BYTES).digest()
