"""What small buckets are still possible: never is the one that did what was seen ruled out."""

from __future__ import annotations

import math
import random

import pytest

from millstream.bench.load.probe.tanks import MINUTE_S, Event, Tanks

LATE_S = 0.04


class Bucket:
    """One that answers, each call at any time within its latency."""

    def __init__(self, minute: float, size: float, draw: random.Random) -> None:
        self.rate, self.size, self.draw = minute / MINUTE_S, size, draw
        self.level, self.at_s = size, 0.0

    def ask(self, at_s: float, count: int) -> Event:
        admitted = 0
        for decided_s in sorted(at_s + LATE_S * self.draw.random() for _ in range(count)):
            self.level = min(self.size, self.level + self.rate * (decided_s - self.at_s))
            self.at_s = decided_s
            if self.level >= 1:
                self.level -= 1
                admitted += 1
        return Event(at_s, at_s + LATE_S, admitted, admitted < count)


def emptied(bucket: Bucket) -> tuple[Tanks, float]:
    events, at_s = [bucket.ask(0.0, 1)], 4.0
    while not events[-1].is_refused:
        events.append(bucket.ask(at_s, 1))
        at_s += 0.3
    return Tanks(events, None), at_s


@pytest.mark.parametrize("seed", range(12))
def test_the_bucket_that_did_what_was_seen_is_never_ruled_out(seed: int) -> None:
    draw = random.Random(seed)
    minute = draw.uniform(6, 60)
    size = max(1.0, minute * draw.choice([1.0, 0.5, 0.1, draw.uniform(0.1, 1)]))
    bucket = Bucket(minute, size, draw)
    tanks, at_s = emptied(bucket)
    for _ in range(14):
        at_s += draw.expovariate(minute / MINUTE_S / 1.5)
        tanks.learn(bucket.ask(at_s, draw.choice([1, 1, 2])))
        at_s += LATE_S
        assert not tanks.is_contradicted
        assert tanks.least * MINUTE_S <= minute * (1 + 1e-9)
        assert tanks.most * MINUTE_S >= minute * (1 - 1e-9)
        least, most = tanks.holds
        assert least <= size + 1e-9
        assert most >= size - 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_asking_when_it_promises_most_narrows_the_rate_in_twenty_calls(seed: int) -> None:
    bucket = Bucket(20.0, 5.0, random.Random(seed))
    tanks, at_s = emptied(bucket)
    for _ in range(20):
        step = tanks.next(at_s + 0.1, at_s + 90, (1, 1)) or (at_s + 0.1, 1)
        tanks.learn(bucket.ask(*step))
        at_s = step[0] + LATE_S
        if tanks.is_narrow:
            break
    assert tanks.is_narrow
    assert 0.97 * 20 <= tanks.least * MINUTE_S <= 20


def test_what_no_bucket_does_leaves_none() -> None:
    tanks, at_s = emptied(Bucket(10.0, 5.0, random.Random(1)))
    # A whole window's worth at once, a second after one was refused.
    tanks.learn(Event(at_s + 0.5, at_s + 0.5 + LATE_S, 0, True))
    tanks.learn(Event(at_s + 1.0, at_s + 1.0 + LATE_S, 5, False))
    tanks.learn(Event(at_s + 1.1, at_s + 1.1 + LATE_S, 0, True))
    tanks.learn(Event(at_s + 2.0, at_s + 2.0 + LATE_S, 0, True))
    assert tanks.is_contradicted
    assert not tanks.is_narrow
    assert math.isinf(tanks.most)
