"""What one commit of a cache holds, and what follows it: each answer's line in its journal, then whoever waits for it.

The order of writes is here: nobody is told of an answer before both are safe, and one write of the system serves all
lines that go to one journal. Knows no store.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from typing import Any, NamedTuple

from .fault import LocalFault
from .sink import Line, Sink


class Row(NamedTuple):
    """One thing to store. Whoever waits for `done` may have left."""

    db: Any
    key: bytes
    stored: bytes
    done: asyncio.Future[None]
    line: Line | None = None


class Group(NamedTuple):
    """What one commit writes: rows, bodies that lie apart, and what was made of bodies."""

    rows: list[Row]
    bodies: dict[bytes, bytes]
    kept: dict[bytes, bytes]

    def end(self, fault: LocalFault | None) -> None:
        """The commit is done, or has failed: then no line is written here, and whoever waits is told."""
        if fault is None:
            self._write_lines()
        for row in self.rows:
            if not row.done.done():
                row.done.set_result(None) if fault is None else row.done.set_exception(fault)

    def _write_lines(self) -> None:
        written: dict[int, tuple[Sink, list[asyncio.Future[None]]]] = {}
        for _, _, _, done, line in self.rows:
            if line is None or done.done():
                continue
            sink, outcome = line
            try:
                sink.write(outcome)
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


class Writing(NamedTuple):
    """A commit in the writer's thread."""

    group: Group
    end: Future[LocalFault | None]
    began: float
