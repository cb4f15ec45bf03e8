"""The sink of a batch: collects outcomes into requests, and writes their rows with their notes.

A request gets its row when all its samples are there. Where rows are stored is passed in: a file, or a pipe.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ...engine.call import Outcome
from ...engine.fault import LocalFault
from .requests import BadLine, BatchRequest
from .rows import Note, NotedRow, note_of, row_of, row_of_broken


class Keeper(Protocol):
    @property
    def fault(self) -> LocalFault | None: ...

    def keep(self, written: NotedRow) -> None: ...

    def note(self, note: Note) -> None: ...

    def flush(self) -> None: ...


# A request that waits for its samples, one call each, and the outcomes it has so far.
OpenRequest = tuple[BatchRequest, list[Outcome]]


class BatchSink:
    """The sink that collects a batch's outcomes into rows. `tag` begins the id of every row; `ended` is called after
    each row."""

    def __init__(self, keeper: Keeper, tag: str) -> None:
        self.ended: Callable[[], None] = lambda: None
        self._keeper = keeper
        self._tag = tag
        self._partly: dict[int, OpenRequest] = {}

    @property
    def fault(self) -> LocalFault | None:
        return self._keeper.fault

    def write(self, outcome: Outcome) -> None:
        asking: OpenRequest = outcome.call.tag
        request, outcomes = asking
        outcomes.append(outcome)
        if len(outcomes) < request.asked.count:
            self._partly[request.line] = asking
            return
        self._partly.pop(request.line, None)
        outcomes.sort(key=lambda outcome: outcome.call.trial)
        self._keep(row_of(request, outcomes, self._tag))

    def write_broken(self, wrong: BadLine) -> None:
        self._keep(row_of_broken(wrong, self._tag))

    def write_rest(self) -> None:
        """Writes notes with the cost of samples whose requests stay pending, so that a limit on cost counts them."""
        for request, outcomes in self._partly.values():
            self._keeper.note(note_of(request, outcomes, None))
        self._partly.clear()

    def flush(self) -> None:
        self._keeper.flush()

    def _keep(self, written: NotedRow) -> None:
        self._keeper.keep(written)
        self.ended()
