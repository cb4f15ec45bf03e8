"""A judge's reply read, however it is wrapped, and refused where it is no judgement."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from millstream.bench.chameleon.judge import StanceJudgement, read_judgement
from millstream.bench.evaluation.data.model_json import UnusableAnswer

WHOLE: dict[str, Any] = {
    "stance": "critical",
    "key_claims": ["Salt is needed.", "Guidelines differ."],
    "contradictions_acknowledged": True,
    "rationale": "It probably rejects the premise.",
    "confidence": 0.8,
}
READ = StanceJudgement(
    stance="critical",
    rationale=WHOLE["rationale"],
    confidence=0.67,
    judge_confidence=0.8,
    key_claims=("Salt is needed.", "Guidelines differ."),
    contradictions_acknowledged=True,
)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(WHOLE),
        json.dumps(WHOLE, indent=2),
        f"```json\n{json.dumps(WHOLE)}\n```",
        f"Here is my analysis: {json.dumps(WHOLE)} I hope it helps {{truly}}.",
        f'Draft: {{"stance": "maybe"}}\nFinal: {json.dumps(WHOLE)}',
        f'{{"result": 1}} {json.dumps(WHOLE)}',
        json.dumps({**WHOLE, "stance": " Critical "}),
        json.dumps({**WHOLE, "contradictions_acknowledged": "true", "confidence": "0.8"}),
        json.dumps({**WHOLE, "extra": None}),
        json.dumps(WHOLE).replace("needed.", "needed.\\n").replace("\\n", ""),
    ],
)
def test_what_stands_around_a_judgement_makes_no_difference(text: str) -> None:
    assert read_judgement(text, "extended") == READ


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a JSON object, got none"),
        ("The stance is critical.", "expected a JSON object, got none"),
        (json.dumps(WHOLE)[:-5], "expected a JSON object, got none"),
        ("[1, 2]", "expected a JSON object, got none"),
        ("{}", '"stance": expected one of supportive, critical, balanced, unclear, got none'),
        (json.dumps({**WHOLE, "stance": "hostile"}), "\"stance\": expected one of .*, got 'hostile'"),
        (json.dumps({**WHOLE, "stance": ["critical"]}), '"stance": expected one of'),
        (json.dumps({**WHOLE, "rationale": ""}), '"rationale": expected a sentence, got none'),
        (json.dumps({key: WHOLE[key] for key in WHOLE if key != "rationale"}), '"rationale": expected a sentence'),
        ("{" * 10_000, "expected a JSON object, got none"),
    ],
)
def test_what_is_no_judgement_says_what_is_missing(text: str, message: str) -> None:
    with pytest.raises(UnusableAnswer, match=message):
        read_judgement(text, "extended")


@pytest.mark.parametrize("confidence", [None, 1.5, -0.1, "high", True, "nan", "inf", [], 10**400])
def test_a_number_out_of_range_is_none_and_costs_no_repair(confidence: object) -> None:
    read = read_judgement(json.dumps({**WHOLE, "confidence": confidence}), "extended")
    assert read.judge_confidence is None
    assert read.confidence == 0.67


@pytest.mark.parametrize(
    ("claims", "read"), [("One.", ("One.",)), (None, ()), ([1, "", " Two. "], ("Two.",)), ({"a": 1}, ())]
)
def test_claims_of_another_type_are_taken_as_far_as_they_are_texts(claims: object, read: tuple[str, ...]) -> None:
    assert read_judgement(json.dumps({**WHOLE, "key_claims": claims}), "extended").key_claims == read


def test_the_papers_prompt_asks_for_no_rationale_and_its_confidence_is_067() -> None:
    bare = {key: WHOLE[key] for key in ("stance", "key_claims", "contradictions_acknowledged")}
    assert read_judgement(json.dumps(bare), "paper") == structs.replace(READ, rationale="", judge_confidence=None)
    certain = read_judgement(json.dumps({**WHOLE, "rationale": "It clearly does."}), "paper")
    assert (certain.rationale, certain.confidence, certain.judge_confidence) == ("", 0.67, None)


@given(
    st.text(max_size=200)
    | st.dictionaries(st.text(max_size=8), st.none() | st.integers() | st.text(max_size=8)).map(json.dumps)
)
def test_no_reply_is_fatal(text: str) -> None:
    try:
        read_judgement(text, "extended")
    except UnusableAnswer as error:
        assert str(error)
