"""A sweep: every model's grid at once, one line for each (model, temperature, id), and stops that stay apart."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from random import Random

import orjson
import pytest
from answered_run import specification_of
from msgspec import structs

from millstream.bench.evaluation.door.item_line import StepTotals
from millstream.bench.evaluation.running.call_items import CallSweep
from millstream.bench.evaluation.running.journals import read_done
from millstream.bench.evaluation.running.recount import recount
from millstream.bench.millstone.benchmark import BENCHMARK
from millstream.bench.millstone.options import Options
from millstream.bench.millstone.records import RecordError
from millstream.bench.millstone.recount import tally_of
from millstream.bench.millstone.work import GridItems
from millstream.engine.call import Call, Failure, Outcome, Reply, Usage
from millstream.engine.fault import LocalFault, Stop, Stopped, StopReason
from millstream.engine.runs.pairs import FinishedItems, Pair
from millstream.engine.runs.run_folder import RunFolder, specification_hash
from millstream.engine.sink import Sink

TEXTS = ("position <<A>>", "Position B", "Answer: A", "I don't know.")


class Scripted:
    """Answers every call from a seed, a few at a time and out of order, until told otherwise."""

    def __init__(self, stop_after: dict[str, int] | None = None, fault_after: int | None = None) -> None:
        self.stop_after = stop_after or {}
        self.fault_after = fault_after
        self.asked: Counter[tuple[str, float | None, str]] = Counter()
        self.halted: list[tuple[StopReason, str]] = []
        self.random = Random(7)

    async def run(self, calls: Iterable[Call], sink: Sink | None = None) -> AsyncIterator[Outcome]:
        assert sink is not None
        held: list[Call] = []
        count = 0
        for call in calls:
            count += 1
            if self.halted:
                raise Stopped([Stop(call.model, *self.halted[0])])
            if count > self.stop_after.get(call.model, 1_000_000):
                raise Stopped([Stop(call.model, "dead_key", f"{call.model} has no key")])
            if self.fault_after is not None and sum(self.asked.values()) >= self.fault_after:
                raise LocalFault("disk full")
            held.append(call)
            if len(held) < 5:
                continue
            yield await self._end(held.pop(self.random.randrange(5)), sink)
        for call in held:
            yield await self._end(call, sink)

    def halt(self, reason: StopReason, detail: str) -> None:
        self.halted.append((reason, detail))

    async def _end(self, call: Call, sink: Sink) -> Outcome:
        await asyncio.sleep(0)
        self.asked[call.model, call.temperature, call.tag.id] += 1
        number = self.random.randrange(1_000)
        outcome = Outcome(call, Reply(TEXTS[number % 4], Usage(100, 4)), key="k", attempts=1, cost=0.25)
        if number % 10 == 0:
            outcome = Outcome(call, failure=Failure("rejected", "400"), key="k", attempts=1)
        elif number % 7 == 0:
            outcome = Outcome(call, Reply("", None, "content_filter", refused=True), key="k", attempts=1)
        sink.write(outcome)
        sink.flush()
        return outcome


OPTIONS = Options(model=(), limit=1, templates=1, trials=3)


@pytest.fixture(scope="module")
def grid() -> GridItems:
    return GridItems(OPTIONS)


def pairs(models: tuple[str, ...] = ("a/one", "a/two"), last: float = 0.5) -> tuple[Pair, ...]:
    return tuple(Pair(model, temperature) for model in models for temperature in (None, last))


ASKED = pairs()


def swept(runner: Scripted, folder: Path, grid: GridItems) -> tuple[list[Stop], FinishedItems]:
    with RunFolder(folder, specification_of(OPTIONS, ASKED)) as opened:
        opened.write_manifest()
        done = read_done(opened)
        streams = {pair: (grid.left(done.of(pair).__contains__, is_untried=True), OPTIONS) for pair in ASKED}
        stops = asyncio.run(CallSweep(BENCHMARK, runner, opened, OPTIONS).run(streams))
        return stops, read_done(opened)


def lines(folder: Path, name: str) -> list[bytes]:
    return (folder / name).read_bytes().splitlines()


def test_every_pair_gets_every_id_once(tmp_path: Path, grid: GridItems) -> None:
    runner = Scripted()
    stops, done = swept(runner, tmp_path, grid)
    assert stops == []
    assert done.ids == {pair: set(grid.steps) for pair in ASKED}
    written = len(lines(tmp_path, "records.jsonl")) + len(lines(tmp_path, "failures.jsonl"))
    assert written == done.count() == 4 * len(grid) == sum(runner.asked.values())


def test_a_stop_of_one_model_leaves_the_others_to_finish_and_resuming_asks_only_the_rest(
    tmp_path: Path, grid: GridItems
) -> None:
    runner = Scripted(stop_after={"a/one": 12})
    stops, done = swept(runner, tmp_path, grid)
    assert [(stop.lane, stop.reason) for stop in stops] == [("a/one", "dead_key")]
    assert {pair.model: len(ids) == len(grid) for pair, ids in done.ids.items()} == {"a/one": False, "a/two": True}
    second = Scripted()
    stops, done = swept(second, tmp_path, grid)
    assert (stops, done.count()) == ([], 4 * len(grid))
    assert set((runner.asked + second.asked).values()) == {1}


def test_a_local_fault_halts_every_pair_and_is_raised_when_all_have_ended(tmp_path: Path, grid: GridItems) -> None:
    runner = Scripted(fault_after=40)
    with pytest.raises(LocalFault, match="disk full"):
        swept(runner, tmp_path, grid)
    assert runner.halted[0] == ("local_fault", "disk full")
    assert sum(runner.asked.values()) <= 40 + len(ASKED)


def test_what_was_spent_is_read_from_the_journal(tmp_path: Path, grid: GridItems) -> None:
    _, done = swept(Scripted(), tmp_path, grid)
    records = [orjson.loads(line) for line in lines(tmp_path, "records.jsonl")]
    assert done.cost == sum(record["cost"] or 0 for record in records) > 0


def test_the_recount_agrees_with_a_naive_one(tmp_path: Path, grid: GridItems) -> None:
    swept(Scripted(), tmp_path, grid)
    records = [orjson.loads(line) for line in lines(tmp_path, "records.jsonl")]
    failures = [orjson.loads(line) for line in lines(tmp_path, "failures.jsonl")]
    counted = recount(StepTotals(), {name: lines(tmp_path, name) for name in ("records.jsonl", "failures.jsonl")})
    tally = tally_of(lines(tmp_path, "records.jsonl"))
    for pair in ASKED:

        def count(rows: list[dict[str, object]], keep: Callable[[dict[str, object]], bool], at: Pair = pair) -> int:
            return sum(keep(row) for row in rows if (row["model"], row["temperature"], row["effort"]) == at)

        ended = counted.of(pair)
        assert ended.ok == count(records, lambda row: row["status"] == "ok")
        assert ended.refused == count(records, lambda row: row["status"] == "refused") > 0
        assert ended.failed == {"rejected": count(failures, lambda row: True)}
        assert ended.input_tokens == 100 * ended.ok
    # Of the four texts only "Answer: A" is read by the careful reading alone.
    differing = Counter(row["model"] for row in records if row["text"] == "Answer: A")
    told = {answers.pair.model: 0 for answers in tally.models()}
    for answers in tally.models():
        told[answers.pair.model] += answers.disagreements()
    assert told == dict(differing)


def test_a_bad_line_is_named() -> None:
    with pytest.raises(RecordError, match=r"^there: line 2: "):
        tally_of([b"", b'{"id":"x"}'], source="there")
    with pytest.raises(RecordError, match=r"^failures.jsonl: line 1: "):
        recount(StepTotals(), {"failures.jsonl": [b"{}"]})


def test_the_specification_has_what_decides_answers_and_nothing_else() -> None:
    def digest(asked: tuple[Pair, ...] = ASKED, endpoint: str = "e", **changes: object) -> str:
        return specification_hash(specification_of(structs.replace(OPTIONS, **changes), asked, endpoint))

    assert digest() == digest(pairs()) == digest(silence="literal")
    others = [
        digest(pairs(("a/one",))),
        digest(pairs(last=0.7)),
        digest(tuple(pair._replace(effort="low") for pair in pairs())),
        digest(max_tokens=50),
        digest(stance="careful"),
        digest(endpoint="f"),
    ]
    assert len({digest(), *others}) == 7
