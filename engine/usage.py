"""The tokens of a call, as its provider counted them. Values alone."""

from __future__ import annotations

from typing import TypeVar

from msgspec import Struct


class Usage(Struct, frozen=True, omit_defaults=True):
    """The tokens of a call, as the provider counted them. In files `reasoning` and `cached_input` are left out if they
    are 0."""

    input: int
    """Tokens of the prompt."""
    output: int
    """Tokens of the answer."""
    reasoning: int = 0
    """How many of the output tokens were spent on thinking."""
    cached_input: int = 0
    """How many of the input tokens the provider had cached."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.reasoning + other.reasoning,
            self.cached_input + other.cached_input,
        )


_Amount = TypeVar("_Amount", float, Usage)


def known_sum(known: _Amount | None, more: _Amount | None) -> _Amount | None:
    """Returns the sum of the amounts that are known; None if neither is."""
    if known is None or more is None:
        return more if known is None else known
    return known + more
