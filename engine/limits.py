"""What a provider allows, as values: a lane's quota, the limits that answers report, and what follows from these.

Pure arithmetic: reads no header, no clock and no file. How headers are read:
providers/transport/rate_limit_headers. Its use: key_gate.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from msgspec import Struct, structs

from .lane import Lane
from .usage import Usage

Amount = Literal["requests", "tokens", "input", "output"]
_QUOTAS: dict[Amount, str] = {"requests": "rpm", "tokens": "tpm", "input": "itpm", "output": "otpm"}

MINUTE_S = 60.0
DAY_S = 86_400.0
# An empty bucket that refills evenly is full after a whole window; a window with fixed edges, sooner.
_FULL_WINDOW = 0.98
# For a limit on less than a minute: how late a request may arrive, and how early the ledger may let the next one go.
_SHORT_LATE_S = 0.15
# Longer than an answer can report the last second of a window.
_SURE_AFTER_S = 5.0
_NO_LIMIT = float("inf")
# Sending time that one limit loses while calls wait for another is made up all at once. Ten seconds cover most of what
# requests and tokens lose to each other; a provider that admits less at once shows it by its refusals.
MADE_UP_S = 10.0


class Tokens(Struct, frozen=True, gc=False):
    """Tokens of one call: what is reserved for it, or what it used."""

    input: int = 0
    output: int = 0

    @property
    def total(self) -> int:
        return self.input + self.output

    def settled(self, usage: Usage | None) -> Tokens:
        """Returns the tokens that were used instead of these; a count that was not reported stays as reserved."""
        if usage is None:
            return self
        if usage.total is not None:
            return Tokens(min(self.input, usage.total), max(0, usage.total - self.input))
        return Tokens(
            self.input if usage.input is None else usage.input, self.output if usage.output is None else usage.output
        )


class Limit(Struct, frozen=True):
    """One limit as an answer reported it: `limit` requests or tokens (`of`) in `window_s` seconds. `remaining`: how
    much was left of it; `reset_s`: in how many seconds all of it is free again. None: not reported."""

    of: Amount
    window_s: float
    limit: float | None = None
    remaining: float | None = None
    reset_s: float | None = None

    @property
    def wait_s(self) -> float:
        """The seconds until something of the limit is free again; 0.0 while some is left, or if not reported."""
        if self.remaining is None or self.remaining >= 1 or self.reset_s is None:
            return 0.0
        if self.limit is not None and self.reset_s >= _FULL_WINDOW * self.window_s:
            least_s = 0.0 if self.of == "requests" else 1.0
            return min(self.reset_s, max(least_s, self.window_s / self.limit))
        return self.reset_s


def pause_of(limits: Iterable[Limit]) -> float:
    """Returns the pause in seconds that limits imply: by those that have run out, else by bare resets; 0.0: none."""
    waits = [limit.wait_s for limit in limits if limit.wait_s > 0]
    return max(waits or (limit.reset_s or 0.0 for limit in limits if limit.remaining is None), default=0.0)


class Doubts:
    """A filter for limits whose window was guessed, since the headers name none: the last second of a minute looks like
    a limit for a second. A known limit per minute is kept until its number has been reported with other windows
    only, for _SURE_AFTER_S seconds."""

    def __init__(self) -> None:
        self._since: dict[tuple[Amount, float | None], float] = {}

    def settle(self, limits: tuple[Limit, ...], believed_limits: tuple[Limit, ...], now: float) -> tuple[Limit, ...]:
        """Returns the reported limits, with the window of a doubted one set back to a minute. `believed_limits`: those
        believed so far; `now`: seconds of any steady clock."""
        minutes = {(limit.of, limit.limit) for limit in believed_limits if limit.window_s == MINUTE_S}
        if not minutes:
            return limits
        again = {(limit.of, limit.limit) for limit in limits if limit.window_s == MINUTE_S}
        for one in again:
            self._since.pop(one, None)
        return tuple(
            structs.replace(limit, window_s=MINUTE_S)
            if (one := (limit.of, limit.limit)) in minutes
            and one not in again
            and now - self._since.setdefault(one, now) < _SURE_AFTER_S
            else limit
            for limit in limits
        )


class Lack(NamedTuple):
    """An amount of which a call needs more than a minute's quota: its option, its words for messages, both numbers."""

    name: str
    what: str
    needed: int
    most: float


class Quota(Struct, frozen=True):
    """The most that any sliding minute may hold: requests (`rpm`), tokens (`tpm`), input tokens (`itpm`) and output
    tokens (`otpm`); None: no limit. `spacing_s`: the least seconds between two requests, where a limit holds for
    less than a minute. `made_up_s`: how many seconds of sending time that was lost to one limit while calls waited
    for another may be made up at once."""

    rpm: float | None = None
    tpm: float | None = None
    itpm: float | None = None
    otpm: float | None = None
    spacing_s: float = 0.0
    made_up_s: float = MADE_UP_S

    @property
    def least_tokens(self) -> float:
        """The tokens that every minute can hold, however divided into input and output; infinite without a limit."""
        return min(_NO_LIMIT if amount is None else amount for amount in (self.tpm, self.itpm, self.otpm))

    @property
    def is_unknown(self) -> bool:
        """Whether nothing of it sets a pace."""
        return not self.spacing_s and self.rpm is None and self.least_tokens == _NO_LIMIT

    def lowered_by(self, other: Quota) -> Quota:
        """Returns the stricter of both quotas, amount by amount."""
        return Quota(
            _smaller(self.rpm, other.rpm),
            _smaller(self.tpm, other.tpm),
            _smaller(self.itpm, other.itpm),
            _smaller(self.otpm, other.otpm),
            max(self.spacing_s, other.spacing_s),
            min(self.made_up_s, other.made_up_s),
        )

    def minutes(self, requests: float, input_tokens: float, output_tokens: float) -> float | None:
        """Returns how many minutes calls take by the narrowest of these limits; None without a limit."""
        bounds = (
            (requests, self.rpm),
            (input_tokens + output_tokens, self.tpm),
            (input_tokens, self.itpm),
            (output_tokens, self.otpm),
        )
        return max((amount / most for amount, most in bounds if most is not None), default=None)

    def lacks(self, tokens: Tokens) -> Lack | None:
        """Returns the first amount of which the call needs more than one minute's quota; None if it fits."""
        for name, what, needed, most in (
            ("tpm", "tokens", tokens.total, self.tpm),
            ("itpm", "input tokens", tokens.input, self.itpm),
            ("otpm", "output tokens", tokens.output, self.otpm),
        ):
            if most is not None and needed > most:
                return Lack(name, what, needed, most)
        return None

    def cut_to_fit(self, tokens: Tokens) -> Tokens:
        """Returns the tokens to reserve: at most one minute's quota, since a larger call would wait for ever."""
        if self.lacks(tokens) is None:
            return tokens
        tpm, itpm, otpm = (_NO_LIMIT if amount is None else amount for amount in (self.tpm, self.itpm, self.otpm))
        read = int(min(tokens.input, tpm, itpm))
        return Tokens(read, int(min(tokens.output, tpm - read, otpm)))


def _smaller(one: float | None, other: float | None) -> float | None:
    return one if other is None else other if one is None else min(one, other)


def summed(quotas: Sequence[Quota]) -> Quota:
    """Returns the sum of the quotas, amount by amount; no limit where one of them has none."""

    def total(name: str) -> float | None:
        amounts = [getattr(quota, name) for quota in quotas]
        return sum(amounts) if amounts and None not in amounts else None

    return structs.replace(Quota(), **{name: total(name) for name in _QUOTAS.values()})


def declared_quota(lane: Lane) -> Quota:
    made_up_s = MADE_UP_S
    if lane.burst is not None and lane.rpm is not None:
        # Half of what a full bucket holds: the other half is for the size of a call.
        made_up_s = max(0.0, min(made_up_s, 0.5 * MINUTE_S * lane.burst / lane.rpm - 0.5))
    return Quota(lane.rpm, lane.tpm, lane.itpm, lane.otpm, lane.spacing_s, made_up_s)


def quota_of(limits: Iterable[Limit]) -> Quota:
    """Returns the quota per minute that follows from limits. Those for longer are left out: all may be used at once."""
    quota = Quota()
    for limit in limits:
        if limit.limit is None or limit.limit < 1 or limit.window_s > MINUTE_S:
            continue
        is_short = limit.of == "requests" and limit.window_s < MINUTE_S
        spacing_s = (limit.window_s + _SHORT_LATE_S) / limit.limit if is_short else 0.0
        amounts = {_QUOTAS[limit.of]: limit.limit * MINUTE_S / limit.window_s}
        quota = quota.lowered_by(Quota(**amounts, spacing_s=spacing_s))
    return quota
