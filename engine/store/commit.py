"""One commit of a cache and what follows it: each answer's journal line, then the callers that wait for the answer.

Callers continue only once both are safe; lines of one journal share one write. Knows no store.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from typing import Any, NamedTuple

from ..fault import LocalFault
from ..sink import Sink, SinkLine


class StoreRow(NamedTuple):
    """One entry to store. `done` is its caller's future, who may have left; `line` the journal line that follows."""

    db: Any
    key: bytes
    stored: bytes
    done: asyncio.Future[None]
    line: SinkLine | None = None


class CommitGroup(NamedTuple):
    """What one commit writes: rows, bodies that are stored apart, and values derived from bodies."""

    rows: list[StoreRow]
    bodies: dict[bytes, bytes]
    kept: dict[bytes, bytes]

    def end(self, fault: LocalFault | None) -> None:
        """Writes the journal lines and lets the callers go on. With a fault the commit has failed: no line is written,
        and the callers get the fault."""
        if fault is None:
            self._write_lines()
        for row in self.rows:
            if not row.done.done():
                row.done.set_result(None) if fault is None else row.done.set_exception(fault)

    def _write_lines(self) -> None:
        written: dict[int, tuple[Sink, list[asyncio.Future[None]]]] = {}
        for _, _, _, done, line in self.rows:
            if line is None or line.sink is None or done.done():
                continue
            sink = line.sink
            try:
                sink.write(line.outcome)
            except Exception as error:  # noqa: BLE001 (raised where this one is waited for)
                done.set_exception(error)
                continue
            of_sink = written.get(id(sink))
            if of_sink is None:
                of_sink = written[id(sink)] = sink, []
            of_sink[1].append(done)
        for sink, waiting in written.values():
            try:
                sink.flush()
            except Exception as error:  # noqa: BLE001 (raised where each of these is waited for)
                for done in waiting:
                    done.set_exception(error)


class ThreadCommit(NamedTuple):
    """A commit that runs in the writer's thread. `end` results in its fault, or None; `began` is by `perf_counter`."""

    group: CommitGroup
    end: Future[LocalFault | None]
    began: float
