"""A continuation's log-likelihood out of echoed tokens."""

from __future__ import annotations

import math
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.engine.call import TokenLogprob
from millstream.providers.llm.openai.echoed_text import CantScore, ContinuationScore, score


def tokens_of(*texts: str, greedy: bool = True) -> list[TokenLogprob]:
    """Each token's log-probability is minus its number, so that a sum says which were counted."""
    best = 0.0 if greedy else 1.0
    return [TokenLogprob(text, -float(at), ((text, -float(at) + best),)) for at, text in enumerate(texts)]


def test_the_continuation_alone_is_summed_and_what_was_said_after_it_is_not() -> None:
    assert score(tokens_of("Is it", " A", " or", " B?", " A", "!"), "Is it A or B?", " A") == ContinuationScore(
        -4.0, True
    )


def test_it_is_greedy_only_where_each_of_its_tokens_was_the_likeliest() -> None:
    tokens = [*tokens_of("Q:", " ye", greedy=False), *tokens_of("", "", "s", "!")[2:]]
    assert score(tokens, "Q:", " yes") == ContinuationScore(-3.0, False)
    assert not score([TokenLogprob("Q:", 0.0), TokenLogprob(" yes", -1.0)], "Q:", " yes").is_greedy


def test_a_token_that_straddles_the_border_is_the_continuations() -> None:
    assert score(tokens_of("The ans", "wer is", "n't", " A", "."), "The answer", " isn't A") == ContinuationScore(
        -6.0, True
    )


def test_white_space_before_the_border_counts_with_what_follows_it() -> None:
    assert score(tokens_of("Answer:", " A", "."), "Answer: ", "A") == ContinuationScore(-1.0, True)
    assert score(tokens_of("Answer:", " ", "A", "."), "Answer: ", "A") == ContinuationScore(-3.0, True)


def test_the_first_token_of_all_has_no_probability() -> None:
    tokens = [TokenLogprob("He", math.nan), *tokens_of("", "llo", "!")[1:]]
    assert score(tokens, "", "Hello") == ContinuationScore(-1.0, True)


def test_a_mark_of_the_beginning_that_nobody_wrote_is_passed_over() -> None:
    assert score(tokens_of("<s>", "He", "llo", "!"), "", "Hello") == ContinuationScore(-3.0, True)
    assert score(tokens_of("<|begin_of_text|>", "Q:", " A", "."), "Q:", " A") == ContinuationScore(-2.0, True)


@pytest.mark.parametrize(
    "texts",
    [
        ("Q: ", "bytes:\\xe2", "bytes:\\x9c\\x93", " A", "."),
        ("Q: ", "\ufffd", "\ufffd", " A", "."),
        ("Q: ", "\ufffd", "\ufffd", " A", "\ufffd"),
    ],
)
def test_a_character_in_pieces_is_still_spelt(texts: tuple[str, ...]) -> None:
    assert score(tokens_of(*texts), "Q: ✓", " A") == ContinuationScore(-3.0, True)
    assert score(tokens_of(*texts), "Q:", " ✓ A") == ContinuationScore(-6.0, True)


@pytest.mark.parametrize("last", [(), ("!",), ("\ufffd",)])
def test_a_prompt_that_ends_in_pieces_is_counted_to_its_end(last: tuple[str, ...]) -> None:
    assert score(tokens_of("Q:", " ", "\ufffd", "\ufffd", *last), "Q:", " ✓").logprob <= -6.0


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        (("Q:", " B", "."), "' B' at byte 2"),
        (("Q:", " "), "echoed 3 of the prompt's 4 bytes"),
        (("A",), "echoed 0 of"),
        ((), "echoed 0 of"),
    ],
)
def test_tokens_of_another_prompt_are_no_score(texts: tuple[str, ...], told: str) -> None:
    with pytest.raises(CantScore, match=told):
        score(tokens_of(*texts), "Q:", " A")


def test_a_token_without_a_probability_is_no_zero() -> None:
    with pytest.raises(CantScore, match="gave a token of ' A' no log-probability"):
        score([TokenLogprob("Q:", math.nan), TokenLogprob(" A", math.nan)], "Q:", " A")


@given(
    st.lists(st.text(min_size=1, max_size=4).filter(lambda text: "\ufffd" not in text), min_size=2, max_size=8),
    st.data(),
)
def test_any_cut_of_a_text_gives_the_tokens_that_end_behind_it(texts: list[str], data: st.DataObject) -> None:
    texts = [text.encode("utf-8", "replace").decode() for text in texts]
    whole = "".join(texts)
    border = data.draw(st.integers(0, len(whole) - 1))
    context, said = whole[:border], whole[border:]
    bare = len(context.rstrip())
    wanted = sum(-at for at, end in enumerate(accumulate(map(len, texts))) if end > bare)
    assert score(tokens_of(*texts, "!"), context, said).logprob == wanted
