"""What a provider allows, as values: a lane's quota, the limits that its answers tell, and what follows from these.

Pure arithmetic: reads no header, no clock and no file. How headers are read: providers/limits. Who obeys:
lanes/key_gate.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from msgspec import Struct, structs

from .lane import Lane

Amount = Literal["requests", "tokens", "input", "output"]

MINUTE_S = 60.0
DAY_S = 86_400.0
# A bucket that fills evenly is whole again a full window after it was empty; a window with an edge, sooner.
_FULL_WINDOW = 0.98
# How much later than its neighbour a request may arrive, and how much early the ledger lets one go, where a limit holds
# for less than a minute.
_SHORT_LATE_S = 0.15
# Longer than the last second of a window may be told.
_SURE_AFTER_S = 5.0
_NO_LIMIT = float("inf")
# What one limit loses while calls wait for another comes at once when these let go. So much of it makes up for most of
# what requests and tokens lose to each other; a provider that holds less at once is told by its refusals.
MADE_UP_S = 10.0


class Tokens(Struct, frozen=True):
    """Tokens of one call: what is reserved for it, or what it used."""

    input: int = 0
    output: int = 0

    @property
    def total(self) -> int:
        return self.input + self.output


class Limit(Struct, frozen=True):
    """One limit as an answer told it: `limit` of an amount in `window_s` seconds. `remaining` is what was left of it,
    `reset_s` in how many seconds it is whole again. None: not told."""

    of: Amount
    window_s: float
    limit: float | None = None
    remaining: float | None = None
    reset_s: float | None = None

    @property
    def wait_s(self) -> float:
        """Seconds until there is something of it again: 0.0 while some is left, or where nobody says."""
        if self.remaining is None or self.remaining >= 1 or self.reset_s is None:
            return 0.0
        if self.limit is not None and self.reset_s >= _FULL_WINDOW * self.window_s:
            least_s = 0.0 if self.of == "requests" else 1.0
            return min(self.reset_s, max(least_s, self.window_s / self.limit))
        return self.reset_s


class Doubts:
    """Keeps a minute that was learned against answers that tell its number for another time, until they have said so,
    and nothing else, for a while. Where headers name no window it is guessed from when they say it ends, and one answer
    can mislead: the last second of a minute looks like a limit for a second."""

    def __init__(self) -> None:
        self._since: dict[tuple[Amount, float | None], float] = {}

    def settle(self, told: tuple[Limit, ...], known: tuple[Limit, ...], now: float) -> tuple[Limit, ...]:
        """What to believe of what an answer told."""
        minutes = {(limit.of, limit.limit) for limit in known if limit.window_s == MINUTE_S}
        if not minutes:
            return told
        again = {(limit.of, limit.limit) for limit in told if limit.window_s == MINUTE_S}
        for one in again:
            self._since.pop(one, None)
        return tuple(
            structs.replace(limit, window_s=MINUTE_S)
            if (one := (limit.of, limit.limit)) in minutes
            and one not in again
            and now - self._since.setdefault(one, now) < _SURE_AFTER_S
            else limit
            for limit in told
        )


class Lack(NamedTuple):
    """An amount of which a call needs more than any minute holds: its option, its words, and both numbers."""

    name: str
    what: str
    needed: int
    most: float


class Quota(Struct, frozen=True):
    """The most that any sliding minute may hold, and the least time between two requests where a limit holds for less
    than a minute. None: no limit. `made_up_s`: so much of what a limit lost, while calls waited for another, may go at
    once."""

    rpm: float | None = None
    tpm: float | None = None
    itpm: float | None = None
    otpm: float | None = None
    spacing_s: float = 0.0
    made_up_s: float = MADE_UP_S

    @property
    def least_tokens(self) -> float:
        """So many tokens any minute can hold, however they are divided."""
        return min(_NO_LIMIT if amount is None else amount for amount in (self.tpm, self.itpm, self.otpm))

    def lowered_by(self, other: Quota) -> Quota:
        """The smaller of both, amount by amount."""
        return Quota(
            _smaller(self.rpm, other.rpm),
            _smaller(self.tpm, other.tpm),
            _smaller(self.itpm, other.itpm),
            _smaller(self.otpm, other.otpm),
            max(self.spacing_s, other.spacing_s),
            min(self.made_up_s, other.made_up_s),
        )

    def lacks(self, tokens: Tokens) -> Lack | None:
        """The first amount of which no minute holds enough."""
        for name, what, needed, most in (
            ("tpm", "tokens", tokens.total, self.tpm),
            ("itpm", "input tokens", tokens.input, self.itpm),
            ("otpm", "output tokens", tokens.output, self.otpm),
        ):
            if most is not None and needed > most:
                return Lack(name, what, needed, most)
        return None

    def cut_to_fit(self, tokens: Tokens) -> Tokens:
        """What may be reserved at most: a call that needs more than a minute holds would wait for ever."""
        if self.lacks(tokens) is None:
            return tokens
        tpm, itpm, otpm = (_NO_LIMIT if amount is None else amount for amount in (self.tpm, self.itpm, self.otpm))
        read = int(min(tokens.input, tpm, itpm))
        return Tokens(read, int(min(tokens.output, tpm - read, otpm)))


def _smaller(one: float | None, other: float | None) -> float | None:
    return one if other is None else other if one is None else min(one, other)


def declared_quota(lane: Lane) -> Quota:
    made_up_s = MADE_UP_S
    if lane.burst is not None and lane.rpm is not None:
        # Half of what a full bucket holds: the other half is for the size of a call.
        made_up_s = max(0.0, min(made_up_s, 0.5 * MINUTE_S * lane.burst / lane.rpm - 0.5))
    return Quota(lane.rpm, lane.tpm, lane.itpm, lane.otpm, lane.spacing_s, made_up_s)


def quota_of(limits: Iterable[Limit]) -> Quota:
    """The pace that follows from limits: those for a day or a month set none, since they may be used up at once."""
    quota = Quota()
    for limit in limits:
        if limit.limit is None or limit.limit < 1 or limit.window_s > MINUTE_S:
            continue
        per_minute = limit.limit * MINUTE_S / limit.window_s
        match limit.of:
            case "requests":
                short = limit.window_s < MINUTE_S
                spacing_s = (limit.window_s + _SHORT_LATE_S) / limit.limit if short else 0.0
                quota = quota.lowered_by(Quota(rpm=per_minute, spacing_s=spacing_s))
            case "tokens":
                quota = quota.lowered_by(Quota(tpm=per_minute))
            case "input":
                quota = quota.lowered_by(Quota(itpm=per_minute))
            case "output":
                quota = quota.lowered_by(Quota(otpm=per_minute))
    return quota
