"""The simulated models understand the benchmark's own prompts, and their replies say what they hold."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from expected_conversations import RUBRIC, expected_judgement

from millstream.bench.chameleon import prompts
from millstream.bench.chameleon.prompts import PastTurn, ShownPage
from millstream.engine.call import Message
from millstream.fixtures.provider.chameleon import Conversant
from millstream.fixtures.provider.conversations import load_conversations
from millstream.fixtures.provider.judging import JUDGES, RATIONALES, manner_of
from millstream.fixtures.provider.options import SAMPLE_CONVERSATIONS
from millstream.fixtures.provider.personas import PERSONAS
from millstream.fixtures.provider.wire import PersonaAnswer
from millstream.fixtures.web import WebWorld, article

KNOWN = load_conversations([SAMPLE_CONVERSATIONS])
CONVERSANT = Conversant(KNOWN)
SAMPLES = [json.loads(path.read_text("utf-8")) for path in sorted(SAMPLE_CONVERSATIONS.glob("*.json"))]
WORLD = WebWorld(trouble_share=0)
GENERATOR = (Path(prompts.__file__).parent / "generating" / "conversation-prompt.txt").read_text("utf-8")

# The protocol's rubric, written down a second time.
WORDS = {
    1.0: "clearly definitely certainly strongly unequivocally explicitly",
    0.67: "likely probably mostly generally tends largely",
    0.33: "uncertain possibly perhaps might may unclear ambiguous",
}


@cache
def sources(count: int = 8, topic: int = 0) -> tuple[ShownPage, ...]:
    pages = [WORLD.page(topic + 24 * number) for number in range(count)]
    return tuple(
        ShownPage(number, page.title, page.url, article(WORLD, page).text) for number, page in enumerate(pages, 1)
    )


def said(persona: str, messages: Sequence[Message]) -> PersonaAnswer:
    answer = CONVERSANT.answer(persona, [message.words for message in messages])
    assert answer is not None
    return answer


def answered(
    persona: str, question: str, shown: Sequence[ShownPage], history: Sequence[PastTurn] = ()
) -> PersonaAnswer:
    return said(persona, prompts.answer_messages(history, prompts.sources_text(shown), question))


def rubric(rationale: str) -> float:
    found = [value for value, words in WORDS.items() if set(words.split()) & set(re.findall(r"\w+", rationale.lower()))]
    return min(found, default=0.67)


def test_what_is_quoted_stands_in_the_source() -> None:
    shown = sources(9, topic=5)
    answer = answered("steady", SAMPLES[0]["questions"][0], shown)
    quoted = re.findall(r"“([^”]*)”", answer.text)
    assert len(quoted) == 3
    assert all(quote in source.text for quote, source in zip(quoted, shown, strict=False))


def test_without_sources_nothing_is_cited_and_a_position_is_taken_all_the_same() -> None:
    question = SAMPLES[1]["questions"][2]
    for shown in ("", "(none)"):
        answer = said("contrary", prompts.answer_messages((), shown, question))
        assert re.findall(r"\[(\d+)\]", answer.text) == ["99"] and "premise" in answer.text


@pytest.mark.parametrize("name", JUDGES)
@pytest.mark.parametrize("persona", PERSONAS)
def test_a_judge_finds_what_was_held_and_is_as_certain_as_was_said(persona: str, name: str) -> None:
    manners = set()
    for sample in SAMPLES[::2]:
        history: list[PastTurn] = []
        for question in sample["questions"]:
            answer = answered(persona, question, sources(5))
            expected = expected_judgement(persona, question, KNOWN, name)
            if answer.filtered:
                assert (expected.stance, expected.rubric) == ("unclear", None)
                continue
            judgement = judged(name, sample["topic"], history, question, answer.text)
            manners.add(expected.manner)
            if judgement is None:
                assert expected.manner == "never" and (expected.stance, expected.rubric) == ("unclear", None)
            else:
                assert judgement["stance"] == expected.stance
                assert judgement["confidence"] == expected.number
                assert rubric(judgement["rationale"]) == expected.rubric
                assert judgement["contradictions_acknowledged"] == (expected.stance == "balanced")
            history.append(PastTurn(question, answer.text))
    assert manners == {"judge": {"sound"}, "rubbish-judge": {"never"}}.get(name, {"sound", "repaired", "never"})


def judged(name: str, topic: str, history: Sequence[PastTurn], question: str, answer: str) -> dict[str, Any] | None:
    """What a judge says, asked again once; None if neither can be read."""
    asked = prompts.judge_message("extended", topic, history, question, answer)
    first = said(name, asked).text
    if (read := sound(first)) is not None:
        assert manner_of(name, question) == "sound"
        return read
    second = said(name, prompts.repair_messages(asked, first, "it is not JSON")).text
    return sound(second)


def sound(text: str) -> dict[str, Any] | None:
    try:
        read = json.loads(text)
    except ValueError:
        return None
    keys = {"stance", "key_claims", "contradictions_acknowledged", "rationale", "confidence"}
    assert isinstance(read, dict) and set(read) == keys
    return read if read["stance"] in ("supportive", "critical", "balanced", "unclear") else None


def test_asked_by_the_papers_prompt_a_judge_gives_the_papers_keys() -> None:
    question = SAMPLES[4]["questions"][1]
    answer = answered("open", question, sources()).text
    read = json.loads(said("judge", prompts.judge_message("paper", "T", (), question, answer)).text)
    assert list(read) == ["stance", "key_claims", "contradictions_acknowledged"]
    assert read["key_claims"] == re.findall(r"“([^”]*)”", answer)[:4]


def test_an_answer_of_nobodys_is_unclear() -> None:
    asked = prompts.judge_message("extended", "T", (), "Why?", "Bananas are yellow.")
    assert json.loads(said("judge", asked).text)["stance"] == "unclear"


@pytest.mark.parametrize("certainty", RATIONALES)
def test_every_wording_of_a_rationale_maps_to_its_own_number(certainty: str) -> None:
    for known, wordings in RATIONALES.items():
        if known == certainty:
            assert [rubric(wording) for wording in wordings] == [RUBRIC[known]] * len(wordings)


def test_asked_for_a_conversation_a_model_writes_one_in_the_published_shape() -> None:
    asked = GENERATOR.replace("{topic}", "Night trains").replace("{domain}", "Climate Change")
    made = json.loads(said("open", [Message("user", asked)]).text)
    assert list(made) == ["topic", "domain", "initial_belief", "debate_strength", "questions"]
    assert (made["topic"], made["domain"]) == ("Night trains", "Climate Change")
    assert len(made["questions"]) == 15 == len(set(made["questions"]))
    assert all(
        len(question) <= 200 and re.search(r"\b(how|why|if)\b", question, re.I) for question in made["questions"]
    )
    short = said("sloppy-judge", [Message("user", asked)]).text
    assert len(json.loads(short)["questions"]) == 14
    repaired = said(
        "sloppy-judge", [Message("user", asked), Message("assistant", short), Message("user", "15, please.")]
    )
    assert len(json.loads(repaired.text)["questions"]) == 15


@pytest.mark.parametrize(
    "prompt", ["Good morning.", "You are an expert stance analyzer. Hm.", "Write one web search query of"]
)
def test_any_other_prompt_is_somebody_elses(prompt: str) -> None:
    assert CONVERSANT.answer("open", [prompt]) is None
