"""The pilot of a run: a few of its calls, sent exactly as the run will send them.

Chooses the calls, announces them, and reports how it ended. Answers stay in the cache, so the run pays for nothing
twice. Writes no folder; pilot_figures computes the estimates.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, structs

from ...configuration import errors as refusal
from ...configuration.errors import UsageError
from ...engine.attempts.budget_file import BUDGET, BudgetPlace
from ...engine.call import Call, Outcome
from ...engine.call_lookup import PendingCall
from ...engine.collector import calm_collector
from ...engine.fault import Stop
from ...engine.remarks import remark
from ...engine.runs.pairs import Pair
from ...format import count_text
from ...wiring.budgets import budgets_folder
from ...wiring.engine import Engine
from ...wiring.folder_budget import at_most_in
from ...wiring.signals import until_interrupted
from .item_pilot import ItemPilot, send_items
from .preparation import PreparedRun, with_settings
from .registry import benchmark_named
from .sweep import StreamRunner, send_calls
from .watch import Watch, unwatched

Chosen = Mapping[Pair, Sequence[Call]]


class Pilot(Struct, kw_only=True):
    """The calls of a pilot (`chosen`) and their outcomes, by pair. Calls without an outcome were not sent; `stops` or
    `signal` say why. `maybe_billed_pending`: attempts for such calls that may have been billed."""

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

    def ending(self) -> dict[str, Any]:
        """Returns how the pilot ended: exit code, signal, and attempts that may have been billed."""
        return {
            "exit_code": self.exit_code,
            "signal": self.signal,
            "maybe_billed_pending": self.maybe_billed_pending,
        }


def check(runs: Sequence[PreparedRun]) -> None:
    """Raises UsageError for live runs, which would pay for the pilot's answers a second time."""
    if any(run.settings.mode == "live" for run in runs):
        raise UsageError(
            "--pilot: expected mode record, replay or strict, got live: a live run takes nothing from earlier ones, so "
            "it would pay for the pilot's answers again; take the pilot with --mode record"
        )


def send_pilots(runs: Sequence[PreparedRun], size: int, watch: Watch = unwatched) -> list[Pilot | ItemPilot]:
    """Sends the pilot of each run in turn, until one is interrupted, and returns them. --max-cost covers all pilots
    together with the earlier cost of the runs' folders."""
    budget = _budget_of(runs)
    pilots: list[Pilot | ItemPilot] = []
    for run in runs:
        pilots.append(_send_one(with_settings(run, budget=budget), size, watch))
        if pilots[-1].signal is not None:
            break
    if budget is not None:
        # A killed pilot leaves this file for the next one.
        budget.path.unlink(missing_ok=True)
    return pilots


def _send_one(run: PreparedRun, size: int, watch: Watch) -> Pilot | ItemPilot:
    benchmark = benchmark_named(run.work.benchmark)
    items = benchmark.pilot_items(run, size)
    with calm_collector():
        if items is not None:
            return asyncio.run(send_items(items, watch))
        return asyncio.run(_send(run, benchmark.pilot_calls(run, size), watch))


def _budget_of(runs: Sequence[PreparedRun]) -> BudgetPlace | None:
    """Returns one budget for the pilots of all runs, beside the budgets of their folders; None without a limit."""
    if all(run.settings.max_cost is None for run in runs):
        return None

    def worst_call() -> float:
        return max((cost for run in runs for cost in run.work.worst_calls(run.settings).values()), default=0.0)

    folder = budgets_folder(runs[0].settings)
    places = sorted({run.out.parent / name for run in runs for name in (run.out.name, *run.sweep)})
    beside = {place / BUDGET: at_most_in(place, worst_call) for place in places}
    name = hashlib.sha256("\n".join(map(str, places)).encode()).hexdigest()[:16]
    return BudgetPlace(folder / f"pilot-{name}", beside=beside, lock=folder)


async def _send(run: PreparedRun, chosen: Chosen, watch: Watch) -> Pilot:
    pilot = Pilot(chosen=chosen, outcomes={pair: [] for pair in chosen})
    # The run will find these answers in the cache, and passes them to its sink then.
    async with Engine(settings=structs.replace(run.settings, sink=None)) as engine:
        remark(_announced(engine, chosen))

        async def send() -> None:
            with watch(engine, sum(map(len, chosen.values())), 0, ""):
                pilot.stops = await ask(engine, pilot)

        pilot.signal = await until_interrupted(engine, send())
        pilot.maybe_billed_pending = engine.scheduler.maybe_billed_pending
    return pilot


async def ask(runner: StreamRunner, pilot: Pilot) -> list[Stop]:
    """Sends a pilot's calls, all pairs at once, and keeps the outcomes. Returns the stops that left calls unsent;
    raises LocalFault once every pair has ended."""
    return await send_calls(runner, pilot.chosen, take=lambda pair, outcome: pilot.outcomes[pair].append(outcome))


def _announced(engine: Engine, chosen: Chosen) -> str:
    """Returns the sentence that says how many calls are sent and their highest cost, computed as the engine does."""
    sent = cached = unsendable = 0
    most = 0.0
    unpriced: dict[str, None] = {}
    unbounded: dict[str, None] = {}
    for call in (call for each in chosen.values() for call in each):
        found = engine.scheduler.look_up(call)
        if isinstance(found, PendingCall):
            sent += 1
            worst = found.worst_cost
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
    told = [f"pilot: {count_text(sent, 'call')} to send"]
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
