"""A data set written by a scripted model: repeated where it is bad, gone on with where it was cut off."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from millstream.bench.chameleon.dataset import load
from millstream.bench.chameleon.generating.generation import QUESTIONS, ConversationGeneration, encode
from millstream.engine.call import Call, Failure, Outcome, Reply, Usage
from millstream.engine.fault import Stop, Stopped

MODEL = "script/writer"
COUNTS = {"Nutrition": 4, "Law": 3}
Said = str | Reply | Failure


def first_text(call: Call) -> str:
    return call.input if isinstance(call.input, str) else call.input[0].words


def conversation(call: Call, **changes: Any) -> str:
    prompt = first_text(call)
    topic = prompt.rpartition("\nTopic: ")[2].partition("\n")[0]
    content = {
        "topic": topic,
        "domain": prompt.rpartition("\nDomain: ")[2],
        "initial_belief": "balanced",
        "debate_strength": "strong",
        "questions": [f"How does {topic} bear on case {chr(97 + at) * 3}?" for at in range(QUESTIONS)],
    }
    return json.dumps({**content, **changes})


def is_for_topics(call: Call) -> bool:
    return first_text(call).startswith("List ")


def listed(call: Call, topics: Mapping[str, list[str]]) -> str:
    domain = first_text(call).partition("of the domain ")[2].partition(":")[0]
    return json.dumps(topics[domain])


TOPICS = {
    "Nutrition": ["Salt taxes", "Sugar", "The salt tax", "Fat", "Vegan diets", "Fasting"],
    "Law": ["Juries", "Bail", "Sugar!", "Plea bargains"],
}


class Writer:
    """Runs calls out of order; `say` answers them. What was answered once is cached. Stops after so many."""

    def __init__(
        self, say: Callable[[Call], Said], stop_after: int = 10**9, memory: dict[str, Outcome] | None = None
    ) -> None:
        self.say = say
        self.stop_after = stop_after
        self.memory = {} if memory is None else memory
        self.asked: Counter[str] = Counter()

    async def run(self, calls: Iterable[Call]) -> AsyncIterator[Outcome]:
        for call in reversed(list(calls)):
            key = repr((call.input, call.trial))
            if key in self.memory:
                yield Outcome(call, self.memory[key].reply, cached=True, cost=0.0)
                continue
            if sum(self.asked.values()) >= self.stop_after:
                raise Stopped([Stop(MODEL, "dead_key", "no key")])
            await asyncio.sleep(0)
            self.asked[key] += 1
            said = self.say(call)
            if isinstance(said, Failure):
                yield Outcome(call, failure=said, attempts=1)
                continue
            reply = said if isinstance(said, Reply) else Reply(said, Usage(10, 10))
            self.memory[key] = Outcome(call, reply, attempts=1, cost=0.01)
            yield self.memory[key]


def usual(call: Call) -> Said:
    return listed(call, TOPICS) if is_for_topics(call) else conversation(call)


def generated(writer: Writer) -> tuple[ConversationGeneration, list[dict[str, Any]]]:
    generation = ConversationGeneration(MODEL, COUNTS)
    asyncio.run(generation.run(writer))
    return generation, generation.contents()


def names(contents: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(each["domain"], each["topic"]) for each in contents]


WRITTEN = [
    *(("Nutrition", topic) for topic in ("Salt taxes", "Sugar", "Fat", "Vegan diets")),
    *(("Law", topic) for topic in ("Juries", "Bail", "Plea bargains")),
]


def test_topics_are_new_and_each_becomes_a_conversation(tmp_path: Path) -> None:
    generation, contents = generated(Writer(usual))
    assert names(contents) == WRITTEN
    assert [(each.topic, each.reason) for each in generation.refused] == [
        ("The salt tax", "nearly the same as another topic"),
        ("Sugar!", "nearly the same as another topic"),
    ]
    assert (generation.pending, generation.lacking, generation.failures) == ((), {}, {})
    assert generation.answers == 9
    assert generation.cost == pytest.approx(0.09)
    path = tmp_path / "set.json"
    path.write_bytes(encode(contents))
    assert [(each.domain, each.topic) for each in load(path).conversations] == WRITTEN
    assert encode(contents) == encode(generated(Writer(usual))[1])


def test_a_domain_is_asked_again_for_what_it_lacks_and_given_up_when_nothing_new_comes() -> None:
    def say(call: Call) -> Said:
        if not is_for_topics(call):
            return conversation(call)
        if "Law" in first_text(call):
            return '["Juries"]'
        return '["Salt", "Sugar"]' if "- Salt" not in first_text(call) else '["Sugar", "Fat", "Fasting", "Milk"]'

    writer = Writer(say)
    generation, contents = generated(writer)
    assert names(contents) == [
        *(("Nutrition", each) for each in ("Salt", "Sugar", "Fat", "Fasting")),
        ("Law", "Juries"),
    ]
    assert generation.lacking == {"Law": 2}
    law = [key for key in writer.asked if "of the domain Law" in key]
    assert len(law) == 3


def test_a_bad_conversation_is_asked_again_with_the_reason_and_given_up_at_the_limit() -> None:
    reasons: list[str] = []

    def say(call: Call) -> Said:
        if is_for_topics(call):
            return listed(call, TOPICS)
        if not isinstance(call.input, str):
            reasons.append(call.input[-1].words)
        if "Topic: Fat\n" in first_text(call):
            return conversation(call, questions=["How?"])
        if "Topic: Bail\n" in first_text(call):
            return conversation(call) if call.trial == 2 else "no JSON"
        if "Topic: Juries\n" in first_text(call):
            return Reply("", refused=True) if call.trial == 0 else conversation(call)
        return conversation(call)

    generation, contents = generated(Writer(say))
    assert names(contents) == [name for name in WRITTEN if name[1] != "Fat"]
    assert generation.failures == {
        ("Nutrition", "Fat"): '4 answers and none can be used; of the last: "questions": expected exactly 15, got 1'
    }
    assert Counter(each.topic for each in generation.refused if each.reason.startswith('"questions"')) == {"Fat": 4}
    told = Counter(reason.removeprefix("That can't be used: ").partition(". Output")[0] for reason in reasons)
    assert told == {
        '"questions": expected exactly 15, got 1': 3,
        "expected a JSON object, got none": 2,
        "the model refused": 1,
    }


def test_a_call_that_fails_for_good_is_told_and_not_asked_again() -> None:
    def say(call: Call) -> Said:
        return Failure("timeout", "60 s") if "Topic: Fat\n" in first_text(call) else usual(call)

    writer = Writer(say)
    generation, _ = generated(writer)
    assert generation.failures == {("Nutrition", "Fat"): "timeout: 60 s"}
    assert set(writer.asked.values()) == {1}


@pytest.mark.parametrize("stop_after", range(1, 9))
def test_what_was_cut_off_goes_on_and_asks_nothing_twice(stop_after: int) -> None:
    memory: dict[str, Outcome] = {}
    first = Writer(usual, stop_after, memory)
    generation, contents = generated(first)
    assert [stop.reason for stop in generation.stops] == ["dead_key"]
    assert len(contents) < 7
    second = Writer(usual, memory=memory)
    generation, contents = generated(second)
    assert names(contents) == WRITTEN
    assert not generation.stops
    assert set((first.asked + second.asked).values()) == {1}
