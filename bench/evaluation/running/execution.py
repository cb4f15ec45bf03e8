"""Executes one prepared run, from locking its folder to its scores.

Order: folder, manifest, engine, calls, recount, scores, manifest. The result is counted from the journals on disk, so
summary and exit code can't claim more than these hold.
"""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field, structs

from ....engine.collector import calm_collector
from ....engine.fault import LocalFault
from ....engine.missing import require
from ....engine.pairs import FinishedItems, Pair
from ....engine.runs.run_folder import MANIFEST, RunFolder, WrongSpecification
from ....engine.store.snapshot import digest_of
from ....engine.version import VERSION
from ....wiring import Settings
from ....wiring.event_loop import run_in_loop
from ....wiring.folder_budget import money_of
from ....wiring.folder_run import FolderCost, begin_run, end_run
from ....wiring.running import RunEnd, running
from ..door.defect import BenchmarkDefect
from ..door.prepared_run import PreparedRun
from ..door.run_counts import RunCounts
from ..door.watch import OpenRun, Watch, unwatched
from .cost_bound import worst_calls
from .journals import read_done
from .recount import RunRecount
from .scoring import SCORES, write_scores
from .sending import send_items
from .served import compared_names, stated_in

if TYPE_CHECKING:
    from ....wiring.engine import Engine

_PACKAGES = ("aiohttp", "aiolimiter", "httptools", "lmdb", "msgspec", "numpy", "orjson", "uvloop")


class RunResult(Struct, kw_only=True):
    """The contents of a run's folder after execution (`counted`), and how it ended (`end`). `already`: items done
    before it began; `seconds`: its duration."""

    prepared: PreparedRun
    counted: RunCounts
    already: int
    seconds: float
    end: RunEnd = field(default_factory=RunEnd)

    @property
    def failed(self) -> int:
        return sum(self.counted.of(pair).failures for pair in self.pairs())

    @property
    def cost(self) -> float:
        """The dollars in the run's records and failures."""
        return sum(self.counted.of(pair).cost or 0.0 for pair in self.pairs())

    @property
    def at_worst(self) -> float:
        """The part of `cost` for answers whose tokens the provider did not report."""
        return sum(self.counted.of(pair).at_worst for pair in self.pairs())

    @property
    def answered(self) -> int:
        return sum(self.counted.of(pair).answered for pair in self.pairs())

    @property
    def pending(self) -> int:
        return sum(map(self.pending_of, self.pairs()))

    def pairs(self) -> tuple[Pair, ...]:
        return self.prepared.pairs

    def pending_of(self, pair: Pair) -> int:
        ended = self.counted.of(pair)
        return max(0, self.prepared.items.lines - ended.answered - ended.failures - ended.held)

    @property
    def exit_code(self) -> int:
        is_redirected = any(self.counted.of(pair).is_redirected for pair in self.pairs())
        return self.end.exit_code(
            is_pending=self.pending > 0 or is_redirected,
            has_failures=self.failed > 0 or bool(self.counted.unmeasured),
        )


def execute(
    prepared: PreparedRun, *, retry: bool = False, set_aside: bool = False, watch: Watch = unwatched
) -> RunResult:
    """Executes a run and returns what its folder holds then. `retry`: failed items are sent again; `set_aside`: damaged
    journal lines are moved to another file and asked again; `watch` opens the progress display. Raises LocalFault or
    WrongSpecification if the folder can't be used, and BenchmarkDefect once the folder is closed."""
    began = time.monotonic()
    if not (prepared.out / MANIFEST).exists():
        _engine()  # what it lacks is reported before there is a folder, and what the end of the run lacks
        require("numpy")
    with _opened(prepared, retry=retry, set_aside=set_aside) as folder:
        recount = RunRecount(prepared, folder)
        with calm_collector(young_max=0):  # what is kept of each line is no garbage
            done = read_done(folder, prepared.benchmark.Line, prepared.is_own, recount.add)
        is_complete = done.count() >= prepared.total
        settings = _begun(folder, prepared, done.cost, is_complete=is_complete)
        prepared.items.keep_in(folder.folder)
        settings = structs.replace(settings, retry_started=time.time() if retry else None)
        prepared = structs.replace(prepared, settings=settings)
        end, defect = RunEnd(), None
        if not is_complete:
            make = _engine()  # outside of the loop, which it would hold
            try:
                end, defect = run_in_loop(_send(make, folder, prepared, done, watch))
                prepared = structs.replace(prepared, settings=structs.replace(settings, max_cost=end.max_cost))
            except LocalFault:
                # No engine could be opened, so nothing was in flight; faults while sending are in `end`.
                with suppress(LocalFault):
                    end_run(folder, end)
                raise
        with calm_collector():
            try:
                result = _conclude(folder, recount, prepared, end, done.count(), began)
            except BenchmarkDefect as error:
                # The records could not be scored: scores of an earlier part would be those of fewer records.
                if prepared.has_scores:
                    (folder.folder / SCORES).unlink(missing_ok=True)
                end_run(folder, end, counts=[])
                defect = defect or error
    if defect is not None:
        raise BenchmarkDefect(f"{defect}; what was answered is in the cache: correct it and run again") from defect
    return result


def _opened(prepared: PreparedRun, *, retry: bool, set_aside: bool) -> RunFolder:
    try:
        return RunFolder(
            prepared.out,
            prepared.specification,
            set_aside=set_aside,
            retry=retry,
            files=prepared.files,
        )
    except WrongSpecification as error:
        message = prepared.benchmark.explain_other_run(prepared.out, prepared.dataset, error)
        raise WrongSpecification(message, error.asked) from error


def _engine() -> type[Engine]:
    """Loads the engine, which takes 0.2 s, and which a complete run does not need."""
    from ....wiring.engine import Engine

    return Engine


async def _send(
    make: type[Engine], folder: RunFolder, prepared: PreparedRun, done: FinishedItems, watch: Watch
) -> tuple[RunEnd, BenchmarkDefect | None]:
    engine, benchmark = make(settings=prepared.settings), prepared.benchmark
    try:
        async with running(engine) as end:
            finished = {pair.model for pair in prepared.pairs} - {
                pair.model for pair in prepared.pairs if len(done.of(pair)) < prepared.items.lines
            }
            for lane in (done.answered - finished) & set(prepared.lanes):
                engine.scheduler.routes.of(lane).lane.note_answer()
            for lane in (done.cut.keys() - finished) & set(prepared.lanes):
                engine.scheduler.routes.of(lane).lane.note_cut(done.cut[lane])
            item = "" if benchmark.has_calls else benchmark.unit
            open_run = OpenRun(folder, prepared.lanes)
            with watch(engine, prepared.total, done.count(), item, open_run) as progress:
                try:
                    end.stops = await send_items(prepared, engine, folder, done, progress)
                    end.has_failures = folder.has_failures and not benchmark.has_calls
                finally:
                    await benchmark.close()
    except BenchmarkDefect as defect:
        return end, defect
    return end, None


def _begun(folder: RunFolder, prepared: PreparedRun, cost: float, *, is_complete: bool) -> Settings:
    """Begins the run's manifest and returns the settings of its engine. `cost`: the dollars in the records; they count
    together with those of the other folders of its sweep."""
    settings, lanes, snapshot = prepared.settings, prepared.lanes, prepared.settings.snapshot
    # The digest that an export noted holds as long as nothing is added.
    exported = folder.manifest.get("snapshot") if is_complete else None
    spent = FolderCost(
        dollars=cost,
        worst_call=lambda: max(worst_calls(prepared).values(), default=0.0),
        beside=[prepared.out.parent / name for name in prepared.sweep],
        budget=prepared.budget_name,
    )
    return begin_run(
        folder,
        settings,
        spent,
        in_flight_max=sum(map(settings.concurrency_of, lanes)),
        is_done=is_complete,
        versions=_versions(),
        options=prepared.kept,
        dataset=prepared.dataset,
        answers_as=compared_names(lanes, settings),
        snapshot=exported if snapshot is None else digest_of(snapshot),
    )


def _conclude(
    folder: RunFolder, recount: RunRecount, prepared: PreparedRun, end: RunEnd, already: int, began: float
) -> RunResult:
    """Counts what is on disk, scores it, closes the manifest, and returns the result."""
    folder.check_is_own()
    folder.records.flush()
    folder.failures.flush()
    counted = recount.counted()
    end.fault = end.fault or folder.fault
    result = RunResult(prepared=prepared, counted=counted, already=already, seconds=0.0, end=end)
    end.money = money_of(prepared.settings.budget, result.cost, result.at_worst)
    try:
        if prepared.has_scores:
            write_scores(folder.folder, result.counted.scores)
        stops = list(dict.fromkeys(stop.reason for stop in end.stops))
        # With a limit, this has what no record shows, such as the judge's calls of an item that is pending.
        spent = None if end.money is None else end.money.spent
        end_run(folder, end, counts=counts_of(result), stops=stops, spent=spent)
    except LocalFault as fault:
        end.fault = end.fault or fault
    result.seconds = time.monotonic() - began
    return result


def counts_of(result: RunResult) -> list[dict[str, Any]]:
    """Returns a row of counts for each pair, from the journals, for the manifest and `--json`."""
    rows = []
    for pair in result.pairs():
        ended = result.counted.of(pair)
        rows.append(
            {
                "model": pair.model,
                "temperature": pair.temperature,
                **({} if pair.effort is None else {"effort": pair.effort}),
                f"{result.prepared.benchmark.unit}s": result.prepared.items.lines,
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
                **stated_in(ended),
                **({"cost_at_worst": round(ended.at_worst, 9)} if ended.at_worst else {}),
            }
        )
    return rows


@cache
def _versions() -> Mapping[str, str]:
    """Returns the versions of this program and of packages, as the names of their folders say: `importlib.metadata`
    reads more, for which the first call would wait a fiftieth of a second."""
    packages: dict[str, str] = {}
    for place in sys.path:
        with suppress(OSError):  # an archive, or no longer there
            for name in os.listdir(place or "."):
                package, _, version = name.partition("-")
                if package in _PACKAGES and name.endswith((".dist-info", ".egg-info")):
                    packages.setdefault(package, version.rpartition(".")[0].partition("-")[0])
    return {"millstream": VERSION, "python": platform.python_version(), **dict(sorted(packages.items()))}
