"""Sends items of one call each, made with `call` and `record`: one stream for each pair, no task for each item.

A pair that stops or is slow delays no other; a fault of this machine ends all. A defect in the benchmark's code writes
no line and ends all pairs; an answer that could not become a record stays in the cache.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from msgspec import Struct, structs

from ....engine.call import Call, Outcome
from ....engine.fault import LocalFault, Stop, Stopped, StopReason
from ....engine.pairs import Pair
from ....engine.runs.proof import ANSWERED
from ....engine.runs.run_folder import RunFolder
from ....engine.sink import Sink
from ..door.ask import check_pair
from ..door.benchmark import ItemBenchmark
from ..door.defect import BenchmarkDefect, defect_of
from ..door.item import Item
from ..door.outside import CallCosts
from ..door.record import StepPlace, StepRecord, failed_call
from ..door.watch import UNSEEN, ItemProgress
from .journals import encode


class StreamRunner(Protocol):
    """The interface of the engine's methods that send streams of calls and end a run."""

    def run(self, calls: Iterable[Call], sink: Sink | None = None) -> AsyncIterator[Outcome]: ...

    def halt(self, reason: StopReason, detail: str) -> None: ...


class _ItemTag(NamedTuple):
    """The item and pair of a call, kept in its `tag`."""

    item: Item
    pair: Pair


class CallSweep(Struct):
    """The sender of a run's one-call items; it is also the sink that writes their outcomes as journal lines."""

    _benchmark: ItemBenchmark[Any]
    _runner: StreamRunner
    _folder: RunFolder
    _options: Any
    _progress: ItemProgress = UNSEEN
    _defect: BenchmarkDefect | None = None

    async def run(self, streams: Mapping[Pair, tuple[Iterable[Item], Any]]) -> list[Stop]:
        """Sends each pair's items, with the options of its calls. Returns the stops that left items pending. Raises
        LocalFault or BenchmarkDefect once nothing is in flight."""
        calls = {pair: self._calls(items, options, pair) for pair, (items, options) in streams.items()}
        stops = await send_calls(self._runner, calls, self)
        if self._defect is not None:
            raise self._defect
        return stops

    @property
    def fault(self) -> LocalFault | None:
        return self._folder.fault

    def write(self, outcome: Outcome) -> None:
        tag: _ItemTag | Item = outcome.call.tag
        try:
            if isinstance(tag, Item):
                record = self._benchmark.line_of(outcome, self._options)
            else:
                record = self._filled(tag, outcome)
            line = encode(record)
        except (Exception, SystemExit) as error:  # noqa: BLE001 (a border: the code is somebody else's)
            item = tag if isinstance(tag, Item) else tag.item
            self._end(defect_of(error, self._benchmark.title, item.id))
            return
        (self._folder.records if record.status in ANSWERED else self._folder.failures).append(line)

    def flush(self) -> None:
        self._folder.records.flush()
        self._folder.failures.flush()

    def _calls(self, items: Iterable[Item], options: Any, pair: Pair) -> Iterator[Call]:
        item: Item | None = None
        try:
            for item in items:
                call = self._benchmark.call(item, options, pair)
                # What _tagged checks, without a frame for each of a hundred thousand calls.
                is_whole = type(call) is Call and call.tag is item and item.steps == 1
                if not (is_whole and (call.model, call.temperature, call.reasoning_effort) == pair):
                    call = self._tagged(call, item, pair)
                yield call
        except (Exception, SystemExit) as error:  # noqa: BLE001
            self._end(defect_of(error, self._benchmark.title, None if item is None else item.id))

    def _tagged(self, call: Call, item: Item, pair: Pair) -> Call:
        """Returns a checked call with item and pair as its tag. A benchmark that tags it with the item alone makes the
        whole line of its outcome."""
        if item.steps != 1:
            more = f"it has {item.steps} steps, and one with call() has one: use run() for more"
            raise self._defect_in(item, more)
        if not isinstance(call, Call):
            raise self._defect_in(item, f"call() must make a Call, it made a {type(call).__name__}")
        if (call.model, call.temperature, call.reasoning_effort) != pair:
            check_pair(call, pair, f"{self._benchmark.title}, item {item.id!r}")
        return call if call.tag is item else structs.replace(call, tag=_ItemTag(item, pair))

    def _filled(self, tag: _ItemTag, outcome: Outcome) -> StepRecord:
        spent, place = CallCosts(), StepPlace(tag.item, 1, tag.pair)
        spent.add_answer(outcome)
        if outcome.failure is not None:
            return failed_call(outcome.failure, "subject").as_written(place, spent)
        record, kind = self._benchmark.record(tag.item, outcome, self._options), self._benchmark.Record
        if not isinstance(record, kind):
            raise self._defect_in(tag.item, f"record() must make a {kind.__name__}, it made a {type(record).__name__}")
        line: StepRecord = record.as_written(place, spent)
        if isinstance(score := getattr(record, "score", None), int | float):
            self._progress.scored(tag.pair, score)
        return line

    def _defect_in(self, item: Item, what: str) -> BenchmarkDefect:
        return BenchmarkDefect(f"{self._benchmark.title}, item {item.id!r}: {what}")

    def _end(self, error: BenchmarkDefect) -> None:
        """Stops sending and lets calls in flight finish."""
        if self._defect is None:
            self._defect = error
            self._runner.halt("interrupted", str(error))


async def send_calls(runner: StreamRunner, streams: Mapping[Pair, Iterable[Call]], sink: Sink) -> list[Stop]:
    """Sends the calls of all pairs side by side, each pair's read lazily; `sink` gets each outcome. Returns the stops
    that left calls pending (empty: none). A fault of our own machine ends all pairs and is raised as LocalFault after
    their end."""
    stops: dict[tuple[str, str], Stop] = {}
    faults: list[LocalFault] = []

    async def send_pair(pair: Pair, calls: Iterable[Call]) -> None:
        try:
            async for _ in runner.run(calls, sink):
                pass
        except Stopped as error:
            stops.update({(stop.lane, stop.reason): stop for stop in error.stops})
        except LocalFault as fault:
            # All pairs write to the same place: the others finish their calls in flight and send nothing more.
            runner.halt("local_fault", str(fault))
            faults.append(fault)

    async with asyncio.TaskGroup() as group:
        for pair, calls in streams.items():
            group.create_task(send_pair(pair, calls), name=f"sending to {pair}")
    if faults:
        raise faults[0]
    return list(stops.values())
