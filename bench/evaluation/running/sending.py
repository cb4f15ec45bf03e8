"""Sends the items of a run: those of one call as a stream, those of several steps side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ....engine.fault import Stop
from ....engine.pairs import FinishedItems, Pair
from ....engine.runs.run_folder import RunFolder
from ..door.ask import Ask
from ..door.defect import defect_of
from ..door.item import Item
from ..door.judges import Judges
from ..door.outside import Outside
from ..door.prepared_run import PreparedRun
from ..door.watch import ItemProgress
from .call_items import CallSweep
from .item_run import ItemRun
from .journals import OpenItems
from .steps import AT_ONCE, AT_ONCE_MAX, StepSweep

if TYPE_CHECKING:
    from ....wiring.engine import Engine


def at_once_of(lanes: Iterable[tuple[int, float | None]], share: float | None = None) -> int:
    """Returns how many items of several calls keep the lanes of the models under test busy, within bounds. `lanes`: the
    calls in flight and the requests a minute of each (None: not declared). `share`: the items for each request a minute
    of a lane, at most its calls in flight; None: as many as these."""
    wanted = sum(in_flight if share is None else min(in_flight, (rpm or 0) * share) for in_flight, rpm in lanes)
    return max(AT_ONCE, min(AT_ONCE_MAX, round(wanted)))


def at_once_in(run: PreparedRun) -> int:
    """Returns the number of items of several calls of a run that run at once."""
    settings, share = run.settings, run.benchmark.items_per_rpm
    under_test = dict.fromkeys(pair.model for pair in run.pairs)
    return at_once_of(((settings.concurrency_of(model), settings.quota_of(model).rpm) for model in under_test), share)


async def send_items(
    run: PreparedRun, engine: Engine, folder: RunFolder, done: FinishedItems, progress: ItemProgress
) -> list[Stop]:
    """Sends the items that are not done. Returns the stops that left items pending; raises LocalFault or
    BenchmarkDefect once nothing is in flight. Tells `progress` of every line where an item takes several calls, and of
    every record's `score`."""
    benchmark, settings = run.benchmark, run.settings
    if benchmark.reads_pages and settings.mode not in ("replay", "strict"):
        # Checked before anything is paid for. A replay has its texts already.
        await engine.check_pages()
    if not benchmark.has_calls:
        return await send_steps_of(run, engine, folder, done, progress, at_once_in(run), Judges(settings))
    streams = {
        pair: (
            run.items.left(done.of(pair).__contains__, is_untried=pair.model not in done.answered),
            run.options_of(pair),
        )
        for pair in run.pairs
    }
    return await CallSweep(benchmark, engine, folder, run.options, progress).run(streams)


async def send_steps_of(
    run: PreparedRun,
    engine: Outside,
    folder: RunFolder,
    done: FinishedItems,
    progress: ItemProgress,
    at_once: int,
    judges: Judges,
) -> list[Stop]:
    """Sends items of several calls, `at_once` side by side. Returns the stops that left items pending; raises
    LocalFault or BenchmarkDefect once nothing is in flight. Tells `progress` of every line and every `score`."""
    benchmark, sweep = run.benchmark, StepSweep(engine, folder, progress)
    open_items = OpenItems(folder, done, run.items.steps, benchmark.Line)

    def runs(pair: Pair) -> Iterator[ItemRun]:
        item: Item | None = None
        try:
            for item in run.items:
                lines = open_items.lines_of(pair, item.id, item.line_ids())
                if lines is not None:
                    ask = Ask(engine, benchmark.title, item, pair, run.options, judges, run.specification)
                    yield ItemRun(benchmark, sweep.write, ask, item, pair, lines, progress)
        except (Exception, SystemExit) as error:
            raise defect_of(error, benchmark.title, None if item is None else item.id) from error

    return await sweep.run({pair: runs(pair) for pair in run.pairs}, at_once)
