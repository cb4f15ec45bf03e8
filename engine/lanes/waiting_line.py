"""The order of the calls that wait at a lane: first come, first served, but calls that none of their payers can pay for
now are skipped.

Calls are grouped by their payers, so that thousands of calls of one payer are skipped in one step.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from typing import Protocol

from ..fault import Stop
from ..limits import Tokens
from .key_gate import Payer, Permit


class Waiting(Protocol):
    """Who waits at a lane, with the tokens and dollars that are to be reserved for it. One of the `payers` pays, the
    first that can; empty: nobody needs to, beside the engine. `refused_by` has a bit for each API key that has refused
    it: key n has bit n."""

    cost: float

    @property
    def tokens(self) -> Tokens: ...

    @property
    def refused_by(self) -> int: ...

    @property
    def payers(self) -> Sequence[Payer]: ...

    def admitted(self, permit: Permit) -> None:
        """Takes the permit for one attempt, which must come back through `release`."""

    def refused(self, payer: Payer, error: Exception) -> None:
        """Is called if a payer will never pay; perhaps also after it has left."""

    def rested(self) -> None:
        """Is called when the time to `rest` is over."""

    def stopped(self, stop: Stop) -> None:
        """Is called if the lane stops first; perhaps also after it has left."""


class WaitingLine:
    """The waiting calls, grouped by their payers; each has the number of its arrival."""

    def __init__(self) -> None:
        self._arrivals = 0
        self._places: dict[object, tuple[tuple[Payer, ...], int]] = {}
        # Ordered dicts: to find its first entry, a plain dict passes over all that were removed before it.
        self._groups: dict[tuple[Payer, ...], OrderedDict[int, Waiting]] = {}

    def __len__(self) -> int:
        return len(self._places)

    def add(self, waiter: Waiting) -> None:
        self._arrivals += 1
        self._put(waiter, tuple(waiter.payers), self._arrivals)

    def _put(self, waiter: Waiting, payers: tuple[Payer, ...], number: int) -> None:
        self._places[waiter] = (payers, number)
        self._groups.setdefault(payers, OrderedDict())[number] = waiter

    def remove(self, waiter: object) -> bool:
        """Removes a call; returns whether it was waiting here."""
        if waiter not in self._places:
            return False
        payers, number = self._places.pop(waiter)
        del self._groups[payers][number]
        if not self._groups[payers]:
            del self._groups[payers]
        return True

    def regroup(self, waiter: object) -> None:
        """Moves a call to the group of its present payers, if it waits here; it keeps its number."""
        if waiter in self._places:
            payers, number = self._places[waiter]
            one = self._groups[payers][number]
            self.remove(one)
            payers = tuple(one.payers)
            self._put(one, payers, number)
            self._groups[payers] = OrderedDict(sorted(self._groups[payers].items()))

    def in_order(self, unpaid: set[Payer]) -> Iterable[tuple[int, Waiting]]:
        """Returns the calls with their numbers, in the order of arrival, without those whose payers are all in
        `unpaid`; that set may grow meanwhile."""
        groups = [
            _while_paid(payers, group, unpaid) if payers else group.items() for payers, group in self._groups.items()
        ]
        return groups[0] if len(groups) == 1 else merge(*groups)


def _while_paid(
    payers: tuple[Payer, ...], group: OrderedDict[int, Waiting], unpaid: set[Payer]
) -> Iterator[tuple[int, Waiting]]:
    for place in group.items():
        if unpaid.issuperset(payers):
            return
        yield place
