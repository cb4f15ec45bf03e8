"""The pilot of a run: a few of its items, sent exactly as the run will send them.

Announces them, sends them, and records what each item used on each lane. Answers stay in the cache, so the run pays for
nothing twice. Items of several calls run in a temporary folder; pilot_figures computes the estimates.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path

import msgspec
from msgspec import Struct, field, structs

from ....configuration.errors import UsageError
from ....engine.attempts.budget_file import BUDGET, BudgetPlace
from ....engine.attempts.estimate import TokenEstimate, chars_of
from ....engine.attempts.money import bill_of
from ....engine.attempts.prices import Price
from ....engine.call import NOT_REPORTED, WEB, Call, Outcome
from ....engine.call_lookup import PendingCall
from ....engine.endpoint import Hear
from ....engine.fault import Stop
from ....engine.limits import Quota
from ....engine.remarks import remark
from ....engine.runs.pairs import FinishedItems, Pair
from ....engine.runs.run_folder import RunFolder
from ....format import count_text
from ....wiring.budgets import budgets_folder
from ....wiring.engine import Engine
from ....wiring.event_loop import run_in_loop
from ....wiring.folder_budget import at_most_in
from ....wiring.running import RunEnd, running
from ..door.prepared_run import ItemsOfPilot, PreparedRun
from ..door.watch import Watch, unwatched
from ..running.cost_bound import worst_calls
from ..running.sending import send_items
from ..running.steps import UNDER_WAY, UnderWay
from ..running.sweep import StreamRunner, send_calls
from .item_plan import pilot_items
from .preparation import with_settings


class LaneUse(Struct):
    """What one item used on one lane: calls, each once, cached or sent; the characters of its prompt (0: they say
    nothing about its tokens); tokens; and dollars as an attempt is billed, also where the cache answered, those of
    calls and input tokens apart from those of output tokens."""

    calls: int = 0
    chars: int = 0
    input: int = 0
    output: int = 0
    input_cost: float = 0.0
    output_cost: float = 0.0


class ItemUse(Struct):
    """What one item used on each lane (all pages together are one), and its state with each pair that began it. `id` is
    empty for an item of one call. `is_measured`: the tokens of all its answers are known. `replayed`: the pairs of
    which answers came from the cache, so that its time with them says nothing about a run's."""

    id: str = ""
    states: dict[Pair, UnderWay] = field(default_factory=dict)
    lanes: dict[str, LaneUse] = field(default_factory=dict)
    is_measured: bool = True
    replayed: set[Pair] = field(default_factory=set)

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
            of_output = price.of_call(*tokens) - price.of_call(tokens[0], 0)
            use.input_cost += (bill_of(outcome.reply, outcome.call, price, TokenEstimate()).cost or 0.0) - of_output
            use.output_cost += of_output


class JournalLine(Struct):
    """As much of a journal line as a pilot counts."""

    status: str = ""
    error: str | None = None
    truncated: bool = False


class Stratum(Struct, kw_only=True):
    """The items that stand for the same rest: those of one pair, or of all `pairs` together where an item takes several
    calls. `chosen` items of the run's `of` are in the pilot; `items` are those that were begun.

    Counts the calls that were sent or were in the cache, the dollars paid, attempts that brought no whole answer and
    may have been billed, and each lane's latencies in milliseconds. `records` and `failures` are its journal lines.
    """

    pairs: tuple[Pair, ...]
    chosen: int
    of: int
    items: list[ItemUse] = field(default_factory=list)
    sent: int = 0
    from_cache: int = 0
    paid: float = 0.0
    maybe_billed: int = 0
    latencies: dict[str, list[float]] = field(default_factory=dict)
    records: list[JournalLine] = field(default_factory=list)
    failures: list[JournalLine] = field(default_factory=list)

    @property
    def ended(self) -> list[ItemUse]:
        """The items that ran to their end with every pair, always in the same order, whichever ended first."""
        pairs = set(self.pairs)
        ended = [item for item in self.items if pairs == {pair for pair, of in item.states.items() if of.has_ended}]
        return sorted(ended, key=lambda item: (item.id, [structs.astuple(use) for use in item.lanes.values()]))

    @property
    def whole(self) -> list[ItemUse]:
        """Those of which no step failed."""
        return [item for item in self.ended if all(of.is_whole for of in item.states.values())]

    @property
    def seconds(self) -> list[float]:
        """The time that each whole item took with each pair, if it was sent."""
        return [of.seconds for item in self.whole for pair, of in item.states.items() if pair not in item.replayed]

    def note(self, outcome: Outcome) -> None:
        self.sent += outcome.attempts > 0
        self.from_cache += outcome.cached
        self.paid += outcome.cost or 0.0
        self.maybe_billed += outcome.maybe_billed
        if outcome.latency_ms is not None and not outcome.cached:
            self.latencies.setdefault(outcome.call.model, []).append(outcome.latency_ms)


class Pilot(Struct, kw_only=True):
    """A pilot and its items. `quotas`: those of its lanes, lowered to what the answers reported. `end` says why items
    are pending."""

    chosen: ItemsOfPilot
    strata: list[Stratum]
    quotas: dict[str, Quota] = field(default_factory=dict)
    end: RunEnd = field(default_factory=RunEnd)

    @property
    def exit_code(self) -> int:
        has_failures = any(stratum.failures for stratum in self.strata)
        return self.end.exit_code(is_pending=bool(self.end.stops), has_failures=has_failures)


def begin(chosen: ItemsOfPilot) -> Pilot:
    """Returns a pilot of which nothing was sent yet."""
    strata = [Stratum(pairs=(pair,), chosen=len(calls), of=chosen.of) for pair, calls in chosen.calls.items()]
    together = [] if strata else [Stratum(pairs=chosen.run.pairs, chosen=chosen.items, of=chosen.of)]
    return Pilot(chosen=chosen, strata=strata or together)


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
        chosen = pilot_items(with_settings(run, budget=budget), size)
        pilots.append(run_in_loop(_send(begin(chosen), watch)))
        if pilots[-1].end.signal is not None:
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
        return max((cost for run in runs for cost in worst_calls(run).values()), default=0.0)

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
        engine = _PilotEngine(pilot, _step_noter(pilot))
        async with running(engine) as end:
            remark(_announced(engine, chosen))
            with watch(engine, *chosen.progress) as progress:
                if chosen.calls:
                    end.stops = await send_single_calls(engine, pilot)
                else:
                    nothing = FinishedItems({}, 0.0)
                    end.stops = await send_items(run, engine, folder, nothing, progress.item_ended)
            # A lane that has stopped tells of no quota any more.
            lanes = [route.lane for route in engine.scheduler.routes.lasting.values()]
            pilot.quotas = {lane.lane.model: lane.quota for lane in lanes if lane.stopped is None}
        if end.fault is not None:
            raise end.fault
        pilot.end = end
        decode, every = msgspec.json.Decoder(JournalLine).decode, pilot.strata[0]
        for journal, lines in ((folder.records, every.records), (folder.failures, every.failures)):
            journal.flush()
            lines.extend(map(decode, journal.read()))
    return pilot


async def send_single_calls(runner: StreamRunner, pilot: Pilot) -> list[Stop]:
    """Sends a pilot's items of one call, all pairs at once. Returns the stops that left some unsent; raises LocalFault
    once every pair has ended."""
    table = pilot.chosen.run.settings.price_table()
    strata = {stratum.pairs[0]: stratum for stratum in pilot.strata}
    prices = {pair.model: table.get(pair.model) for pair in strata}

    def take(pair: Pair, outcome: Outcome) -> None:
        stratum, failure, reply = strata[pair], outcome.failure, outcome.reply
        item = ItemUse(states={pair: UnderWay(pair, "", has_ended=True, has_failed=failure is not None)})
        item.add(outcome, prices[pair.model], max(1, chars_of(outcome.call)))
        stratum.items.append(item)
        stratum.note(outcome)
        if failure is not None:
            stratum.failures.append(JournalLine(failure.kind, failure.detail))
        if reply is not None:
            stratum.records.append(JournalLine(outcome.status, truncated=reply.truncated))

    return await send_calls(runner, pilot.chosen.calls, take=take)


def _step_noter(pilot: Pilot) -> Callable[[Outcome], None]:
    """Returns the function that adds an outcome to the item for which its task works."""
    every, prices = pilot.strata[0], pilot.chosen.run.settings.price_table()
    items: dict[str, ItemUse] = {}
    counted: set[str] = set()
    sent: set[str] = set()

    def note(outcome: Outcome) -> None:
        every.note(outcome)
        if (under_way := UNDER_WAY.get()) is None:
            return
        if (item := items.get(under_way.item)) is None:
            item = items[under_way.item] = ItemUse(under_way.item)
            every.items.append(item)
        item.states[under_way.pair] = under_way
        if outcome.attempts:
            sent.add(outcome.key)
        elif outcome.key not in sent and outcome.call.model == under_way.pair.model:
            item.replayed.add(under_way.pair)
        # A call that several items make counts once.
        if outcome.key not in counted:
            counted.add(outcome.key)
            item.add(outcome, prices.get(outcome.call.model))

    return note


def _announced(engine: Engine, chosen: ItemsOfPilot) -> str:
    """Returns the sentence that says how much is sent and its highest cost, computed as the engine does where all calls
    are known."""
    run, limit = chosen.run, engine.budget.limit
    if not chosen.calls:
        bound = "what they cost nobody knows before: --max-cost bounds it"
        if run.settings.max_cost is not None:
            bound = f"at most ${run.settings.max_cost:,.4f} by --max-cost, what the run's folder cost included"
        return (
            f"pilot: {chosen.items:,} {chosen.noun}s with each of {', '.join(map(str, run.pairs))}, "
            f"{run.total:,} {run.benchmark.unit}s; {bound}"
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
        left = float("inf") if limit is None else max(0.0, limit - engine.budget.spent)
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
