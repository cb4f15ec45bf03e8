"""Items of one call each are sent as a stream a pair: lazily, stops apart, a fault of this machine ending all."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator

import pytest

from millstream.bench.evaluation.running.call_items import send_calls
from millstream.engine.call import Call, Outcome, Reply
from millstream.engine.fault import LocalFault, Stop, Stopped, StopReason
from millstream.engine.pairs import Pair
from millstream.engine.sink import Sink

ONE, TWO = Pair("a/one", None), Pair("a/two", 0.5)


class ScriptedRunner:
    """Answers in order; raises what `ends` has for a model before its call of this number."""

    def __init__(self, **ends: tuple[int, Exception]) -> None:
        self.ends = {f"a/{name}": end for name, end in ends.items()}
        self.sent: Counter[str] = Counter()
        self.halted: list[tuple[StopReason, str]] = []

    async def run(self, calls: Iterable[Call], sink: Sink | None = None) -> AsyncIterator[Outcome]:
        for call in calls:
            await asyncio.sleep(0)
            if self.halted:
                raise Stopped([Stop(call.model, *self.halted[0])])
            before, error = self.ends.get(call.model, (-1, Exception()))
            if self.sent[call.model] == before:
                raise error
            self.sent[call.model] += 1
            outcome = Outcome(call, Reply("yes"))
            if sink is not None:
                sink.write(outcome)
            yield outcome

    def halt(self, reason: StopReason, detail: str) -> None:
        self.halted.append((reason, detail))


def stream(pair: Pair, count: int = 20) -> Iterator[Call]:
    return (Call(pair.model, f"question {number}", temperature=pair.temperature) for number in range(count))


class Kept:
    """A sink that keeps outcomes by their pair."""

    fault = None

    def __init__(self) -> None:
        self.taken: dict[Pair, list[Outcome]] = {ONE: [], TWO: []}

    def write(self, outcome: Outcome) -> None:
        self.taken[Pair(outcome.call.model, outcome.call.temperature)].append(outcome)

    def flush(self) -> None:
        """Keeps nothing back."""


def sent(runner: ScriptedRunner) -> tuple[list[Stop], dict[Pair, list[Outcome]]]:
    sink = Kept()
    stops = asyncio.run(send_calls(runner, {pair: stream(pair) for pair in sink.taken}, sink))
    return stops, sink.taken


def test_every_outcome_is_taken_under_its_pair() -> None:
    stops, taken = sent(ScriptedRunner())
    assert stops == []
    assert {pair: [(o.call.model, o.call.temperature) for o in outcomes] for pair, outcomes in taken.items()} == {
        pair: [(pair.model, pair.temperature)] * 20 for pair in (ONE, TWO)
    }


def test_a_stop_of_one_pair_is_given_and_the_other_goes_on() -> None:
    stop = Stop("a/one", "dead_key", "a/one has no key")
    stops, taken = sent(ScriptedRunner(one=(3, Stopped([stop]))))
    assert stops == [stop]
    assert {pair: len(outcomes) for pair, outcomes in taken.items()} == {ONE: 3, TWO: 20}


def test_a_fault_of_this_machine_halts_all_and_is_raised_once_all_have_ended() -> None:
    runner = ScriptedRunner(two=(3, LocalFault("disk full")))
    with pytest.raises(LocalFault, match="disk full"):
        sent(runner)
    assert runner.halted == [("local_fault", "disk full")]
    assert runner.sent["a/one"] < 20
