"""A continuation's log-likelihood from the tokens that a server echoed, without a tokenizer.

The end of the context is found by spelling the prompt with the tokens' texts, in bytes. A token across that border
belongs to the continuation: it is the first that depends on it. So no continuation is ever empty. Pure.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from ....engine.call import TokenLogprob

# OpenAI's word for a token that is no whole character; others write U+FFFD in the place of its bytes.
_BYTES = re.compile(r"bytes:((?:\\x[0-9a-f]{2})+)")
_UNKNOWN = "\ufffd"
_BYTES_OF_ONE = 4


class CantScore(Exception):
    """Raised if the tokens don't spell the prompt."""


class ContinuationScore(Struct, frozen=True):
    """The log-likelihood of a continuation. `is_greedy`: each of its tokens was the likeliest."""

    logprob: float
    is_greedy: bool


def score(tokens: Sequence[TokenLogprob], context: str, continuation: str) -> ContinuationScore:
    """Returns the log-likelihood of `continuation` after `context`. The first token of all has no probability. White
    space at the end of the context counts as part of the continuation, as in the tokens. Raises CantScore."""
    border = len(context.rstrip().encode())
    prompt = (context + continuation).encode()
    scored = [tokens[at] for at, end in _ends(tokens, prompt) if end > border and at > 0]
    if any(math.isnan(token.logprob) for token in scored):
        raise CantScore(f"the server gave a token of {continuation!r:.80} no log-probability")
    return ContinuationScore(sum(token.logprob for token in scored), all(map(_is_greedy, scored)))


def _is_greedy(token: TokenLogprob) -> bool:
    return bool(token.top) and token.logprob >= max(logprob for _, logprob in token.top)


def _ends(tokens: Sequence[TokenLogprob], prompt: bytes) -> Iterator[tuple[int, int]]:
    """Yields the number of each token of the prompt, from 0, and its end's byte offset. Later tokens are left out."""
    at, unknown = 0, list[int]()
    for number, token in enumerate(tokens):
        if at >= len(prompt):
            return
        if _UNKNOWN in token.token:
            unknown.append(number)
            continue
        spelt = _bytes_of(token.token)
        start = _beginning(prompt, spelt, at, _BYTES_OF_ONE * sum(len(tokens[each].token) for each in unknown))
        if start is None:
            if at == 0 and not unknown:
                continue  # a mark of the beginning, which is not in the prompt
            if unknown and number == len(tokens) - 1:
                break  # generated after the prompt, whose own last tokens are unknown
            raise CantScore(
                f"the server's tokens don't spell the prompt: {token.token!r} at byte {at} of {prompt!r:.80}"
            )
        yield from ((each, start) for each in unknown)
        unknown.clear()
        at = start + len(spelt)
        yield number, at
    if not unknown and at < len(prompt):
        raise CantScore(
            f"the server echoed {at} of the prompt's {len(prompt)} bytes: it cut the prompt, or echoes none"
        )
    yield from ((each, len(prompt)) for each in unknown)


def _beginning(prompt: bytes, spelt: bytes, at: int, reach: int) -> int | None:
    """Returns the byte offset at which a token begins: `at`, or up to `reach` bytes later, which unknown tokens before
    it may have; None: not there."""
    starts = range(at + 1, min(at + reach, len(prompt)) + 1) if reach else (at,)
    return next((start for start in starts if prompt.startswith(spelt, start)), None)


def _bytes_of(token: str) -> bytes:
    match = _BYTES.fullmatch(token)
    return token.encode("utf-8", "replace") if match is None else bytes.fromhex(match[1].replace("\\x", ""))
