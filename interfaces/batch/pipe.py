"""A batch through pipes: answers requests as they arrive and writes rows as they end. Keeps no state to resume from.

A slow reader slows the batch down instead of filling the memory.
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading
import time
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

from ...configuration.errors import UsageError
from ...engine.fault import LocalFault
from ...engine.pairs import PairCounts
from ...engine.runs.run_folder import specification_hash
from ...wiring.event_loop import run_in_loop
from .batch_store import count_note
from .input import InputFile, InputLine, lines_of_pipe
from .rows import TAG_CHARS, Note, NotedRow
from .run import Batch, BatchResult, send
from .sink import BatchSink

STDIN, STDOUT = 0, 1
_ROWS_MAX = 1_024
_LOOK_EVERY_S = 0.01


class Pipe:
    """The output streams of a batch through pipes; `errors` None: all rows go to one. Use as a context manager. `read`
    counts the lines that were read."""

    def __init__(self, out: Path | None, errors: Path | None) -> None:
        self.fault: LocalFault | None = None
        self.ended = PairCounts()
        self.read = 0
        self._made: list[int] = []
        self._waiting: queue.SimpleQueue[tuple[int, bytes] | None] = queue.SimpleQueue()
        self._out = STDOUT if out is None else self._make(out)
        self._errors = self._out if errors is None else self._make(errors)
        # A slow reader must not hold up answers that are being received.
        self._writer = threading.Thread(target=self._write_on, name="rows", daemon=True)
        self._writer.start()

    def __enter__(self) -> Pipe:
        return self

    def __exit__(self, *_: object) -> None:
        self._waiting.put(None)
        self._writer.join()
        for fd in self._made:
            os.close(fd)

    @property
    def is_full(self) -> bool:
        return self._waiting.qsize() > _ROWS_MAX

    def keep(self, written: NotedRow) -> None:
        self.note(written.note)
        fd = self._out if written.note.is_answer else self._errors
        self._waiting.put((fd, written.row + b"\n"))
        count_note(self.ended, written.note)

    def note(self, note: Note) -> None:
        if note.cost is not None:
            self.ended.cost = (self.ended.cost or 0.0) + note.cost

    def flush(self) -> None:
        pass

    def _make(self, path: Path) -> int:
        try:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        except FileExistsError:
            raise UsageError(
                f"{path} is there already, and what goes through a pipe can't be gone on with: choose another, or "
                f"remove it"
            ) from None
        except OSError as error:
            raise LocalFault(f"{path} can't be written ({error.strerror}): choose another") from error
        self._made.append(fd)
        return fd

    def _write_on(self) -> None:
        while (taken := self._waiting.get()) is not None:
            fd, data = taken
            try:
                while data and self.fault is None:
                    data = data[os.write(fd, data) :]
            except OSError as error:
                what = "stdout" if fd == STDOUT else "the output"
                self.fault = LocalFault(
                    f"{what} can't be written ({error.strerror}): nothing more is sent; what was answered stays in the "
                    f"cache"
                )


def carry_out_through(batch: Batch, source: InputFile | None, out: Path | None, errors: Path | None) -> BatchResult:
    """Runs a batch from `source` (None: stdin) to `out` (None: stdout), and returns its result."""
    began, total = time.monotonic(), None
    tag = uuid.uuid4().hex[:TAG_CHARS]
    if source is not None:
        survey = source.survey()
        tag, total = specification_hash({"input": survey.digest})[:TAG_CHARS], survey.requests
    with Pipe(out, errors) as pipe:
        sink = BatchSink(pipe, tag)
        lines = _while_there_is_room(lines_of_pipe(STDIN) if source is None else source.lines(), pipe)
        counts = (total, 0) if batch.show_progress and total is not None else None
        end = run_in_loop(send(batch, lines, sink, lambda line: False, None, counts))
    # After everything is written: now it is known what stdout did not take.
    end.fault = end.fault or pipe.fault
    return BatchResult(
        place=None,
        ended=pipe.ended,
        requests=pipe.read if total is None else total,
        end=end,
        seconds=time.monotonic() - began,
        max_cost=batch.settings.max_cost,
    )


async def _while_there_is_room(lines: AsyncIterator[InputLine], pipe: Pipe) -> AsyncIterator[InputLine]:
    async for line in lines:
        # The writer is a thread, which can set no event of the loop's without waking it for every row.
        while pipe.is_full and pipe.fault is None:  # noqa: ASYNC110
            await asyncio.sleep(_LOOK_EVERY_S)
        pipe.read += 1
        yield line
