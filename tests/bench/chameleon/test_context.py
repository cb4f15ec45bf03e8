"""What a prompt has room for, and how much that is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.bench.chameleon.context import chars_for, fit_answer, fit_judge, page_text, title_of
from millstream.bench.chameleon.prompts import PastTurn, ShownPage, answer_messages, judge_message, sources_text
from millstream.engine.attempts.estimate import weight_of
from millstream.engine.call import Message
from millstream.providers.windows import bundled_windows, prompt_tokens

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


@given(st.integers(0, 1_000))
def test_the_oldest_history_goes_first_then_pages_from_the_last_and_never_more_than_needed(tokens: int) -> None:
    shown = fit_answer(HISTORY, SOURCES, "How?", tokens)
    kept, listed = HISTORY[len(HISTORY) - shown.history :], SOURCES[: len(shown.sources)]
    assert shown.messages == answer_messages(kept, sources_text(listed), "How?")
    assert shown.history == 0 or len(listed) == len(SOURCES)
    is_all_gone = not kept and not listed
    assert size_of(shown.messages) <= chars_for(tokens) or is_all_gone
    # One turn or one page more would not have had room.
    if len(listed) < len(SOURCES):
        assert size_of(answer_messages([], sources_text(SOURCES[: len(listed) + 1]), "How?")) > chars_for(tokens)
    elif shown.history < len(HISTORY):
        longer = HISTORY[len(HISTORY) - shown.history - 1 :]
        assert size_of(answer_messages(longer, sources_text(SOURCES), "How?")) > chars_for(tokens)


def test_the_judge_loses_the_oldest_history_and_never_what_is_judged() -> None:
    whole = judge_message("extended", "T", HISTORY, "Q?", "An answer.")
    assert fit_judge("extended", "T", HISTORY, "Q?", "An answer.", 100_000) == (whole, 6)
    messages, shown = fit_judge("extended", "T", HISTORY, "Q?", "An answer.", len(whole[0].words) // 4 - 100)
    assert shown == 4
    assert messages == judge_message("extended", "T", HISTORY[2:], "Q?", "An answer.")
    messages, shown = fit_judge("extended", "T", HISTORY, "Q?", "An answer.", 1)
    assert (messages, shown) == (judge_message("extended", "T", [], "Q?", "An answer."), 0)
    assert fit_judge("paper", "T", HISTORY, "Q?", "A.", 100_000) == (judge_message("paper", "T", [], "Q?", "A."), 0)


def test_every_window_names_a_dated_source_and_dated_names_are_the_models_own() -> None:
    windows = bundled_windows()
    assert all(row.source in windows.sources and row.tokens >= 8_000 for row in windows.models.values())
    assert all(len(source.date) == 10 and source.note for source in windows.sources.values())
    assert windows.known("openai/gpt-4o-mini") == windows.known("openai/gpt-4o-mini-2024-07-18") == 128_000
    assert windows.known("anthropic/claude-sonnet-4-20250514") == 200_000
    # A name that only begins alike is another model.
    assert windows.known("openai/gpt-4o-large") is None
    assert windows.of("mylab/unknown") == windows.default


def test_a_prompt_leaves_room_for_the_answer_and_for_what_the_estimate_misses() -> None:
    assert prompt_tokens(128_000) == 115_200 - 4_096
    assert prompt_tokens(128_000, 10_000) == 105_200
    assert prompt_tokens(8_000) == 7_200 - 2_000
    assert prompt_tokens(1_000, 5_000) == 1
