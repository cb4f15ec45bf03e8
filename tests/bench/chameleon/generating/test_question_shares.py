"""What is counted of the questions that a model wrote: the challenging and the open ones."""

from __future__ import annotations

import pytest

from millstream.bench.chameleon.generating.writing_report import QuestionShares, is_open, shares_of

PLAIN = "How is salt taxed?"
WHAT_IF = "What if salt were free: how would we eat?"
CLOSED = "Is salt bad?"


@pytest.mark.parametrize(
    ("question", "is_it"),
    [
        (PLAIN, True),
        (WHAT_IF, True),
        ("Which studies are weak, and why?", True),
        ("If salt were free, would we eat more?", True),
        (CLOSED, False),
        ("Would you tax salt, and if so, why?", False),
        ("Which country taxes salt most?", False),
        ("Howard taxes salt in which year?", False),
    ],
)
def test_a_question_is_open_by_the_words_of_the_papers_prompt(question: str, is_it: bool) -> None:
    assert is_open(question) is is_it


def test_a_conversation_is_within_from_30_to_40_percent_of_challenging_questions() -> None:
    # 2 of 10 (20%), 3 of 10 (30%), 4 of 10 (40%), 5 of 10 (50%) challenging, and one closed question.
    conversations = [[WHAT_IF] * number + [PLAIN] * (10 - number) for number in (2, 3, 4, 5)]
    conversations[0][-1] = CLOSED
    assert shares_of(conversations) == QuestionShares(questions=40, challenging=14, open=39, conversations=4, within=2)


def test_no_conversation_has_no_share() -> None:
    assert shares_of([]) == QuestionShares(questions=0, challenging=0, open=0, conversations=0, within=0)
