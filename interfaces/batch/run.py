"""One batch from its input's first byte to its output's last row, whatever happens on the way.

Owns the order: output, engine, lines, count, the input's order. What it gives is counted from the files read back, so
that neither summary nor exit code can claim more than they hold.
"""

from __future__ import annotations

import asyncio
import io
import sys
import time
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TextIO

from msgspec import Struct, structs

from ... import __version__
from ...engine.admission import Stop
from ...engine.budget_file import NOTHING, Amounts
from ...engine.collector import calm_collector
from ...engine.fault import LocalFault, Stopped
from ...engine.pairs import Ended
from ...wiring import Engine, Settings
from .. import refusal
from ..event_loop import loop_factory
from ..folder_budget import drop_budget, money_of, place_of, unsure_of
from ..output import note
from ..signals import DRAIN_S, Interruption
from .book import Book
from .input import InputFile, Line, Survey
from .place import Place
from .questions import Models, Questions, check_first, worst_call
from .rows import TAG_CHARS
from .sink import BatchSink


class Batch(Struct, frozen=True, kw_only=True):
    """What is asked for. `model`: in place of every line's own; `names`: those that somebody chose for models. `said`:
    what of the options decides answers."""

    settings: Settings
    model: str | None = None
    names: Mapping[str, str] = {}
    repeats_are_new: bool = True
    in_order: bool = False
    retry: bool = False
    set_aside: bool = False
    show_progress: bool = True
    said: dict[str, Any] = {}


class Sent(Struct):
    """How sending ended. `maybe_billed`: attempts for calls that are pending still, which no row tells of. `charged`:
    what counted against the limit on cost, surely and at most."""

    stops: Sequence[Stop] = ()
    signal: int | None = None
    fault: LocalFault | None = None
    maybe_billed: int = 0
    lost_keys: Sequence[tuple[str, Stop]] = ()
    seen: int = 0
    charged: Amounts = NOTHING


class Result(Struct, kw_only=True):
    """What the output holds now, and why it holds no more. `place` None: it went through a pipe, whose `requests` are
    those that were read."""

    place: Place | None
    ended: Ended
    requests: int
    already: int = 0
    seconds: float = 0.0
    sent: Sent
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
        # A redirect stopped its lane, however many calls it met in flight.
        if self.pending or "redirect" in self.ended.failed or (self.place is None and self.sent.stops):
            return refusal.RESUMABLE
        return refusal.WITH_FAILURES if self.ended.failures else refusal.DONE


def carry_out(batch: Batch, source: InputFile, place: Place) -> Result:
    """From a file into a file; the same again goes on where it stopped."""
    began, survey = time.monotonic(), source.survey()
    tag = survey.digest[:TAG_CHARS]
    check_first(source.read(), Models(batch.settings, batch.names, batch.model))
    specification = {"benchmark": "batch", "input": survey.digest, **batch.said}
    retry, set_aside = batch.retry, batch.set_aside
    with Book(place, specification, tag, survey.last, retry=retry, set_aside=set_aside) as book, calm_collector():
        already, sent = book.already, Sent()
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


def sent_by(sending: Coroutine[None, None, Sent]) -> Sent:
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(sending)


def _settings(batch: Batch, book: Book, source: InputFile, survey: Survey, *, is_done: bool) -> Settings:
    """Those of an engine that goes on with what was begun."""
    manifest, cost = book.folder.manifest, book.spent or 0.0
    unsure = unsure_of(book.folder.folder, manifest, cost)
    budget = None
    if batch.settings.max_cost is not None:
        models = Models(batch.settings, batch.names, batch.model)
        at_most = cost + unsure.at_worst(lambda: worst_call(source.read(), models))
        budget = place_of(book.folder.folder, Amounts(at_most, cost))
    was_killed = manifest.get("started") is not None and manifest.get("ended") is None
    kills = manifest.get("in_flight_at_kills", 0) + (manifest.get("in_flight_max", 0) if was_killed else 0)
    _note(
        book,
        maybe_billed_pending=manifest.get("maybe_billed_pending", 0),
        in_flight_at_kills=kills,
        in_flight_max=0,
        **unsure.notes(has_budget=budget is not None),
        run_id=manifest.get("run_id") or uuid.uuid4().hex,
        started=manifest.get("started") or _now(),
        ended=manifest.get("ended") if is_done else None,
        versions={"millstream": __version__},
        lines=survey.last,
        requests=survey.requests,
    )
    if budget is None:
        drop_budget(book.folder.folder)
    started = datetime.fromisoformat(manifest["started"]).timestamp()
    return structs.replace(batch.settings, run_id=manifest["run_id"], budget=budget, run_started=started)


async def send(
    batch: Batch,
    lines: AsyncIterator[Line],
    sink: BatchSink,
    is_done: Callable[[int], bool],
    book: Book | None,
    counts: tuple[int, int] | None,
) -> Sent:
    """`counts`: of requests in all and done before, where progress is shown."""
    from ..progress import Progress, Style

    task = asyncio.current_task()
    assert task is not None
    models, sent = Models(batch.settings, batch.names, batch.model), Sent()
    async with Engine(settings=batch.settings) as engine:

        def drain(name: str) -> None:
            engine.halt("interrupted", f"interrupted by {name}")
            note(f"millstream: {name}: waiting up to {DRAIN_S:.0f} s for calls in flight; once more drops them")

        def cancel() -> None:
            task.cancel()

        def reached(_: str) -> None:
            """What may be in flight when the process is killed."""
            if book is not None:
                lanes = [batch.settings.whole_lane_of(model).concurrency for model in models.reached]
                _note(book, in_flight_max=sum(lanes))

        questions = Questions(lines, models, sink, is_done, repeats_are_new=batch.repeats_are_new, reached=reached)
        stream: TextIO | None = sys.stderr
        style: Style = "auto" if counts is not None and stream is not None else "none"
        total, already = counts or (0, 0)
        with (
            Interruption(drain, cancel) as interruption,
            Progress(engine, total, already, stream=stream or io.StringIO(), style=style, item="request") as progress,
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
        sent.charged = Amounts(engine.purse.spent, engine.purse.spent - engine.purse.unsure)
        sent.lost_keys = [lost for lane in route_lanes if lane.stopped is None for lost in lane.stopped_keys]
        if not sent.stops and sent.signal is None and sent.fault is None:
            engine.forget_run()
    try:
        sink.write_rest()
        sink.flush()
    except LocalFault as fault:
        sent.fault = sent.fault or fault
    return sent


def _conclude(batch: Batch, book: Book, survey: Survey, sent: Sent, *, is_unchanged: bool) -> Result:
    """Count what is on disk, put it in order, and close the manifest."""
    try:
        book.close_rows()
    except LocalFault as fault:
        sent.fault = sent.fault or fault
    sent.fault = sent.fault or book.fault
    result = Result(place=book.place, ended=book.count(is_unchanged=is_unchanged), requests=survey.requests, sent=sent)
    result.money = money_of(batch.settings.budget, result.ended.cost or 0.0)
    result.max_cost = batch.settings.max_cost
    try:
        if batch.in_order and not result.pending:
            book.put_in_order()
        manifest = book.folder.manifest
        unsure = manifest["maybe_billed_pending"] + sent.maybe_billed
        result.maybe_billed_pending, result.in_flight_at_kills = unsure, manifest["in_flight_at_kills"]
        counts = {"answered": result.ended.answered, "failed": result.ended.failures}
        _note(book, ended=_now(), counts=counts, maybe_billed_pending=unsure)
    except LocalFault as fault:
        sent.fault = sent.fault or fault
    return result


def _note(book: Book, **changes: Any) -> None:
    try:
        book.folder.write_manifest(**changes)
    except OSError as error:
        raise LocalFault(
            f"{book.folder.folder}: the manifest can't be written ({error.strerror}): free disk space, then go on with "
            f"the same command"
        ) from error


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
