"""Who keeps the words of shared ledgers: a server, or the memory of one process that others ask; and what its clock
shows, within bounds that each of its answers narrows. Pure arithmetic on times of this process's loop."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import NamedTuple, Protocol

# How far two clocks may drift apart in a second, and how far their difference may seem to change in an instant: a loop
# may round its time to a millisecond.
_DRIFT = 0.001
_ROUNDED_S = 0.05
# For how long it is the turn of a process whose words were refused.
_TURN_S = 1.0


class Held(NamedTuple):
    """What the owner holds under a name, as it answers: whether what was offered is stored now, its version, its words
    and what follows them, the owner's clock, and for how long it has been running."""

    is_stored: bool
    version: int
    words: bytes
    now_s: float
    uptime_s: float


class ExchangeLost(Exception):
    """It is not known whether the owner has stored what was offered."""


class Exchange(Protocol):
    """The owner of the words of all lanes. `title`: what people call it."""

    title: str

    async def exchange(self, name: str, version: int, words: bytes, who: bytes) -> Held:
        """Stores words under a higher version if what is held under the name has this one, and if it is no other
        process's turn. A process whose words are refused because another was faster has the next turn, for a second at
        most; else one that is far away would never be the fastest. Empty words only read. A version is never used
        twice, also after words were lost. Raises ExchangeLost."""


class KeptLedgers:
    """An owner of words: `exchange` does what `Exchange.exchange` says, at once. `clock`: the time that it counts by,
    which is never set; `started_at`: when by this clock what was sent before can be forgotten."""

    def __init__(self, clock: Callable[[], float], started_at: float) -> None:
        self.started_at = started_at
        self.words: dict[str, tuple[int, bytes]] = {}
        self._clock = clock
        self._turns: dict[str, tuple[bytes, float]] = {}
        # Also another owner, on a machine whose clock is behind, has other versions.
        self._latest = time.time_ns() << 64 | int.from_bytes(os.urandom(8))

    def __repr__(self) -> str:
        return f"<KeptLedgers [{len(self.words)} lanes]>"

    def exchange(self, name: str, version: int, words: bytes, who: bytes) -> Held:
        now, (stored, before) = self._clock(), self.words.get(name, (0, b""))
        turn, until = self._turns.get(name, (who, 0.0))
        is_free = turn == who or until < now
        is_stored = bool(words) and stored == version and is_free
        if is_stored:
            self._turns.pop(name, None)
            self._latest += 1
            self.words[name] = stored, before = self._latest, words
        elif words and is_free:
            self._turns[name] = who, now + _TURN_S
        return Held(is_stored, stored, before, now, now - self.started_at)


class OwnerClock:
    """The clock of the owner of shared ledgers, as seconds. `took_s`: how long its latest answer took; `jumps`: how
    often it was set anew."""

    def __init__(self) -> None:
        self.took_s = 0.0
        self.jumps = 0
        # Bounds on what must be added to the time of this process's loop, as of the latest answer.
        self._least, self._most = float("-inf"), float("inf")
        self._at = 0.0

    def __repr__(self) -> str:
        return f"<OwnerClock [ahead by {self._least:.3f} to {self._most:.3f} s]>"

    def note(self, asked: float, answered: float, shown: float) -> None:
        """Takes in that it showed this at some moment between two times of the loop."""
        drift = _DRIFT * max(0.0, answered - self._at)
        least, most = max(self._least - drift, shown - answered), min(self._most + drift, shown - asked)
        if least > most:
            self.jumps += least > most + _ROUNDED_S
            least, most = shown - answered, shown - asked
        self._least, self._most, self._at, self.took_s = least, most, answered, answered - asked

    def read(self, now: float) -> float:
        """Returns the earliest that it may show now."""
        return now + self._least

    def when(self, shown: float) -> float:
        """Returns the earliest time of the loop at which it may show this."""
        return shown - self._most
