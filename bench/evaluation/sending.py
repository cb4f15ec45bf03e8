"""Sends the items of a run, whether of one call each or of several steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

from msgspec import Struct, field

from ...engine.fault import Stop
from ...engine.runs.pairs import FinishedItems, Pair
from ...engine.runs.run_folder import RunFolder
from .call_items import CallBenchmark, CallSweep
from .defect import defect_of
from .item import Item, ItemSet, each_item
from .item_line import ItemLine
from .item_run import ItemRun, Items, StepBenchmark
from .journals import OpenItems
from .judges import Judges
from .outside import Outside
from .steps import AT_ONCE, AT_ONCE_MAX, StepSweep
from .sweep import StreamRunner


class CallSender(Outside, StreamRunner, Protocol):
    """The interface of the engine that sending needs."""


class SendPlan(Struct, frozen=True):
    """The items to send to every pair: those of `steps`, without the `done` ones."""

    pairs: tuple[Pair, ...]
    options: Any
    done: FinishedItems
    steps: Mapping[str, int]
    """The number of steps of each item, by its id."""
    at_once: int = AT_ONCE
    """The number of items of several calls that run at once."""
    judges: Judges = field(default_factory=Judges)
    """How judges are asked."""
    specification: Mapping[str, Any] = MappingProxyType({})
    """The values that decide prompts and answers."""
    items: Sequence[Item] | None = None
    """The items; None: the benchmark is asked for them again for every pair."""


def at_once_of(lanes: Iterable[tuple[int, float | None]], share: float | None = None) -> int:
    """Returns how many items of several calls keep the lanes of the models under test busy, within bounds. `lanes`: the
    calls in flight and the requests a minute of each (None: not declared). `share`: the items for each request a minute
    of a lane, at most its calls in flight; None: as many as these."""
    wanted = sum(in_flight if share is None else min(in_flight, (rpm or 0) * share) for in_flight, rpm in lanes)
    return max(AT_ONCE, min(AT_ONCE_MAX, round(wanted)))


async def send_calls_of(benchmark: CallBenchmark, engine: CallSender, folder: RunFolder, sent: SendPlan) -> list[Stop]:
    """Sends items of one call each. Returns the stops that left items pending; raises LocalFault or BenchmarkDefect
    once nothing is in flight."""
    return await CallSweep(benchmark, engine, folder, sent.options, sent.items).run(sent.pairs, sent.done)


class StepItems(StepBenchmark, Protocol):
    """The interface of a benchmark whose items yield records from `run`."""

    @property
    def Line(self) -> type[ItemLine]: ...

    def items(self, options: Any) -> Iterable[Item] | ItemSet: ...


async def send_steps_of(
    benchmark: StepItems, engine: Outside, folder: RunFolder, sent: SendPlan, line_written: Callable[[], None]
) -> list[Stop]:
    """Sends items of several calls, with the same results and errors as `send_calls_of`. Calls `line_written` after
    every line."""
    sweep = StepSweep(engine, folder, line_written)
    shared = Items(benchmark, engine, sent.options, sweep.write, sent.judges, sent.specification)
    open_items = OpenItems(folder, sent.done, sent.steps, benchmark.Line)

    def runs(pair: Pair) -> Iterator[ItemRun]:
        item: Item | None = None
        try:
            for item in each_item(benchmark.items(sent.options) if sent.items is None else sent.items):
                if item.id not in sent.steps:
                    continue  # a pilot has some of the items
                lines = open_items.lines_of(pair, item.id, item.line_ids())
                if lines is not None:
                    yield ItemRun(shared, item, pair, lines)
        except (Exception, SystemExit) as error:
            raise defect_of(error, benchmark.title, None if item is None else item.id) from error

    return await sweep.run({pair: runs(pair) for pair in sent.pairs}, sent.at_once)
