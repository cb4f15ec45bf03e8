"""The pilot of a run whose items are several calls: whose call is whose, and what the whole items tell of the rest."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from evaluated import JUDGE, MODEL, OTHER, PAIRS, Answer, Lives, Talks

from millstream.bench.evaluation.door.ask import Ask
from millstream.bench.evaluation.door.benchmark import ItemBenchmark
from millstream.bench.evaluation.door.item import Item
from millstream.bench.evaluation.door.item_set import ItemSet
from millstream.bench.evaluation.door.prepared_run import ItemsOfPilot, PreparedRun
from millstream.bench.evaluation.door.record import Record
from millstream.bench.evaluation.planning.pilot import ItemUse, JournalLine, LaneUse, Pilot, begin
from millstream.bench.evaluation.planning.pilot_figures import PilotFigures, figures_of
from millstream.bench.evaluation.planning.pilot_text import tell
from millstream.bench.evaluation.running.item_run import Made
from millstream.bench.evaluation.running.steps import UNDER_WAY, UnderWay
from millstream.engine.attempts.prices import Price
from millstream.engine.endpoint import Fault
from millstream.engine.fault import Stop
from millstream.engine.lane import Lane
from millstream.wiring import Settings

SEARCH = "search/brave"
DEAD, REJECTED = Fault("rejected", "402: no money", "stop", 402), Fault("rejected", "400: no", "never", 400)


class Noting(Talks):
    """Notes for which item each of its tasks works, the judgements in tasks of their own among them."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[UnderWay] = []
        self.judged_for: set[tuple[str, str]] = set()

    async def run(self, item: Item, ask: Ask, done: Mapping[int, Record]) -> AsyncIterator[Made]:
        under_way = UNDER_WAY.get()
        assert under_way is not None and (under_way.item, under_way.pair) == (item.id, ask.pair)
        self.runs.append(under_way)
        async for record in super().run(item, ask, done):
            yield record

    async def _judged(self, ask: Ask, text: str, turn: int) -> Answer:
        under_way = UNDER_WAY.get()
        assert under_way is not None and f"{under_way.pair} {under_way.item}/{turn}" in text
        self.judged_for.add((str(under_way.pair), under_way.item))
        return await super()._judged(ask, text, turn)


@pytest.mark.parametrize(
    ("fault", "ended", "failed"), [(None, True, False), (REJECTED, True, True), (DEAD, False, False)]
)
def test_an_item_is_whole_where_it_ran_to_its_end_and_no_step_failed(
    tmp_path: Path, fault: Fault | None, ended: bool, failed: bool
) -> None:
    noting = Noting()
    Lives(tmp_path).live(noting, script=lambda prompt, at: fault if f"{PAIRS[0]} t1/2" in prompt else None)
    runs = {(each.pair, each.item): each for each in noting.runs}
    hit = runs[PAIRS[0], "t1"]
    assert (hit.has_ended, hit.has_failed, hit.is_whole) == (ended, failed, fault is None)
    assert all(runs[PAIRS[1], f"t{number}"].is_whole for number in range(6))
    assert (str(PAIRS[1]), "t5") in noting.judged_for


class Planned(ItemBenchmark[Record]):
    """As much of a benchmark as its figures need."""

    title = "planned"
    unit = "turn"

    def others(self, options: Any) -> tuple[str, ...]:
        return (JUDGE, SEARCH)


SETTINGS = Settings(
    lanes=(Lane(MODEL, rpm=60), Lane(JUDGE, tpm=1_000)),
    prices={MODEL: Price(1, 10), OTHER: Price(2, 20), JUDGE: Price(1, 1)},
)


def used(
    *, words: int = 100, failed: bool = False, unended: bool = False, measured: bool = True, seconds: float = 0.0
) -> ItemUse:
    """One item's: each pair has one call of so many words, the judge two; one search for both."""
    runs = {pair: UnderWay(pair, "x", has_ended=True, seconds=seconds) for pair in PAIRS}
    runs[PAIRS[0]].has_failed, runs[PAIRS[1]].has_ended = failed, not unended
    lanes = {
        MODEL: LaneUse(1, 0, words, 10, words * 1e-6, 1e-4),
        OTHER: LaneUse(1, 0, words, 10, words * 2e-6, 2e-4),
        JUDGE: LaneUse(2, 0, 2 * words, 20, words * 2e-6, 2e-5),
        SEARCH: LaneUse(1, input_cost=0.005),
    }
    return ItemUse("", runs, lanes, measured)


def pilot_of(*items: ItemUse, of: int = 20, settings: Settings = SETTINGS, at_once: int = 64, **more: Any) -> Pilot:
    out = Path("-")
    run = PreparedRun(benchmark=Planned(), out=out, settings=settings, items=ItemSet([]), limits=dict.fromkeys(PAIRS))
    pilot = begin(ItemsOfPilot(run=run, items=len(items), of=of, noun="talk", at_once=at_once))
    (stratum,) = pilot.strata
    for number, item in enumerate(items):
        item.id = f"t{number}"
        stratum.items.append(item)
    for name, value in more.items():
        setattr(stratum, name, value)
    return pilot


def figures(pilot: Pilot) -> PilotFigures:
    (found,) = figures_of(pilot, {})
    return found


def test_what_is_left_takes_what_whole_items_took_of_every_lane() -> None:
    pilot = pilot_of(*[used() for _ in range(4)], paid=0.03)
    found = figures(pilot)
    assert (found.whole, found.left, pilot.exit_code) == (4, 16, 0)
    rows = {row.lane: row for row in found.lanes or ()}
    assert (rows[JUDGE].calls.estimate, rows[JUDGE].calls.ci95) == (32.0, (32.0, 32.0))
    assert rows[JUDGE].input_tokens.estimate == 16 * 200 and rows[SEARCH].calls.estimate == 16
    each = (100e-6 + 1e-4) + (200e-6 + 2e-4) + (200e-6 + 2e-5) + 0.005
    assert found.cost is not None and found.cost.estimate == pytest.approx(16 * each)
    assert found.cost_with_pilot is not None and found.cost_with_pilot.estimate == pytest.approx(16 * each + 0.03)
    # 16 calls at 60 a minute take 0.27 minutes, the judge's 3,520 tokens at 1,000 a minute 3.52.
    assert found.minutes is not None and found.minutes.estimate == pytest.approx(3.52)
    assert (found.minutes.bound_by, found.minutes.lane) == ("tokens", JUDGE)


def test_answers_that_take_long_bound_the_time_where_few_may_be_in_flight() -> None:
    lanes = (Lane(MODEL, concurrency=2), Lane(JUDGE, concurrency=8))
    slow = {MODEL: [60_000.0] * 4, JUDGE: [30_000.0] * 8}
    minutes = figures(pilot_of(*[used() for _ in range(4)], settings=Settings(lanes=lanes), latencies=slow)).minutes
    # 16 calls of a minute, two at a time; the judge's 32 of half a minute are eight at a time.
    assert minutes is not None and minutes.estimate == pytest.approx(8.0)
    assert (minutes.bound_by, minutes.lane) == ("concurrency", MODEL)


@pytest.mark.parametrize(("at_once", "minutes"), [(64, 2.0), (8, 8.0)])
def test_the_time_is_at_least_what_items_take_of_which_so_many_run_at_once(at_once: int, minutes: float) -> None:
    pilot = pilot_of(*[used(seconds=120) for _ in range(4)], settings=Settings(), at_once=at_once)
    # 16 talks of two minutes are left, with each of two models.
    found = figures(pilot)
    assert found.minutes is not None and found.minutes.estimate == pytest.approx(minutes)
    assert "bound by talks whose calls follow each other" in tell(pilot, [found])
    # What the cache answered takes no time, and says nothing about a run.
    for item in pilot.strata[0].items:
        item.replayed.update(PAIRS)
    replayed = figures(pilot)
    assert replayed.minutes is None and "unknown: no talk was timed" in tell(pilot, [replayed])


def test_items_that_differ_give_intervals_and_one_alone_gives_none() -> None:
    found = figures(pilot_of(*[used(words=words) for words in (50, 90, 100, 110, 150)], of=105))
    assert found.cost is not None and found.cost.ci95 is not None
    low, high = found.cost.ci95
    assert low < found.cost.estimate < high
    rows = {row.lane: row for row in found.lanes or ()}
    assert rows[MODEL].input_tokens.estimate == pytest.approx(100 * 100)
    alone = pilot_of(used())
    found = figures(alone)
    assert found.cost is not None and found.cost.ci95 is None and "too few for an interval" in tell(alone, [found])


def test_items_that_failed_or_were_stopped_are_counted_and_tell_nothing_of_the_cost() -> None:
    items = [used(), used(), used(words=1, failed=True), used(words=1, unended=True)]
    pilot = pilot_of(*items, records=[JournalLine("ok")] * 6, failures=[JournalLine("rejected", "400: no")] * 2)
    pilot.end.stops = [Stop(MODEL, "rejected", "402: no money")]
    found = figures(pilot)
    assert (found.whole, found.pending, found.left, pilot.exit_code) == (2, 1, 18, 4)
    assert (found.failed.count, found.failed.of) == (2, 8)
    assert (found.lanes or ())[0].input_tokens.estimate == 18 * 100
    text = tell(pilot, [found])
    assert "pending        1 of them: 402: no money" in text and "rejected       2, the first: 400: no" in text


def test_no_cost_is_told_where_a_price_or_tokens_are_not_known() -> None:
    pilot = pilot_of(used(), used(), settings=Settings())
    found = figures(pilot)
    assert found.cost is None and found.unpriced == (MODEL, OTHER, JUDGE)
    assert f"not known: no price for {MODEL}, {OTHER}, {JUDGE}" in tell(pilot, [found])
    pilot = pilot_of(used(), used(measured=False))
    found = figures(pilot)
    assert found.cost is not None and (found.whole, found.measured, found.left) == (2, 1, 18)
    assert "left out       talks without the usage of every answer: 1" in tell(pilot, [found])
    pilot = pilot_of(used(measured=False))
    assert figures(pilot).cost is None and "no answer came with its usage" in tell(pilot, [figures(pilot)])
    pilot = pilot_of(used(failed=True))
    assert figures(pilot).cost is None and "no estimate    no talk ran to its end" in tell(pilot, [figures(pilot)])
