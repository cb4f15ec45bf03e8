"""The kinds of values that options of a load test take, beyond plain numbers and words.

Each kind says what it expects, as in `values`. Light, since `--help` needs it; interpreting values happens elsewhere.
"""

from __future__ import annotations

import re
from typing import Final

from ...configuration import values
from ..made_prompts.lengths import parse_lengths

RATE = values.Number("a number of calls a second", 0.001, 1e6)
STEPS_MAX = 1_000
MAX_TOKENS = values.WholeNumber("tokens", 1, 10_000_000)
TRACE: Final = "trace"
PAUSE = values.Duration("a time", may_be_zero=True)

_PERCENT = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*%\s*")


def _ramp(value: object) -> tuple[float, float]:
    first, _, last = str(value).partition(":")
    low, high = float(first), float(last)
    if not (0 <= low <= RATE.most and 0 <= high <= RATE.most) or low == high:
        raise ValueError(value)
    return low, high


def _rates(value: object) -> tuple[float, ...]:
    rates = tuple(RATE.read(each.strip()) for each in str(value).split(","))
    if not 2 <= len(rates) <= STEPS_MAX:
        raise ValueError(value)
    return rates


def _lengths(value: object) -> str:
    if value != TRACE:
        parse_lengths(str(value))
    return str(value)


def _max_tokens(value: object) -> int | str:
    return TRACE if value == TRACE else MAX_TOKENS.read(value)


def _percentage(value: object) -> float:
    match = _PERCENT.fullmatch(str(value))
    share = float(match[1]) / 100 if match is not None else 0.0
    if not 0.001 <= share <= 0.5:
        raise ValueError(value)
    return share


RAMP = values.Parsed("FROM:TO, two different numbers of calls a second, 0 to 1,000,000, as in 1:50", _ramp)
RATES = values.Parsed(f"R,R,…, at least 2 and at most {STEPS_MAX:,} numbers of calls a second, as in 5,10,20", _rates)
LENGTHS = values.Parsed(
    "N, LOW-HIGH, lognormal:MEDIAN,P99 (tokens, 8 to 10,000,000, the first the smaller), or trace for those that "
    "--replay tells",
    _lengths,
)
MOST_TOKENS = values.Parsed(f"{MAX_TOKENS.expected}, or trace: those of the --replay file", _max_tokens)
# It is read as a share.
PERCENTAGE = values.Parsed("a percentage from 0.1% to 50%, as in 5%", _percentage)
