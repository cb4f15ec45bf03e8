"""The knee: the highest rate that a server handles as well as low rates.

Owns when a rate counts as borne (handled), as beyond the server's capacity, or as undecided. Judges by intervals, never
by point values alone; knows no client and no chart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from ...format import rate_text
from ..statistics.shares import share_interval
from .load_json import Knee, LoadPart, Percentile

RATES_LEAST = 3
SLOWER_MOST = 2.0
ERRORS_MOST = 0.01
ACHIEVED_LEAST = 0.95
PERCENT_MOST = 99.0
# Half the width of a 95% interval, in standard deviations.
_WIDTH = 1.96
# Histograms resolve no time below a microsecond.
_LEAST_S = 1e-6


class RateStanding(Struct, frozen=True):
    """The judgement on one rate, in calls a second: `borne` (the server handles it), `beyond` its capacity, or `open`
    (undecided). `why` gives the evidence if it is beyond; else empty."""

    rate: float
    standing: Literal["borne", "beyond", "open"]
    why: str


def knee(steps: Sequence[LoadPart], burstiness: float = 1.0) -> Knee | None:
    """Returns the highest rate that is shown to be borne, if a higher one is shown to be beyond the server's capacity;
    None if no rate is, or if fewer than three were asked.

    A rate is *beyond* if a 95% interval shows one of these:

    - p99 latency is more than twice that of the lowest rate;
    - more than 1% of the calls failed;
    - fewer than 95% of the asked calls were begun (by the spread of Poisson arrivals, or of arrivals `burstiness` times
      as uneven).

    It is *borne* if none is shown and the first two are excluded: the whole interval of the ratio is at most 2, and
    that of the errors at most 1%, or no call failed. Otherwise it is undecided and not named.

    The lowest rate is the reference; it is borne unless it is beyond, and then there is no knee. If it has too few
    calls for an interval of its p99 with both ends, its highest percentile that has one is used. Parts in which the
    client was the bottleneck are left out. The intervals assume independent calls: calls in one queue are not, so steps
    near a server's capacity should be longer than its queue takes to settle.
    """
    every = judged(steps, burstiness)
    beyond = [each for each in every if each.standing == "beyond"]
    borne = [each for each in every if each.standing == "borne" and beyond and each.rate < beyond[-1].rate]
    if not borne:
        return None
    last = borne[-1]
    first = next(each for each in beyond if each.rate > last.rate)
    between = [rate_text(each.rate) for each in every if last.rate < each.rate < first.rate]
    undecided = f"; too few calls decide about {' and '.join(between)} calls/s" if between else ""
    return Knee(last.rate, f"at {rate_text(first.rate)} calls/s {first.why}{undecided}")


def judged(steps: Sequence[LoadPart], burstiness: float = 1.0) -> tuple[RateStanding, ...]:
    """Returns the standing of each rate, the lowest first; empty if there are fewer than three or the lowest is beyond.
    A rate asked several times is beyond if it was once, and borne if it was once and never beyond. `burstiness` is
    the variance of the arrivals' counts, as a multiple of a Poisson process's."""
    parts = [part for part in steps if part.rate and part.seconds > 0 and part.calls and not part.is_client_bound]
    rates = sorted({part.rate for part in parts if part.rate})
    if len(rates) < RATES_LEAST:
        return ()
    least = max((part for part in parts if part.rate == rates[0]), key=lambda part: part.latency.count)
    standings: list[RateStanding] = []
    for rate in rates:
        judgements = [_judged(part, rate, least, burstiness) for part in parts if part.rate == rate]
        standings.append(min(judgements, key=lambda each: ("beyond", "borne", "open").index(each.standing)))
    return tuple(standings) if standings[0].standing != "beyond" else ()


def _judged(part: LoadPart, rate: float, least: LoadPart, burstiness: float) -> RateStanding:
    failed = part.errors / part.calls
    errors_low, errors_high = share_interval(part.errors, part.calls)
    if errors_low > ERRORS_MOST:
        return RateStanding(rate, "beyond", f"{failed:.1%} ({errors_low:.1%} to {errors_high:.1%}) of the calls failed")
    # The standard deviation of a count's square root does not depend on the count.
    begun_most = (math.sqrt(part.calls) + _WIDTH / 2 * math.sqrt(burstiness)) ** 2 / part.seconds
    if begun_most < ACHIEVED_LEAST * rate:
        return RateStanding(rate, "beyond", f"only {part.achieved:.4g} calls/s were begun")
    if part.rate == least.rate:
        return RateStanding(rate, "borne", "")
    of, to = _compared(part, least)
    rate_least = least.rate or 0.0
    if of is None or to is None:
        return RateStanding(rate, "open", "")
    times = ratio(of, to)
    if times.low is not None and times.low > SLOWER_MOST:
        width = f"{times.low:.3g} to {times.high:.3g}" if times.high is not None else f"at least {times.low:.3g}"
        return RateStanding(
            rate,
            "beyond",
            f"p{of.percent:g} latency was {times.value:.3g} ({width}) times that of {rate_text(rate_least)} calls/s",
        )
    is_swift = times.high is not None and times.high <= SLOWER_MOST
    is_sound = errors_high <= ERRORS_MOST or not part.errors
    return RateStanding(rate, "borne" if is_swift and is_sound else "open", "")


def _compared(part: LoadPart, least: LoadPart) -> tuple[Percentile | None, Percentile | None]:
    """Returns the same percentile of both, the highest for which the lowest rate has an interval; None without one."""
    whole = [each for each in least.latency.percentiles if None not in (each.low_s, each.high_s)]
    to = max((each for each in whole if each.percent <= PERCENT_MOST), key=lambda each: each.percent, default=None)
    return (None, None) if to is None else (part.latency.at(to.percent), to)


class Ratio(Struct, frozen=True):
    """A ratio with its 95% interval; an end is None if there are too few calls to determine it."""

    value: float
    low: float | None
    high: float | None


def ratio(of: Percentile, to: Percentile) -> Ratio:
    """Returns the ratio of two times that were measured independently, with its interval. The limits are combined by
    Zou and Donner's MOVER, which accepts asymmetric intervals."""
    value = _log(of.value_s) - _log(to.value_s)
    down = _joined(_log_gap(of.value_s, of.low_s), _log_gap(to.value_s, to.high_s))
    up = _joined(_log_gap(of.value_s, of.high_s), _log_gap(to.value_s, to.low_s))
    return Ratio(
        math.exp(value),
        None if down is None else math.exp(value - down),
        None if up is None else math.exp(value + up),
    )


def _joined(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else math.hypot(one, other)


def _log_gap(value_s: float, end_s: float | None) -> float | None:
    return None if end_s is None else _log(value_s) - _log(end_s)


def _log(value_s: float) -> float:
    return math.log(max(value_s, _LEAST_S))
