"""What is reserved for a call before its provider counts its tokens."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from millstream.engine.call import Call, Usage
from millstream.engine.estimate import TokenEstimate

TEXTS = st.text("abc def", min_size=1, max_size=80)


@given(st.lists(TEXTS, max_size=40), TEXTS)
def test_no_prompt_takes_a_token_more_than_is_reserved_where_a_token_has_four_characters(
    before: list[str], text: str
) -> None:
    estimate = TokenEstimate()
    for prompt in before:
        estimate.observe(len(prompt), Usage(math.ceil(len(prompt) / 4), 1))
    assert estimate.tokens_of(Call("a/b", text), len(text)).input >= math.ceil(len(text) / 4)


def test_what_was_learned_of_equal_prompts_reserves_no_token_too_many() -> None:
    estimate = TokenEstimate()
    call = Call("a/b", "x" * 17)
    for _ in range(200):
        estimate.observe(17, Usage(5, 1))
    assert estimate.tokens_of(call, 17).input == 5
