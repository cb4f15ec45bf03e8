"""What a benchmark may decide of its runs: items read once, its specification, other lanes, what options leave open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct, structs

from millstream.bench.evaluation.door.benchmark import ItemBenchmark, Order, RunBasis
from millstream.bench.evaluation.door.item import Item
from millstream.bench.evaluation.door.item_set import ItemSet
from millstream.bench.evaluation.door.prepared_run import PreparedRun
from millstream.bench.evaluation.door.record import Record
from millstream.bench.evaluation.planning.item_plan import run_of
from millstream.bench.evaluation.planning.pilot import begin
from millstream.bench.evaluation.running.sending import at_once_in
from millstream.configuration.benchmark_options import RunOptions
from millstream.configuration.configuration import Configuration
from millstream.configuration.errors import UsageError
from millstream.configuration.options import SendingOptions
from millstream.engine.call import Call
from millstream.engine.lane import Lane
from millstream.wiring import Settings

MODEL, JUDGE = "openai/gpt-5.4", "openai/gpt-5.5"


class Options(Struct, frozen=True):
    model: tuple[str, ...] = (MODEL,)
    temperature: tuple[float | None, ...] = ()
    max_tokens: int | None = None
    effort: str | None = None
    size: int | None = None


class Readings(Struct, frozen=True):
    pass


class Walks(ItemBenchmark[Record]):
    name, title, unit_name, Options, Readings = "walks", "Walks", "walk", Options, Readings
    temperatures = (0.0, 0.5)
    items_per_rpm: float | None = 0.5  # type: ignore[misc]

    def __init__(self) -> None:
        self.reads = 0

    def items(self, options: Any) -> ItemSet:
        self.reads += 1
        items = [Item(f"w{number}", number, steps=2) for number in range(options.size)]
        return ItemSet(items=items, digest="d1", dataset={"name": "here"}, notes=("a note",), is_balanced=True)

    def run(self, item: Item, ask: Any, done: Mapping[int, Record]) -> Any:
        raise NotImplementedError

    def others(self, options: Any) -> Sequence[str | Call]:
        judge = Call(JUDGE, "?", temperature=0.0, max_tokens=7, reasoning_effort=options.effort)
        return (judge, "openai/writer", "search/corpus")

    def settled(self, options: Any, settings: Settings) -> tuple[Any, Settings]:
        settled = options if options.size is not None else structs.replace(options, size=8)
        return settled, structs.replace(settings, corpus=self.corpus)

    corpus: Path = Path()

    def specification(self, run: RunBasis) -> dict[str, Any]:
        held = {"data": run.items.digest, "pairs": [list(pair) for pair in run.pairs]}
        return {"benchmark": self.name, **held, "endpoints": dict(run.endpoints)}


def prepared(benchmark: ItemBenchmark[Record], folder: Path, *lanes: Lane, **options: Any) -> PreparedRun:
    run = RunOptions("walks", Options(**options), Readings())
    sending, configuration = SendingOptions(), Configuration(lanes=lanes)
    order = Order(out=folder / "run", run=run, sending=sending, configuration=configuration, needs_keys=False)
    return run_of(benchmark, order)


@pytest.fixture
def walks(tmp_path: Path) -> Walks:
    benchmark = Walks()
    benchmark.corpus = tmp_path / "corpus"
    benchmark.corpus.mkdir()
    (benchmark.corpus / "one.txt").write_text("A walk.")
    return benchmark


def test_what_options_leave_open_is_in_the_manifest_and_the_specification_is_the_benchmarks(
    walks: Walks, tmp_path: Path
) -> None:
    run = prepared(walks, tmp_path)
    assert run.kept["walks"]["size"] == 8 and run.items.lines == 16
    assert run.dataset == {"name": "here"} and run.notes[0] == "a note"
    assert run.specification["pairs"] == [[MODEL, 0.0, None], [MODEL, 0.5, None]]
    assert run.specification["data"] == "d1"
    assert prepared(walks, tmp_path, temperature=(1.0,)).specification["pairs"] == [[MODEL, 1.0, None]]


def test_items_that_the_run_keeps_are_read_once(walks: Walks, tmp_path: Path) -> None:
    run = prepared(walks, tmp_path)
    assert [item.id for item in run.items] == [f"w{number}" for number in range(8)]
    assert walks.reads == 1


def test_documents_on_this_machine_stand_by_their_digest_and_a_search_is_a_lane(walks: Walks, tmp_path: Path) -> None:
    run = prepared(walks, tmp_path)
    assert run.lanes == (MODEL, JUDGE, "openai/writer", "search/corpus")
    before = run.specification["endpoints"]["search/corpus"]
    assert before.startswith("corpus:")
    (walks.corpus / "one.txt").write_text("Another walk.")
    assert prepared(walks, tmp_path).specification["endpoints"]["search/corpus"] != before


def test_calls_of_others_are_checked_and_bound_and_a_judge_without_a_temperature_is_said(
    walks: Walks, tmp_path: Path
) -> None:
    run = prepared(walks, tmp_path, max_tokens=50)
    assert run.max_tokens == {MODEL: 50, JUDGE: 7, "openai/writer": None, "search/corpus": None}
    assert f"the judge {JUDGE} takes no temperature: none is sent, it judges at its own" in run.notes
    with pytest.raises(UsageError, match=f"{JUDGE}: expected a reasoning effort of .*, got odd"):
        prepared(walks, tmp_path, effort="odd")


def test_a_pilot_takes_the_first_items_where_these_stand_for_all(walks: Walks, tmp_path: Path) -> None:
    class Spread(Walks):
        corpus = walks.corpus

        def items(self, options: Any) -> ItemSet:
            items = super().items(options)
            items.is_balanced = False
            return items

    def chosen(benchmark: Walks) -> Iterable[str]:
        pilot = begin(prepared(benchmark, tmp_path), 2)
        assert (len(pilot.few.items), len(pilot.run.items), pilot.noun) == (2, 8, "walk")
        return tuple(pilot.few.items.steps)

    assert chosen(walks) == ("w0", "w1")
    assert chosen(Spread()) == ("w0", "w4")


def test_as_many_items_run_at_once_as_requests_a_minute_allow(walks: Walks, tmp_path: Path) -> None:
    def at_once(**lane: Any) -> int:
        return at_once_in(prepared(walks, tmp_path, Lane(MODEL, concurrency=400, **lane)))

    assert (at_once(rpm=400), at_once(rpm=4_000), at_once()) == (200, 400, 64)
    walks.items_per_rpm = None
    assert at_once() == 400
