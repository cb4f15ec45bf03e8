"""Sends items of several steps, for all pairs side by side; each step is a journal line.

Decides how many items run, shares them between pairs, ends the pairs that a stop concerns, and counts the cost of
stopped items. Items write their own lines in order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from contextvars import ContextVar

from msgspec import Struct

from ....engine.fault import LocalFault, Stop, Stopped
from ....engine.pairs import Pair
from ....engine.runs.run_folder import RunFolder
from ..door.defect import BenchmarkDefect
from ..door.outside import Outside
from ..door.watch import UNSEEN, ItemProgress
from .item_run import ItemRun
from .journals import UNRECORDED

AT_ONCE = 64
AT_ONCE_MAX = 512


class UnderWay(Struct):
    """The state of an item that is running with a pair."""

    pair: Pair
    """The model and its temperature."""
    item: str
    """The item's id."""
    has_ended: bool = False
    """Whether it ran to its end without a stop."""
    has_failed: bool = False
    """Whether a step of it failed."""
    seconds: float = 0.0
    """The time that it took to its end."""

    @property
    def is_whole(self) -> bool:
        return self.has_ended and not self.has_failed


UNDER_WAY: ContextVar[UnderWay | None] = ContextVar("the item under way", default=None)
"""The item that the current task works for; tasks that it starts inherit the value."""


class StepSweep:
    """The workers that run a run's items. Each takes the next item from the pair with the fewest running, so that a
    slow model delays its own items only. `progress` hears of each journal line."""

    def __init__(self, engine: Outside, folder: RunFolder, progress: ItemProgress = UNSEEN) -> None:
        self._engine = engine
        self._folder = folder
        self._progress = progress
        self._waiting: dict[Pair, Iterator[ItemRun]] = {}
        self._under_way: dict[Pair, int] = {}
        self._stops: dict[tuple[str, str], Stop] = {}
        self._errors: list[LocalFault | BenchmarkDefect] = []
        self._unrecorded = 0.0

    def __repr__(self) -> str:
        return f"<StepSweep [{sum(self._under_way.values())} items under way, {len(self._waiting)} pairs with more]>"

    def write(self, line: bytes, *, is_failure: bool) -> None:
        """Writes one line and makes it safe against a kill before it returns."""
        journal = self._folder.failures if is_failure else self._folder.records
        journal.append(line)
        journal.flush()
        if is_failure and (under_way := UNDER_WAY.get()) is not None:
            under_way.has_failed = True
        if self._folder.fault is not None:
            self._halt(self._folder.fault)
        self._progress.item_ended()

    async def run(self, waiting: Mapping[Pair, Iterator[ItemRun]], at_once: int = AT_ONCE) -> list[Stop]:
        """Runs the waiting items, which are read lazily, `at_once` at a time. Returns the stops that left steps
        pending. Raises LocalFault or BenchmarkDefect once no item is running."""
        self._waiting = dict(waiting)
        self._under_way = dict.fromkeys(waiting, 0)
        try:
            async with asyncio.TaskGroup() as group:
                for number in range(at_once):
                    if not self._waiting:
                        break
                    group.create_task(self._work(), name=f"item worker {number}")
                    # Cached answers never wait: to begin all items at once would block the loop.
                    await asyncio.sleep(0)
        finally:
            self._note_unrecorded()
        if self._errors:
            raise self._errors[0]
        return list(self._stops.values())

    async def _work(self) -> None:
        # Drawing never awaits, so no item is run twice.
        while (drawn := self._draw()) is not None:
            pair, item = drawn
            self._under_way[pair] += 1
            under_way = UnderWay(pair, item.id)
            UNDER_WAY.set(under_way)
            began = asyncio.get_running_loop().time()
            try:
                await item.run()
                under_way.has_ended, under_way.seconds = True, asyncio.get_running_loop().time() - began
            except Stopped as error:
                self._note(pair, error.stops)
            except (LocalFault, BenchmarkDefect) as error:
                self._halt(error)
            finally:
                self._unrecorded += item.unrecorded
                self._under_way[pair] -= 1

    def _draw(self) -> tuple[Pair, ItemRun] | None:
        while self._waiting:
            pair = min(self._waiting, key=self._under_way.__getitem__)
            try:
                item = next(self._waiting[pair], None)
            except BenchmarkDefect as error:
                self._halt(error)
                return None
            if item is not None:
                return pair, item
            del self._waiting[pair]
        return None

    def _halt(self, error: LocalFault | BenchmarkDefect) -> None:
        # All pairs write to the same folder: calls in flight are finished, and nothing more is sent.
        if not self._errors:
            self._engine.halt("local_fault" if isinstance(error, LocalFault) else "interrupted", str(error))
        self._errors.append(error)
        self._waiting.clear()

    def _note(self, pair: Pair, stops: Iterable[Stop]) -> None:
        for stop in stops:
            if stop.reason == "local_fault":
                self._halt(LocalFault(stop.detail))
                continue
            self._stops[stop.lane, stop.reason] = stop
            # A stop of the model under test ends its own pairs only. Any other stop (a judge's, a search's) ends all
            # pairs; a model that is both is met again by the next pair.
            if stop.lane == pair.model:
                for other in [other for other in self._waiting if other.model == pair.model]:
                    del self._waiting[other]
            else:
                self._waiting.clear()

    def _note_unrecorded(self) -> None:
        """Adds the cost of calls without a line to the manifest. Their answers are in the cache and cost nothing later,
        but a cost limit must count them."""
        if self._unrecorded and self._folder.fault is None:
            before = float(self._folder.manifest.get(UNRECORDED, 0.0))
            # A disk that takes no manifest is reported where the run is closed.
            with suppress(LocalFault):
                self._folder.write_manifest(**{UNRECORDED: before + self._unrecorded})
