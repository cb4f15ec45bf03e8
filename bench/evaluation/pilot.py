"""The pilot of a run: a few of its items, sent exactly as the run will send them.

Announces them, sends them, and records what each item used on each lane. Answers stay in the cache, so the run pays for
nothing twice. Items of several calls run in a temporary folder; pilot_figures computes the estimates.
"""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path

import msgspec
from msgspec import Struct, field, structs

from ...configuration import errors as refusal
from ...configuration.errors import UsageError
from ...engine.attempts.budget_file import BUDGET, BudgetPlace
from ...engine.attempts.estimate import chars_of
from ...engine.attempts.prices import Price
from ...engine.call import NOT_REPORTED, WEB, Call, Outcome
from ...engine.call_lookup import PendingCall
from ...engine.collector import calm_collector
from ...engine.endpoint import Hear
from ...engine.fault import Stop
from ...engine.remarks import remark
from ...engine.runs.pairs import FinishedItems, Pair
from ...engine.runs.run_folder import RunFolder
from ...format import count_text
from ...wiring.budgets import budgets_folder
from ...wiring.engine import Engine
from ...wiring.folder_budget import at_most_in
from ...wiring.signals import until_interrupted
from .preparation import ItemsOfPilot, PreparedRun, with_settings
from .registry import benchmark_named
from .steps import UNDER_WAY, UnderWay
from .sweep import StreamRunner, send_calls
from .watch import Watch, unwatched


class LaneUse(Struct):
    """The calls, tokens and dollars of one item on one lane; each call counts once, cached or sent."""

    calls: int = 0
    """The number of calls."""
    chars: int = 0
    """Characters of the prompt, of an item of one call; 0: they say nothing about its tokens."""
    input: int = 0
    """Input tokens."""
    output: int = 0
    """Output tokens."""
    input_cost: float = 0.0
    """Dollars of calls and input tokens by the price table, whatever was paid."""
    output_cost: float = 0.0
    """Dollars of output tokens."""


class ItemUse(Struct):
    """What one item used, and its state with each pair."""

    id: str = ""
    """Its id; empty for an item of one call."""
    states: dict[Pair, UnderWay] = field(default_factory=dict)
    """Its state with each pair that began it."""
    lanes: dict[str, LaneUse] = field(default_factory=dict)
    """What it used on each lane; all pages together are one lane."""
    is_measured: bool = True
    """Whether the tokens of all its answers are known."""

    def add(self, outcome: Outcome, price: Price | None, chars: int = 0) -> None:
        """Adds a call."""
        use = self.lanes.setdefault(outcome.call.model, LaneUse())
        use.calls += 1
        use.chars += chars
        if outcome.reply is None or outcome.call.model == WEB:
            return
        usage = outcome.reply.usage or NOT_REPORTED
        tokens = usage.input or 0, usage.output or 0
        use.input += tokens[0]
        use.output += tokens[1]
        self.is_measured &= usage.is_whole or (price is not None and price.is_by_call)
        if price is not None:
            of_input = price.of_call(tokens[0], 0)
            use.input_cost += of_input
            use.output_cost += price.of_call(*tokens) - of_input


class Stratum(Struct):
    """Items that stand for the same rest: those of one pair, or of all pairs together where an item takes several
    calls."""

    pairs: tuple[Pair, ...]
    """The pairs."""
    chosen: int
    """The number of items of the pilot."""
    of: int
    """The number of items of the run."""
    items: list[ItemUse] = field(default_factory=list)
    """The items that were begun."""

    @property
    def ended(self) -> list[ItemUse]:
        """The items that ran to their end with every pair, always in the same order, whichever ended first."""
        pairs = set(self.pairs)
        ended = [item for item in self.items if pairs == {pair for pair, of in item.states.items() if of.has_ended}]
        return sorted(ended, key=lambda item: (item.id, [structs.astuple(use) for use in item.lanes.values()]))

    @property
    def whole(self) -> list[ItemUse]:
        """Those of which no step failed."""
        return [item for item in self.ended if not any(of.has_failed for of in item.states.values())]


class Failures(Struct):
    """Failures of one kind: how many, and the message of the first."""

    count: int
    detail: str


class _Line(Struct):
    """As much of a journal line as a pilot counts."""

    status: str = ""
    error: str | None = None
    truncated: bool = False


class PilotPart(Struct, kw_only=True):
    """The part of a pilot that one estimate is made from: a model's, or the whole where an item takes several calls."""

    lanes: tuple[str, ...]
    """The lanes of its calls."""
    strata: list[Stratum]
    """Its items."""
    sent: int = 0
    """The number of calls that were sent."""
    from_cache: int = 0
    """The number of calls that the cache answered."""
    paid: float = 0.0
    """Dollars paid for the calls that were sent."""
    latencies: dict[str, list[float]] = field(default_factory=dict)
    """Milliseconds of each call that was sent, by lane."""
    maybe_billed: int = 0
    """Attempts that brought no whole answer and may have been billed."""
    answers: int = 0
    """The number of records."""
    refused: int = 0
    """The number of records that are refusals."""
    truncated: int = 0
    """The number of records whose answer was cut off."""
    failures: dict[str, Failures] = field(default_factory=dict)
    """The failures, by kind."""

    def count(self, line: _Line, *, is_failure: bool) -> None:
        """Counts what became of a call, or of a step of several."""
        if is_failure:
            first = Failures(0, " ".join((line.error or "").split()))
            self.failures.setdefault(line.status, first).count += 1
            return
        self.answers += 1
        self.refused += line.status == "refused"
        self.truncated += line.truncated

    def note(self, outcome: Outcome) -> None:
        """Notes what a call cost."""
        self.sent += outcome.attempts > 0
        self.from_cache += outcome.cached
        self.paid += outcome.cost or 0.0
        self.maybe_billed += outcome.maybe_billed
        if outcome.latency_ms is not None and not outcome.cached:
            self.latencies.setdefault(outcome.call.model, []).append(outcome.latency_ms)


class Pilot(Struct, kw_only=True):
    """A pilot and its parts. `stops` or `signal` say why items are pending. `maybe_billed_pending`: attempts for calls
    without an outcome that may have been billed."""

    chosen: ItemsOfPilot
    parts: list[PilotPart]
    stops: Sequence[Stop] = ()
    signal: int | None = None
    maybe_billed_pending: int = 0

    @property
    def exit_code(self) -> int:
        if self.signal is not None:
            return refusal.SIGNAL + self.signal
        if self.stops:
            return refusal.RESUMABLE
        return refusal.WITH_FAILURES if any(part.failures for part in self.parts) else refusal.DONE


def begin(chosen: ItemsOfPilot) -> Pilot:
    """Returns a pilot of which nothing was sent yet."""
    work, calls = chosen.run.work, chosen.calls
    if not calls:
        whole = Stratum(tuple(work.pairs()), chosen.items, chosen.of)
        return Pilot(chosen=chosen, parts=[PilotPart(lanes=work.lanes, strata=[whole])])
    models: dict[str, list[Stratum]] = {}
    for pair in calls:
        models.setdefault(pair.model, []).append(Stratum((pair,), len(calls[pair]), chosen.of))
    return Pilot(chosen=chosen, parts=[PilotPart(lanes=(model,), strata=strata) for model, strata in models.items()])


def check(runs: Sequence[PreparedRun]) -> None:
    """Raises UsageError for live runs, which would pay for the pilot's answers a second time."""
    if any(run.settings.mode == "live" for run in runs):
        raise UsageError(
            "--pilot: expected mode record, replay or strict, got live: a live run takes nothing from earlier ones, so "
            "it would pay for the pilot's answers again; take the pilot with --mode record"
        )


def send_pilots(runs: Sequence[PreparedRun], size: int, watch: Watch = unwatched) -> list[Pilot]:
    """Sends the pilot of each run in turn, until one is interrupted, and returns them. --max-cost covers all pilots
    together with the earlier cost of the runs' folders."""
    budget = _budget_of(runs)
    pilots: list[Pilot] = []
    for run in runs:
        chosen = benchmark_named(run.work.benchmark).pilot_items(with_settings(run, budget=budget), size)
        with calm_collector():
            pilots.append(asyncio.run(_send(begin(chosen), watch)))
        if pilots[-1].signal is not None:
            break
    if budget is not None:
        # A killed pilot leaves this file for the next one.
        budget.path.unlink(missing_ok=True)
    return pilots


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


class _PilotEngine(Engine):
    """An engine that hands every asked call's outcome to the pilot."""

    def __init__(self, pilot: Pilot, note: Callable[[Outcome], None]) -> None:
        # The run will find these answers in the cache, and passes them to its sink then.
        super().__init__(settings=structs.replace(pilot.chosen.run.settings, sink=None))
        self._note = note

    async def ask(self, call: Call, *, hear: Hear | None = None) -> Outcome:
        outcome = await super().ask(call, hear=hear)
        self._note(outcome)
        return outcome


async def _send(pilot: Pilot, watch: Watch) -> Pilot:
    """Sends a pilot's items and returns it with what they used. Raises LocalFault or BenchmarkDefect once nothing is
    in flight."""
    chosen, run = pilot.chosen, pilot.chosen.run
    with (
        tempfile.TemporaryDirectory(prefix="millstream-pilot-") as place,
        RunFolder(Path(place) / "run", run.specification) as folder,
    ):
        async with _PilotEngine(pilot, _step_noter(pilot)) as engine:
            remark(_announced(engine, chosen))

            async def send() -> None:
                with watch(engine, *chosen.progress) as progress:
                    if chosen.calls:
                        pilot.stops = await send_single_calls(engine, pilot)
                    else:
                        pilot.stops = await run.work.send(engine, folder, FinishedItems({}, 0.0), progress.item_ended)

            pilot.signal = await until_interrupted(engine, send())
            pilot.maybe_billed_pending = engine.scheduler.maybe_billed_pending
        decode = msgspec.json.Decoder(_Line).decode
        for journal, is_failure in ((folder.records, False), (folder.failures, True)):
            journal.flush()
            for line in map(decode, journal.read()):
                pilot.parts[0].count(line, is_failure=is_failure)
    return pilot


async def send_single_calls(runner: StreamRunner, pilot: Pilot) -> list[Stop]:
    """Sends a pilot's items of one call, all pairs at once. Returns the stops that left some unsent; raises LocalFault
    once every pair has ended."""
    prices = pilot.chosen.run.settings.price_table()
    places = {stratum.pairs[0]: (part, stratum) for part in pilot.parts for stratum in part.strata}

    def take(pair: Pair, outcome: Outcome) -> None:
        part, stratum = places[pair]
        has_failed, reply = outcome.failure is not None, outcome.reply
        item = ItemUse(states={pair: UnderWay(pair, "", has_ended=True, has_failed=has_failed)})
        item.add(outcome, prices.get(pair.model), max(1, chars_of(outcome.call)))
        stratum.items.append(item)
        part.note(outcome)
        error = None if outcome.failure is None else outcome.failure.detail
        part.count(_Line(outcome.status, error, reply is not None and reply.truncated), is_failure=has_failed)

    return await send_calls(runner, pilot.chosen.calls, take=take)


def _step_noter(pilot: Pilot) -> Callable[[Outcome], None]:
    """Returns the function that adds an outcome to the item for which its task works."""
    part, prices = pilot.parts[0], pilot.chosen.run.settings.price_table()
    items: dict[str, ItemUse] = {}
    counted: set[str] = set()

    def note(outcome: Outcome) -> None:
        part.note(outcome)
        if (under_way := UNDER_WAY.get()) is None:
            return
        if (item := items.get(under_way.item)) is None:
            item = items[under_way.item] = ItemUse(under_way.item)
            part.strata[0].items.append(item)
        item.states[under_way.pair] = under_way
        # A call that several items make counts once.
        if outcome.key not in counted:
            counted.add(outcome.key)
            item.add(outcome, prices.get(outcome.call.model))

    return note


def _announced(engine: Engine, chosen: ItemsOfPilot) -> str:
    """Returns the sentence that says how much is sent and its highest cost, computed as the engine does where all calls
    are known."""
    run, limit = chosen.run, engine.purse.limit
    if not chosen.calls:
        bound = "what they cost nobody knows before: --max-cost bounds it"
        if run.settings.max_cost is not None:
            bound = f"at most ${run.settings.max_cost:,.4f} by --max-cost, what the run's folder cost included"
        return (
            f"pilot: {chosen.items:,} {chosen.noun}s with each of {', '.join(map(str, run.work.pairs()))}, "
            f"{run.total:,} {run.work.item}s; {bound}"
        )
    pending = answered = unsendable = 0
    most = 0.0
    unpriced: dict[str, None] = {}
    endless: dict[str, None] = {}
    for call in chain.from_iterable(chosen.calls.values()):
        lookup = engine.scheduler.look_up(call)
        if not isinstance(lookup, PendingCall):
            answered += lookup.reply is not None
            unsendable += lookup.reply is None
            continue
        pending += 1
        if (worst := lookup.worst_cost) is None:
            (unpriced if lookup.route.price is None else endless)[call.model] = None
        most += worst or 0.0
    sentences = [f"pilot: {count_text(pending, 'call')} to send"]
    if most:
        left = float("inf") if limit is None else max(0.0, limit - engine.purse.spent)
        condition = "by --max-cost" if left < most else "if none has to be sent twice"
        sentences.append(f"at most ${min(left, most):,.4f}, {condition}")
    if unpriced:
        sentences.append(f"no price for {', '.join(unpriced)}")
    if endless:
        sentences.append(
            f"no bound for {', '.join(endless)}: how long their answers can be is not known (--max-tokens)"
        )
    if answered:
        sentences.append(f"{answered:,} more are answered by the cache")
    if unsendable:
        strict = ": mode strict" if engine.settings.mode == "strict" else ""
        sentences.append(f"{unsendable:,} more can't be sent{strict}")
    return "; ".join(sentences)
