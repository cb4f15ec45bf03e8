"""The order of questions, and which samples identical prompts are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import get_args

import pytest

from millstream.bench.chameleon.conversation import TurnRanks, scripts_of
from millstream.bench.chameleon.dataset import Conversation
from millstream.bench.chameleon.order import Order, kind_of_question, kinds_of, places_in_order


def conversation(*questions: str, name: str = "c", topic: str = "T", kinds: tuple[str, ...] = ()) -> Conversation:
    return Conversation(name, "D", topic, questions, kinds=kinds)


FIVE = conversation("a", "b", "c", "d", "e", kinds=("x", "y", "x", "z", "y"))


@pytest.mark.parametrize("order", get_args(Order))
@pytest.mark.parametrize("turns", [1, 3, 5, 9])
def test_every_order_asks_the_same_questions(order: Order, turns: int) -> None:
    assert sorted(places_in_order(FIVE, turns, order)) == list(range(min(turns, 5)))


def test_written_is_as_written_and_grouped_takes_kinds_in_the_order_they_first_come() -> None:
    assert places_in_order(FIVE, 15, "written") == (0, 1, 2, 3, 4)
    assert places_in_order(FIVE, 15, "grouped") == (0, 2, 1, 4, 3)


def test_shuffled_is_pinned_and_hangs_on_seed_and_conversation() -> None:
    assert places_in_order(FIVE, 15, "shuffled", 0) == (3, 2, 1, 4, 0)
    many = [
        places_in_order(conversation(*"abcde", name=f"c{at}"), 15, "shuffled", seed)
        for at in range(30)
        for seed in (0, 1)
    ]
    assert len(set(many)) > 30
    first = Counter(order[0] for order in many)
    assert set(first) == set(range(5))


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("What if every plant closed tomorrow: how would prices move?", "what-if"),
        ("How would you weigh safety against speed?", "trade-off"),
        ("How does selection bias change the trials' results?", "methodology"),
        ("Which counter-evidence should make supporters reconsider, and why?", "counter-evidence"),
        ("How do vaccines train the immune system?", "other"),
        ("Why do reports contradict each other?", "counter-evidence"),
    ],
)
def test_kinds_are_read_from_the_wording_where_none_are_given(question: str, kind: str) -> None:
    assert kind_of_question(question) == kind
    assert kinds_of(conversation(question)) == (kind,)
    assert kinds_of(FIVE) == FIVE.kinds


def ranks_in(every: list[Conversation]) -> Callable[[str, int], TurnRanks]:
    scripts = scripts_of(every, 15, "written")
    return lambda name, number: scripts[name].turns[number - 1].sample


def test_identical_prompts_are_two_samples_and_all_others_the_first() -> None:
    twins = [
        conversation("How?", "Why?", name="one"),
        conversation("How?", "Who?", "How?", name="two"),
        conversation("How?", "Why?", name="three", topic="Other"),
        conversation("How?", "Why?", name="four"),
    ]
    rank = ranks_in(twins)
    assert rank("one", 1) == rank("one", 2) == TurnRanks()
    # The same question of the same topic is the same query; the same questions so far, perhaps the same answer prompt.
    assert rank("two", 1) == TurnRanks(query=1, conversation=1, question=1)
    assert rank("two", 3) == TurnRanks(query=2, conversation=0, question=2)
    assert rank("three", 1) == TurnRanks(query=0, conversation=2, question=3)
    assert rank("three", 2) == TurnRanks(query=0, conversation=1, question=1)
    assert rank("four", 2) == TurnRanks(query=1, conversation=2, question=2)


def test_a_question_that_only_runs_into_its_neighbour_is_another_prompt() -> None:
    rank = ranks_in([conversation("ab", "c", name="one"), conversation("a", "bc", name="two")])
    assert rank("two", 1) == rank("two", 2) == TurnRanks()
