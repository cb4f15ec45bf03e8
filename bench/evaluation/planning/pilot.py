"""The pilot of a run: a few of its items, sent exactly as the run will send them.

Announces them, sends them in a temporary folder, and records what each used on each lane. Answers stay in the cache, so
the run pays for nothing twice. pilot_figures computes the estimates.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path

from msgspec import Struct, field, structs

from ....configuration.errors import UsageError
from ....engine.attempts.budget_file import BUDGET, BudgetPlace
from ....engine.attempts.money import bill_of
from ....engine.call import NOT_REPORTED, WEB, Call, Outcome
from ....engine.call_lookup import PendingCall
from ....engine.endpoint import Hear
from ....engine.estimate import TokenEstimate, chars_of
from ....engine.limits import Quota
from ....engine.pairs import FinishedItems, Pair, PairCounts
from ....engine.prices import Price
from ....engine.remarks import remark
from ....engine.runs.run_folder import RunFolder
from ....engine.sink import Sink
from ....format import count_text
from ....providers.tool_results import is_tool
from ....wiring.budgets import budgets_folder
from ....wiring.engine import Engine
from ....wiring.event_loop import run_in_loop
from ....wiring.folder_budget import at_most_in
from ....wiring.running import RunEnd, running
from ..door.prepared_run import PreparedRun
from ..door.watch import Watch, unwatched
from ..running.cost_bound import worst_calls
from ..running.recount import recount
from ..running.sending import send_items
from ..running.steps import UNDER_WAY, UnderWay
from .item_plan import calls_of
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
    """What one item used on each lane (all pages together are one), and its state with each pair that began it.
    `is_measured`: the tokens of all its answers are known. `replayed`: the pairs of which answers came from the cache,
    so that its time with them says nothing about a run's."""

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


class Stratum(Struct, kw_only=True):
    """The items that stand for the same rest: those of one pair, or of all `pairs` together where an item takes several
    calls. Counts the calls that were sent or were in the cache, the dollars paid, and each lane's latencies in
    milliseconds. `items` are those that were begun, by id; `ended` says how their lines ended."""

    pairs: tuple[Pair, ...]
    items: dict[str, ItemUse] = field(default_factory=dict)
    sent: int = 0
    from_cache: int = 0
    paid: float = 0.0
    latencies: dict[str, list[float]] = field(default_factory=dict)
    ended: list[PairCounts] = field(default_factory=list)

    def note(self, outcome: Outcome) -> None:
        self.sent += outcome.attempts > 0
        self.from_cache += outcome.cached
        self.paid += outcome.cost or 0.0
        if outcome.latency_ms is not None and not outcome.cached:
            self.latencies.setdefault(outcome.call.model, []).append(outcome.latency_ms)

    @property
    def done(self) -> list[ItemUse]:
        """The items that ran to their end with every pair, in order of their ids, whichever ended first."""
        pairs = set(self.pairs)
        every = (item for _, item in sorted(self.items.items()))
        return [item for item in every if {pair for pair, of in item.states.items() if of.has_ended} == pairs]

    @property
    def whole(self) -> list[ItemUse]:
        """Those of which no step failed."""
        return [item for item in self.done if all(of.is_whole for of in item.states.values())]

    @property
    def seconds(self) -> list[float]:
        """The time that each whole item took with each pair, if it was sent."""
        return [of.seconds for item in self.whole for pair, of in item.states.items() if pair not in item.replayed]


class Pilot(Struct, kw_only=True):
    """A pilot of a `run`, and the same run of its items alone (`few`). `quotas`: those of its lanes, lowered to what
    the answers reported. `end` says why items are pending."""

    run: PreparedRun
    few: PreparedRun
    strata: list[Stratum]
    quotas: dict[str, Quota] = field(default_factory=dict)
    end: RunEnd = field(default_factory=RunEnd)

    @property
    def is_of_calls(self) -> bool:
        """Whether an item is one call, so that each pair's items stand for its own rest."""
        return self.run.benchmark.has_calls

    @property
    def noun(self) -> str:
        return "prompt" if self.is_of_calls else self.run.benchmark.unit_name

    @property
    def exit_code(self) -> int:
        has_failures = any(ended.failures for stratum in self.strata for ended in stratum.ended)
        return self.end.exit_code(is_pending=bool(self.end.stops), has_failures=has_failures)


def begin(run: PreparedRun, size: int) -> Pilot:
    """Returns a pilot of `size` of a run's items, which stand for all, of which nothing was sent yet."""
    few = structs.replace(run, items=run.items.only(run.items.sample(size)))
    strata = [(pair,) for pair in run.pairs] if run.benchmark.has_calls else [run.pairs]
    return Pilot(run=run, few=few, strata=[Stratum(pairs=pairs) for pairs in strata])


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
        pilots.append(begin(with_settings(run, budget=budget), size))
        run_in_loop(_send(pilots[-1], watch))
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
    """An engine that hands every outcome to the pilot."""

    def __init__(self, pilot: Pilot) -> None:
        # The run will find these answers in the cache, and passes them to its sink then.
        super().__init__(settings=structs.replace(pilot.run.settings, sink=None))
        self._note = outcome_noter(pilot)

    async def ask(self, call: Call, *, hear: Hear | None = None) -> Outcome:
        outcome = await super().ask(call, hear=hear)
        self._note(outcome)
        return outcome

    async def run(
        self, calls: Iterable[Call] | AsyncIterable[Call], sink: Sink | None = None
    ) -> AsyncGenerator[Outcome, None]:
        async for outcome in super().run(calls, sink):
            self._note(outcome)
            yield outcome


async def _send(pilot: Pilot, watch: Watch) -> None:
    """Sends a pilot's items and notes what they used. Raises LocalFault or BenchmarkDefect once nothing is in
    flight."""
    few, benchmark = pilot.few, pilot.run.benchmark
    with (
        tempfile.TemporaryDirectory(prefix="millstream-pilot-") as place,
        RunFolder(Path(place) / "run", few.specification) as folder,
    ):
        engine = _PilotEngine(pilot)
        async with running(engine) as pilot.end:
            remark(_announced(engine, pilot))
            with watch(engine, few.total, 0, "" if pilot.is_of_calls else benchmark.unit) as progress:
                pilot.end.stops = await send_items(few, engine, folder, FinishedItems({}, 0.0), progress)
            # A lane that has stopped tells of no quota any more.
            lanes = [route.lane for route in engine.scheduler.routes.lasting.values()]
            pilot.quotas = {lane.lane.model: lane.quota for lane in lanes if lane.stopped is None}
        if pilot.end.fault is not None:
            raise pilot.end.fault
        folder.records.flush()
        folder.failures.flush()
        journals = {str(each.path): each.read() for each in (folder.records, folder.failures)}
        counted = recount(benchmark.Totals(), journals, kind=benchmark.Line).pairs
        for stratum in pilot.strata:
            stratum.ended = [counted[pair] for pair in stratum.pairs if pair in counted]


def outcome_noter(pilot: Pilot) -> Callable[[Outcome], None]:
    """Returns the function that adds an outcome to the item of its call: one of its own where an item is a call, else
    the one for which the task works."""
    prices, was_sent = pilot.run.settings.price_table(), dict[str, bool]()

    def note(outcome: Outcome) -> None:
        call, under_way = outcome.call, UNDER_WAY.get()
        if is_tool(call.model):
            return  # nothing is sent for it, and its time is in the item's
        pair, price = Pair(call.model, call.temperature, call.reasoning_effort), prices.get(call.model)
        stratum = next(each for each in pilot.strata if pair in each.pairs or not pilot.is_of_calls)
        stratum.note(outcome)
        if pilot.is_of_calls:
            state = UnderWay(pair, "", has_ended=True, has_failed=outcome.failure is not None)
            # Two items may make the same call.
            item = stratum.items[f"{outcome.key} {len(stratum.items)}"] = ItemUse({pair: state})
            item.add(outcome, price, max(1, chars_of(call)))
        elif under_way is not None:
            item = stratum.items.setdefault(under_way.item, ItemUse())
            item.states[under_way.pair] = under_way
            # A call that several items make counts once.
            if outcome.key not in was_sent:
                item.add(outcome, price)
            was_sent[outcome.key] = was_sent.get(outcome.key, False) or outcome.attempts > 0
            if not was_sent[outcome.key] and call.model == under_way.pair.model:
                item.replayed.add(under_way.pair)

    return note


def _announced(engine: Engine, pilot: Pilot) -> str:
    """Returns the sentence that says how much is sent and its highest cost, computed as the engine does where all calls
    are known."""
    run, few, limit = pilot.run, pilot.few, engine.budget.limit
    if not pilot.is_of_calls:
        bound = "what they cost nobody knows before: --max-cost bounds it"
        if run.settings.max_cost is not None:
            bound = f"at most ${run.settings.max_cost:,.4f} by --max-cost, what the run's folder cost included"
        return (
            f"pilot: {len(few.items):,} {pilot.noun}s with each of {', '.join(map(str, few.pairs))}, "
            f"{few.total:,} {run.benchmark.unit}s; {bound}"
        )
    pending = answered = unsendable = 0
    most = 0.0
    unpriced: dict[str, None] = {}
    endless: dict[str, None] = {}
    for _, call in chain.from_iterable(calls_of(few, pair) for pair in few.pairs):
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
