"""Errors of our own side that end a run: a folder, a store or a disk that can't be used, a lane that stopped.

Distinct from a failure (the provider's, one call's): these stop sending, lose nothing, and say what to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from .exit_codes import LOCAL_FAULT

StopReason = Literal[
    "dead_key", "empty_account", "redirect", "rejected", "truncated", "budget", "patience", "interrupted", "local_fault"
]


class Stop(Struct, frozen=True):
    """Why a lane sends nothing more. Calls that were not sent stay pending."""

    lane: str
    """The stopped lane; empty: all lanes."""
    reason: StopReason
    """One of `StopReason`, as `dead_key` or `budget`."""
    detail: str
    """One line: what happened and what to do."""


class LocalFault(Exception):
    """Raised when our own machine can't do its part: a folder, store or disk can't be used, a library is missing, a
    helper process does not start. The message is one line: what, where, what to do."""

    exit_code = LOCAL_FAULT


class RunHeld(LocalFault):
    """Raised when another process is writing this run."""


class DamagedJournal(LocalFault):
    """Raised for a line of a journal that is whole, but not what was written."""


class Stopped(Exception):
    """Raised at the end of a run that could not send everything: calls that were not sent stay pending."""

    def __init__(self, stops: Sequence[Stop]) -> None:
        super().__init__("; ".join(stop.detail for stop in stops))
        self.stops = tuple(stops)
