"""One stream of small facts, from which progress, dashboard and metrics are all fed.

The engine says what happened; it keeps no totals and formats nothing. With no subscriber a fact costs
one truth test.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from msgspec import Struct

Kind = Literal[
    "cached",
    "sent",
    "answered",
    "retried",
    "failed",
    "unsent",
    "throttled",
    "cut",
    "learned",
    "stopped",
    "waited",
    "spent",
]


class Event(Struct, frozen=True):
    """One fact about a call or a lane, for progress, metrics and logs."""

    kind: Kind
    """What happened. `failed` ends a call that was sent, `unsent` one that was not."""
    lane: str
    """The lane it happened on."""
    value: float = 0.0
    """Seconds for `waited`, dollars for `spent`, milliseconds for `answered`."""
    detail: str = ""
    """The reason, or the kind of failure; `unsure` for money that may not have been billed."""


class Events:
    """Where facts are told and heard. Listeners run at once and must not block."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[Event], None]] = []

    def subscribe(self, listener: Callable[[Event], None]) -> Callable[[], None]:
        """Start listening; call what is returned to stop."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def tell(self, kind: Kind, lane: str, value: float = 0.0, detail: str = "") -> None:
        if self._listeners:
            event = Event(kind, lane, value, detail)
            for listener in self._listeners:
                listener(event)
