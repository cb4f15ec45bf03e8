"""Headers that name no window are understood over many answers: no single one takes back a minute that was learned."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from math import ceil

import pytest
from scripted import worst_minute

from millstream.engine.attempts.money import CostBudget
from millstream.engine.attempts.retry import RetryPolicy
from millstream.engine.events import Events
from millstream.engine.lane import Lane
from millstream.engine.lanes.key_gate import KeyGate, Permit
from millstream.engine.lanes.ledger import Ledger
from millstream.engine.limits import DAY_S, Limit, Quota, Tokens, declared_quota
from millstream.providers.transport.rate_limit_headers import limits_of

NOW = 1_763_700_000.0
LATENCY_S = 0.2
LONG = (100, 200, 600, 5_000, 10_000)
LIMITS = [60, 500, 1_000, *(pytest.param(limit, marks=pytest.mark.long) for limit in LONG)]
Told = Callable[[float], Mapping[str, str]]


def headers(limit: int, left: float, reset: str, words: str = "-requests") -> dict[str, str]:
    names = (f"x-ratelimit-{role}{words}" for role in ("limit", "remaining", "reset"))
    return dict(zip(names, (str(limit), str(max(0, int(left))), reset), strict=True))


class FixedWindows:
    """Counts from one full minute of its clock to the next; tells the time to that."""

    def __init__(self, limit: int, began_s: float, words: str = "-requests") -> None:
        self.limit, self.began_s, self.words = limit, began_s, words
        self._window, self._taken = -1, 0

    def __call__(self, at: float) -> Mapping[str, str]:
        window, since = divmod(at + self.began_s, 60)
        if int(window) != self._window:
            self._window, self._taken = int(window), 0
        self._taken += 1
        reset = str(ceil(60 - since)) if not self.words else f"{60 - since:.3f}s"
        return headers(self.limit, self.limit - self._taken, reset, self.words)


class SlidingWindow:
    """Counts the last minute; tells when the oldest or the youngest of it is gone."""

    def __init__(self, limit: int, place: int) -> None:
        self.limit, self.place = limit, place
        self._taken: deque[float] = deque()

    def __call__(self, at: float) -> Mapping[str, str]:
        while self._taken and self._taken[0] <= at - 60:
            self._taken.popleft()
        self._taken.append(at)
        reset_s = self._taken[self.place] + 60 - at
        return headers(self.limit, self.limit - len(self._taken), f"{reset_s:.3f}s")


class Bucket:
    """Fills evenly; tells when it is full, as OpenAI does."""

    def __init__(self, limit: int, window_s: float) -> None:
        self.limit, self.window_s = limit, window_s
        self._lack, self._at = 0.0, 0.0

    def __call__(self, at: float) -> Mapping[str, str]:
        self._lack = max(0.0, self._lack - (at - self._at) * self.limit / self.window_s) + 1
        self._at = at
        return headers(self.limit, self.limit - self._lack, f"{self._lack * self.window_s / self.limit * 1e3:.0f}ms")


def sends_of(told: Told, seconds: float, concurrency: int = 16) -> tuple[list[float], Quota]:
    """When a lane that knows nothing sends to a server that tells such headers, and the quota it has at the end."""
    lane = Lane("a/b", concurrency=concurrency)
    ledger = Ledger(declared_quota(lane))
    admission = KeyGate(lane, ledger=ledger, budget=CostBudget(None), policy=RetryPolicy(), events=Events())
    out: deque[tuple[float, Permit, tuple[Limit, ...]]] = deque()
    sends: list[float] = []
    now = 0.0
    while now < seconds:
        while out and out[0][0] <= now:
            _, permit, limits = out.popleft()
            admission.succeeded(permit, Tokens(), 0.0)
            admission.learn(limits, now)
            admission.release(permit, now)
        taken = admission.try_take(now)
        if isinstance(taken, Permit):
            sends.append(now)
            out.append((now + LATENCY_S, taken, limits_of(told(now), NOW + now)))
        else:
            now = min(now + max(taken.seconds, 1e-6), out[0][0] if out else seconds)
    return sends, admission.quota


SERVERS: dict[str, Callable[[int], Told]] = {
    "a window that begins": lambda limit: FixedWindows(limit, 0.0),
    "a window half over": lambda limit: FixedWindows(limit, 31.3),
    "a window about to end": lambda limit: FixedWindows(limit, 59.4),
    "a window of no words": lambda limit: FixedWindows(limit, 20.0, ""),
    "a window of no words about to end": lambda limit: FixedWindows(limit, 59.4, ""),
    "a sliding minute, its oldest": lambda limit: SlidingWindow(limit, 0),
    "a sliding minute, its youngest": lambda limit: SlidingWindow(limit, -1),
    "a bucket": lambda limit: Bucket(limit, 60.0),
}


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("server", SERVERS)
def test_a_minute_that_was_told_is_never_exceeded_and_well_used(server: str, limit: int) -> None:
    minutes = 3 if limit <= 600 else 1.5
    sends, quota = sends_of(SERVERS[server](limit), 60 * minutes, 16 if limit <= 1_000 else 48)
    assert quota.rpm == limit
    assert worst_minute([(at, 1) for at in sends]) <= limit
    assert len([at for at in sends if at >= 60]) >= 0.95 * limit * (minutes - 1)


@pytest.mark.parametrize("limit", [1_000, 14_400])
def test_a_bucket_of_a_day_ends_with_no_pace(limit: int) -> None:
    sends, quota = sends_of(Bucket(limit, DAY_S), 20)
    assert quota == Quota()
    assert len(sends) >= 100


def test_a_second_that_is_told_again_and_again_is_one() -> None:
    def told(at: float) -> Mapping[str, str]:
        # The first answer names a longer time, as after a refusal.
        return headers(10, 9, "1" if at > 0.1 else "3", "")

    # What was sent before the first answer fills a minute of ten.
    sends, quota = sends_of(told, 120)
    assert quota.rpm == 600
    assert len([at for at in sends if at > 90]) >= 0.8 * 10 * 30


def test_what_says_a_day_by_itself_is_no_pace_at_once() -> None:
    _, quota = sends_of(lambda at: headers(200, 199, "7m12s"), 1)
    assert quota == Quota()


def test_one_answer_of_a_wrong_clock_takes_no_pace_away() -> None:
    """A date held against a clock that was just set: minutes away in one answer."""
    limit = 60
    steady = FixedWindows(limit, 0.0)

    def told(at: float) -> Mapping[str, str]:
        right = steady(at)
        return headers(limit, 50, "400s") if 20 <= at < 21 else right

    sends, quota = sends_of(told, 180)
    assert quota.rpm == limit and worst_minute([(at, 1) for at in sends]) <= limit
