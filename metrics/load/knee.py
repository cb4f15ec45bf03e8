"""The knee: the highest rate that a server bears as it bears low ones.

Owns when a rate counts as borne, as beyond, or as neither. Judges by the intervals, never by the figures alone; knows
no client and no chart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from ..agreement import wilson
from .file import Knee, Part, Percentile
from .intervals import ratio

RATES_LEAST = 3
SLOWER_MOST = 2.0
ERRORS_MOST = 0.01
ACHIEVED_LEAST = 0.95
PERCENT_MOST = 99.0
# Half the width of a 95% interval, in standard deviations.
_WIDTH = 1.96


class Judged(Struct, frozen=True):
    """What one rate shows. `why` says what shows that it is beyond, and is empty where nothing does."""

    rate: float
    standing: Literal["borne", "beyond", "open"]
    why: str


def knee(steps: Sequence[Part], burstiness: float = 1.0) -> Knee | None:
    """The highest asked rate that is shown to be borne, with a higher one that is shown to be beyond; None where no
    rate is shown to be beyond, and where fewer than three rates were asked.

    A rate is *beyond* where the 95% interval of one of these shows it:
    - p99 latency is more than twice that of the lowest rate;
    - more than 1% of the calls failed;
    - fewer than 95% of the asked calls were begun (by the spread of Poisson arrivals, or of ones `burstiness` times as
      uneven).
    It is *borne* where none of them shows it and the first two are shown not to be so: the whole interval of the ratio
    is at most 2, and the whole interval of the errors at most 1%, or not one call failed. Else its calls don't decide,
    and it is not named.

    The lowest rate is what others are measured by; it is borne unless it is beyond, and then there is no knee. Where it
    has too few calls for an interval of its p99 with both ends, the highest of its percentiles is taken that has one.
    Parts in which the client was the bottleneck tell nothing of the server and are left out. Intervals are those of
    calls that don't depend on each other: calls that wait in one queue do, so steps near what a server can do at most
    want to be longer than its queue takes to settle.
    """
    every = judged(steps, burstiness)
    beyond = [each for each in every if each.standing == "beyond"]
    borne = [each for each in every if each.standing == "borne" and beyond and each.rate < beyond[-1].rate]
    if not borne:
        return None
    last = borne[-1]
    first = next(each for each in beyond if each.rate > last.rate)
    between = [_shown(each.rate) for each in every if last.rate < each.rate < first.rate]
    undecided = f"; too few calls decide about {' and '.join(between)} calls/s" if between else ""
    return Knee(last.rate, f"at {_shown(first.rate)} calls/s {first.why}{undecided}")


def judged(steps: Sequence[Part], burstiness: float = 1.0) -> tuple[Judged, ...]:
    """Each rate once, the lowest first; none at all where there are fewer than three. A rate that was asked several
    times is beyond if it was so once, and borne if it was so once and never beyond."""
    told = [part for part in steps if part.rate and part.seconds > 0 and part.calls and not part.is_client_bound]
    rates = sorted({part.rate for part in told if part.rate})
    if len(rates) < RATES_LEAST:
        return ()
    least = max((part for part in told if part.rate == rates[0]), key=lambda part: part.latency.count)
    found: list[Judged] = []
    for rate in rates:
        own = [_judged(part, rate, least, burstiness) for part in told if part.rate == rate]
        found.append(min(own, key=lambda each: ("beyond", "borne", "open").index(each.standing)))
    return tuple(found) if found[0].standing != "beyond" else ()


def _judged(part: Part, rate: float, least: Part, burstiness: float) -> Judged:
    failed = part.errors / part.calls
    errors_low, errors_high = wilson(failed, part.calls)
    if errors_low > ERRORS_MOST:
        return Judged(rate, "beyond", f"{failed:.1%} ({errors_low:.1%} to {errors_high:.1%}) of the calls failed")
    # The square root of a count spreads the same whatever the count is.
    begun_most = (math.sqrt(part.calls) + _WIDTH / 2 * math.sqrt(burstiness)) ** 2 / part.seconds
    if begun_most < ACHIEVED_LEAST * rate:
        return Judged(rate, "beyond", f"only {part.achieved:.4g} calls/s were begun")
    if part.rate == least.rate:
        return Judged(rate, "borne", "")
    of, to = _compared(part, least)
    rate_least = least.rate or 0.0
    if of is None or to is None:
        return Judged(rate, "open", "")
    times = ratio(of, to)
    if times.low is not None and times.low > SLOWER_MOST:
        width = f"{times.low:.3g} to {times.high:.3g}" if times.high is not None else f"at least {times.low:.3g}"
        return Judged(
            rate,
            "beyond",
            f"p{of.percent:g} latency was {times.value:.3g} ({width}) times that of {_shown(rate_least)} calls/s",
        )
    is_swift = times.high is not None and times.high <= SLOWER_MOST
    is_sound = errors_high <= ERRORS_MOST or not part.errors
    return Judged(rate, "borne" if is_swift and is_sound else "open", "")


def _shown(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 1_000 else f"{rate:.4g}"


def _compared(part: Part, least: Part) -> tuple[Percentile | None, Percentile | None]:
    """The same percentile of both: the highest that the lowest rate's calls tell with an interval."""
    whole = [each for each in least.latency.percentiles if None not in (each.low_s, each.high_s)]
    to = max((each for each in whole if each.percent <= PERCENT_MOST), key=lambda each: each.percent, default=None)
    return (None, None) if to is None else (part.latency.at(to.percent), to)
