"""What a run asks and of whom: the specification, the pairs, and how many conversations at once."""

from __future__ import annotations

from typing import Any

import pytest
from chameleon_outside import JUDGE, MODEL, OTHER
from chameleon_sweep import specification
from chameleon_types import Asking, Making
from msgspec import structs

from millstream.bench.chameleon.benchmark import Chameleon
from millstream.bench.chameleon.dataset import ConversationSet, select
from millstream.bench.chameleon.run_spec import ConversationSpec, beyond, planned_turns
from millstream.bench.evaluation.running.sending import at_once_of
from millstream.bench.evaluation.running.steps import AT_ONCE, AT_ONCE_MAX
from millstream.engine.pairs import Pair
from millstream.engine.runs.run_folder import specification_hash

TOKENS = {MODEL: 100_000, OTHER: 100_000, JUDGE: 100_000}

CHANGES: list[dict[str, Any]] = [
    {"pairs": (Pair(MODEL, 0.5),)},
    {"judge": OTHER, "tokens": TOKENS},
    {"judge_prompt": "paper"},
    {"judge_temperature": None},
    {"search": "search/other"},
    {"turns": 2},
    {"pages": 4},
    {"page_tokens": 99},
    {"keeps_pages": True},
    {"order": "shuffled"},
    {"order": "shuffled", "seed": 1},
    {"order": "grouped"},
    {"queries_by": Pair(MODEL, 0.0)},
    {"queries_by": Pair(MODEL, 1.0)},
    {"max_tokens": 7},
    {"tokens": {MODEL: 9, JUDGE: 100_000}},
]


def test_the_specification_has_what_decides_answers_and_nothing_else(made: Making, asking: Asking) -> None:
    def digest(dataset: ConversationSet, asked: ConversationSpec, endpoint: str = "e") -> str:
        return specification_hash(
            specification(dataset, asked, dict.fromkeys((MODEL, asked.judge, asked.search), endpoint))
        )

    dataset = made()
    digests = [digest(dataset, asking(**change)) for change in CHANGES]
    digests += [
        digest(dataset, asking()),
        digest(made(3, 4), asking()),
        digest(select(dataset, 2), asking()),
        digest(dataset, asking(), "f"),
    ]
    assert len(set(digests)) == len(digests)
    assert digest(made(name="other name"), asking(seed=5)) == digest(dataset, asking())
    readings = specification(dataset, asking(), {})["readings"]
    assert readings == {"documents": "cited", "by": "url", "empty": "skip", "confidence": "rubric"}


def test_how_many_conversations_keep_the_lanes_busy() -> None:
    share = Chameleon.items_per_rpm
    assert at_once_of([], share) == at_once_of([(128, None), (128, 10)], share) == AT_ONCE == 64
    assert at_once_of([(1_000, 1_000)], share) == 250
    assert at_once_of([(100, 10_000), (128, 200)], share) == 150
    assert at_once_of([(10_000, 1e6)], share) == AT_ONCE_MAX


def test_every_pair_was_to_answer_as_many_turns_as_a_conversation_has(made: Making, asking: Asking) -> None:
    asked = asking((Pair(MODEL, 0.5), Pair(OTHER, None)), tokens=TOKENS, turns=2)
    assert planned_turns(specification(made(2, 3), asked, {})) == {
        Pair(MODEL, 0.5): {"c0": 2, "c1": 2},
        Pair(OTHER, None): {"c0": 2, "c1": 2},
    }
    assert planned_turns(specification(made(1, 1), asked, {}))[Pair(OTHER, None)] == {"c0": 1}


@pytest.mark.parametrize(
    ("turns", "conversations", "told"),
    [
        (3, None, []),
        (2, 3, []),
        (4, None, ["4 turns asked for: every conversation has 3 questions, and no more turns"]),
        (3, 99, ["99 conversations asked for: the data set has 3, and all are held"]),
    ],
)
def test_what_the_data_set_has_not_is_told(
    made: Making, turns: int, conversations: int | None, told: list[str]
) -> None:
    assert beyond(select(made(3, 3), conversations), turns, conversations) == told


def test_conversations_that_end_before_the_others_are_told(made: Making) -> None:
    long, short, shorter = (made(1, number).conversations[0] for number in (15, 9, 7))
    dataset = structs.replace(made(3, 3), conversations=(long, short, shorter))
    assert beyond(dataset, 15, None) == ["15 turns asked for: 2 of 3 have 7 to 9 questions, and no more turns"]
