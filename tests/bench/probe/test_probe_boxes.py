"""What is still possible of a quota: never is the one that did what was seen ruled out, whichever kind it is."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest

from millstream.bench.probe.boxes import KINDS, MINUTE_S, Boxes, Event
from millstream.bench.probe.choice import Cells
from millstream.bench.probe.hypotheses import Hypotheses, normalized
from millstream.bench.probe.steps import Window
from millstream.fixtures.provider.quotas import RULES, AccountQuota, meter

ROUNDS, SEEDS = 25, 60
EPS = 1e-5


class Provider:
    """One that decides each call at any time between those of its round. Now and then one fails, decided or not."""

    def __init__(self, kind: Window, limit: int, draw: random.Random, share: float = 1.0, begins: float = 0.0) -> None:
        self.kind, self.limit, self.share, self.begins = kind, limit, share, begins
        self._draw = draw
        found = meter(limit, AccountQuota(requests=limit, rule=kind, burst=share))
        assert found is not None
        self._meter = found

    def left(self, at_s: float) -> float:
        return self._meter.remaining(at_s + MINUTE_S - self.begins)

    def ask(self, at_s: float, by_s: float, count: int, size: float = 1.0, fails: float = 0.0) -> Event:
        draw, refused_s, admitted, maybe = self._draw, [], 0, 0
        for decided_s in sorted(draw.uniform(at_s, by_s) for _ in range(count)):
            is_lost = draw.random() < fails
            maybe += is_lost
            if is_lost and draw.random() < 0.5:
                continue
            wait_s = self._meter.wait_s(decided_s + MINUTE_S - self.begins, size)
            if not wait_s:
                self._meter.take(decided_s + MINUTE_S - self.begins, size)
                admitted += not is_lost
            elif not is_lost:
                refused_s.append(decided_s)
        if not refused_s:
            return Event(at_s, by_s, admitted * size, admitted, None, at_s, maybe)
        earliest_s = draw.choice([at_s, draw.uniform(at_s, max(refused_s))])
        told_s = draw.choice([None, draw.uniform(0, 60)])
        return Event(at_s, by_s, admitted * size, admitted, size, earliest_s, maybe, told_s)


def around(draw: random.Random, truth: float, spread: float) -> tuple[float, float]:
    """A box's edges: the truth lies in it, or is one of them, or all of it."""
    return draw.choice(
        [(truth - spread * draw.random(), truth + spread * draw.random()), (truth, truth + spread)] * 2
        + [(truth, truth)]
    )


def drawn(kind: Window, draw: random.Random, are_tokens: bool, late_s: float) -> tuple[Provider, Boxes]:
    """A provider, and the box in which it lies."""
    limit = draw.randrange(2_000, 200_000) if are_tokens else draw.choice([1, 6, 10, 30, 100, 400])
    share = draw.choice([1.0, 0.5, 0.1, draw.uniform(0.06, 1)])
    provider = Provider(kind, limit, draw, share, draw.uniform(0, 57))
    low, high = around(draw, limit, 0.05 * limit)
    match kind:
        case "bucket":
            least, most = around(draw, share * limit, 0.05 * share * limit)
        case "fixed":
            least, most = around(draw, provider.begins, 3.0)
        case "sliding":
            least, most = 0.0, 0.0
    edges = np.array([low]), np.array([high]), np.array([least]), np.array([most])
    return provider, KINDS[kind](*edges, late_s)


def rounds(
    draw: random.Random, provider: Provider, are_tokens: bool, late_s: float
) -> Iterator[tuple[float, float, int, float]]:
    """Small ones and large ones, quick ones and slow ones, soon and when a minute is over, or nearly."""
    at_s = draw.choice([0.0, draw.uniform(0, 100)])
    for _ in range(ROUNDS):
        by_s = at_s + draw.choice([late_s, draw.uniform(0, 3)])
        size = float(round(provider.limit * draw.choice([0.05, 0.3, 0.6]))) if are_tokens else 1.0
        count = (
            draw.choice([1, 2, 5])
            if are_tokens
            else draw.choice([1, 1, 2, 3, draw.randrange(1, 2 * provider.limit + 1)])
        )
        yield at_s, by_s, count, size
        pauses_s = [
            0.0,
            draw.expovariate(1),
            draw.uniform(0, 20),
            draw.uniform(50, 130),
            MINUTE_S + at_s - by_s + draw.uniform(-1, 1),
        ]
        at_s = by_s + late_s + max(0.0, draw.choice(pauses_s))


@pytest.mark.parametrize("are_tokens", [False, True])
@pytest.mark.parametrize("kind", RULES)
def test_the_quota_that_did_what_was_seen_is_never_ruled_out(kind: Window, are_tokens: bool) -> None:
    for seed in range(2 * SEEDS):
        draw = random.Random(seed)
        late_s = draw.uniform(0.01, 0.3)
        provider, box = drawn(kind, draw, are_tokens, late_s)
        for at_s, by_s, count, size in rounds(draw, provider, are_tokens, late_s):
            event = provider.ask(at_s, by_s, count, size, fails=0.0 if are_tokens else 0.08)
            assert box.take(event).all(), (seed, event)
            assert box.chance[0] > 0


@pytest.mark.parametrize("are_tokens", [False, True])
@pytest.mark.parametrize("kind", RULES)
def test_what_is_truly_left_lies_between_what_can_be_left(kind: Window, are_tokens: bool) -> None:
    for seed in range(SEEDS):
        draw = random.Random(seed)
        late_s = draw.uniform(0.01, 0.3)
        provider, box = drawn(kind, draw, are_tokens, late_s)
        for at_s, by_s, count, size in rounds(draw, provider, are_tokens, late_s):
            least, most = box.levels(at_s)
            left = provider.left(draw.uniform(at_s, at_s + late_s))
            assert least[0] - EPS <= left <= most[0] + EPS, (seed, at_s)
            box.take(provider.ask(at_s + late_s, by_s + late_s, count, size))


@pytest.mark.parametrize("kind", RULES)
def test_rounds_that_may_last_until_after_the_next_rule_nothing_out_that_is_true(kind: Window) -> None:
    for seed in range(2 * SEEDS):
        draw = random.Random(seed)
        provider, box = drawn(kind, draw, False, 0.3)
        at_s = draw.uniform(0, 60)
        for _ in range(ROUNDS):
            decided_s = at_s + draw.uniform(0, 0.2)
            event = provider.ask(at_s, decided_s, draw.choice([1, 2, 3, draw.randrange(1, provider.limit + 1)]))
            # Nobody knows that all were decided so soon.
            assert box.take(event._replace(by_s=at_s + 0.3)).all(), (seed, event)
            at_s = decided_s + draw.choice([0.0, 0.0, draw.expovariate(1), draw.uniform(0, 20), draw.uniform(58, 61)])


# What each kind can't do


def only(kind: Window, limit: float, second: float = 1.0) -> Boxes:
    """One box of one limit. `second`: a bucket's share of the limit, or when a window begins."""
    each, other = np.array([limit]), np.array([second * (limit if kind == "bucket" else 1.0)])
    return KINDS[kind](each, each, other, other, 0.1)


def seen(at_s: float, admitted: int, is_refused: bool = False, lasts_s: float = 0.1, maybe: int = 0) -> Event:
    refused = 1.0 if is_refused else None
    return Event(at_s, at_s + lasts_s, float(admitted), admitted, refused, at_s, maybe)


@pytest.mark.parametrize("kind", RULES)
def test_more_than_the_limit_at_once_or_a_refusal_before_it_rules_it_out(kind: Window) -> None:
    assert only(kind, 10, 1.0).take(seen(5.0, 10, is_refused=True)).all()
    assert not only(kind, 10, 1.0).take(seen(5.0, 11)).any()
    assert not only(kind, 10, 1.0).take(seen(5.0, 8, is_refused=True)).any()


@pytest.mark.parametrize("kind", RULES)
def test_calls_of_which_nobody_knows_may_have_been_admitted_or_not(kind: Window) -> None:
    assert only(kind, 10, 1.0).take(seen(5.0, 7, is_refused=True, maybe=3)).all()
    assert only(kind, 10, 1.0).take(seen(5.0, 10, is_refused=True, maybe=3)).all()
    assert not only(kind, 10, 1.0).take(seen(5.0, 7, is_refused=True, maybe=1)).any()


def test_a_bucket_gives_back_what_came_meanwhile_and_no_more() -> None:
    for admitted, can_be in ((4, False), (5, True), (6, False)):
        bucket = only("bucket", 60, 0.5)
        bucket.take(seen(0.0, 30, is_refused=True))
        assert bucket.take(seen(5.5, admitted, is_refused=True)).all() == can_be


def test_a_sliding_minute_gives_back_what_left_it_and_no_more() -> None:
    for at_s, admitted, can_be in ((59.5, 1, False), (61.0, 1, True), (61.0, 2, False), (66.0, 10, True)):
        window = only("sliding", 10)
        window.take(seen(0.0, 1))
        window.take(seen(4.0, 9, is_refused=True))
        assert window.take(seen(at_s, admitted)).all() == can_be


def test_a_fixed_window_gives_back_all_when_it_ends_and_nothing_before() -> None:
    for at_s, admitted, can_be in ((29.0, 0, True), (29.0, 1, False), (30.5, 10, True), (30.5, 11, False)):
        window = only("fixed", 10, 30.0)
        window.take(seen(5.0, 10, is_refused=True))
        assert window.take(seen(at_s, admitted, is_refused=True)).all() == can_be


def test_calls_among_which_a_window_ends_count_in_two() -> None:
    for before, among, can_be in ((4, 16, True), (4, 17, False), (9, 11, True), (9, 12, False)):
        window = only("fixed", 10, 30.0)
        window.take(seen(5.0, before))
        assert window.take(seen(29.5, among, is_refused=True, lasts_s=1.0)).all() == can_be


def test_after_a_minute_one_window_can_end_before_a_round_and_the_next_within_it() -> None:
    window = only("fixed", 10, 0.5)
    window.take(seen(0.0, 10, is_refused=True))
    # Eight in the window from 0.5 s, four in the one from 60.5 s.
    assert window.take(seen(60.4, 12, lasts_s=0.3)).all()
    assert window.take(seen(61.0, 6)).all()
    assert not window.take(seen(62.0, 9)).any()


def test_a_refusal_before_a_windows_end_tells_nothing_of_the_next() -> None:
    window = only("fixed", 10, 30.0)
    window.take(seen(5.0, 10))
    assert window.take(seen(29.5, 0, is_refused=True, lasts_s=1.0)).all()
    assert window.levels(31.0)[0][0] == 10


def test_a_round_that_was_over_sooner_than_known_leaves_the_next_in_the_window_before() -> None:
    window = only("fixed", 10, 30.0)
    window.take(seen(5.0, 9))
    # Both were decided before 30 s.
    window.take(seen(29.7, 1, lasts_s=0.5))
    assert window.take(seen(29.9, 0, is_refused=True, lasts_s=0.5)).all()
    assert window.take(seen(31.0, 10, is_refused=True)).all()


# A wait that was told


@pytest.mark.parametrize("kind", RULES)
def test_a_wait_that_fits_speaks_for_a_box_and_none_rules_it_out(kind: Window) -> None:
    truth_s = {"bucket": 0.9, "fixed": 24.9, "sliding": 59.95}[kind]
    chances = {}
    for told_s in (truth_s, truth_s / 3, 90.0):
        box = only(kind, 60, 30.0 if kind == "fixed" else 1.0)
        alive = box.take(seen(5.0, 60, is_refused=True)._replace(told_s=told_s))
        assert alive.all()
        chances[told_s] = float(box.chance[0])
    fits, part, other = chances.values()
    assert fits >= part > other > 0
    assert fits > 10 * other


def test_a_sliding_minute_promises_what_leaves_next_and_no_round_that_was_all_refused() -> None:
    window = only("sliding", 10)
    for event in (seen(0.0, 1), seen(4.0, 9, is_refused=True), seen(20.0, 0, is_refused=True)):
        window.take(event)
    window.take(seen(61.0, 1))
    before = float(window.chance[0])
    window.take(seen(64.3, 9))
    window.take(seen(66.0, 0, is_refused=True)._replace(told_s=55.0))
    assert float(window.chance[0]) > 0.5 * before


# Closer and closer


class Even(Hypotheses):
    """Each box as likely as any other."""

    def _weigh(self) -> None:
        self.weights = normalized([np.ones(len(each)) for each in self.boxes])

    def _cells(self) -> list[Cells]:
        return [np.zeros(len(each), dtype=np.intp) for each in self.boxes]


def first(kind: Window) -> Boxes:
    """A few large boxes, the limit from 5 to 640."""
    edges = np.geomspace(5, 640, 8)
    seconds = {"bucket": [1.0, 30.0, 400.0], "fixed": [0.0, 20.0, 40.0, 60.0], "sliding": [0.0, 0.0]}[kind]
    least, most = np.array(seconds[:-1]), np.array(seconds[1:])
    return KINDS[kind](
        np.repeat(edges[:-1], len(least)),
        np.repeat(edges[1:], len(least)),
        np.tile(least, len(edges) - 1),
        np.tile(most, len(edges) - 1),
        0.1,
    )


def contains(boxes: Boxes, provider: Provider) -> bool:
    second = {"bucket": provider.share * provider.limit, "fixed": provider.begins, "sliding": 0.0}[boxes.kind]
    is_so = (boxes.low <= provider.limit + EPS) & (boxes.high >= provider.limit - EPS)
    return bool((is_so & (boxes.least <= second + EPS) & (boxes.most >= second - EPS)).any())


@pytest.mark.parametrize("kind", RULES)
def test_looking_closer_keeps_the_truth_and_narrows_what_is_possible(kind: Window) -> None:
    for seed in range(4):
        draw = random.Random(seed)
        provider = Provider(kind, draw.randrange(10, 400), draw, draw.choice([1.0, 0.5, 0.1]), draw.uniform(0, 60))
        possible = Even([first(kind)])
        events = [provider.ask(draw.uniform(0, 60), 60.1, 1)]
        while events[-1].refused is None or len(events) < 12:
            at_s = events[-1].by_s + draw.choice([0.5, draw.uniform(0, 20)])
            events.append(provider.ask(at_s, at_s + 0.1, max(1, provider.limit // 4)))
        for event in events:
            possible.learn(event)
            assert contains(possible.boxes[0], provider)
        assert not possible.is_void
        assert possible.low <= provider.limit <= possible.high
        assert possible.high < 0.5 * 640
        assert sum(float(weight.sum()) for weight in possible.weights) == pytest.approx(1.0)


def test_what_no_limit_of_any_kind_can_have_done_leaves_none() -> None:
    possible = Even([first("bucket"), first("fixed"), first("sliding")])
    possible.learn(seen(1.0, 1_300))
    assert possible.is_void
    assert possible.kinds == []
