"""One stream of events, from which progress, dashboard and metrics are fed.

The engine says what happened; it keeps no totals and formats nothing. Without a subscriber an event costs one test.
"""

from __future__ import annotations

import asyncio
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


class Event(Struct, frozen=True, gc=False):
    """One fact about a call or a lane, for progress, metrics and logs."""

    kind: Kind
    """What happened. `failed` ends a call that was sent, `unsent` one that was not."""
    lane: str
    """The lane it happened on."""
    value: float = 0.0
    """Seconds for `waited` and `throttled` (the pause), dollars for `spent`, milliseconds for `answered`, calls per
    second for `cut`; else 0.0."""
    detail: str = ""
    """The reason, or the kind of failure; `unsure` for money that may not have been billed."""


class Events:
    """The publisher of events. Listeners are called at once, within `tell`, and must not block. What one raises is
    raised in a turn of the loop of its own: it stops no call, and is reported as asyncio reports it."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[Event], None]] = []

    def subscribe(self, listener: Callable[[Event], None]) -> Callable[[], None]:
        """Adds a listener, and returns a function that removes it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def tell(self, kind: Kind, lane: str, value: float = 0.0, detail: str = "") -> None:
        if self._listeners:
            event = Event(kind, lane, value, detail)
            for listener in self._listeners:
                try:
                    listener(event)
                except BaseException as error:  # noqa: BLE001 (raised by the loop)
                    asyncio.get_running_loop().call_soon(_raise, error)


def _raise(error: BaseException) -> None:
    raise error
