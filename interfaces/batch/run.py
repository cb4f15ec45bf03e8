"""Runs one batch, from opening its input to closing its manifest.

Owns the order: output, engine, lines, count, the input's order. The result is counted from the files, so that neither
summary nor exit code can claim more than they hold.
"""

from __future__ import annotations

import asyncio
import sys
import time
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TextIO

from msgspec import Struct, structs

from ...configuration import errors as refusal
from ...engine.attempts.budget_file import NOTHING, Amounts
from ...engine.collector import calm_collector
from ...engine.fault import LocalFault, Stop, Stopped
from ...engine.remarks import remark
from ...engine.runs.pairs import PairCounts
from ...engine.version import VERSION
from ...wiring import Settings
from ...wiring.engine import Engine
from ...wiring.event_loop import loop_factory
from ...wiring.folder_budget import drop_budget, money_of, place_of, unsure_of
from ...wiring.lane_names import without_lane
from ...wiring.signals import DRAIN_S, Interruption
from ..terminal.output import note
from .batch_store import Book
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


class SendingEnd(Struct):
    """How sending ended. `maybe_billed`: attempts for calls that are still pending and in no row. `lost_keys`: API keys
    that stopped while others took over. `seen`: how many lines were read. `charged`: dollars that counted against
    the limit."""

    stops: Sequence[Stop] = ()
    signal: int | None = None
    fault: LocalFault | None = None
    maybe_billed: int = 0
    lost_keys: Sequence[tuple[str, Stop]] = ()
    seen: int = 0
    charged: Amounts = NOTHING


class BatchResult(Struct, kw_only=True):
    """The result of a batch: how its rows ended, and why there are no more. `place` is None for a batch through a pipe,
    whose `requests` are those that were read. `already`: rows that were there before. `maybe_billed_pending`:
    attempts for unanswered calls that may have been billed; `in_flight_at_kills`: the most calls that were in flight
    when the batch was killed. `money`: the dollars spent, certainly and at most, and `max_cost` their limit; None
    without a limit."""

    place: BatchPlace | None
    ended: PairCounts
    requests: int
    already: int = 0
    seconds: float = 0.0
    sent: SendingEnd
    maybe_billed_pending: int = 0
    in_flight_at_kills: int = 0
    money: Amounts | None = None
    max_cost: float | None = None

    @property
    def pending(self) -> int:
        return max(0, self.requests - self.ended.answered - self.ended.failures)

    @property
    def exit_code(self) -> int:
        if self.sent.signal is not None:
            return refusal.SIGNAL + self.sent.signal
        if self.sent.fault is not None:
            return refusal.LOCAL_FAULT
        # A redirect stops its lane, however many calls in flight were redirected.
        if self.pending or "redirect" in self.ended.failed or (self.place is None and self.sent.stops):
            return refusal.RESUMABLE
        return refusal.WITH_FAILURES if self.ended.failures else refusal.DONE


def carry_out(batch: Batch, source: InputFile, place: BatchPlace) -> BatchResult:
    """Runs a batch from a file into a file, and returns its result. The same command resumes it after a stop."""
    began, survey = time.monotonic(), source.survey()
    tag = survey.digest[:TAG_CHARS]
    check_first(source.read(), BatchModels(batch.settings, batch.names, batch.model), str(source.path))
    specification = {"benchmark": "batch", "input": survey.digest, **batch.said}
    retry, set_aside = batch.retry, batch.set_aside
    with Book(place, specification, tag, survey.last, retry=retry, set_aside=set_aside) as book, calm_collector():
        already, sent = book.already, SendingEnd()
        batch = structs.replace(
            batch, settings=_settings(batch, book, source, survey, is_done=already >= survey.requests)
        )
        if already < survey.requests:
            sink = BatchSink(book, tag)
            progress = (survey.requests, already) if batch.show_progress else None
            is_done = book.done.__getitem__
            sent = sent_by(send(batch, source.lines(), sink, lambda line: bool(is_done(line)), book, progress))
        result = _conclude(batch, book, survey, sent, is_unchanged=already >= survey.requests)
        result.already, result.seconds = already, time.monotonic() - began
        return result


def sent_by(sending: Coroutine[None, None, SendingEnd]) -> SendingEnd:
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(sending)


def _settings(batch: Batch, book: Book, source: InputFile, survey: InputSurvey, *, is_done: bool) -> Settings:
    """Returns the settings of an engine for this batch, which may be resumed; writes its start to the manifest."""
    manifest, cost = book.folder.manifest, book.spent or 0.0
    unsure = unsure_of(book.folder.folder, manifest, cost)
    budget = None
    if batch.settings.max_cost is not None:
        models = BatchModels(batch.settings, batch.names, batch.model)
        at_most = cost + unsure.at_worst(lambda: worst_call(source.read(), models))
        budget = place_of(book.folder.folder, Amounts(at_most, cost))
    was_killed = manifest.get("started") is not None and manifest.get("ended") is None
    kills = manifest.get("in_flight_at_kills", 0) + (manifest.get("in_flight_max", 0) if was_killed else 0)
    book.folder.write_manifest(
        maybe_billed_pending=manifest.get("maybe_billed_pending", 0),
        in_flight_at_kills=kills,
        in_flight_max=0,
        **unsure.notes(has_budget=budget is not None),
        run_id=manifest.get("run_id") or uuid.uuid4().hex,
        started=manifest.get("started") or _now(),
        ended=manifest.get("ended") if is_done else None,
        versions={"millstream": VERSION},
        lines=survey.last,
        requests=survey.requests,
    )
    if budget is None:
        drop_budget(book.folder.folder)
    started = datetime.fromisoformat(manifest["started"]).timestamp()
    return structs.replace(batch.settings, run_id=manifest["run_id"], budget=budget, run_started=started)


async def send(
    batch: Batch,
    lines: AsyncIterator[InputLine],
    sink: BatchSink,
    is_done: Callable[[int], bool],
    book: Book | None,
    counts: tuple[int, int] | None,
) -> SendingEnd:
    """Sends the lines that have no row, and returns how that ended. `counts`: the number of all requests and of those
    done before, for the progress; None: it is not shown."""
    from ..terminal.progress import RunDisplay

    task = asyncio.current_task()
    assert task is not None
    models, sent = BatchModels(batch.settings, batch.names, batch.model), SendingEnd()
    async with Engine(settings=batch.settings) as engine:

        def drain(name: str) -> None:
            engine.halt("interrupted", f"interrupted by {name}")
            note(f"millstream: {name}: waiting up to {DRAIN_S:.0f} s for calls in flight; once more drops them")

        def cancel() -> None:
            task.cancel()

        def reached(model: str) -> None:
            """Records a model's calls that may be in flight if the process is killed."""
            if told := without_lane(model, batch.settings):
                remark(told)
            if book is not None:
                book.folder.write_manifest(in_flight_max=sum(map(batch.settings.concurrency_of, models.reached)))

        questions = Questions(lines, models, sink, is_done, repeats_are_new=batch.repeats_are_new, reached=reached)
        stream: TextIO | None = sys.stderr
        total, already = counts or (0, 0)
        with (
            Interruption(drain, cancel) as interruption,
            RunDisplay(
                engine, total, already, stream=stream if counts is not None else None, item="request"
            ) as progress,
        ):
            sink.ended = progress.item_ended
            try:
                async for _ in engine.run(questions.calls(), sink):
                    pass
            except Stopped as stopped:
                sent.stops = stopped.stops
            except LocalFault as fault:
                sent.fault = fault
            except asyncio.CancelledError:
                if interruption.number is None:
                    raise
                task.uncancel()
        sent.stops = (*sent.stops, *models.stops.values())
        sent.signal, sent.seen = interruption.number, questions.seen
        sent.maybe_billed = engine.scheduler.maybe_billed_pending
        route_lanes = [route.lane for route in engine.scheduler.routes.values()]
        sent.charged = engine.purse.amounts
        sent.lost_keys = [lost for lane in route_lanes if lane.stopped is None for lost in lane.stopped_keys]
        if not sent.stops and sent.signal is None and sent.fault is None:
            engine.forget_run()
    try:
        sink.write_rest()
        sink.flush()
    except LocalFault as fault:
        sent.fault = sent.fault or fault
    return sent


def _conclude(batch: Batch, book: Book, survey: InputSurvey, sent: SendingEnd, *, is_unchanged: bool) -> BatchResult:
    """Counts the rows on disk, puts them in order, closes the manifest and returns the result."""
    try:
        book.close_rows()
    except LocalFault as fault:
        sent.fault = sent.fault or fault
    sent.fault = sent.fault or book.fault
    result = BatchResult(
        place=book.place, ended=book.count(is_unchanged=is_unchanged), requests=survey.requests, sent=sent
    )
    result.money = money_of(batch.settings.budget, result.ended.cost or 0.0, result.ended.at_worst)
    result.max_cost = batch.settings.max_cost
    try:
        if batch.in_order and not result.pending:
            book.put_in_order()
        manifest = book.folder.manifest
        unsure = manifest["maybe_billed_pending"] + sent.maybe_billed
        result.maybe_billed_pending, result.in_flight_at_kills = unsure, manifest["in_flight_at_kills"]
        counts = {"answered": result.ended.answered, "failed": result.ended.failures}
        book.folder.write_manifest(ended=_now(), counts=counts, maybe_billed_pending=unsure)
    except LocalFault as fault:
        sent.fault = sent.fault or fault
    return result


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
