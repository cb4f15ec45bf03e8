"""A payer whose money and whose waits a test sets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from millstream.engine.call import Outcome
from millstream.engine.lanes.key_gate import Permit
from millstream.engine.limits import Tokens


class Refused(Exception):
    """What those receive who wait at the expense of a payer without money."""


class ScriptedPayer:
    """A payer that grants attempts from `waits_s` after it is first asked, and has money for `most` of them. `lost`:
    how often another process takes first what it has to give. Counts the attempts that it granted, those that it paid
    for, and the `places` that they have."""

    is_limited, reckons_worst = True, False

    def __init__(self, name: str = "one", *, waits_s: float = 0.0, most: int = 9, lost: int = 0) -> None:
        self.name = name
        self.asked = 0
        self.granted = 0
        self.paid = 0
        self.places = 0
        self._waits_s = waits_s
        self._since: float | None = None
        self._most = most
        self._lost = lost

    def hold(self, now: float, tokens: Tokens, cost: float, wake: Callable[[], None]) -> str | Exception | None:
        self.asked += 1
        if self.granted == self._most:
            return Refused(self.name)
        if self._since is None:
            self._since = now
        if (left_s := self._since + self._waits_s - now) <= 0:
            return None
        asyncio.get_running_loop().call_later(left_s, wake)
        return "requests"

    def take(self, permit: Permit) -> bool:
        if self._lost:
            self._lost -= 1
            return False
        self.granted += 1
        self.places += 1
        permit.payer = self
        return True

    def clear(self, permit: Permit, now: float) -> None:
        assert self.places

    def settle(self, permit: Permit, used: Tokens | None, cost: float, *, is_sure: bool) -> None:
        self.paid += 1

    def release(self) -> None:
        self.places -= 1

    def note_answer(self, outcome: Outcome) -> None:
        pass
