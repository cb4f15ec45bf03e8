"""Sends items of one call each, made with `call` and `record`, as a stream without a task for each item.

Decides which items are left. A defect in the benchmark's code writes no line and ends all pairs; an answer that could
not become a record stays in the cache.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Protocol

from msgspec import structs

from ...engine.call import Call, Outcome
from ...engine.fault import LocalFault, Stop
from ...engine.runs.pairs import FinishedItems, Pair
from ...engine.runs.run_folder import RunFolder
from .ask import check_pair
from .defect import BenchmarkDefect, defect_of
from .item import Item, ItemSet, each_item
from .journals import encode
from .record import StepPlace, StepRecord, StepSpent, failed_call
from .sweep import StreamRunner, send_calls


class CallBenchmark(Protocol):
    """The interface of a benchmark whose items are one call each."""

    @property
    def title(self) -> str: ...

    @property
    def Record(self) -> type[StepRecord]: ...

    def items(self, options: Any) -> Iterable[Item] | ItemSet: ...

    def call(self, item: Item, options: Any, pair: Pair) -> Call: ...

    def record(self, item: Item, outcome: Outcome, options: Any) -> StepRecord: ...


class _ItemTag(NamedTuple):
    """The item and pair of a call, kept in its `tag`."""

    item: Item
    pair: Pair


class CallSweep:
    """The sender of a run's one-call items; it is also the sink that writes their outcomes as journal lines."""

    def __init__(
        self,
        benchmark: CallBenchmark,
        runner: StreamRunner,
        folder: RunFolder,
        options: Any,
        items: Iterable[Item] | None = None,
    ) -> None:
        self._benchmark = benchmark
        self._runner = runner
        self._folder = folder
        self._options = options
        self._items = items
        self._defect: BenchmarkDefect | None = None

    async def run(self, pairs: Iterable[Pair], done: FinishedItems) -> list[Stop]:
        """Sends the items that are not done. Returns the stops that left items pending. Raises LocalFault or
        BenchmarkDefect once nothing is in flight."""
        stops = await send_calls(self._runner, {pair: self._calls(pair, done.of(pair)) for pair in pairs}, self)
        if self._defect is not None:
            raise self._defect
        return stops

    @property
    def fault(self) -> LocalFault | None:
        return self._folder.fault

    def write(self, outcome: Outcome) -> None:
        asked: _ItemTag = outcome.call.tag
        try:
            record = self._record(asked, outcome)
            line = encode(record)
        except (Exception, SystemExit) as error:  # noqa: BLE001 (a border: the code is somebody else's)
            self._end(defect_of(error, self._benchmark.title, asked.item.id))
            return
        (self._folder.failures if record.is_failure else self._folder.records).append(line)

    def flush(self) -> None:
        self._folder.records.flush()
        self._folder.failures.flush()

    def _calls(self, pair: Pair, done: set[str]) -> Iterator[Call]:
        item: Item | None = None
        try:
            for item in each_item(self._benchmark.items(self._options) if self._items is None else self._items):
                if item.id not in done:
                    yield self._call(item, pair)
        except (Exception, SystemExit) as error:  # noqa: BLE001
            self._end(defect_of(error, self._benchmark.title, None if item is None else item.id))

    def _call(self, item: Item, pair: Pair) -> Call:
        call = self._benchmark.call(item, self._options, pair)
        if item.steps != 1:
            raise self._defect_in(item, f"it has {item.steps} steps, and one with call() has one: use run() for more")
        if not isinstance(call, Call):
            raise self._defect_in(item, f"call() must make a Call, it made a {type(call).__name__}")
        check_pair(call, pair, f"{self._benchmark.title}, item {item.id!r}")
        return structs.replace(call, tag=_ItemTag(item, pair))

    def _record(self, asked: _ItemTag, outcome: Outcome) -> StepRecord:
        spent, place = StepSpent(), StepPlace(asked.item, 1, asked.pair)
        spent.add_answer(outcome)
        if outcome.failure is not None:
            return failed_call(outcome.failure, "subject").as_written(place, spent)
        record, kind = self._benchmark.record(asked.item, outcome, self._options), self._benchmark.Record
        if not isinstance(record, kind):
            raise self._defect_in(
                asked.item, f"record() must make a {kind.__name__}, it made a {type(record).__name__}"
            )
        return record.as_written(place, spent)

    def _defect_in(self, item: Item, what: str) -> BenchmarkDefect:
        return BenchmarkDefect(f"{self._benchmark.title}, item {item.id!r}: {what}")

    def _end(self, error: BenchmarkDefect) -> None:
        """Stops sending and lets calls in flight finish."""
        if self._defect is None:
            self._defect = error
            self._runner.halt("interrupted", str(error))
