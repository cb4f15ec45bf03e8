"""What a simple benchmark makes is sent, recorded and taken up again: nothing lost, nothing paid twice or left out."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from evaluated import JUDGE, MODEL, PAIRS, Answer, Line, Lives, Questions, Talks, ids, whole

from millstream.bench.evaluation.door.ask import Ask, CallFailed
from millstream.bench.evaluation.door.defect import BenchmarkDefect
from millstream.bench.evaluation.door.item import Item, steps_of
from millstream.bench.evaluation.door.record import Record
from millstream.bench.evaluation.running.item_run import Made
from millstream.engine.call import Call, Outcome
from millstream.engine.endpoint import Fault
from millstream.engine.fault import Stopped
from millstream.engine.pairs import Pair

REJECTED = Fault("rejected", "400: no", "never", 400)
DEAD = Fault("rejected", "402: no money", "stop", 402)


@pytest.fixture
def lives(tmp_path: Path) -> Lives:
    return Lives(tmp_path)


def written(lives: Lives) -> list[tuple[str, float | None, str]]:
    return sorted(((line["model"], line["temperature"], line["id"]) for line in lives.lines()), key=str)


def cost_in(lines: list[Line]) -> float:
    return sum(line["cost"] or 0.0 for line in lines)


# Items of one call


class Broken(Questions):
    """Fails at item 7 in the way that it is told."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how

    def call(self, item: Item, options: Any, pair: Pair) -> Call:
        if item.data == 7 and self.how == "raises in call":
            raise ZeroDivisionError("by hand")
        call = super().call(item, options, pair)
        if item.data == 7 and self.how == "another temperature":
            return Call(call.model, call.input, temperature=0.9)
        if item.data == 7 and self.how == "another model":
            return Call(JUDGE, call.input, temperature=call.temperature)
        return call

    def record(self, item: Item, outcome: Outcome, options: Any) -> Record:
        if item.data == 7 and self.how == "raises in record":
            raise KeyError("score")
        if item.data == 7 and self.how == "leaves in record":
            raise SystemExit(0)
        if item.data == 7 and self.how == "no record":
            return {"score": 1}  # type: ignore[return-value]
        if item.data == 7 and self.how == "no JSON":
            return Answer(score=object())  # type: ignore[arg-type]
        return super().record(item, outcome, options)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("raises in call", "Questions, item 'q7': its code raised ZeroDivisionError: by hand"),
        ("raises in record", "Questions, item 'q7': its code raised KeyError: 'score'"),
        ("leaves in record", "Questions, item 'q7': its code raised SystemExit: 0"),
        ("another temperature", "item 'q7': script/.* was asked at temperature 0.9, and the pair's is"),
        ("another model", "item 'q7': script/judge was asked as the model under test, which is script/"),
        ("no record", r"item 'q7': record\(\) must make a Answer, it made a dict"),
        ("no JSON", "item 'q7': its code raised TypeError"),
    ],
)
def test_a_defect_ends_the_run_with_its_item_and_what_was_paid_for_is_kept(lives: Lives, how: str, said: str) -> None:
    with pytest.raises(BenchmarkDefect, match=said):
        lives.live(Broken(how))
    before = lives.lines()
    assert "q7" not in ids(before) and len(before) < 40
    lives.live(Questions())
    assert lives.lines()[: len(before)] == before
    assert written(lives) == sorted(whole(Questions()), key=str)
    assert set(lives.sent.values()) == {1}


@pytest.mark.parametrize(
    ("items", "said"),
    [
        ([Item("a"), Item("a")], "two items have the id 'a'"),
        ([Item("a", steps=2), Item("a/2")], "two items have the id 'a/2'"),
        ([Item("")], "Items with an id"),
        ([Item("a", steps=0)], "at least a step"),
        (["a"], "it gave 'a'"),
    ],
)
def test_items_whose_lines_could_not_be_told_apart_are_refused(items: list[Any], said: str) -> None:
    with pytest.raises(BenchmarkDefect, match=said):
        steps_of(items, "Questions")


# Items of several steps


@pytest.mark.parametrize("seed", range(8))
def test_a_run_that_is_killed_and_stopped_at_any_moment_goes_on_and_pays_nothing_twice(lives: Lives, seed: int) -> None:
    draw, talks, count = random.Random(seed), Talks(4), 0

    def script(prompt: str, at: float) -> Fault | None:
        return DEAD if seed % 2 and count % 3 == 1 and at > 1.5 and prompt.startswith("judge") else None

    is_over = False
    while not is_over:
        count += 1
        life = lives.live(
            talks, script=script, seconds=draw.uniform(0.5, 4.0), latency_s=lambda: draw.uniform(0.1, 2.0)
        )
        is_over = life.is_over and not life.stops
    assert count > 2
    assert written(lives) == sorted(whole(talks), key=str)
    assert set(lives.sent.values()) == {1}


class Repeats(Talks):
    """The same talk again and again."""

    def items(self, options: Any) -> Iterable[Item]:
        return (Item(f"r/{number}", number, steps=2, of="r") for number in range(3))


def test_repeats_of_an_item_bear_its_id_and_are_taken_up_each_by_itself(lives: Lives) -> None:
    talks = Repeats(3, 2)
    lives.live(talks, script=lambda prompt, at: DEAD if "/2/2" in prompt else None, pairs=PAIRS[:1], at_once=1)
    assert ids(lives.lines()) == ["r/0/1", "r/0/2", "r/1/1", "r/1/2", "r/2/1"]
    assert {line["item"] for line in lives.lines()} == {"r"}
    talks.done.clear()
    lives.live(talks, pairs=PAIRS[:1])
    assert talks.done == [("r/2", [1])]
    assert ids(lives.lines())[5:] == ["r/2/2"]


class Odd(Talks):
    """Does something else with its first item than it should."""

    def __init__(self, how: str) -> None:
        super().__init__(4, 2)
        self.how = how

    async def run(self, item: Item, ask: Ask, done: Mapping[int, Record]) -> AsyncIterator[Made]:
        if item.id != "t0" or ask.pair.model != MODEL:
            async for record in super().run(item, ask, done):
                yield record
            return
        await ask(Call(JUDGE, "warm up"), role="judge")
        call = Call(MODEL, "odd", temperature=0.5)
        if self.how == "raises in a task":
            async with asyncio.TaskGroup() as group:
                group.create_task(ask(call))
                group.create_task(self._raise())
        elif self.how == "leaves":
            raise SystemExit(0)
        elif self.how == "asks another":
            await ask(Call(JUDGE, "odd"))
        elif self.how == "asks for no step":
            await ask(call, step=3)
        yield Answer() if self.how != "no record" else 5  # type: ignore[misc]
        if self.how != "too few":
            yield Answer(step=1 if self.how == "another step" else 2)
        if self.how == "too many":
            yield Answer()

    async def _raise(self) -> None:
        await asyncio.sleep(0.5)
        raise ZeroDivisionError("by hand")


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("raises in a task", "Talks, item 't0': its code raised ZeroDivisionError: by hand"),
        ("leaves", "Talks, item 't0': its code raised SystemExit: 0"),
        ("asks another", "item 't0': script/judge was asked as the model under test, which is script/m"),
        ("asks for no step", r"ask\(\) was called for step 3"),
        ("no record", r"run\(\) must yield a Answer, it yielded int"),
        ("another step", "a record of step 1, and step 2 was due"),
        ("too few", "ended before step 2 of 2"),
        ("too many", "all 2 steps have theirs"),
    ],
)
def test_a_defect_in_run_ends_the_run_with_its_item_and_what_was_in_flight_is_kept(
    lives: Lives, how: str, said: str
) -> None:
    with pytest.raises(BenchmarkDefect, match=said):
        lives.live(Odd(how))
    before = lives.lines()
    assert lives.spent > 0
    assert cost_in(before) + lives.manifest().get("cost_unrecorded", 0.0) == pytest.approx(lives.spent)
    lives.live(Talks(4, 2))
    assert written(lives) == sorted(whole(Talks(4, 2)), key=str)
    assert set(lives.sent.values()) == {1}


class Stubborn(Talks):
    """Catches whatever its calls raise, and yields a record all the same."""

    async def run(self, item: Item, ask: Ask, done: Mapping[int, Record]) -> AsyncIterator[Record]:
        try:
            text = (await ask(Call(ask.pair.model, f"{item.id} {ask.pair}", temperature=ask.pair.temperature))).text
        except (CallFailed, Stopped) as error:
            text = type(error).__name__
        yield Answer(text=text)


def test_who_catches_a_failure_goes_on_and_who_catches_a_stop_gets_no_line(lives: Lives) -> None:
    talks = Stubborn(6, 1)

    def script(prompt: str, at: float) -> Fault | None:
        return REJECTED if prompt.startswith("t1 ") else DEAD if prompt.startswith("t3 ") else None

    life = lives.live(talks, script=script, at_once=1, pairs=PAIRS[:1])
    assert [(line["id"], line["text"]) for line in lives.lines()] == [
        ("t0", "answer to t0 script/m @ 0.5"),
        ("t1", "CallFailed"),
        ("t2", "answer to t2 script/m @ 0.5"),
    ]
    assert [stop.reason for stop in life.stops] == ["empty_account"]
    lives.live(talks, pairs=PAIRS[:1])
    assert len(lives.lines()) == 6 and "Stopped" not in str(lives.lines())


class Hasty(Talks):
    """Asks, and no longer waits for the answer."""

    async def run(self, item: Item, ask: Ask, done: Mapping[int, Record]) -> AsyncIterator[Record]:
        for turn in (1, 2):
            call = Call(ask.pair.model, f"{item.id}/{turn} {ask.pair}", temperature=ask.pair.temperature)
            try:
                async with asyncio.timeout(0.5):
                    await ask(call)
            except TimeoutError:
                pass
            yield Answer(text="late")


def test_a_call_that_nobody_waits_for_any_more_is_finished_and_its_cost_is_known(lives: Lives) -> None:
    lives.live(Hasty(2, 2), pairs=PAIRS[:1])
    assert len(lives.sent) == 4
    assert cost_in(lives.lines()) + lives.manifest()["cost_unrecorded"] == pytest.approx(lives.spent)


class Ahead(Talks):
    """Asks for something ahead of each next turn, and judges behind."""

    async def run(self, item: Item, ask: Ask, done: Mapping[int, Record]) -> AsyncIterator[Made]:
        ahead = ask.begin(self._fetched(item, ask, 1))
        for turn in range(1, self.turns + 1):
            text = await ahead
            if turn < self.turns:
                ahead = ask.begin(self._fetched(item, ask, turn + 1))
            call = Call(ask.pair.model, f"{ask.pair} {item.id}/{turn} by {text}", temperature=ask.pair.temperature)
            yield self._judged(ask, (await ask(call)).text, turn)

    async def _fetched(self, item: Item, ask: Ask, turn: int) -> str:
        return (await ask(Call(JUDGE, f"fetch {item.id}/{turn}"), role="judge", step=turn)).text


def test_what_was_begun_ahead_of_a_failed_step_is_finished_and_its_cost_is_in_the_failure(lives: Lives) -> None:
    lives.live(Ahead(1, 4), script=lambda prompt, at: REJECTED if " t0/2 " in prompt else None, pairs=PAIRS[:1])
    assert [line["id"] for line in lives.lines()] == ["t0/1"]
    (failure,) = lives.lines("failures")
    assert (failure["id"], failure["role"]) == ("t0/2", "subject")
    assert lives.sent["fetch t0/3"] == 1 and not lives.sent["fetch t0/4"]
    assert cost_in(lives.lines()) + cost_in([failure]) == pytest.approx(lives.spent)


def test_a_step_that_is_judged_behind_fails_first_and_the_next_one_gets_no_line(lives: Lives) -> None:
    lives.live(
        Talks(1, 4),
        script=lambda prompt, at: REJECTED if "judge" in prompt and "t0/2" in prompt else None,
        pairs=PAIRS[:1],
    )
    assert [line["id"] for line in lives.lines()] == ["t0/1"]
    (failure,) = lives.lines("failures")
    assert (failure["id"], failure["role"]) == ("t0/2", "judge")
    # The third turn was asked meanwhile, the fourth was not.
    assert [any(f"t0/{turn} after" in prompt for prompt in lives.sent) for turn in (3, 4)] == [True, False]
    assert cost_in(lives.lines()) + cost_in([failure]) == pytest.approx(lives.spent)


def test_a_judged_step_is_on_disk_while_the_next_one_is_still_asked(lives: Lives) -> None:
    waits = iter((1.0, 9.0, 1.0))
    life = lives.live(Talks(1, 2), latency_s=lambda: next(waits), seconds=3, pairs=PAIRS[:1])
    assert not life.is_over and sum("judge" in prompt for prompt in lives.sent) == 1
    assert [line["id"] for line in lives.lines()] == ["t0/1"]


def test_a_stop_ends_the_run_also_if_the_step_behind_it_failed(lives: Lives) -> None:
    def script(prompt: str, at: float) -> Fault | None:
        return REJECTED if "judge" in prompt else DEAD if "t0/2 " in prompt else None

    life = lives.live(Talks(1, 4), script=script, pairs=PAIRS[:1])
    assert [stop.reason for stop in life.stops] == ["empty_account"]
    assert [(line["id"], line["role"]) for line in lives.lines("failures")] == [("t0/1", "judge")]
