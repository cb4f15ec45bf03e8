"""Throughput and calls in flight over time, from when each call began and ended.

Pure functions over arrays. Knows no file and no page.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Floats = NDArray[np.float64]
SLICES_MAX = 128


class CallSpans(NamedTuple):
    """All calls of one model, an entry each in every array."""

    begun: Floats
    """When the client began it, in seconds since the start of the test."""
    ended: Floats
    """When it ended."""
    is_answered: NDArray[np.bool_]
    """Whether it has an answer."""
    output_tokens: NDArray[np.int64]
    """The tokens of its answer; 0 without a count."""


class TrafficSlice(Struct, frozen=True):
    """A slice of time. Each of its rates is per second."""

    begins_s: float
    """Where it begins, in seconds since the start of the test."""
    seconds: float
    """Its length."""
    sent: float
    """Calls that began in it."""
    answered: float
    """Calls whose answer ended in it."""
    output_tokens: float | None
    """Tokens of the answers that ended in it; None if no answer of the test has a token count."""
    in_flight: float
    """Calls in flight, the mean over the slice."""
    in_flight_max: int
    """The most calls in flight at one moment of it."""


def traffic(calls: CallSpans, end_s: float) -> tuple[TrafficSlice, ...]:
    """Returns slices of equal length, of about a second or, in a long test, at most 128, from the start to `end_s`.
    What happens later is in none of them."""
    if not len(calls.begun) or not end_s > 0:
        return ()
    edges = np.linspace(0.0, end_s, min(SLICES_MAX, max(1, round(end_s))) + 1)
    length = float(edges[1])
    done = calls.ended[calls.is_answered]
    tokens = calls.output_tokens[calls.is_answered]
    sent = np.histogram(calls.begun, edges)[0] / length
    answered = np.histogram(done, edges)[0] / length
    written = np.histogram(done, edges, weights=tokens)[0] / length if tokens.any() else None
    mean = np.diff(_busy_s(calls, edges)) / length
    most = _most_in_flight(calls, edges)
    return tuple(
        TrafficSlice(
            float(edges[at]),
            length,
            float(sent[at]),
            float(answered[at]),
            None if written is None else float(written[at]),
            max(0.0, float(mean[at])),
            most[at],
        )
        for at in range(len(edges) - 1)
    )


def _busy_s(calls: CallSpans, until: Floats) -> Floats:
    """Returns how many seconds all calls together were in flight until each of these times."""
    return _sum_until(calls.begun, until) - _sum_until(calls.ended, until)


def _sum_until(at: Floats, until: Floats) -> Floats:
    """Returns for each time how many seconds it is past the events before it, in sum over these events."""
    ordered = np.sort(at)
    before = np.searchsorted(ordered, until, side="right")
    sums = np.concatenate(([0.0], np.cumsum(ordered)))
    return until * before - sums[before]


def _most_in_flight(calls: CallSpans, edges: Floats) -> list[int]:
    times = np.concatenate((calls.ended, calls.begun))
    steps = np.concatenate((np.full(len(calls.ended), -1), np.full(len(calls.begun), 1)))
    # Where a call ends as another begins, the end counts first: they were not in flight together.
    order = np.lexsort((steps, times))
    level = np.concatenate(([0], np.cumsum(steps[order])))
    first = np.searchsorted(times[order], edges, side="left")
    # The level before a slice's first event holds at its beginning.
    return [int(level[low : high + 1].max()) for low, high in pairwise(first)]
