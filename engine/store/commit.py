"""One commit of a cache and what follows it: each answer's journal line, then the callers that wait for the answer.

Callers continue only once both are safe; lines of one journal share one write. Knows no store.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from msgspec import Struct

from ..fault import LocalFault
from ..sink import Sink, SinkLine

# What is called when an entry is stored and its line written, with the error if one of the two failed.
Done = Callable[[BaseException | None], None]


class StoreRow(Struct, eq=False):
    """One entry to store. `line` is the journal line that follows."""

    db: Any
    key: bytes
    stored: bytes
    done: Done
    line: SinkLine | None = None


class CommitGroup(NamedTuple):
    """What one commit writes: rows, bodies that are stored apart, and values derived from bodies. `began` is by
    `perf_counter`."""

    rows: list[StoreRow]
    bodies: dict[bytes, bytes]
    kept: dict[bytes, bytes]
    began: float = 0.0

    def end(self, fault: LocalFault | None) -> None:
        """Writes the journal lines and lets the callers go on. With a fault the commit has failed: no line is written,
        and the callers get the fault."""
        errors = self._write_lines() if fault is None else {}
        for number, row in enumerate(self.rows):
            row.done(fault if fault is not None else errors.get(number))

    def _write_lines(self) -> dict[int, BaseException]:
        """Writes the lines; returns the errors of their sinks, by the number of the row."""
        errors: dict[int, BaseException] = {}
        written: dict[int, tuple[SinkLine, Sink, list[int]]] = {}
        for number, row in enumerate(self.rows):
            if (line := row.line) is None or (sink := line.sink) is None:
                continue
            try:
                line.context.run(sink.write, line.outcome)
            except BaseException as error:  # noqa: BLE001 (raised where this one is waited for)
                errors[number] = error
                continue
            of_sink = written.get(id(sink))
            if of_sink is None:
                of_sink = written[id(sink)] = line, sink, []
            of_sink[2].append(number)
        for line, sink, numbers in written.values():
            try:
                line.context.run(sink.flush)
            except BaseException as error:  # noqa: BLE001 (raised where each of these is waited for)
                errors |= dict.fromkeys(numbers, error)
        return errors
