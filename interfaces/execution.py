"""One prepared run from its folder's lock to its scores, whatever happens on the way.

Owns the order: folder, manifest, engine, calls, recount, scores, manifest. What it gives comes from the journals
read back, so that neither summary nor exit code can claim more than they hold. Prints progress, and that a signal came.
"""

from __future__ import annotations

import asyncio
import io
import platform
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TextIO

import msgspec
import orjson
from msgspec import Struct

from .. import __version__
from ..engine.admission import Stop
from ..engine.budget_file import Amounts, BudgetPlace
from ..engine.collector import calm_collector
from ..engine.fault import DamagedJournal, LocalFault
from ..engine.journal import read_lines
from ..engine.pairs import Done, Pair
from ..engine.run_folder import (
    FAILURES,
    MANIFEST,
    RECORDS,
    RunFolder,
    WrongSpecification,
    read_manifest,
    write_whole,
)
from ..engine.snapshot import digest_of
from ..wiring import Engine
from . import refusal
from .chameleon_readings import score_instead
from .event_loop import loop_factory
from .folder_budget import Unsure, drop_budget, money_of, place_of, unsure_of
from .orientation_labels import other_labels
from .output import note
from .preparation import Prepared, with_settings
from .signals import DRAIN_S, Interruption
from .work import Counted

SCORES = "scores.json"
_PACKAGES = ("aiohttp", "aiolimiter", "httptools", "lmdb", "msgspec", "numpy", "orjson", "uvloop")


class Result(Struct, kw_only=True):
    """What a run's folder holds now, and why it holds no more."""

    prepared: Prepared
    counted: Counted
    already: int
    seconds: float
    stops: Sequence[Stop] = ()
    signal: int | None = None
    fault: LocalFault | None = None
    maybe_billed_pending: int = 0
    in_flight_at_kills: int = 0
    money: Amounts | None = None
    lost_keys: Sequence[tuple[str, Stop]] = ()

    @property
    def failed(self) -> int:
        return sum(self.counted.of(pair).failures for pair in self.pairs())

    @property
    def cost(self) -> float:
        """That of the records."""
        return sum(self.counted.of(pair).cost or 0.0 for pair in self.pairs())

    @property
    def answered(self) -> int:
        return sum(self.counted.of(pair).answered for pair in self.pairs())

    @property
    def pending(self) -> int:
        return sum(map(self.pending_of, self.pairs()))

    def pairs(self) -> list[Pair]:
        return self.prepared.work.pairs()

    def pending_of(self, pair: Pair) -> int:
        ended = self.counted.of(pair)
        return max(0, self.prepared.work.items - ended.answered - ended.failures - ended.held)

    @property
    def exit_code(self) -> int:
        if self.signal is not None:
            return refusal.SIGNAL + self.signal
        if self.fault is not None:
            return refusal.LOCAL_FAULT
        # A redirect stopped its lane, however many calls it met in flight.
        if self.pending or any("redirect" in self.counted.of(pair).failed for pair in self.pairs()):
            return refusal.RESUMABLE
        return refusal.WITH_FAILURES if self.failed or self.counted.unmeasured else refusal.DONE


class _Sent(Struct):
    """How sending ended. `maybe_billed`: attempts for calls that are pending still, which no record tells of.
    `lost_keys`: those whose calls other keys have taken. The run is whole, but somebody should mend them."""

    stops: Sequence[Stop] = ()
    signal: int | None = None
    fault: LocalFault | None = None
    maybe_billed: int = 0
    lost_keys: Sequence[tuple[str, Stop]] = ()


class Manner(Struct, frozen=True, kw_only=True):
    """How a run is carried out, as far as its answers don't depend on it."""

    retry: bool = False
    set_aside: bool = False
    show_progress: bool = True


def execute(prepared: Prepared, manner: Manner) -> Result:
    """Carry a run out. Raises LocalFault or WrongSpecification where the folder can't be used at all."""
    began = time.monotonic()
    with _opened(prepared, manner) as folder:
        done = prepared.work.read_done(folder)
        unsure = unsure_of(folder.folder, folder.manifest, done.cost)
        budget = budget_of(prepared, unsure, done.cost)
        _begin_manifest(folder, prepared, unsure, is_complete=done.count() >= prepared.total)
        if budget is None:
            drop_budget(folder.folder)
        started = datetime.fromisoformat(folder.manifest["started"]).timestamp()
        prepared = with_settings(
            prepared,
            run_id=folder.manifest["run_id"],
            budget=budget,
            run_started=started,
            retry_started=time.time() if manner.retry else None,
        )
        sent = _Sent()
        if done.count() < prepared.total:
            with calm_collector(), asyncio.Runner(loop_factory=loop_factory()) as runner:
                try:
                    sent = runner.run(_send(folder, prepared, done, manner))
                except LocalFault:
                    # No engine could be opened, so nothing was in flight: what breaks while sending is told in `sent`.
                    with suppress(OSError):
                        folder.write_manifest(ended=_now())
                    raise
        with calm_collector():
            return _conclude(folder, prepared, sent, done.count(), began)


def _opened(prepared: Prepared, manner: Manner) -> RunFolder:
    try:
        return RunFolder(prepared.out, prepared.specification, set_aside=manner.set_aside, retry=manner.retry)
    except WrongSpecification as error:
        if labels_differ := other_labels(prepared.out, prepared.dataset, error.asked):
            raise WrongSpecification(labels_differ, error.asked) from error
        raise WrongSpecification(f"{error}{score_instead(prepared.out, error.asked)}", error.asked) from error


async def _send(folder: RunFolder, prepared: Prepared, done: Done, manner: Manner) -> _Sent:
    from .progress import Progress, Style

    task = asyncio.current_task()
    assert task is not None
    sent = _Sent()
    async with Engine(settings=prepared.settings) as engine:
        work = prepared.work
        finished = {pair.model for pair in work.pairs()} - {
            pair.model for pair in work.pairs() if len(done.of(pair)) < work.items
        }
        for lane in (done.answered - finished) & set(work.lanes):
            engine.scheduler.route_of(lane).lane.note_answer()
        for lane in (done.cut.keys() - finished) & set(work.lanes):
            engine.scheduler.route_of(lane).lane.note_cut(done.cut[lane])

        def drain(name: str) -> None:
            engine.halt("interrupted", f"interrupted by {name}")
            note(f"millstream: {name}: waiting up to {DRAIN_S:.0f} s for calls in flight; once more drops them")

        def cancel() -> None:
            task.cancel()

        # A process started with stderr closed has none.
        stream: TextIO | None = sys.stderr
        style: Style = "auto" if manner.show_progress and stream is not None else "none"
        with (
            Interruption(drain, cancel) as interruption,
            Progress(
                engine,
                prepared.total,
                done.count(),
                stream=stream or io.StringIO(),
                style=style,
                item="" if prepared.work.is_item_a_call else prepared.work.item,
            ) as progress,
        ):
            try:
                sent.stops = await prepared.work.send(engine, folder, done, progress.item_ended)
            except LocalFault as fault:
                sent.fault = fault
            except asyncio.CancelledError:
                if interruption.number is None:
                    raise
                task.uncancel()
            # The last outcomes may have met a fault that no call after them could tell.
            sent.fault = engine.close_sink() or sent.fault
        sent.signal = interruption.number
        sent.maybe_billed = engine.scheduler.maybe_billed_pending
        lanes = [route.lane for route in engine.scheduler.routes.values()]
        sent.lost_keys = [lost for lane in lanes if lane.stopped is None for lost in lane.stopped_keys]
        if not sent.stops and sent.signal is None and sent.fault is None:
            engine.forget_run()
    return sent


def budget_of(prepared: Prepared, unsure: Unsure, cost: float) -> BudgetPlace | None:
    """Where the cost of a run is counted, the other folders of its sweep included; None: it has no limit. What a folder
    without a budget had in flight at kills counts at the worst that a call of this run can cost."""
    if prepared.settings.max_cost is None:
        return None

    def worst_call() -> float:
        return max(prepared.work.worst_calls(prepared.settings).values(), default=0.0)

    others = [prepared.out.parent / name for name in prepared.sweep]
    beside = {folder: at_most_in(folder, worst_call) for folder in others}
    return place_of(prepared.out, Amounts(cost + unsure.at_worst(worst_call), cost), beside)


def at_most_in(folder: Path, worst_call: Callable[[], float]) -> float:
    """What the calls of a folder may have cost; a folder that is no run's yet cost nothing."""
    if not (folder / MANIFEST).exists():
        return 0.0
    cost = cost_of(folder)
    return cost + unsure_of(folder, read_manifest(folder), cost).at_worst(worst_call)


def _begin_manifest(folder: RunFolder, prepared: Prepared, unsure: Unsure, *, is_complete: bool) -> None:
    manifest, snapshot = folder.manifest, prepared.settings.snapshot
    # What an export has noted stays true for as long as nothing is added to it.
    exported = manifest.get("snapshot") if is_complete else None
    lanes = [prepared.settings.whole_lane_of(model) for model in prepared.work.lanes]
    # A process that was killed wrote no end: whatever it had in flight may have been billed.
    was_killed = manifest.get("started") is not None and manifest.get("ended") is None
    folder.write_manifest(
        maybe_billed_pending=manifest.get("maybe_billed_pending", 0),
        in_flight_at_kills=manifest.get("in_flight_at_kills", 0)
        + (manifest.get("in_flight_max", 0) if was_killed else 0),
        in_flight_max=sum(lane.concurrency for lane in lanes),
        **unsure.notes(has_budget=prepared.settings.max_cost is not None),
        run_id=manifest.get("run_id") or uuid.uuid4().hex,
        started=manifest.get("started") or _now(),
        ended=None,
        versions=_versions(),
        options=prepared.options,
        dataset=prepared.dataset,
        snapshot=exported if snapshot is None else digest_of(snapshot),
    )


def _conclude(folder: RunFolder, prepared: Prepared, sent: _Sent, already: int, began: float) -> Result:
    """Count what is on disk, score it, and close the manifest."""
    folder.records.flush()
    folder.failures.flush()
    result = Result(
        prepared=prepared,
        counted=prepared.work.count(folder),
        already=already,
        seconds=0.0,
        stops=sent.stops,
        signal=sent.signal,
        fault=sent.fault or folder.fault,
        lost_keys=sent.lost_keys,
    )
    result.money = money_of(prepared.settings.budget, result.cost)
    try:
        write_scores(folder.folder, result.counted.scores)
        unsure = folder.manifest["maybe_billed_pending"] + sent.maybe_billed
        result.maybe_billed_pending, result.in_flight_at_kills = unsure, folder.manifest["in_flight_at_kills"]
        folder.write_manifest(ended=_now(), counts=counts_of(result), maybe_billed_pending=unsure)
    except OSError as error:
        result.fault = result.fault or LocalFault(
            f"{folder.folder}: scores and manifest can't be written ({error.strerror}): the records are whole; "
            f"free disk space, then resume"
        )
    result.seconds = time.monotonic() - began
    return result


def cost_of(folder: Path) -> float:
    """What the journals of a folder cost so far; a folder that is no run's yet cost nothing."""
    decode = msgspec.json.Decoder(_Priced).decode
    cost = 0.0
    for path in (folder / RECORDS, folder / FAILURES):
        try:
            cost += sum(decode(line).cost or 0.0 for line in read_lines(path))
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise DamagedJournal(f"{path} has a line that is no record ({error}): verify {folder}") from error
    return cost


class _Priced(Struct):
    cost: float | None = None


def write_scores(folder: Path, scores: dict[str, Any]) -> None:
    write_whole(folder / SCORES, orjson.dumps(scores, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


def counts_of(result: Result) -> list[dict[str, Any]]:
    """What a run's journals hold, pair by pair, for the manifest and for --json."""
    rows = []
    for pair in result.pairs():
        ended = result.counted.of(pair)
        rows.append(
            {
                "model": pair.model,
                "temperature": pair.temperature,
                f"{result.prepared.work.item}s": result.prepared.work.items,
                "ok": ended.ok,
                "refused": ended.refused,
                "failed": dict(sorted(ended.failed.items())),
                "pending": result.pending_of(pair),
                **({"held": ended.held} if ended.held else {}),
                "cached": ended.cached,
                "truncated": ended.truncated,
                "maybe_billed": ended.maybe_billed,
                "usage": {"input": ended.input_tokens, "output": ended.output_tokens},
                "cost": ended.cost,
            }
        )
    return rows


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _versions() -> dict[str, str]:
    found = {"millstream": __version__, "python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
