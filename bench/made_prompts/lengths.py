"""Prompt lengths in tokens: distributions that are checked when made and drawn from a random source.

Knows no text and no tokenizer; `prompts` converts tokens to characters.
"""

from __future__ import annotations

import math
import re
from random import Random

from msgspec import Struct

# Fewer tokens don't hold enough random bits for all prompts to differ.
TOKENS_MIN = 8
TOKENS_MAX = 10_000_000
# Standard normal quantile of 0.99: a lognormal's p99 is its median times exp(sigma * Z99).
_Z99 = 2.3263478740408408
_MOST = 200_000
_TEXT = re.compile(r"(?:(\d+)-(\d+)|lognormal:([\d.]+),([\d.]+)|(\d+))", re.ASCII)


def _check_tokens(name: str, tokens: float) -> None:
    if not TOKENS_MIN <= tokens <= TOKENS_MAX:
        raise ValueError(f"{name} ({tokens:g} tokens) must be >= {TOKENS_MIN} and <= {TOKENS_MAX:,}")


class FixedLength(Struct, frozen=True):
    """The same length for every prompt: `tokens` tokens."""

    tokens: int

    def __post_init__(self) -> None:
        _check_tokens("tokens", self.tokens)

    def draw(self, random: Random) -> int:
        return self.tokens


class UniformLength(Struct, frozen=True):
    """A length drawn evenly from `low` to `high` tokens, both included."""

    low: int
    high: int

    def __post_init__(self) -> None:
        _check_tokens("low", self.low)
        _check_tokens("high", self.high)
        if self.high < self.low:
            raise ValueError(f"high ({self.high} tokens) must be >= low ({self.low})")

    def draw(self, random: Random) -> int:
        return random.randint(self.low, self.high)


class LognormalLength(Struct, frozen=True):
    """A length drawn from a lognormal distribution: half of the prompts have at most `median` tokens, 99 of 100 at most
    `p99`, none more than `most`."""

    median: float
    p99: float
    most: int = _MOST

    def __post_init__(self) -> None:
        _check_tokens("median", self.median)
        _check_tokens("most", self.most)
        if not self.p99 >= self.median:
            raise ValueError(f"p99 ({self.p99:g} tokens) must be >= median ({self.median:g})")
        if self.most < self.p99:
            raise ValueError(f"most ({self.most} tokens) must be >= p99 ({self.p99:g})")

    def draw(self, random: Random) -> int:
        sigma = math.log(self.p99 / self.median) / _Z99
        return max(TOKENS_MIN, min(self.most, round(self.median * math.exp(random.gauss(0.0, sigma)))))


Lengths = FixedLength | UniformLength | LognormalLength


def parse_lengths(text: str) -> Lengths:
    """Returns the lengths written as `N`, `LOW-HIGH` or `lognormal:MEDIAN,P99`. Raises ValueError for any other
    text."""
    match = _TEXT.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no length")
    low, high, median, p99, fixed = match.groups()
    if low is not None:
        return UniformLength(int(low), int(high))
    if median is not None:
        return LognormalLength(float(median), float(p99), max(_MOST, math.ceil(float(p99))))
    return FixedLength(int(fixed))
