"""Histograms of times, of fixed size, and their percentiles with intervals.

The buckets are HdrHistogram's: three digits from a microsecond to an hour. Intervals are those of order statistics,
which hold for any distribution; with too few calls an end is missing. Knows no call.
"""

from __future__ import annotations

import math

import numpy as np
from hdrh.histogram import HdrHistogram  # type: ignore[import-untyped]

from ...metrics.load.load_json import Percentile

MICROSECONDS = 1_000_000
LONGEST_S = 3_600.0
ALPHA = 0.05


class Histogram:
    """A histogram of times in seconds with `digits` significant digits. Times above an hour are recorded as an
    hour."""

    def __init__(self, digits: int = 3) -> None:
        self._buckets = HdrHistogram(1, round(LONGEST_S * MICROSECONDS), digits)
        self._bits = self._buckets.sub_bucket_half_count_magnitude + 1
        self._sum_s = 0.0
        self.longest_s = 0.0

    def __getstate__(self) -> tuple[int, str, float, float]:
        return self._buckets.significant_figures, self.encoded(), self._sum_s, self.longest_s

    def __setstate__(self, state: tuple[int, str, float, float]) -> None:
        digits, encoded, sum_s, longest_s = state
        self.__init__(digits)  # type: ignore[misc]
        self._buckets.decode_and_add(encoded)
        self._sum_s, self.longest_s = sum_s, longest_s

    def __repr__(self) -> str:
        return f"<Histogram [{self.count} times]>"

    @property
    def count(self) -> int:
        return int(self._buckets.total_count)

    @property
    def mean_s(self) -> float:
        return self._sum_s / self.count if self.count else 0.0

    def record(self, seconds: float) -> None:
        if seconds > LONGEST_S:
            seconds = LONGEST_S
        elif seconds < 0:
            seconds = 0.0
        self._sum_s += seconds
        if seconds > self.longest_s:
            self.longest_s = seconds
        # The same as the library's record_value, but five times as fast: each call is recorded some ten times.
        value, buckets = round(seconds * MICROSECONDS), self._buckets
        bucket = (value | buckets.sub_bucket_mask).bit_length() - self._bits
        buckets.counts[(bucket << (self._bits - 1)) + (value >> bucket)] += 1
        buckets.total_count += 1
        if value > buckets.max_value:
            buckets.max_value = value
        if value < buckets.min_value:
            buckets.min_value = value

    def merge(self, other: Histogram) -> None:
        """Adds the times of a histogram of as many digits."""
        self._buckets.add(other._buckets)
        self._sum_s += other._sum_s
        self.longest_s = max(self.longest_s, other.longest_s)

    def value(self, percent: float) -> float | None:
        """Returns the percentile at `percent` in seconds, at less work than with its interval; None if nothing was
        recorded."""
        return self._at_rank(self._reached(), _rank(self.count, percent / 100)) if self.count else None

    def percentile(self, percent: float) -> Percentile | None:
        """Returns the percentile at `percent` (0 to 100) in seconds, with its 95% interval; None if nothing was
        recorded."""
        if not self.count:
            return None
        share, reached = percent / 100, self._reached()
        low, high = interval_ranks(self.count, share)
        return Percentile(
            percent,
            self._at_rank(reached, _rank(self.count, share)),
            None if low < 1 else self._at_rank(reached, low),
            None if high > self.count else self._at_rank(reached, high),
        )

    def _reached(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.cumsum(np.frombuffer(self._buckets.counts, dtype=np.int64))

    def encoded(self) -> str:
        """Returns the histogram in microseconds in HdrHistogram's exchange format: version 2, compressed, base64."""
        return str(self._buckets.encode().decode())

    def _at_rank(self, reached: np.ndarray[tuple[int], np.dtype[np.int64]], rank: int) -> float:
        index = int(np.searchsorted(reached, rank))
        value = self._buckets.get_highest_equivalent_value(self._buckets.get_value_from_index(index))
        # A bucket's end may exceed the longest recorded time.
        return min(float(value) / MICROSECONDS, self.longest_s)


def _rank(count: int, share: float) -> int:
    return max(1, math.ceil(share * count - 1e-9))


def interval_ranks(count: int, share: float, alpha: float = ALPHA) -> tuple[int, int]:
    """Returns the ranks, from 1, of the two order statistics between which the quantile at `share` lies with
    probability 1 - `alpha`. Rank 0 or count + 1: the sample is too small for that end."""
    # The binomial law within ten standard deviations of its mean, so that millions of calls take no longer.
    spread = 10 * math.sqrt(count * share * (1 - share)) + 10
    first, last = max(0, int(count * share - spread)), min(count, int(count * share + spread))
    successes = np.arange(first, last + 1)
    log_choose = math.lgamma(count + 1) - np.array([math.lgamma(k + 1) + math.lgamma(count - k + 1) for k in successes])
    at_most = np.cumsum(np.exp(log_choose + successes * math.log(share) + (count - successes) * math.log1p(-share)))
    # The quantile lies below the r-th with P(fewer than r succeed).
    low = first + int(np.searchsorted(at_most, alpha / 2, side="right"))
    high = first + int(np.searchsorted(at_most, 1 - alpha / 2)) + 1
    return low, min(high, count + 1)
