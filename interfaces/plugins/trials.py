"""Trial numbers: they tell identical calls apart, and are the same when a run is repeated.

A call that failed gives its number back, and a sample that a harness begins anew gets its former numbers. Knows no
harness.
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


class Asker(Struct, frozen=True):
    """The origin of a call: one attempt at a sample in one epoch (from 1) of a run. A later attempt at the same sample
    makes the same calls again."""

    run: Hashable
    sample: Hashable
    attempt: Hashable
    epoch: int = 1


class Trial(Struct, frozen=True):
    """A trial number that was taken; `give_back` frees it."""

    number: int
    _taken: set[int]
    _count: int

    def give_back(self) -> None:
        """Frees the number after a failure: the next identical call gets the same one."""
        self._taken.discard(self._count)


class TrialNumbers:
    """The trial numbers of identical calls: 0, 1, 2, … in the order in which they are made, in each epoch of a run."""

    def __init__(self) -> None:
        self._next: dict[Hashable, int] = {}
        self._had: dict[Hashable, list[int]] = {}
        self._taken: dict[Hashable, dict[Hashable, dict[bytes, set[int]]]] = {}

    def take(self, call: Call, place: Asker) -> Trial:
        """Returns the next trial of these identical calls. The call's own trial does not count."""
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
        """Returns the numbers that this attempt has taken, by call, and forgets those of earlier attempts."""
        attempts = self._taken.get(sample)
        if attempts is None or attempt not in attempts:
            attempts = self._taken[sample] = {attempt: {}}
        return attempts[attempt]


def number_of(epoch: int, count: int) -> int:
    return (epoch - 1) + (count << _EPOCH_BITS)


def digest_of(call: Call) -> bytes:
    """Returns a hash of a call without its trial and its tag."""
    bare = msgspec.structs.replace(call, trial=0, tag=None)
    return blake2b(msgspec.json.encode(bare), digest_size=_DIGEST_BYTES).digest()
