"""What of a model's answers is taken: topics, conversations, and when two of them say the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from millstream.bench.chameleon.generating.generation import again, prompt_of, read_reply
from millstream.bench.chameleon.generating.near_duplicates import mark_of
from millstream.bench.chameleon.generating.topics import prompt_of as topics_prompt
from millstream.bench.chameleon.generating.topics import read_reply as read_listed
from millstream.bench.chameleon.generating.topics import read_topics
from millstream.bench.chameleon.generating.write_conversations import DOMAINS, counts_of
from millstream.bench.evaluation.data.model_json import UnusableAnswer
from millstream.engine.call import Message
from millstream.engine.runs.data_file import DatasetError

PROMPT = """\
You are an expert dataset generator. Produce only a raw JSON object (no
Markdown fences, no code blocks, no comments) with exactly these keys:

- "topic": string
- "domain": string
- "initial_belief": string (e.g., "supportive", "critical", "balanced")
- "debate_strength": string (e.g., "weak", "moderate", "strong")
- "questions": array of 15 strings

Each question must:
- ≤200 characters
- Be open-ended (include "how", "why", or a conditional clause -- no
yes/no)
- Probe a scientific or ethical contention capable of shifting stance
- Avoid leading phrasing that presupposes an answer

Ensure 30-40% of questions:
- Request contradictory/counterevidence
- Critique methodology
- Pose counterfactual "what if" scenarios
- Require explicit trade-off analyses

The remaining 60-70% should focus on clarifications, supportive reasoning,
or broader implications. Do not wrap the JSON in backticks or add extra
text. Output only the JSON.

Topic: Salt taxes
Domain: Nutrition"""

WORDS = "tax price shop child law cost taste trade label town farm poor rich ban study".split()  # noqa: SIM905
WHOLE: dict[str, Any] = {
    "topic": "Salt taxes",
    "domain": "Nutrition",
    "initial_belief": "balanced",
    "debate_strength": "strong",
    "questions": [f"How does salt bear on the {word}?" for word in WORDS],
}


def with_question(at: int, question: object) -> dict[str, Any]:
    questions = list(WHOLE["questions"])
    questions[at] = question
    return {**WHOLE, "questions": questions}


def test_the_prompt_is_appendix_a_2_to_the_letter() -> None:
    assert prompt_of("Salt taxes", "Nutrition") == PROMPT
    assert prompt_of("{domain}", "{topic}").endswith("Topic: {domain}\nDomain: {topic}")
    assert prompt_of("Salt taxes", "Nutrition", 20) == PROMPT.replace("array of 15", "array of 20")


def test_another_number_of_questions_is_checked_as_the_papers_is() -> None:
    short = {**WHOLE, "questions": WHOLE["questions"][:4]}
    assert read_reply(json.dumps(short), "Salt taxes", "Nutrition", 4) == short
    with pytest.raises(UnusableAnswer, match="expected exactly 4, got 15"):
        read_reply(json.dumps(WHOLE), "Salt taxes", "Nutrition", 4)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(WHOLE),
        f"```json\n{json.dumps(WHOLE, indent=1)}\n```",
        f"Here it is: {json.dumps(WHOLE)}",
        json.dumps({**WHOLE, "topic": "Taxes on salt", "domain": "Food", "comment": 1}),
    ],
)
def test_a_whole_conversation_is_taken_under_the_topic_that_was_asked_for(text: str) -> None:
    assert read_reply(text, "Salt taxes", "Nutrition") == WHOLE


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({key: WHOLE[key] for key in WHOLE if key != "debate_strength"}, '"debate_strength": expected this key'),
        ({**WHOLE, "initial_belief": " "}, '"initial_belief": expected a text'),
        ({**WHOLE, "questions": "How?"}, '"questions": expected an array'),
        ({**WHOLE, "questions": WHOLE["questions"][:14]}, '"questions": expected exactly 15, got 14'),
        ({**WHOLE, "questions": [*WHOLE["questions"], "How?"]}, '"questions": expected exactly 15, got 16'),
        (with_question(4, ""), "question 5: expected a text"),
        (with_question(4, 7), "question 5: expected a text"),
        (with_question(4, "How " + "x" * 197), "question 5: expected at most 200 characters, got 201"),
        (with_question(4, "how does SALT bear on a tax"), "question 5: expected another than question 1"),
        (with_question(4, "How \ud800?"), "question 5: expected a text, got one with a lone surrogate"),
    ],
)
def test_what_the_prompt_asks_for_is_checked(content: dict[str, Any], message: str) -> None:
    with pytest.raises(UnusableAnswer, match=message):
        read_reply(json.dumps(content), "Salt taxes", "Nutrition")


def test_two_hundred_characters_are_taken() -> None:
    longest = "How " + "x" * 195 + "?"
    assert read_reply(json.dumps(with_question(0, longest)), "T", "D")["questions"][0] == longest


def test_a_bad_answer_is_shown_again_with_its_reason() -> None:
    assert again(PROMPT, "{bad", "expected 15") == (
        Message("user", PROMPT),
        Message("assistant", "{bad"),
        Message("user", "That can't be used: expected 15. Output only the JSON object, corrected."),
    )
    assert len(again("Write.", "", "the model refused")) == 2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Taxes on salt", "The salt tax!"),
        ("Policies for cafés", "cafe policy"),
        ("Children's diets", "childrens' diet"),
    ],
)
def test_nearly_the_same_words_have_one_mark(one: str, other: str) -> None:
    assert mark_of(one) == mark_of(other)


def test_other_words_have_another_mark() -> None:
    assert mark_of("Salt taxes") != mark_of("Sugar taxes")
    assert mark_of("To be or not to be") != mark_of("")
    assert mark_of("塩税") != mark_of("砂糖税")


def test_topics_are_read_from_a_list_whatever_stands_around_it() -> None:
    assert read_listed('Here: ["Salt  taxes", "Sugar", 3, ""] Enjoy.') == ("Salt taxes", "Sugar")
    assert read_listed('[] ["Salt"]') == ("Salt",)
    assert read_listed(json.dumps(["x" * 151, "Salt"])) == ("Salt",)
    for text in ("", "1. Salt\n2. Sugar", "[1, 2]"):
        with pytest.raises(UnusableAnswer, match="expected a JSON array of strings"):
            read_listed(text)


def test_a_topics_prompt_names_those_that_are_known() -> None:
    assert "List 7 contentious topics of the domain Nutrition:" in topics_prompt("Nutrition", 7, [])
    assert "Leave out these" not in topics_prompt("Nutrition", 7, [])
    assert "\n- Salt\n- Sugar\n" in topics_prompt("Nutrition", 7, ["Salt", "Sugar"])


def test_the_domains_are_those_of_table_2() -> None:
    assert (len(DOMAINS), sum(DOMAINS.values())) == (12, 1_180)
    assert counts_of() == DOMAINS
    assert sum(counts_of(100).values()) == 100
    assert set(counts_of(12).values()) == {1}
    assert sum(counts_of(5).values()) == len(counts_of(5)) == 5
    with pytest.raises(ValueError, match=r"topics \(0\) must be >= 1"):
        counts_of(0)


@pytest.mark.parametrize("topics", range(1, 60))
def test_any_number_of_topics_is_spread_over_as_many_domains_as_it_can_be(topics: int) -> None:
    counts = counts_of(topics)
    assert sum(counts.values()) == topics
    assert len(counts) == min(12, topics)


def test_a_file_lists_topics_by_domain(tmp_path: Path) -> None:
    as_json = tmp_path / "t.json"
    as_json.write_text('{"Nutrition": ["Salt  taxes", "Sugar", "Sugar"], "Law": ["Juries"]}')
    as_csv = tmp_path / "t.csv"
    as_csv.write_text("Topic,Domain\nSalt taxes,Nutrition\nSugar,Nutrition\n\nJuries,Law\n")
    assert read_topics(as_json) == read_topics(as_csv) == {"Nutrition": ("Salt taxes", "Sugar"), "Law": ("Juries",)}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("t.json", "[]", "expected an object of domains"),
        ("t.json", "{}", "expected at least one topic"),
        ("t.json", '{"A": "x"}', "A: expected a list of topics, got a text"),
        ("t.json", '{"A": [1]}', r"A\[0\]: expected a text, got a number"),
        ("t.json", '{"A": [" "]}', "topic: expected 1 to 150 characters, got 0"),
        ("t.csv", "a,b\n1,2\n", "expected the columns domain and topic, got a, b"),
        ("t.csv", "domain,topic\nA, \n", r"line 2: topic: expected 1 to 150 characters"),
        ("t.csv", 'domain,topic\nA,"x', "expected a row of cells"),
    ],
)
def test_what_is_wrong_with_a_list_of_topics_is_told(tmp_path: Path, name: str, text: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(DatasetError, match=message):
        read_topics(path)
