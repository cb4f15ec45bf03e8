"""What ends a run from our own side: a folder, a store or a disk that can't be used, a lane that stopped.

Distinct from a failure (the provider's, one call's): these stop sending, lose nothing, and say what to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

StopReason = Literal[
    "dead_key", "empty_account", "redirect", "rejected", "truncated", "budget", "patience", "interrupted", "local_fault"
]


class Stop(Struct, frozen=True):
    """Why a lane sends nothing more. What was not sent stays pending."""

    lane: str
    reason: StopReason
    detail: str


class LocalFault(Exception):
    """Our own machine can't do its part: a folder, store or disk can't be used, a library is missing, a helper process
    does not start. One line: what, where, what to do."""


class RunHeld(LocalFault):
    """Another process writes this run."""


class DamagedJournal(LocalFault):
    """A line in the middle of a journal is not what was written."""


class Stopped(Exception):
    """Raised at the end of a run that could not send everything: what is missing stays pending."""

    def __init__(self, stops: Sequence[Stop]) -> None:
        super().__init__("; ".join(stop.detail for stop in stops))
        self.stops = tuple(stops)
