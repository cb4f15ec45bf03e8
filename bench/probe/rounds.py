"""Rounds of calls sent at once, and what is remembered of all of them: what was admitted when, and how quickly.

Owns the count of calls and the pauses after a refusal. Knows no quota, no clock and no provider.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple

from .boxes import Event
from .result import FoundQuota
from .steps import SMALL, Ask, Step, Steps, TimedAnswer, Wait

# A call that is answered later was worked on, not decided, so late.
_LATE_MAX_S = 0.25
# By so much more a call may be late now and then, on a machine or a way that is busy.
_STALL_S, _SOME = 0.1, 40
# What each call of a round takes, at the most, of the machine that sends it, until so many refusals of one round have
# told; what of its way is no more known then.
_EACH_S, _WAY_SHARE = 0.002, 0.25
_FEW, _TELLING, _SPARE = 4, 20, 1.5
# After refusals that name no wait pauses double, from one second to less than half a minute: a window that begins anew
# is met soon after it does.
_PAUSE_S, _PAUSE_MAX_S = 1.0, 25.0
# A call sent so soon after a promised time tests the promise.
_SOON_S = 1.0
# Of more calls than this at once, one in 200 may be decided later than the others: more than twice what a simulated
# busy machine holds up.
_FEW_LATE, _LATE_SHARE = 20, 0.005


class Round(NamedTuple):
    """Calls that were sent together and their answers. `at_s`, `sent_s`: when the first and the last were sent;
    `ended_s`: when they were decided, but for a few late ones; `refused_s`: the earliest time at which the last refusal
    can have been decided, `refused_done_s` when it arrived; `told_s`: the longest Retry-After, `told_at_s`: when it is
    over; `remaining`: the requests that headers say are left."""

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
    """All that was sent for one model's requests."""

    def __init__(self, found: FoundQuota, most: int) -> None:
        self.found = found
        # So many at once: the caller's limit, or the ceiling that was met.
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
        """How long after it was sent a call is decided at the latest: as long as a refusal takes to come back."""
        if not self._refusals_s:
            return self._least_s
        ordered = sorted(self._refusals_s)
        return min(_LATE_MAX_S, ordered[len(ordered) // 2])

    @property
    def doubt_s(self) -> float:
        """The same, now and then: of many calls some are later than most."""
        return self.late_s + (_STALL_S if self.admitted > _SOME else 0.0)

    @property
    def last(self) -> Round:
        return self.all[-1]

    @property
    def earliest_s(self) -> float:
        """When the next calls may go: as told, or after ever longer pauses."""
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
            # Of many, most wait for each other.
            self._refusals_s += [one.done_s - one.sent_s for one in seen if one.is_refused]
        self._each_s = min(self._each_s, _each(seen))
        made = _round_of(count, seen, self.doubt_s, self._each_s)
        self.calls += len(seen)
        self.admitted += made.admitted
        self.beside = max(self.beside, *(one.answer.tokens - one.size for one in seen))
        self._refused_in_a_row = 0 if made.admitted else self._refused_in_a_row + 1
        self.at_once = max(self.at_once, made.admitted)
        # Whoever comes much later is admitted for other reasons.
        is_soon = promised_s is not None and made.at_s < promised_s + _SOON_S
        if promised_s is not None and made.at_s >= promised_s - 1e-6 and (is_soon or not made.admitted):
            self.found.note_promise(kept=made.admitted > 0)
        self.all.append(made)
        return made

    def event(self, made: Round, *, is_last: bool = True) -> Event:
        """Returns what the round tells of a quota. Refusals before the burst's end (`is_last` False) were for calls in
        flight."""
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
        """Where refusals name a time, one that names none, of several calls at once, was for those in flight."""
        return made.asked > 1 and made.told_s is None and any(each.told_s is not None for each in self.all)

    def wait(self, until_s: float) -> Steps:
        if until_s > self.now:
            yield Wait(until_s)
            self.now = until_s


def _each(seen: list[TimedAnswer]) -> float:
    """Refusals take no time but their way: how far they come apart is what each call takes."""
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
    """Calls are decided in the order of their sending, or nearly; how long one was worked on, nobody knows."""
    if not admitted:
        return None
    done_s = max(one.done_s for one in admitted)
    if refused:
        return min(done_s, max(one.done_s for one in refused))
    return min(done_s, max(one.sent_s for one in admitted) + doubt_s + each_s * (len(admitted) - 1))


def _at_the_earliest(one: TimedAnswer, at_s: float, doubt_s: float) -> float:
    """A refusal is quick: what passed before it was its way, and that of those before it."""
    return max(one.sent_s, one.done_s - doubt_s - _WAY_SHARE * (one.done_s - at_s))
