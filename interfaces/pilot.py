"""The pilot of a run: a few of its own calls, sent exactly as the run would send them, and what came of each.

Owns which calls go out, what is said before, and how it ended. The answers stay in the cache, where the run finds
them, so nothing is paid twice. Writes no folder; what the answers tell of the run is pilot_figures' to say.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import sys
from collections.abc import Mapping, Sequence
from typing import TextIO

from msgspec import Struct, structs

from ..bench.millstone.grid import calls
from ..bench.millstone.sample import sample_ids
from ..bench.millstone.sweep import Runner
from ..engine.admission import Stop
from ..engine.budget_file import BUDGET, BudgetPlace
from ..engine.call import Call, Outcome
from ..engine.collector import calm_collector
from ..engine.fault import LocalFault, Stopped
from ..engine.pairs import Pair
from ..engine.scheduler import Wanted
from ..wiring import Engine, budgets_folder
from . import refusal
from .benchmarks import millstone_of
from .execution import at_most_in
from .output import note
from .preparation import Prepared, with_settings
from .progress import Progress, Style
from .refusal import UsageError
from .signals import DRAIN_S, Interruption

Chosen = Mapping[Pair, Sequence[Call]]


class Pilot(Struct, kw_only=True):
    """What was asked, and every outcome there is. Calls without one were not asked any more: `stops` or `signal`
    say why."""

    chosen: Chosen
    outcomes: Mapping[Pair, list[Outcome]]
    stops: Sequence[Stop] = ()
    signal: int | None = None
    maybe_billed_pending: int = 0

    @property
    def exit_code(self) -> int:
        if self.signal is not None:
            return refusal.SIGNAL + self.signal
        if self.stops:
            return refusal.RESUMABLE
        has_failed = any(outcome.failure is not None for each in self.outcomes.values() for outcome in each)
        return refusal.WITH_FAILURES if has_failed else refusal.DONE


def check(runs: Sequence[Prepared]) -> None:
    """Refuse what could only pay twice."""
    if any(run.settings.mode == "live" for run in runs):
        raise UsageError(
            "--pilot: expected mode record, replay or strict, got live: a live run takes nothing from earlier ones, so "
            "it would pay for the pilot's answers again; take the pilot with --mode record"
        )


def send_pilots(runs: Sequence[Prepared], size: int, *, show_progress: bool) -> list[Pilot]:
    """The pilot of every run, one after the other; none after one that was interrupted. --max-cost holds for all of
    them, with what the runs' folders cost before."""
    budget = _budget_of(runs)
    pilots: list[Pilot] = []
    for run in runs:
        chosen = choose(run, size)
        with calm_collector():
            pilots.append(asyncio.run(_send(with_settings(run, budget=budget), chosen, show_progress=show_progress)))
        if pilots[-1].signal is not None:
            break
    if budget is not None:
        # Only a pilot that was killed leaves it, to the next one.
        budget.path.unlink(missing_ok=True)
    return pilots


def _budget_of(runs: Sequence[Prepared]) -> BudgetPlace | None:
    """One for the pilots of all runs, beside the budgets of the runs' folders."""
    if all(run.settings.max_cost is None for run in runs):
        return None

    def worst_call() -> float:
        return max((cost for run in runs for cost in run.work.worst_calls(run.settings).values()), default=0.0)

    folder = budgets_folder(runs[0].settings)
    places = sorted({run.out.parent / name for run in runs for name in (run.out.name, *run.sweep)})
    beside = {place / BUDGET: at_most_in(place, worst_call) for place in places}
    name = hashlib.sha256("\n".join(map(str, places)).encode()).hexdigest()[:16]
    return BudgetPlace(folder / f"pilot-{name}", beside=beside, lock=folder)


def choose(run: Prepared, size: int) -> dict[Pair, list[Call]]:
    """`size` of the run's calls for each model and temperature: the run makes the same ones."""
    work = millstone_of(run, "--pilot")
    ids = sample_ids(work.grid, size)
    rank = {item_id: number for number, item_id in enumerate(ids)}
    chosen = {}
    for pair in work.pairs():
        limit = work.asked.max_tokens_of(pair.model)
        made = calls(work.grid, pair.model, pair.temperature, limit, lambda item_id: item_id not in rank)
        # In the sample's order, not the grid's: what is answered before a stop is then spread over the grid too.
        chosen[pair] = sorted(made, key=lambda call: rank[call.tag.id])
    return chosen


async def _send(run: Prepared, chosen: Chosen, *, show_progress: bool) -> Pilot:
    task = asyncio.current_task()
    assert task is not None
    pilot = Pilot(chosen=chosen, outcomes={pair: [] for pair in chosen})
    # The run itself will find these answers in the cache, and tell its sink of them then.
    async with Engine(settings=structs.replace(run.settings, sink=None)) as engine:
        note(f"millstream: {_announced(engine, chosen)}")

        def drain(name: str) -> None:
            engine.halt("interrupted", f"interrupted by {name}")
            note(f"millstream: {name}: waiting up to {DRAIN_S:.0f} s for calls in flight; once more drops them")

        def cancel() -> None:
            task.cancel()

        # A process started with stderr closed has none.
        stream: TextIO | None = sys.stderr
        style: Style = "auto" if show_progress and stream is not None else "none"
        total = sum(map(len, chosen.values()))
        with (
            Interruption(drain, cancel) as interruption,
            Progress(engine, total, 0, stream=stream or io.StringIO(), style=style),
        ):
            try:
                pilot.stops = await ask(engine, pilot)
            except asyncio.CancelledError:
                if interruption.number is None:
                    raise
                task.uncancel()
        pilot.signal = interruption.number
        pilot.maybe_billed_pending = engine.scheduler.maybe_billed_pending
    return pilot


async def ask(runner: Runner, pilot: Pilot) -> list[Stop]:
    """Ask what was chosen, every pair at once as in a run, and keep what comes. Gives the stops that left calls
    unasked; raises LocalFault once every pair has ended."""
    stops: dict[tuple[str, str], Stop] = {}
    faults: list[LocalFault] = []

    async def ask_pair(pair: Pair) -> None:
        try:
            async for outcome in runner.run(pilot.chosen[pair]):
                pilot.outcomes[pair].append(outcome)
        except Stopped as error:
            stops.update({(stop.lane, stop.reason): stop for stop in error.stops})
        except LocalFault as fault:
            runner.halt("local_fault", str(fault))
            faults.append(fault)

    async with asyncio.TaskGroup() as group:
        for pair in pilot.chosen:
            group.create_task(ask_pair(pair), name=f"pilot {pair}")
    if faults:
        raise faults[0]
    return list(stops.values())


def _announced(engine: Engine, chosen: Chosen) -> str:
    """How many calls go out, and at most at what cost: looked up and reckoned as the engine itself does."""
    sent = cached = unsendable = 0
    most = 0.0
    unpriced: dict[str, None] = {}
    unbounded: dict[str, None] = {}
    for call in (call for each in chosen.values() for call in each):
        found = engine.scheduler.look_up(call)
        if isinstance(found, Wanted):
            sent += 1
            worst = found.route.worst_cost(call)
            if worst is not None:
                most += worst
            elif found.route.price is None:
                unpriced[call.model] = None
            else:
                unbounded[call.model] = None
        elif found.reply is not None:
            cached += 1
        else:
            unsendable += 1
    told = [f"pilot: {sent:,} calls to send"]
    if most:
        left = float("inf") if engine.purse.limit is None else max(0.0, engine.purse.limit - engine.purse.spent)
        condition = "by --max-cost" if left < most else "if none has to be sent twice"
        told.append(f"at most ${min(left, most):,.4f}, {condition}")
    if unpriced:
        told.append(f"no price for {', '.join(unpriced)}")
    if unbounded:
        told.append(f"no bound for {', '.join(unbounded)}: how long their answers can be is not known (--max-tokens)")
    if cached:
        told.append(f"{cached:,} more are answered by the cache")
    if unsendable:
        told.append(
            f"{unsendable:,} more can't be sent" + (": mode strict" if engine.settings.mode == "strict" else "")
        )
    return "; ".join(told)
