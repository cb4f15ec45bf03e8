"""Where the outcomes of a batch go: gathered into requests, written as rows with their notes.

Owns that a request has its row once all its samples have come. Where rows are kept is a keeper's business: a book on
disk, or a pipe.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ...engine.call import Outcome
from ...engine.fault import LocalFault
from .requests import Broken, Request
from .rows import Note, Written, note_of_rest, row_of, row_of_broken


class Keeper(Protocol):
    @property
    def fault(self) -> LocalFault | None: ...

    def keep(self, written: Written) -> None: ...

    def note(self, note: Note) -> None: ...

    def flush(self) -> None: ...


class Asking:
    """A request on its way: as many calls as it wants samples."""

    __slots__ = ("outcomes", "request")

    def __init__(self, request: Request) -> None:
        self.request = request
        self.outcomes: list[Outcome] = []


class BatchSink:
    """`ended` is called after each row."""

    def __init__(self, keeper: Keeper, tag: str) -> None:
        self.ended: Callable[[], None] = lambda: None
        self._keeper = keeper
        self._tag = tag
        self._partly: dict[int, Asking] = {}

    @property
    def fault(self) -> LocalFault | None:
        return self._keeper.fault

    def write(self, outcome: Outcome) -> None:
        asking: Asking = outcome.call.tag
        request, outcomes = asking.request, asking.outcomes
        outcomes.append(outcome)
        if len(outcomes) < request.asked.count:
            self._partly[request.line] = asking
            return
        self._partly.pop(request.line, None)
        outcomes.sort(key=lambda outcome: outcome.call.trial)
        self._keep(row_of(request, outcomes, self._tag))

    def write_broken(self, wrong: Broken) -> None:
        self._keep(row_of_broken(wrong, self._tag))

    def write_rest(self) -> None:
        """What was paid for samples of requests that stay pending, so that a limit on costs knows of it."""
        for asking in self._partly.values():
            self._keeper.note(note_of_rest(asking.request, asking.outcomes))
        self._partly.clear()

    def flush(self) -> None:
        self._keeper.flush()

    def _keep(self, written: Written) -> None:
        self._keeper.keep(written)
        self.ended()
