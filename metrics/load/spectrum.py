"""All percentiles of a histogram, evenly spaced in nines: 90%, 99% and 99.9% are one, two and three nines.

Owns how the histograms of `load.json` are decoded. Knows no page.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator

import numpy as np
from hdrh.codec import (  # type: ignore[import-untyped]
    HdrCookieException,
    HdrHistogramSettingsException,
    HdrLengthException,
)
from hdrh.histogram import HdrHistogram  # type: ignore[import-untyped]
from msgspec import Struct
from numpy.typing import NDArray

from .load_json import Times

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

MICROSECONDS = 1_000_000
IN_A_NINE = 20
# Histograms of our tests have some thousand characters.
_LONGEST = 250_000
_FAULTS = (
    ValueError,
    TypeError,
    IndexError,
    OverflowError,
    MemoryError,
    struct.error,
    zlib.error,
    HdrCookieException,
    HdrHistogramSettingsException,
    HdrLengthException,
)


class Unreadable(ValueError):
    """Raised for a histogram that can't be decoded or contradicts its figures."""


class Point(Struct, frozen=True):
    """One point of a spectrum: `percent` of the times are at most `value_s` seconds. `nines` is `percent` in nines."""

    nines: float
    percent: float
    value_s: float


def spectrum(times: Times) -> tuple[Point, ...]:
    """Returns the percentiles up to the longest time; empty if there are no times. Raises Unreadable."""
    if not times.count:
        return ()
    values, reached = _decoded(times)
    points = []
    for share in _shares(times.count):
        rank = max(1, math.ceil(share * times.count - 1e-9))
        value_s = min(float(values[np.searchsorted(reached, rank)]), times.longest_s)
        points.append(Point(_nines(share), 100 * share, value_s))
    return (*points, Point(_end(times.count), 100.0, times.longest_s))


def _shares(count: int) -> Iterator[float]:
    for number in range(math.ceil(_end(count) * IN_A_NINE)):
        yield 1 - 10 ** (-number / IN_A_NINE)


def _nines(share: float) -> float:
    return -math.log10(1 - share) if share < 1 else math.inf


def _end(count: int) -> float:
    """Returns the nines at which the longest of `count` times is drawn: those of the share count / (count + 1)."""
    return math.log10(count + 1)


def _decoded(times: Times) -> tuple[Floats, Whole]:
    """Returns the upper ends, in seconds, of the buckets with any times, and the number of times up to each."""
    if len(times.hdr) > _LONGEST:
        raise Unreadable(f"a histogram of {len(times.hdr):,} characters is too long")
    try:
        buckets = HdrHistogram.decode(times.hdr)
        counts = np.frombuffer(buckets.counts, dtype=np.int64)
        filled = np.flatnonzero(counts)
        ends = [buckets.get_highest_equivalent_value(buckets.get_value_from_index(int(at))) for at in filled]
    except _FAULTS as error:
        raise Unreadable("a histogram can't be decoded") from error
    reached = np.cumsum(counts[filled])
    if not len(reached) or int(reached[-1]) != times.count or (counts < 0).any():
        raise Unreadable(f"a histogram does not hold the {times.count:,} times that it should")
    return np.array(ends, dtype=np.float64) / MICROSECONDS, reached
