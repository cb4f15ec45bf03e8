"""Queues whose law is known: calls that come by chance to servers that take an exponential time, first come first
served. Gives a step of a load test, and the truth about it."""

from __future__ import annotations

import heapq
import math
from random import Random

from millstream.bench.load.histogram import Histogram
from millstream.metrics.load.load_json import LoadPart, Times

PERCENTS = (50.0, 75.0, 90.0, 95.0, 99.0, 99.9)
NOTHING = Times(0, 0.0, 0.0, ())


def times_of(histogram: Histogram) -> Times:
    percentiles = tuple(filter(None, map(histogram.percentile, PERCENTS)))
    encoded = histogram._buckets.encode() if histogram.count else b""
    return Times(histogram.count, histogram.mean_s, histogram.longest_s, percentiles, encoded.decode())


def step(
    rate: float, calls: int, random: Random, *, served: float, servers: int = 1, begins_s: float = 0.0
) -> LoadPart:
    """`served`: calls a second of one server."""
    histogram = Histogram()
    free = [0.0] * servers
    at = 0.0
    for _ in range(calls):
        at += random.expovariate(rate)
        done = max(at, heapq.heappop(free)) + random.expovariate(served)
        heapq.heappush(free, done)
        histogram.record(done - at)
    return LoadPart(begins_s, calls / rate, calls, 0, times_of(histogram), NOTHING, rate=rate)


def percentile_s(rate: float, percent: float, *, served: float, servers: int = 1) -> float:
    """Of the time from arrival to answer in the steady state (Erlang C); endless where the servers can't keep up."""
    load = rate / served
    if load >= servers:
        return math.inf
    busy = load**servers / math.factorial(servers) * servers / (servers - load)
    waits = busy / (sum(load**number / math.factorial(number) for number in range(servers)) + busy)
    drained = servers * served - rate
    left = 1 - percent / 100

    def beyond(seconds: float) -> float:
        """How many take longer: a time of service alone, or behind an exponential wait."""
        alone = math.exp(-served * seconds)
        if math.isclose(drained, served):
            behind = (1 + served * seconds) * alone
        else:
            behind = (drained * alone - served * math.exp(-drained * seconds)) / (drained - served)
        return (1 - waits) * alone + waits * behind

    low, high = 0.0, 1.0
    while beyond(high) > left:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if beyond(middle) > left else (low, middle)
    return high
