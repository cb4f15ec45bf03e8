"""Runs one item of a benchmark that yields records from `run`, and writes their lines.

Writes complete lines only, in the order of the steps. Errors of the benchmark's code become BenchmarkDefect here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Iterator
from contextlib import aclosing
from typing import Any, Protocol, cast

import msgspec

from ....engine.fault import LocalFault, Stopped
from ....engine.pairs import Pair
from ..door.ask import Ask, StepFailed
from ..door.benchmark import ItemBenchmark
from ..door.defect import BenchmarkDefect, defect_of, leaves
from ..door.item import Item
from ..door.record import Record as BaseRecord
from ..door.record import StepPlace, StepRecord
from ..door.watch import UNSEEN, ItemProgress
from .journals import encode

Made = StepRecord | Coroutine[Any, Any, StepRecord]
"""What an item yields for a step: its record, or the work that makes it, which may take until the next step is made."""

_Known = LocalFault | Stopped | StepFailed | BenchmarkDefect


class Write(Protocol):
    """A function that writes a journal line."""

    def __call__(self, line: bytes, *, is_failure: bool) -> None: ...


class ItemRun:
    """One item that runs with one pair. `lines` are the journal lines of the steps that are done."""

    def __init__(
        self,
        benchmark: ItemBenchmark[Any],
        write: Write,
        ask: Ask,
        item: Item,
        pair: Pair,
        lines: list[bytes],
        progress: ItemProgress = UNSEEN,
    ) -> None:
        self._benchmark = benchmark
        self._progress = progress
        self._write_line = write
        self._ask = ask
        self._item = item
        self._pair = pair
        ids = item.line_ids()
        self._done = {ids.index(record.id) + 1: record for record in self._decoded(lines)}
        self._failed: StepFailed | None = None
        self._behind: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<ItemRun [{self._item.id} of {self._pair}: {len(self._done)} of {self._item.steps} steps before]>"

    @property
    def id(self) -> str:
        """The item's id."""
        return self._item.id

    @property
    def unrecorded(self) -> float:
        """The dollars that calls of the item cost and that no journal line has, as after a stop before a step's line
        was written."""
        return self._ask.unrecorded

    async def run(self) -> None:
        """Runs the remaining steps, up to one that fails for good. Raises Stopped if a lane sends nothing more, once
        nothing is in flight."""
        try:
            await self._run()
        except asyncio.CancelledError:
            await self._ask.finish(cancel=True)
            raise
        finally:
            # Calls in flight are finished also after a stop; their cost belongs to the failure's line.
            await self._ask.finish()
            if self._failed is not None:
                self._fail(self._failed)

    async def _run(self) -> None:
        missing = iter([step for step in range(1, self._item.steps + 1) if step not in self._done])
        self._ask.step = next(missing)
        try:
            await self._write_all(missing)
        except (Exception, SystemExit) as raised:
            error = self._error_of(raised)
            if isinstance(error, StepFailed):
                # A stop leaves earlier steps pending: they are asked first when the run continues, then this one.
                self._ask.check_ended(error.step)
                if self._ask.has_line(error.step):
                    raise self._defect(
                        f"a call of step {error.step} failed after its record: await it before"
                    ) from error
                self._failed = error
                return
            if error is raised:
                raise
            raise error from raised
        self._ask.check_ended()
        if self._ask.step:
            raise self._defect(f"run() ended before step {self._ask.step} of {self._item.steps} had its record")

    async def _write_all(self, missing: Iterator[int]) -> None:
        made = self._benchmark.run(self._item, self._ask, self._done)
        async with aclosing(cast(AsyncGenerator[Made, None], made)) as steps:
            try:
                async for each in steps:
                    await self._take(each)
                    self._ask.step = next(missing, 0)
            except (Exception, SystemExit) as raised:
                # The step before gets its record also if this one gets none; if that one fails, this one is dropped.
                try:
                    await self._write_behind()
                except StepFailed as failed:
                    if not isinstance(self._error_of(raised), LocalFault | Stopped):
                        raise
                    self._failed = failed
                raise
            await self._write_behind()

    async def _take(self, made: Made) -> None:
        """Writes the record of the step that is due, or begins the work that makes it. At most one step is behind."""
        try:
            await self._write_behind()
        except BaseException:
            if isinstance(made, Coroutine):
                made.close()
            raise
        if isinstance(made, Coroutine):
            self._behind = self._ask.begin(self._write_made(self._ask.step, made))
            self._behind.add_done_callback(lambda _: made.close())  # it may have been cancelled before it began
        else:
            self._write(self._ask.step, made)

    async def _write_behind(self) -> None:
        if self._behind is not None:
            work, self._behind = self._behind, None
            await work

    async def _write_made(self, step: int, made: Coroutine[Any, Any, StepRecord]) -> None:
        """Writes a record as soon as it is made, since the next step may take long, or be cancelled."""
        self._write(step, await made)

    def _write(self, step: int, record: StepRecord) -> None:
        # Even if the benchmark caught the stop, the step has no result.
        self._ask.check_ended(step)
        kind = self._benchmark.Record
        if not isinstance(record, kind):
            raise self._defect(f"run() must yield a {kind.__name__}, it yielded {type(record).__name__}")
        named = record.step if isinstance(record, BaseRecord) else 0
        if not step or named not in (0, step):
            due = f"step {step} was due" if step else f"all {self._item.steps} steps have theirs"
            raise self._defect(f"run() yielded a record of step {named or 'none'}, and {due}")
        place = StepPlace(self._item, step, self._pair)
        line = encode(record.as_written(place, self._ask.take(step)))
        self._write_line(line, is_failure=record.is_failure)
        if isinstance(score := getattr(record, "score", None), int | float):
            self._progress.scored(self._pair, score)

    def _fail(self, error: StepFailed) -> None:
        place = StepPlace(self._item, error.step, self._pair)
        line = error.record.as_written(place, self._ask.take_all(error.step))
        self._write_line(encode(line), is_failure=True)

    def _decoded(self, lines: list[bytes]) -> Iterator[StepRecord]:
        kind = self._benchmark.Record
        for line in lines:
            try:
                yield msgspec.json.decode(line, type=kind)
            except msgspec.MsgspecError as error:
                raise self._defect(f"an earlier record is no {kind.__name__} any more ({error})") from error

    def _defect(self, what: str) -> BenchmarkDefect:
        return BenchmarkDefect(f"{self._benchmark.title}, item {self._item.id!r}: {what}")

    def _error_of(self, raised: BaseException) -> _Known:
        """Returns an exception of the item's code as one of the framework's errors. Of a group it is the gravest: a
        defect, a fault of this machine, a stop, then the failure of the first step."""
        return min((self._reported(each) for each in leaves(raised)), key=_weight)

    def _reported(self, error: BaseException) -> _Known:
        if isinstance(error, LocalFault | Stopped | StepFailed):
            return error
        return defect_of(error, self._benchmark.title, self._item.id)


def _weight(error: _Known) -> tuple[int, int]:
    kinds: tuple[type[_Known], ...] = (BenchmarkDefect, LocalFault, Stopped, StepFailed)
    rank = next(at for at, kind in enumerate(kinds) if isinstance(error, kind))
    return rank, error.step if isinstance(error, StepFailed) else 0
