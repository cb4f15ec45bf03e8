"""Prompts that a server read in part: which were, by the tokens that it reports, and what to say of it.

A prompt above 1,000 estimated tokens was cut if under a third of them is reported, or if prompts whose estimates differ
by half have the same, largest count. Above 1 of 20 a sentence says so, above half there is no score. Owns these rules
for every benchmark. Knows no record: a prompt is a pair of its characters and its reported tokens.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable

import numpy as np
from msgspec import Struct

from ..engine.pairs import Pair

_LEAST_TOKENS = 1_000


class ReadInPart(Struct, frozen=True):
    """One model's prompts above 1,000 estimated tokens, those of them that were cut, and the most tokens reported.
    `is_unread`: too many were cut for a score."""

    prompts: int
    cut: int
    most: int
    is_unread: bool

    def remark(self, name: str) -> str | None:
        """Returns a sentence on the model; None unless more than 1 of 20 prompts were cut."""
        if 20 * self.cut <= self.prompts:
            return None
        return (
            f"{name}{' has no score' if self.is_unread else ''}: the server read {self.cut:,} of {self.prompts:,} "
            f"prompts above {_LEAST_TOKENS:,} tokens in part ({self.most:,} tokens at most): raise its context "
            "(OLLAMA_CONTEXT_LENGTH, or the server's own option), or send shorter prompts (--window)"
        )


class RunReads:
    """The long prompts of a run. `characters_of`: a model's characters a token; `is_literal`: no score is taken."""

    def __init__(self, *, is_literal: bool = False, characters_of: Callable[[str], float] = lambda model: 4.0) -> None:
        self._is_literal, self._characters_of = is_literal, characters_of
        self._pairs: dict[Pair, array[int]] = {}

    def add(self, pair: Pair, prompts: Iterable[tuple[int, int]]) -> None:
        if (numbers := self._pairs.get(pair)) is None:
            numbers = self._pairs[pair] = array("q")
        for characters, tokens in prompts:
            numbers.append(characters)
            numbers.append(tokens)

    def of(self, pair: Pair) -> ReadInPart | None:
        """Returns what was read of a pair's prompts; None if it has no long prompt with reported tokens."""
        chars, tokens = np.array(self._pairs.get(pair, ()), dtype=np.int64).reshape(-1, 2).T
        estimates = chars / self._characters_of(pair.model)
        estimates, tokens = estimates[estimates > _LEAST_TOKENS], tokens[estimates > _LEAST_TOKENS]
        if not len(tokens):
            return None
        is_cut = 3 * tokens < estimates
        # An honest server's counts may agree anywhere, but not at the top: there, a plateau is a limit.
        at_top = tokens >= 0.99 * tokens.max()
        if estimates[at_top].max() >= 1.5 * estimates[at_top].min():
            is_cut |= at_top
        cut = int(is_cut.sum())
        return ReadInPart(len(tokens), cut, int(tokens.max()), not self._is_literal and 2 * cut > len(tokens))

    def pairs(self) -> Iterable[Pair]:
        return self._pairs
