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


def missing_module(error: BaseException) -> str:
    """The module that an ImportError is about, by its first name, also where a library raised an error of its own in
    its place; "" where none is missing."""
    at: BaseException | None = error
    while at is not None:
        if isinstance(at, ModuleNotFoundError) and at.name:
            return at.name.partition(".")[0]
        at = (at.__cause__ or at.__context__) if isinstance(at, ImportError) else None
    return ""


def missing_told(error: ImportError) -> str:
    """What is missing or broken, and what to do about it, in a line."""
    name = missing_module(error)
    if name:
        return f"{name} is missing: pip install {name}, or install Millstream anew"
    return f"{' '.join(str(error).split())[:500]}: install Millstream anew"
