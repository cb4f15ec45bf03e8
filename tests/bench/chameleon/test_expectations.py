"""A conversation with the simulated outside, played through its own parts, comes to what was said beforehand."""

from __future__ import annotations

import json
import re

import pytest
from expected_conversations import expected_turns
from web_worlds import gives_text, page_at

from millstream.bench.chameleon import prompts
from millstream.bench.chameleon.prompts import ShownPage
from millstream.fixtures.provider.chameleon import Conversant
from millstream.fixtures.provider.conversations import load_conversations
from millstream.fixtures.provider.options import SAMPLE_CONVERSATIONS
from millstream.fixtures.provider.personas import PERSONAS
from millstream.fixtures.web import WebIndex, WebWorld, article

KNOWN = load_conversations([SAMPLE_CONVERSATIONS])
INDEX = WebIndex(WebWorld())
SAMPLE = json.loads((SAMPLE_CONVERSATIONS / "onshore-wind.json").read_text("utf-8"))


def said(persona: str, *messages: str) -> str:
    answer = Conversant(KNOWN).answer(persona, messages)
    assert answer is not None
    return answer.text


@pytest.mark.parametrize("persona", PERSONAS)
def test_a_played_conversation_is_the_expected_one(persona: str) -> None:
    turns = expected_turns(persona, SAMPLE["topic"], SAMPLE["questions"], KNOWN, INDEX)
    assert len(turns) == 15
    for turn in turns:
        assert said(persona, prompts.query_prompt(SAMPLE["topic"], turn.question)) == turn.query
        hits = INDEX.hits(turn.query, 20)
        assert [hit.url for hit in hits] == list(turn.retrieved)
        pages = [(number, page_at(INDEX.world, url)) for number, url in enumerate(turn.retrieved, 1)]
        shown = [
            ShownPage(number, page.title, page.url, article(INDEX.world, page).text)
            for number, page in pages
            if gives_text(INDEX.world, page.url)
        ]
        asked = [message.words for message in prompts.answer_messages((), prompts.sources_text(shown), turn.question)]
        text = said(persona, *asked)
        by_number = [turn.retrieved[int(number) - 1] for number in re.findall(r"\[(\d+)\]", text) if number != "99"]
        assert {*by_number, *re.findall(r"\((http\S+)\)", text)} == set(turn.cited)


def test_steady_reuses_its_sources_and_the_others_meet_new_ones() -> None:
    cited = {
        persona: [
            set(turn.cited) for turn in expected_turns(persona, SAMPLE["topic"], SAMPLE["questions"], KNOWN, INDEX)
        ]
        for persona in ("steady", "open")
    }
    assert all(each == cited["steady"][0] and len(each) == 3 for each in cited["steady"])
    assert len(set.union(*cited["open"])) > 12


def test_which_pages_are_shown_can_be_told() -> None:
    turns = expected_turns("steady", SAMPLE["topic"], SAMPLE["questions"][:1], KNOWN, INDEX, gives_text=lambda _: True)
    assert turns[0].cited == turns[0].retrieved[:3]
    (few,) = expected_turns("steady", SAMPLE["topic"], SAMPLE["questions"][:1], KNOWN, INDEX, pages=5)
    assert len(few.retrieved) == 5
