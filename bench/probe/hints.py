"""Guesses of a token limit from what answers report: a limit in headers, what is left, how long to wait.

Pure: rounds of answers in, guesses out, which the probe tests. Knows no clock and no provider.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from msgspec import Struct

from .boxes import MINUTE_S
from .result import FoundQuota
from .steps import TimedAnswer, told_wait_s

# The weights of guesses from a limit in headers, from what headers report as left, from two waits, and from a bucket's
# share of requests; all other numbers weigh 1 together.
_TOLD, _LEFT, _WAITS, _SHARE = 3.0, 12.0, 1.5, 12.0
# Reports closer in time than this give a rate with too large an error.
_APART_S = 0.5
# A bucket that may be full doesn't show how fast it fills.
_NOT_FULL = 0.97


class Guess(Struct, frozen=True):
    """A range from `low` to `high` in which the number probably lies, with its `weight` against all other numbers,
    which weigh 1 together."""

    low: float
    high: float
    weight: float


class Guesses(Struct, frozen=True):
    """Guesses of the limit in tokens a minute, of the tokens that a rested provider has at once (capacity), and of that
    as a share of the limit. `is_told`: whether headers report what is left of a token limit (None: there are no
    headers); `requests`: how many requests a minute are admitted (None: unknown)."""

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
        # A bucket of tokens probably holds the same share of a minute as that of requests.
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
    """Returns guesses of the limit a minute from how much more headers report as left than the round before; at most
    two."""
    found = []
    for one, other in pairwise(left):
        elapsed_s, before = other.at_s - one.at_s, other.remaining + other.used
        if elapsed_s > _APART_S and one.remaining < before < _NOT_FULL * whole:
            found.append(_about((before - one.remaining) / elapsed_s * MINUTE_S, 0.05 / elapsed_s + 0.002, _LEFT))
    return found[-2:]


def _rates_of_waits(rounds: list[list[TimedAnswer]], tokens_of: Callable[[float], float]) -> list[Guess]:
    """Returns guesses of the limit a minute, at most three. A Retry-After says when a number of tokens will be free;
    two of them give the tokens that are added in between."""
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
