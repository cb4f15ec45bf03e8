"""Rounds of calls sent at once, and the history of all rounds: what was admitted when, and how quickly.

Owns the count of calls and the pauses after a refusal. Knows no quota, no clock and no provider.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple

from .boxes import Event
from .result import FoundQuota
from .steps import SMALL, Ask, Step, Steps, TimedAnswer, Wait

# A call answered later than this was worked on; its decision was not that late.
_LATE_MAX_S = 0.25
# On a busy machine or network a call may be this much later; counted once more than `_SOME` calls were admitted.
_STALL_S, _SOME = 0.1, 40
# The most seconds that sending takes for each call of a round, until enough refusals of one round show it; and the
# share of its way that stays uncertain then.
_EACH_S, _WAY_SHARE = 0.002, 0.25
_FEW, _TELLING, _SPARE = 4, 20, 1.5
# After refusals that name no wait pauses double, from one second to less than half a minute: a window that begins anew
# is met soon after it does.
_PAUSE_S, _PAUSE_MAX_S = 1.0, 25.0
# A call sent this soon after a promised time tests the promise.
_SOON_S = 1.0
# In rounds larger than this one call in 200 may be decided later than the others: more than twice the share that a
# simulated busy machine delays.
_FEW_LATE, _LATE_SHARE = 20, 0.005


class Round(NamedTuple):
    """Calls that were sent together, and their answers: how many were to be sent (`asked`), were admitted, refused, or
    failed. `at_s`, `sent_s`: when the first and the last were sent, in seconds of the clock; `done_s`: when the last
    answer arrived; `ended_s`: by when all but a few late ones were decided (None: none was admitted); `refused_s`:
    the earliest time at which the last refusal can have been decided, `refused_done_s`: when it arrived; `told_s`:
    the longest Retry-After in seconds, `told_at_s`: when it is over; `remaining`: the requests that headers report
    as left."""

    at_s: float
    sent_s: float
    done_s: float
    asked: int
    admitted: int
    refused: int
    failed: int
    ended_s: float | None
    refused_s: float | None
    refused_done_s: float | None
    told_s: float | None
    told_at_s: float | None
    remaining: float | None


class Rounds:
    """All calls that were sent to find one model's quota of requests. At most `most` are sent at once."""

    def __init__(self, found: FoundQuota, most: int) -> None:
        self.found = found
        # The most calls at once: the caller's limit, or the ceiling that was met.
        self.in_flight_max = self.most = most
        self.now = 0.0
        self.calls = 0
        self.admitted = 0
        self.beside = 0
        self.at_once = 1
        self.all: list[Round] = []
        self._refusals_s: list[float] = []
        self._least_s = _LATE_MAX_S
        self._each_s = _EACH_S
        self._refused_in_a_row = 0

    @property
    def late_s(self) -> float:
        """The seconds after sending by which a call is decided: the median time that a refusal takes to arrive, 0.25 at
        most."""
        if not self._refusals_s:
            return self._least_s
        ordered = sorted(self._refusals_s)
        return min(_LATE_MAX_S, ordered[len(ordered) // 2])

    @property
    def doubt_s(self) -> float:
        """The seconds after sending by which nearly every call is decided: `late_s`, and 0.1 more once over 40 calls
        were admitted, since of many calls some are late."""
        return self.late_s + (_STALL_S if self.admitted > _SOME else 0.0)

    @property
    def last(self) -> Round:
        return self.all[-1]

    @property
    def earliest_s(self) -> float:
        """The moment from which the next calls may go: now, after the Retry-After of the last refusal, or after pauses
        that double."""
        last = self.last
        if not last.refused:
            return self.now
        if last.told_at_s is not None and self._refused_in_a_row < 3:
            return max(self.now, last.told_at_s)
        pause = min(_PAUSE_MAX_S, _PAUSE_S * 2.0 ** max(0, self._refused_in_a_row - 2))
        return max(self.now + pause, last.told_at_s or 0.0)

    def ask(self, count: int) -> Generator[Step, list[TimedAnswer], Round]:
        promised_s = self.all[-1].told_at_s if self.all and self.all[-1].refused else None
        seen = yield Ask((SMALL,) * count)
        self.now = max(one.done_s for one in seen)
        self._least_s = min(self._least_s, *(one.done_s - one.sent_s for one in seen))
        if len(seen) <= _FEW:
            # In a large round most calls wait for each other.
            self._refusals_s += [one.done_s - one.sent_s for one in seen if one.is_refused]
        self._each_s = min(self._each_s, _each(seen))
        made = _round_of(count, seen, self.doubt_s, self._each_s)
        self.calls += len(seen)
        self.admitted += made.admitted
        self.beside = max(self.beside, *(one.answer.tokens - one.size for one in seen))
        self._refused_in_a_row = 0 if made.admitted else self._refused_in_a_row + 1
        self.at_once = max(self.at_once, made.admitted)
        # A much later call may be admitted for other reasons.
        is_soon = promised_s is not None and made.at_s < promised_s + _SOON_S
        if promised_s is not None and made.at_s >= promised_s - 1e-6 and (is_soon or not made.admitted):
            self.found.note_promise(kept=made.admitted > 0)
        self.all.append(made)
        return made

    def event(self, made: Round, *, is_last: bool = True) -> Event:
        """Returns what the round says of a quota, as an event. Refusals before the burst's end (`is_last` False) don't
        count: they were for calls in flight."""
        ended_s = max(made.ended_s or made.at_s, made.refused_done_s or made.at_s)
        refused = 1.0 if made.refused and is_last and not self.is_for_flight(made) else None
        return Event(
            made.at_s,
            max(made.sent_s + self.doubt_s, ended_s),
            float(made.admitted),
            made.admitted,
            refused,
            made.at_s if made.refused_s is None else made.refused_s,
            made.failed,
            None if refused is None or self.found.promises_broken else made.told_s,
            max(made.sent_s + self.late_s, ended_s),
            max(0, made.admitted - _FEW_LATE) * _LATE_SHARE,
        )

    def is_for_flight(self, made: Round) -> bool:
        """Returns whether the refusal was for the number of calls in flight: it names no wait though others did, and
        several calls were sent at once."""
        return made.asked > 1 and made.told_s is None and any(each.told_s is not None for each in self.all)

    def wait(self, until_s: float) -> Steps:
        if until_s > self.now:
            yield Wait(until_s)
            self.now = until_s


def _each(seen: list[TimedAnswer]) -> float:
    """Returns the seconds that each call of a round takes to be sent. Refusals take no time beyond their way back, so
    the time over which they arrive shows it."""
    refused = [one for one in seen if one.is_refused]
    if len(refused) < _TELLING:
        return _EACH_S
    return _SPARE * (max(one.done_s for one in refused) - max(one.sent_s for one in seen)) / len(seen)


def _round_of(count: int, seen: list[TimedAnswer], doubt_s: float, each_s: float) -> Round:
    admitted = [one for one in seen if one.is_admitted]
    refused = [one for one in seen if one.is_refused]
    waits = [(one.answer.retry_after_s, one.done_s) for one in refused if one.answer.retry_after_s is not None]
    about = [limit for one in seen for limit in one.answer.limits if limit.of == "requests"]
    left = [limit.remaining for limit in about if limit.remaining is not None]
    at_s = min(one.sent_s for one in seen)
    ended_s = _ended(admitted, refused, doubt_s, each_s)
    return Round(
        at_s=at_s,
        sent_s=max(one.sent_s for one in seen),
        done_s=max(one.done_s for one in seen),
        asked=count,
        admitted=len(admitted),
        refused=len(refused),
        failed=len(seen) - len(admitted) - len(refused),
        ended_s=ended_s,
        refused_s=max((_at_the_earliest(one, at_s, doubt_s) for one in refused), default=None),
        refused_done_s=max((one.done_s for one in refused), default=None),
        told_s=max((wait for wait, _ in waits), default=None),
        told_at_s=max((done_s + wait for wait, done_s in waits), default=None),
        remaining=min(left) if left else None,
    )


def _ended(admitted: list[TimedAnswer], refused: list[TimedAnswer], doubt_s: float, each_s: float) -> float | None:
    """Returns by when the admitted calls were decided; None if there are none. Calls are decided nearly in the order of
    sending, but how long the provider then worked on one is unknown."""
    if not admitted:
        return None
    done_s = max(one.done_s for one in admitted)
    if refused:
        return min(done_s, max(one.done_s for one in refused))
    return min(done_s, max(one.sent_s for one in admitted) + doubt_s + each_s * (len(admitted) - 1))


def _at_the_earliest(one: TimedAnswer, at_s: float, doubt_s: float) -> float:
    """Returns the earliest time at which the refusal can have been decided: a refusal is quick, so the time before it
    arrived is its way back and that of the calls before it."""
    return max(one.sent_s, one.done_s - doubt_s - _WAY_SHARE * (one.done_s - at_s))
