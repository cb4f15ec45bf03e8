"""What answers say of a token limit: its number, what is left, how long to wait. Guesses, each to be tried.

Pure: rounds of answers in, guesses out. Knows no clock and no provider.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from msgspec import Struct

from .boxes import MINUTE_S
from .result import FoundQuota
from .steps import TimedAnswer, told_wait_s

# How much what headers tell of the limit and of what is left, two waits, and the share that a bucket of requests holds
# speak for a number, beside all others that weigh 1 together.
_TOLD, _LEFT, _WAITS, _SHARE = 3.0, 12.0, 1.5, 12.0
# What headers or refusals tell of two times nearer to each other than this errs by too much to give a rate.
_APART_S = 0.5
# A bucket that may be full tells nothing of how fast it fills.
_NOT_FULL = 0.97


class Guess(Struct, frozen=True):
    """So likely, beside all others that weigh 1 together, that the number lies between these two."""

    low: float
    high: float
    weight: float


class Guesses(Struct, frozen=True):
    """Of the limit a minute, of how many tokens a rested provider has, and of that as a share of the limit. `is_told`:
    whether headers tell what is left of a token limit, None without headers. `requests`: how many a minute holds."""

    limits: tuple[Guess, ...] = ()
    capacities: tuple[Guess, ...] = ()
    shares: tuple[Guess, ...] = ()
    is_told: bool | None = None
    requests: float | None = None


def guesses(found: FoundQuota, rounds: list[list[TimedAnswer]], tokens_of: Callable[[float], float]) -> Guesses:
    limits, capacities = [], []
    if found.told_tpm:
        limits.append(_about(found.told_tpm, 0.001, _TOLD))
    left = [one for one in (_left(seen) for seen in rounds) if one is not None]
    if left:
        whole = left[0].remaining + left[0].used
        capacities.append(_about(whole, 0.002, _LEFT))
        if found.window != "bucket":
            limits.append(_about(whole, 0.002, _LEFT))
        limits += _rates_of_headers(left, whole)
    limits += _rates_of_waits(rounds, tokens_of)
    shares = []
    if found.burst and found.rpm:
        # As many tokens at once as requests, in shares of a minute.
        low = 0.965 * found.burst / found.rpm
        shares.append(Guess(low, max((found.burst + 1) / found.rpm, 1.05 * low), _SHARE))
    says_requests = found.told_rpm is not None
    is_told = True if left else False if says_requests else None
    return Guesses(tuple(limits), tuple(capacities), tuple(shares), is_told, found.rpm or found.burst)


class _Left(Struct, frozen=True):
    at_s: float
    used: float
    remaining: float


def _left(seen: list[TimedAnswer]) -> _Left | None:
    told = [limit.remaining for one in seen for limit in one.answer.limits if limit.of == "tokens"]
    known = [remaining for remaining in told if remaining is not None]
    used = float(sum(one.answer.tokens for one in seen if one.is_admitted))
    return _Left(seen[0].sent_s, used, min(known)) if known else None


def _rates_of_headers(left: list[_Left], whole: float) -> list[Guess]:
    """By how much more is left than was."""
    found = []
    for one, other in pairwise(left):
        elapsed_s, before = other.at_s - one.at_s, other.remaining + other.used
        if elapsed_s > _APART_S and one.remaining < before < _NOT_FULL * whole:
            found.append(_about((before - one.remaining) / elapsed_s * MINUTE_S, 0.05 / elapsed_s + 0.002, _LEFT))
    return found[-2:]


def _rates_of_waits(rounds: list[list[TimedAnswer]], tokens_of: Callable[[float], float]) -> list[Guess]:
    """Retry-After says when so much will be there: two of them, how much comes in between."""
    used, promised, found = 0.0, [], []
    for seen in rounds:
        used += sum(one.answer.tokens for one in seen if one.is_admitted)
        refused = [one for one in seen if one.is_refused]
        told_s = told_wait_s(refused)
        if told_s is not None:
            least = min(one.size for one in refused)
            promised.append((seen[0].sent_s + told_s, used + tokens_of(least)))
    for (one_s, one), (other_s, other) in pairwise(promised):
        if abs(other_s - one_s) > _APART_S and (other - one) * (other_s - one_s) > 0:
            rate = (other - one) / (other_s - one_s) * MINUTE_S
            found.append(_about(rate, min(0.1, 0.05 / abs(other_s - one_s) + 0.003), _WAITS))
    return found[-3:]


def _about(number: float, share: float, weight: float) -> Guess:
    share = min(share, 0.5)
    return Guess(max(1e-9, number * (1 - share)), max(2e-9, number * (1 + share)), weight)
