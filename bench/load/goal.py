"""Searches the highest rate at which a goal is kept: rates double until one misses it, then are bisected.

A step is decided by confidence intervals; where they don't decide, more calls are sent at that rate. The function that
runs a step is passed in. Knows no engine and no clock.
"""

from __future__ import annotations

import math
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Literal

from msgspec import Struct

from ...metrics.statistics.shares import share_interval
from ...report.text import cut
from .histogram import ALPHA, Histogram
from .meter import LoadMeter, Promise
from .watch import ClientVerdict

Of = Literal["latency", "first token", "token", "gap"]
Standing = Literal["kept", "missed", "open", "unmeasured"]

TIME_NAMES: Mapping[str, Of] = MappingProxyType(
    {
        "latency": "latency",
        **dict.fromkeys(("first token", "ttft"), "first token"),
        **dict.fromkeys(("token", "tpot"), "token"),
        **dict.fromkeys(("gap", "itl"), "gap"),
    }
)
"""The names that goals and promises have for each time, in lower case: this program's own and the usual ones."""
_TIME = rf"({'|'.join(TIME_NAMES)})\s*<=?\s*([0-9]+(?:\.[0-9]+)?)\s*(ms|s)"
_GOAL, _PROMISED = re.compile(rf"p(\d+(?:\.\d+)?)\s+{_TIME}", re.IGNORECASE), re.compile(_TIME, re.IGNORECASE)
_PROMISE = "first token <= 1 s, latency <= 10 s, token <= 50 ms"
# What answers lack if no time of this kind was measured.
_LACKS: Mapping[Of, str] = MappingProxyType(
    {
        "latency": "no call was answered",
        "first token": "no answer came as a stream with text in it",
        "token": "no answer came in two pieces or more with a token count",
        "gap": "no answer came in two pieces or more",
    }
)
_ERRORS = re.compile(r"errors\s*<=?\s*(\d+(?:\.\d+)?)\s*%")
# Multiple of the fewest calls that an interval needs, so that it is narrow enough near the goal too.
_AMPLE = 2.0
# Time that a server needs to settle, whatever the goal.
_SETTLED_S = 5.0
# An excess over a server's capacity below this share is not waited for until its queue becomes visible.
_BEYOND_LEAST = 0.05
_SHOWN = 1.5
GROWTH = 2.0
"""Each rate of a search is this many times the one before it, as long as the goal is kept."""


class Goal(Struct, frozen=True):
    """A goal of a search: `percent` of the answers take at most `most_s` seconds, and at most `errors_most` (a share)
    of the calls fail. `of` names the time: latency, first token, token or gap. `text` is the goal as it was written."""

    of: Of
    percent: float
    most_s: float
    errors_most: float = 0.001
    text: str = ""

    @property
    def calls_least(self) -> int:
        """The number of calls that can show that the goal is kept: enough for both ends of the percentile's interval,
        and to bound the errors if none occurs."""
        tail = math.log(ALPHA / 2) / math.log(self.percent / 100)
        return math.ceil(_AMPLE * max(tail, math.log(ALPHA) / math.log1p(-self.errors_most)))

    def histogram(self, meter: LoadMeter) -> Histogram:
        histogram: Histogram = getattr(meter, self.of.replace(" ", "_"))
        return histogram

    @property
    def lack(self) -> str:
        """What the answers lack if the goal's time was measured for none of them."""
        return _LACKS[self.of]

    def standing(self, meter: LoadMeter) -> Standing:
        """Returns whether the calls measured so far keep or miss the goal; `open`: they are too few to decide;
        `unmeasured`: there are answers, and none has the goal's time."""
        errors_low, errors_high = share_interval(meter.errors, meter.calls)
        percentile = self.histogram(meter).percentile(self.percent)
        if errors_low > self.errors_most:
            return "missed"
        if percentile is None:
            return "unmeasured" if meter.answered else "open"
        if percentile.low_s is not None and percentile.low_s > self.most_s:
            return "missed"
        if percentile.high_s is not None and percentile.high_s <= self.most_s and errors_high <= self.errors_most:
            return "kept"
        return "open"


def parse_goal(text: str) -> Goal:
    """Returns the goal written as `p99 first token <= 2 s and errors <= 0.1%`, or with `ttft`, `tpot` or `itl`; the
    errors may be left out. Raises ValueError for any other text."""
    term, _, rest = text.strip().partition(" and ")
    match, errors = _GOAL.fullmatch(term.strip()), _ERRORS.fullmatch(rest.strip())
    if match is None or (rest and errors is None):
        raise ValueError(
            f"goal {text!r} is not understood: write it as 'p99 first token <= 2 s and errors <= 0.1%', of latency, "
            f"first token (or ttft), token (or tpot), or gap (or itl)"
        )
    of, most_s = _time_in(match.groups()[1:])
    percent, share = float(match[1]), 0.001 if errors is None else float(errors[1]) / 100
    if not 50 <= percent <= 99.99:
        raise ValueError(f"the goal's percentile ({percent:g}) must be >= 50 and <= 99.99")
    if not most_s > 0:
        raise ValueError(f"the goal's time ({most_s:g} s) must be > 0")
    if not 0 < share < 1:
        raise ValueError(f"the goal's errors ({100 * share:g}%) must be > 0% and < 100%")
    return Goal(of, percent, most_s, share, text)


def parse_promise(text: str) -> Promise:
    """Returns the promise written as `first token <= 1 s, latency <= 10 s, token <= 50 ms`, or with `ttft` and `tpot`;
    each part may be left out. Raises ValueError for any other text."""
    times: dict[Of, float] = {}
    for term in re.split(r",| and ", text):
        match = _PROMISED.fullmatch(" ".join(term.split()))
        name, most_s = (None, 0.0) if match is None else _time_in(match.groups())
        if name is None or name == "gap":
            raise ValueError(f'expected times as "{_PROMISE}", got "{cut(term.strip() or text, 60)}"')
        if name in times:
            raise ValueError(f"expected each time once, got {name} twice")
        if not most_s > 0:
            raise ValueError(f"expected times above 0, got {term.strip()}")
        times[name] = most_s
    return Promise(times.get("first token"), times.get("latency"), times.get("token"))


def _time_in(parts: Sequence[str]) -> tuple[Of, float]:
    """Returns which time is meant and its seconds, from the three parts of a term."""
    name, amount, unit = parts
    return TIME_NAMES[name.lower()], float(amount) / (1000 if unit.lower() == "ms" else 1)


class Search(Struct, frozen=True):
    """The range of a search for the highest rate that keeps a goal: from `low` to `high` calls a second, doubled while
    the goal is kept, then between the kept and the missed rate until they differ by at most `precision` (a share). An
    undecided step is repeated up to `repeats_max` times, each time with twice the calls."""

    goal: Goal
    low: float
    high: float
    precision: float = 0.05
    repeats_max: int = 2

    def calls_at(self, rate: float) -> int:
        """Returns how many calls are sent at a rate before it is judged. Beyond a server's capacity the queue grows by
        the excess alone: at `precision` above it, calls wait `most_s` only after `most_s / precision` seconds."""
        queued_s = self.goal.most_s if self.goal.of in ("latency", "first token") else 0.0
        seconds = max(_SETTLED_S, _SHOWN * queued_s / max(self.precision, _BEYOND_LEAST))
        return max(self.goal.calls_least, math.ceil(rate * seconds))


class SearchResult(Struct, frozen=True):
    """The result of a search. `kept` is the highest rate that kept the goal, in calls a second (None: not even the
    lowest did). `missed` is the lowest that did not (None: none missed it). `client_at` is a rate at which the
    client was the bottleneck, so the server may bear more. `steps` has the decision at each rate, in order:
    `open` if even the largest number of calls did not decide, `unmeasured` if no answer had the goal's time."""

    kept: float | None
    missed: float | None
    client_at: float | None
    steps: Mapping[float, Standing]


Run = Callable[[float, int], Awaitable[tuple[LoadMeter, ClientVerdict]]]
"""Runs one step; takes a rate in calls a second and a number of calls."""


class SearchCutShort(Exception):
    """Raised by `run` when nothing more may be sent; results so far are kept."""


async def highest_rate(search: Search, run: Run) -> SearchResult:
    """Searches and returns the highest rate that keeps the goal. An undecided rate counts as missed, so that a rate is
    named only if its calls show it; one without the goal's time ends the search."""
    steps: dict[float, Standing] = {}
    kept: float | None = None
    missed: float | None = None
    client_at: float | None = None
    rate: float | None = search.low
    while rate is not None:
        try:
            standing, verdict = await _decided(search, run, rate)
        except SearchCutShort:
            break
        steps[rate] = standing
        if standing == "kept":
            kept = rate
        elif standing == "unmeasured":
            # Another rate would not be measured either.
            break
        elif verdict.is_client_bound:
            # Where the client was the bottleneck, a miss says nothing about the server.
            client_at = rate
            break
        else:
            missed = rate
        rate = _next_rate(search, kept, missed)
    return SearchResult(kept, missed, client_at, steps)


def _next_rate(search: Search, kept: float | None, missed: float | None) -> float | None:
    if kept is None:
        return None
    if missed is None:
        return None if kept >= search.high else min(search.high, kept * GROWTH)
    return None if missed <= kept * (1 + search.precision) else math.sqrt(kept * missed)


async def _decided(search: Search, run: Run, rate: float) -> tuple[Standing, ClientVerdict]:
    goal, calls = search.goal, search.calls_at(rate)
    meter, verdict = await run(rate, calls)
    for _ in range(search.repeats_max):
        if verdict.is_client_bound or goal.standing(meter) != "open":
            break
        calls *= 2
        more, verdict = await run(rate, calls)
        meter.merge(more)
    return goal.standing(meter), verdict
