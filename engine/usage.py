"""The tokens of a call, as its provider counted them: what it did not count is unknown, and never 0. Values alone."""

from __future__ import annotations

from typing import TypeVar

from msgspec import Struct


class Usage(Struct, frozen=True, omit_defaults=True, gc=False):
    """The tokens of a call, as the provider counted them; a count that it did not report is None and never 0. In files
    the fields after `output` are left out if they have their default."""

    input: int | None
    """Tokens of the prompt."""
    output: int | None
    """Tokens of the answer."""
    reasoning: int = 0
    """How many of the output tokens were spent on thinking."""
    cached_input: int = 0
    """How many of the input tokens the provider had cached."""
    cache_write_5m: int = 0
    """How many of the input tokens the provider wrote to its cache, for five minutes or its usual time."""
    cache_write_1h: int | None = 0
    """How many of them it wrote to its cache for an hour; None: it does not count them apart, and `cache_write_5m` has
    all that it wrote."""
    total: int | None = None
    """Tokens of prompt and answer together, where the provider reported only their sum."""
    place: str | None = None
    """The one place where the call was processed, if its provider names it: some models cost more there."""
    billed: float | None = None
    """Dollars that the provider itself says it billed, as routers do; None: it says nothing."""

    @property
    def is_whole(self) -> bool:
        """Whether the provider reported both the tokens of the prompt and those of the answer."""
        return self.input is not None and self.output is not None

    @property
    def cache_written(self) -> int:
        """How many of the input tokens the provider wrote to its cache."""
        return self.cache_write_5m + (self.cache_write_1h or 0)

    @property
    def tokens(self) -> int | None:
        """Tokens of prompt and answer together; None: not known."""
        return self.total if self.input is None or self.output is None else self.input + self.output

    def __add__(self, other: Usage) -> Usage:
        """Returns the sum; a count that is unknown in one of the two is unknown in it."""
        hour = None
        if self.cache_write_1h is not None and other.cache_write_1h is not None:
            hour = self.cache_write_1h + other.cache_write_1h
        return Usage(
            None if self.input is None or other.input is None else self.input + other.input,
            None if self.output is None or other.output is None else self.output + other.output,
            self.reasoning + other.reasoning,
            self.cached_input + other.cached_input,
            self.cache_written + other.cache_written - (hour or 0),
            hour,
            place=self.place or other.place,
            billed=None if self.billed is None or other.billed is None else self.billed + other.billed,
        )


NOT_REPORTED = Usage(None, None)
"""The usage of an answer whose provider reported none."""


_Amount = TypeVar("_Amount", float, Usage)


def known_sum(known: _Amount | None, more: _Amount | None) -> _Amount | None:
    """Returns the sum of the amounts that are known; None if neither is."""
    if known is None or more is None:
        return more if known is None else known
    return known + more
