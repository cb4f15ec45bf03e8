"""Throughput and calls in flight over time, by hand and beside a count of every call in every slice."""

from __future__ import annotations

import numpy as np
import pytest

from millstream.metrics.load.traffic import SLICES_MAX, CallSpans, TrafficSlice, traffic


def spans(*calls: tuple[float, float, bool, int]) -> CallSpans:
    begun, ended, answered, tokens = zip(*calls, strict=True)
    return CallSpans(np.array(begun), np.array(ended), np.array(answered), np.array(tokens))


def test_four_calls_in_two_seconds_by_hand() -> None:
    """In flight in the first second: 1 s of the first call and 0.25 s of the second. In the second one: 0.5 s of the
    first, all of the third, 0.5 s of the fourth, which begins at the moment when the first ends. The third fails."""
    calls = spans((0.0, 1.5, True, 10), (0.5, 0.75, True, 4), (1.0, 3.0, False, 0), (1.5, 2.0, True, 6))
    assert traffic(calls, 2.0) == (
        TrafficSlice(0.0, 1.0, sent=2.0, answered=1.0, output_tokens=4.0, in_flight=1.25, in_flight_max=2),
        TrafficSlice(1.0, 1.0, sent=2.0, answered=2.0, output_tokens=16.0, in_flight=2.0, in_flight_max=2),
    )


def test_a_call_over_a_whole_slice_is_in_flight_in_it() -> None:
    found = traffic(spans((0.5, 9.0, True, 1)), 4.0)
    assert [part.in_flight for part in found] == [0.5, 1.0, 1.0, 1.0]
    assert [part.in_flight_max for part in found] == [1, 1, 1, 1]
    assert [part.answered for part in found] == [0.0] * 4


def test_without_a_token_count_there_are_no_tokens_a_second() -> None:
    assert [part.output_tokens for part in traffic(spans((0.0, 0.5, True, 0)), 2.0)] == [None, None]


def test_without_a_call_or_a_time_there_is_no_slice() -> None:
    nothing = CallSpans(*(np.array([], dtype=kind) for kind in (float, float, bool, int)))
    assert traffic(nothing, 10.0) == () == traffic(spans((0.0, 1.0, True, 1)), 0.0)


@pytest.mark.parametrize("end_s", [0.3, 7.4, 1_000.0])
def test_any_calls_are_those_that_are_counted_one_by_one(end_s: float) -> None:
    random = np.random.default_rng(round(end_s))
    begun = np.sort(random.uniform(0, end_s, 300))
    calls = CallSpans(begun, begun + random.exponential(end_s / 20, 300), random.random(300) < 0.8, np.full(300, 5))
    found = traffic(calls, end_s)
    assert 1 <= len(found) <= SLICES_MAX and found[-1].begins_s + found[-1].seconds == pytest.approx(end_s)
    every = list(zip(*calls, strict=True))
    for part in found:
        low, high = part.begins_s, part.begins_s + part.seconds
        busy = sum(max(0.0, min(ended, high) - max(begun, low)) for begun, ended, _, _ in every)
        assert part.in_flight == pytest.approx(busy / part.seconds, abs=1e-6)
        moments = [low, *(begun for begun, _, _, _ in every if low <= begun < high)]
        assert part.in_flight_max == max(sum(b <= at < e for b, e, _, _ in every) for at in moments)
    assert sum(part.sent * part.seconds for part in found) == pytest.approx(300)
    done = sum(ok and ended <= end_s for _, ended, ok, _ in every)
    assert sum(part.answered * part.seconds for part in found) == pytest.approx(done)
    assert sum((part.output_tokens or 0.0) * part.seconds for part in found) == pytest.approx(5 * done)
