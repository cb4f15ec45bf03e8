"""Sends the items of a run that take several steps each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

from msgspec import Struct, field

from ....engine.fault import Stop
from ....engine.runs.pairs import FinishedItems, Pair
from ....engine.runs.run_folder import RunFolder
from ..door.defect import defect_of
from ..door.item import Item
from ..door.item_line import ItemLine
from ..door.item_set import ItemSet
from ..door.judges import Judges
from ..door.outside import Outside
from .item_run import ItemRun, Items, StepBenchmark
from .journals import OpenItems
from .steps import AT_ONCE, AT_ONCE_MAX, StepSweep


class SendPlan(Struct, frozen=True):
    """The items to send to every pair, without the `done` ones."""

    pairs: Sequence[Pair]
    options: Any
    done: FinishedItems
    items: ItemSet
    at_once: int = AT_ONCE
    """The number of items of several calls that run at once."""
    judges: Judges = field(default_factory=Judges)
    """How judges are asked."""
    specification: Mapping[str, Any] = MappingProxyType({})
    """The values that decide prompts and answers."""


def at_once_of(lanes: Iterable[tuple[int, float | None]], share: float | None = None) -> int:
    """Returns how many items of several calls keep the lanes of the models under test busy, within bounds. `lanes`: the
    calls in flight and the requests a minute of each (None: not declared). `share`: the items for each request a minute
    of a lane, at most its calls in flight; None: as many as these."""
    wanted = sum(in_flight if share is None else min(in_flight, (rpm or 0) * share) for in_flight, rpm in lanes)
    return max(AT_ONCE, min(AT_ONCE_MAX, round(wanted)))


class LinedBenchmark(StepBenchmark, Protocol):
    """The interface of a benchmark whose items take several steps, with the type of their lines."""

    @property
    def Line(self) -> type[ItemLine]: ...


async def send_steps_of(
    benchmark: LinedBenchmark, engine: Outside, folder: RunFolder, sent: SendPlan, line_written: Callable[[], None]
) -> list[Stop]:
    """Sends items of several calls. Returns the stops that left items pending; raises LocalFault or BenchmarkDefect
    once nothing is in flight. Calls `line_written` after every line."""
    sweep = StepSweep(engine, folder, line_written)
    shared = Items(benchmark, engine, sent.options, sweep.write, sent.judges, sent.specification)
    open_items = OpenItems(folder, sent.done, sent.items.steps, benchmark.Line)

    def runs(pair: Pair) -> Iterator[ItemRun]:
        item: Item | None = None
        try:
            for item in sent.items:
                lines = open_items.lines_of(pair, item.id, item.line_ids())
                if lines is not None:
                    yield ItemRun(shared, item, pair, lines)
        except (Exception, SystemExit) as error:
            raise defect_of(error, benchmark.title, None if item is None else item.id) from error

    return await sweep.run({pair: runs(pair) for pair in sent.pairs}, sent.at_once)
