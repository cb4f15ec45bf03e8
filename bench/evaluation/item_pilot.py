"""The pilot of a run whose items take several calls: a few of its items, run completely in a temporary folder.

Their answers stay in the cache, so the run pays for nothing twice. Records which item each call was made for;
item_pilot_figures computes the estimates.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct, field, structs

from ...configuration import errors as refusal
from ...engine.attempts.prices import Prices
from ...engine.call import NOT_REPORTED, WEB, Call, Outcome
from ...engine.endpoint import Hear
from ...engine.fault import Stop
from ...engine.remarks import remark
from ...engine.runs.pairs import FinishedItems, Pair
from ...engine.runs.run_folder import RunFolder
from ...wiring.engine import Engine
from ...wiring.signals import until_interrupted
from .preparation import ItemsOfPilot, PreparedRun
from .steps import UNDER_WAY, UnderWay
from .watch import Watch


class LaneSpent(Struct):
    """The calls, tokens and dollars that one item used on one lane; each call counts once, cached or sent."""

    calls: int = 0
    """The number of calls."""
    input: int = 0
    """Input tokens."""
    output: int = 0
    """Output tokens."""
    cost: float = 0.0
    """Dollars by the price table, whatever was paid."""


class ItemSpent(Struct):
    """The calls, tokens and dollars that one item used on each lane, over all pairs."""

    lanes: dict[str, LaneSpent] = field(default_factory=dict)
    """What the item used on each lane; all pages together are one lane."""
    runs: dict[Pair, UnderWay] = field(default_factory=dict)
    """The item's state with each pair."""

    def is_whole(self, pairs: Sequence[Pair]) -> bool:
        """Returns whether the item ran completely with each of these pairs and no step failed."""
        return all(pair in self.runs and self.runs[pair].is_whole for pair in pairs)


class ItemPilot(Struct, kw_only=True):
    """The items of a pilot and what they used. An incomplete item was stopped or failed."""

    chosen: ItemsOfPilot
    """The run that was reduced to these items."""
    items: dict[str, ItemSpent] = field(default_factory=dict)
    """What each item used, by its id."""
    stops: Sequence[Stop] = ()
    """The stops that left items pending."""
    signal: int | None = None
    """The number of the signal that ended the pilot early; None: no signal did."""
    sent: int = 0
    """The number of calls that were sent."""
    from_cache: int = 0
    """The number of calls that the cache answered."""
    paid: float | None = None
    """The dollars paid for the calls that were sent; None: none has a price."""
    unmeasured: set[str] = field(default_factory=set)
    """Lanes with an answer whose tokens the provider did not report."""
    lines: int = 0
    """The number of records."""
    refused: int = 0
    """The number of records that are refusals."""
    truncated: int = 0
    """The number of records whose answer was cut off."""
    failures: Counter[str] = field(default_factory=Counter)
    """The number of failed steps, by kind of failure."""
    details: dict[str, str] = field(default_factory=dict)
    """The message of the first failure of each kind."""
    maybe_billed_pending: int = 0
    """Attempts for calls without an answer that may have been billed."""

    @property
    def whole(self) -> list[ItemSpent]:
        """The complete items, from which estimates are made."""
        pairs = self.chosen.run.work.pairs()
        # By their ids, so that the same answers always give the same intervals.
        return [item for _, item in sorted(self.items.items()) if item.is_whole(pairs)]

    @property
    def exit_code(self) -> int:
        if self.signal is not None:
            return refusal.SIGNAL + self.signal
        if self.stops:
            return refusal.RESUMABLE
        return refusal.WITH_FAILURES if self.failures else refusal.DONE


class _PilotEngine(Engine):
    """An engine that records which item each call was made for."""

    def __init__(self, run: PreparedRun, pilot: ItemPilot) -> None:
        # The run will find these answers in the cache, and passes them to its sink then.
        super().__init__(settings=structs.replace(run.settings, sink=None))
        self._pilot = pilot
        self._prices: Prices = run.settings.price_table()
        self._known: set[str] = set()

    async def ask(self, call: Call, *, hear: Hear | None = None) -> Outcome:
        outcome = await super().ask(call, hear=hear)
        self._note(outcome)
        return outcome

    def _note(self, outcome: Outcome) -> None:
        pilot, under_way = self._pilot, UNDER_WAY.get()
        pilot.sent += outcome.attempts > 0
        pilot.from_cache += outcome.cached
        if outcome.cost is not None:
            pilot.paid = (pilot.paid or 0.0) + outcome.cost
        if under_way is None:
            return
        item = pilot.items.setdefault(under_way.item, ItemSpent())
        item.runs[under_way.pair] = under_way
        if outcome.key in self._known:
            return  # a call that several items make counts once
        self._known.add(outcome.key)
        lane = outcome.call.model
        spent = item.lanes.setdefault(lane, LaneSpent())
        spent.calls += 1
        if outcome.reply is None or lane == WEB:
            return
        price, usage = self._prices.get(lane), outcome.reply.usage
        if usage is not None:
            spent.input += usage.input or 0
            spent.output += usage.output or 0
        if not (usage.is_whole if usage is not None else price is not None and price.is_by_call):
            pilot.unmeasured.add(lane)
        if price is not None:
            counted = usage or NOT_REPORTED
            spent.cost += price.of_call(counted.input or 0, counted.output or 0)


async def send_items(chosen: ItemsOfPilot, watch: Watch) -> ItemPilot:
    """Runs the items of a pilot and returns what they used. Raises LocalFault or BenchmarkDefect once nothing is in
    flight."""
    pilot, run = ItemPilot(chosen=chosen), chosen.run
    remark(_announced(chosen))
    with (
        tempfile.TemporaryDirectory(prefix="millstream-pilot-") as place,
        RunFolder(Path(place) / "run", run.specification) as folder,
    ):
        async with _PilotEngine(run, pilot) as engine:

            async def send() -> None:
                with watch(engine, run.total, 0, run.work.item) as progress:
                    pilot.stops = await run.work.send(engine, folder, FinishedItems({}, 0.0), progress.item_ended)

            pilot.signal = await until_interrupted(engine, send())
            pilot.maybe_billed_pending = engine.scheduler.maybe_billed_pending
        _count(pilot, folder)
    return pilot


class _PilotLine(Struct):
    status: str = ""
    error: str | None = None
    truncated: bool = False


def _count(pilot: ItemPilot, folder: RunFolder) -> None:
    folder.records.flush()
    folder.failures.flush()
    decode = msgspec.json.Decoder(_PilotLine).decode
    for line in map(decode, folder.records.read()):
        pilot.lines += 1
        pilot.refused += line.status == "refused"
        pilot.truncated += line.truncated
    for line in map(decode, folder.failures.read()):
        pilot.failures[line.status] += 1
        pilot.details.setdefault(line.status, " ".join((line.error or "").split()))


def _announced(chosen: ItemsOfPilot) -> str:
    """Returns the sentence that says how many items are sent, and their highest cost."""
    settings, pairs = chosen.run.settings, chosen.run.work.pairs()
    bound = "what they cost nobody knows before: --max-cost bounds it"
    if settings.max_cost is not None:
        bound = f"at most ${settings.max_cost:,.4f} by --max-cost, what the run's folder cost included"
    return (
        f"pilot: {chosen.items:,} {chosen.noun}s with each of {', '.join(map(str, pairs))}, {chosen.run.total:,} "
        f"{chosen.run.work.item}s; {bound}"
    )
