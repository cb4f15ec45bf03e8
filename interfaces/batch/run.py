"""Runs one batch, from opening its input to closing its manifest.

Owns the order: output, engine, lines, count, the input's order. The result is counted from the files, so that neither
summary nor exit code can claim more than they hold.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from msgspec import Struct, structs

from ...engine.collector import calm_collector
from ...engine.fault import LocalFault
from ...engine.pairs import PairCounts
from ...engine.remarks import remark
from ...engine.version import VERSION
from ...wiring import Settings
from ...wiring.engine import Engine
from ...wiring.event_loop import run_in_loop
from ...wiring.folder_budget import money_of
from ...wiring.folder_run import FolderCost, begin_run, end_run
from ...wiring.lane_names import without_lane
from ...wiring.running import RunEnd, running
from .batch_store import BatchStore
from .input import InputFile, InputLine, InputSurvey
from .place import BatchPlace
from .questions import BatchModels, Questions, check_first, worst_call
from .rows import TAG_CHARS
from .sink import BatchSink


class Batch(Struct, frozen=True, kw_only=True):
    """The specification of a batch. `model` replaces every line's own; `names` maps clients' names to models.
    `repeats_are_new`: equal requests are new trials; `in_order`: the output is put in the order of the input;
    `retry`: lines that failed are sent again; `set_aside`: damaged rows are moved to their own file. `said` has the
    options that decide answers."""

    settings: Settings
    model: str | None = None
    names: Mapping[str, str] = {}
    repeats_are_new: bool = True
    in_order: bool = False
    retry: bool = False
    set_aside: bool = False
    show_progress: bool = True
    said: dict[str, Any] = {}


class BatchResult(Struct, kw_only=True):
    """The result of a batch: how its rows ended, and how sending did (`end`). `place` is None for a batch through a
    pipe, whose `requests` are those that were read. `already`: rows that were there before; `max_cost`: the limit in
    dollars (None: there is none)."""

    place: BatchPlace | None
    ended: PairCounts
    requests: int
    already: int = 0
    seconds: float = 0.0
    end: RunEnd
    max_cost: float | None = None

    @property
    def pending(self) -> int:
        return max(0, self.requests - self.ended.answered - self.ended.failures)

    @property
    def is_cut_short(self) -> bool:
        """Whether requests are pending, or were not even read from a pipe."""
        return self.pending > 0 or (self.place is None and bool(self.end.stops))

    @property
    def exit_code(self) -> int:
        return self.end.exit_code(
            is_pending=self.is_cut_short or self.ended.is_redirected, has_failures=self.ended.failures > 0
        )


def carry_out(batch: Batch, source: InputFile, place: BatchPlace) -> BatchResult:
    """Runs a batch from a file into a file, and returns its result. The same command resumes it after a stop."""
    began, survey = time.monotonic(), source.survey()
    tag = survey.digest[:TAG_CHARS]
    models = BatchModels(batch.settings, batch.names, batch.model)
    check_first(source.read(), models, str(source.path))
    specification = {"benchmark": "batch", "input": survey.digest, **batch.said}
    retry, set_aside = batch.retry, batch.set_aside
    store = BatchStore(place, specification, tag, survey.last, retry=retry, set_aside=set_aside)
    with store, calm_collector():
        already, end = store.already, RunEnd()
        is_done = already >= survey.requests
        settings = begin_run(
            store.folder,
            batch.settings,
            FolderCost(dollars=store.spent or 0.0, worst_call=lambda: worst_call(source.read(), models)),
            in_flight_max=0,
            is_done=is_done,
            versions={"millstream": VERSION},
            lines=survey.last,
            requests=survey.requests,
        )
        batch = structs.replace(batch, settings=settings)
        if not is_done:
            sink = BatchSink(store, tag)
            progress = (survey.requests, already) if batch.show_progress else None
            has_row = store.done.__getitem__
            end = run_in_loop(send(batch, source.lines(), sink, lambda line: bool(has_row(line)), store, progress))
        result = _conclude(batch, store, survey, end)
        result.already, result.seconds = already, time.monotonic() - began
        return result


async def send(
    batch: Batch,
    lines: AsyncIterator[InputLine],
    sink: BatchSink,
    is_done: Callable[[int], bool],
    store: BatchStore | None,
    counts: tuple[int, int] | None,
) -> RunEnd:
    """Sends the lines that have no row, and returns how that ended. `counts`: the number of all requests and of those
    done before, for the progress; None: it is not shown."""
    from ..terminal.progress import watch_on_stderr

    engine, models = Engine(settings=batch.settings), BatchModels(batch.settings, batch.names, batch.model)

    def reached(model: str) -> None:
        """Records a model's calls that may be in flight if the process is killed."""
        if warning := without_lane(model, batch.settings):
            remark(warning)
        if store is not None:
            store.folder.write_manifest(in_flight_max=sum(map(batch.settings.concurrency_of, models.reached)))

    questions = Questions(lines, models, sink, is_done, repeats_are_new=batch.repeats_are_new, reached=reached)
    watch = watch_on_stderr(is_shown=counts is not None)
    async with running(engine) as end:
        with watch(engine, *(counts or (0, 0)), "request") as progress:
            sink.ended = progress.item_ended
            try:
                async for _ in engine.run(questions.calls(), sink):
                    pass
                sink.flush()
                end.has_failures = store is not None and store.folder.has_failures
            finally:
                end.stops = tuple(models.stops.values())
                end.money = None if batch.settings.max_cost is None else engine.budget.amounts
    try:
        sink.write_rest()
        sink.flush()
    except LocalFault as fault:
        end.fault = end.fault or fault
    return end


def _conclude(batch: Batch, store: BatchStore, survey: InputSurvey, end: RunEnd) -> BatchResult:
    """Counts the rows on disk, puts them in order, closes the manifest and returns the result."""
    try:
        store.close_rows()
    except LocalFault as fault:
        end.fault = end.fault or fault
    end.fault = end.fault or store.fault
    ended = store.count()
    end.money = money_of(batch.settings.budget, ended.cost or 0.0, ended.at_worst)
    max_cost = batch.settings.max_cost
    result = BatchResult(place=store.place, ended=ended, requests=survey.requests, end=end, max_cost=max_cost)
    try:
        if batch.in_order and not result.pending:
            store.put_in_order()
        end_run(store.folder, end, counts={"answered": ended.answered, "failed": ended.failures})
    except LocalFault as fault:
        end.fault = end.fault or fault
    return result
