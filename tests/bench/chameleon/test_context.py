"""What a prompt has room for, and how much that is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.bench.chameleon.context import chars_for, fit_answer, fit_judge, page_text, title_of
from millstream.bench.chameleon.prompts import PastTurn, ShownPage, answer_messages, judge_message, sources_text
from millstream.engine.call import Message
from millstream.engine.estimate import weight_of
from millstream.providers.models import prompt_tokens

HISTORY = [PastTurn(f"Question {at}?", "word " * 50) for at in range(6)]
SOURCES = [ShownPage(at, f"Title {at}", f"https://{at}.test/", "text " * 100) for at in (1, 2, 5)]


def size_of(messages: tuple[Message, ...]) -> int:
    return sum(len(message.words) for message in messages)


def test_a_page_is_cut_to_its_budget_and_only_then() -> None:
    assert page_text("  a text \n", 10) == ("a text", False)
    assert page_text("x" * 40, 10) == ("x" * 40, False)
    assert page_text("x" * 38 + "  " + "y" * 9, 10) == ("x" * 38, True)
    assert chars_for(1_500) == 6_000


CHINESE = "\u98df\u76d0\u4e0e\u5065\u5eb7"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (CHINESE * 20, 10),
        ("\u3042\u30a2\uff76\ud55c" * 20, 10),
        ("\U0001f9c2\U00020bb7" * 20, 10),
        # Eight Latin letters are two tokens, two characters two more.
        ("saltsalt" + CHINESE[:2] + "saltsaltsaltsaltsaltsaltsalt", 34),
        ("caf\u00e9 \u2013 \u201csalt\u201d " * 20, 40),
        ("\u0441\u043e\u043b\u044c " * 20, 40),
    ],
)
def test_a_character_that_takes_a_token_is_counted_as_one(text: str, kept: int) -> None:
    assert page_text(text, 10) == (text[:kept].rstrip(), True)
    assert page_text(text[:kept].rstrip(), 10) == (text[:kept].rstrip(), False)


def test_in_any_script_a_page_is_no_more_than_its_budget_and_what_is_ascii_as_long_as_ever() -> None:
    @given(st.text(max_size=200), st.integers(0, 60))
    def holds(text: str, tokens: int) -> None:
        shown, is_cut = page_text(text, tokens)
        assert weight_of(shown) <= 4 * tokens
        assert is_cut == (weight_of(text.strip()) > 4 * tokens)
        if text.isascii():
            whole = text.strip()
            assert (shown, is_cut) == (whole[: 4 * tokens].rstrip(), len(whole) > 4 * tokens)

    holds()


def test_twenty_chinese_pages_and_a_history_have_room_in_a_window() -> None:
    pages = [ShownPage(at, CHINESE, f"https://{at}.test/", page_text(CHINESE * 2_000, 1_500)[0]) for at in range(1, 21)]
    history = [PastTurn(CHINESE * 10, CHINESE * 100) for _ in range(14)]
    shown = fit_answer(history, pages, CHINESE, 32_000)
    assert sum(map(ord_count, (message.words for message in shown.messages))) <= 32_000
    assert (len(shown.sources), shown.history) == (20, 3)
    judge, kept = fit_judge("extended", CHINESE, history, CHINESE, CHINESE * 100, 4_000)
    assert (ord_count(judge[0].words) <= 4_000, kept) == (True, 5)


def ord_count(text: str) -> float:
    """Tokens a second time: one a character beyond U+3000, of the others a quarter."""
    return sum(1 if ord(char) > 0x3000 else 0.25 for char in text)


def test_a_title_is_one_line_of_bounded_length_with_something_in_its_place() -> None:
    assert title_of(" On\n salt ", "https://a.test/") == "On salt"
    assert title_of(" \n", "https://a.test/") == "https://a.test/"
    assert len(title_of("t" * 1_000, "")) == 300


def test_what_fits_is_shown_whole() -> None:
    shown = fit_answer(HISTORY, SOURCES, "How?", 10_000)
    assert shown.messages == answer_messages(HISTORY, sources_text(SOURCES), "How?")
    assert (shown.history, shown.sources) == (6, tuple(SOURCES))


Shown = tuple[list[PastTurn], list[ShownPage]]


def every_cut(history: list[PastTurn], sources: list[ShownPage]) -> Iterator[Shown]:
    """What a prompt may show, from all of it to nothing, by the order of the protocol, written down step by step."""
    for first in range(max(0, len(history) - 2) + 1):
        yield history[first:], sources
    last = history[-2:]
    bare = [turn._replace(sources="") for turn in last]
    if last:
        yield [bare[0], *last[1:]], sources
        yield bare, sources
    for pages in range(len(sources) - 1, 0, -1):
        yield bare, sources[:pages]
    for first in range(len(last)):
        yield bare[first + 1 :], sources[:1]
    yield [], []


@given(st.integers(0, 1_300), st.integers(0, 6), st.integers(0, 3), st.booleans())
def test_of_all_prompts_in_the_order_of_cutting_the_first_that_fits_is_taken(
    tokens: int, turns: int, pages: int, keeps_pages: bool
) -> None:
    history = [turn._replace(sources="old " * 40) if keeps_pages else turn for turn in HISTORY[:turns]]
    shown = fit_answer(history, SOURCES[:pages], "How?", tokens)
    for kept, listed in every_cut(history, SOURCES[:pages]):
        messages = answer_messages(kept, sources_text(listed), "How?")
        if size_of(messages) <= chars_for(tokens):
            break
    assert (shown.messages, shown.sources, shown.history) == (messages, tuple(listed), len(kept))
    assert shown.old_pages == sum(not turn.sources for turn in kept if keeps_pages)


def test_two_turns_stay_until_a_single_page_is_left_as_worked_out_by_hand() -> None:
    # The system's message has 134 characters; the user's "Sources:\n\n\nQuestion: Q?" 23 around the pages; a turn
    # "Question: Qn" and an answer of 88: 100. A page has 98 and from the second one on a line end: 98, 197, 296.
    turns = [PastTurn(f"Q{at}", "a" * 88) for at in range(4)]
    pages = [ShownPage(at, "T", "https://x.test/", "p" * 74) for at in (1, 2, 3)]
    assert size_of(answer_messages(turns, sources_text(pages), "Q?")) == 134 + 23 + 400 + 296 == 853

    def left(characters: int) -> tuple[int, int]:
        shown = fit_answer(turns, pages, "Q?", characters // 4)
        return shown.history, len(shown.sources)

    # In room for as much as that leaves, in steps of four characters, one a token.
    assert left(856) == (4, 3)
    assert left(852) == (3, 3)  # 753
    assert left(656) == (2, 3)  # 653
    assert left(652) == left(556) == (2, 2)  # 554
    assert left(552) == left(456) == (2, 1)  # 455
    assert left(452) == left(356) == (1, 1)  # 355
    assert left(352) == left(256) == (0, 1)  # 255
    assert left(252) == left(4) == (0, 0)


def test_old_pages_of_the_last_turns_go_before_a_page_of_this_turn_and_are_counted() -> None:
    turns = [PastTurn(f"Q{at}", "a" * 88, "o" * 189) for at in range(4)]
    pages = [ShownPage(at, "T", "https://x.test/", "p" * 74) for at in (1, 2)]
    # "Sources:\n", 189 and two line ends are 200 more a turn: the whole is 134 + 23 + 4 * 300 + 197 = 1,554.
    found = [fit_answer(turns, pages, "Q?", characters // 4) for characters in (1_556, 1_256, 952, 752, 552)]
    assert [(each.history, each.old_pages, len(each.sources)) for each in found] == [
        (4, 0, 2),
        (3, 0, 2),
        (2, 1, 2),
        (2, 2, 2),
        (2, 2, 1),
    ]


def test_the_judge_loses_the_oldest_history_and_never_what_is_judged() -> None:
    whole = judge_message("extended", "T", HISTORY, "Q?", "An answer.")
    assert fit_judge("extended", "T", HISTORY, "Q?", "An answer.", 100_000) == (whole, 6)
    messages, shown = fit_judge("extended", "T", HISTORY, "Q?", "An answer.", len(whole[0].words) // 4 - 100)
    assert shown == 4
    assert messages == judge_message("extended", "T", HISTORY[2:], "Q?", "An answer.")
    messages, shown = fit_judge("extended", "T", HISTORY, "Q?", "An answer.", 1)
    assert (messages, shown) == (judge_message("extended", "T", [], "Q?", "An answer."), 0)
    assert fit_judge("paper", "T", HISTORY, "Q?", "A.", 100_000) == (judge_message("paper", "T", [], "Q?", "A."), 0)


def test_a_prompt_leaves_room_for_the_answer_and_for_what_the_estimate_misses() -> None:
    assert prompt_tokens(128_000) == 115_200 - 4_096
    assert prompt_tokens(128_000, 10_000) == 105_200
    assert prompt_tokens(8_000) == 7_200 - 2_000
    assert prompt_tokens(1_000, 5_000) == 1
