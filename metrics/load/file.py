"""`load.json`: all that one load test measured, as structs that are written and read as they stand.

Figures only: seconds, counts and shares, each percentile with its 95% interval. What measured them, and what is drawn
of them, is elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

VERSION: Literal[1] = 1


class Percentile(Struct, frozen=True):
    """`low_s`, `high_s`: the 95% interval; None where so few calls don't tell."""

    percent: float
    value_s: float
    low_s: float | None = None
    high_s: float | None = None


class Times(Struct, frozen=True):
    """A histogram: how many times it holds, and its percentiles. `hdr`: the whole of it, in the compressed form that
    HdrHistogram's tools read (microseconds)."""

    count: int
    mean_s: float
    longest_s: float
    percentiles: tuple[Percentile, ...]
    hdr: str = ""

    def at(self, percent: float) -> Percentile | None:
        return next((each for each in self.percentiles if each.percent == percent), None)


class Part(Struct, frozen=True):
    """Calls that were due between `begins_s` and `begins_s + seconds`, counted from the start of the test. `rate` is
    what was asked, calls a second (None: nothing was, as in a closed loop or a trace). `standing`: what a search for a
    goal decided here. `kinds`: the errors by their kind."""

    begins_s: float
    seconds: float
    calls: int
    errors: int
    latency: Times
    first_token: Times
    rate: float | None = None
    standing: Literal["kept", "missed", "open"] | None = None
    is_client_bound: bool = False
    kinds: Mapping[str, int] = {}

    @property
    def achieved(self) -> float:
        """Calls a second."""
        return self.calls / self.seconds if self.seconds > 0 else 0.0


class Share(Struct, frozen=True):
    value: float
    low: float
    high: float


class GoalFound(Struct, frozen=True):
    """Rates in calls a second. `kept`: the highest at which the goal is kept; None: none was. `missed`: the lowest at
    which it is not; None: no rate missed it, up to the highest that was to be tried where the search was not cut short.
    `client_at`: where the client itself was the bottleneck, so that the server may bear more."""

    goal: str
    kept: float | None
    missed: float | None
    client_at: float | None


class Knee(Struct, frozen=True):
    """The highest rate that the server bears as it bears low ones; `why` says what happens beyond it."""

    rate: float
    why: str


class Model(Struct, frozen=True, kw_only=True):
    """One model's part. `calls` and all times are those of the measured part; `begun` counts every call.
    `latency` and `first_token` count from when a call was due, `service` from when it was sent. Of the answers `empty`
    have no word, and max_tokens cut `cut` off. Without an answer there is no goodput, no knee and no rate of a goal."""

    calls: int
    answered: int
    errors: Mapping[str, int]
    error_share: Share
    begun: int
    held: int
    hold_max_s: float
    unsent_held: int
    unsent_late: int
    in_flight_max: int
    attempts: int
    rate: float
    goodput: float | None
    input_tokens: int
    output_tokens: int
    output_tokens_per_s: float
    spent: float | None
    latency: Times
    service: Times
    first_token: Times
    token: Times
    gap: Times
    own_delay: Times
    held_by_lane: Times
    slices: tuple[Part, ...]
    steps: tuple[Part, ...]
    goal: GoalFound | None = None
    knee: Knee | None = None
    empty: int = 0
    cut: int = 0


class Client(Struct, frozen=True):
    """Of the program that measured. `reasons` say why it was the bottleneck; none: the figures are the server's."""

    reasons: tuple[str, ...]
    lag_p99_s: float
    cpu_peak: float
    cpu_mean: float

    @property
    def is_bottleneck(self) -> bool:
        return bool(self.reasons)


class Load(Struct, frozen=True, kw_only=True):
    """`test`: what was asked, by the names of the options. `ending`: why it ended. `seconds`: how long its measured
    part was, which lies between warm-up and cool-down; a search leaves out a warm-up in each of its steps, and has
    none here. `began`: seconds since 1970. `unmeasured` has a sentence for each model of which no answer was measured:
    the test then ends with exit code 3. `spent_unsure`: the part of `spent` that may not have been billed, of calls
    without a whole answer."""

    version: Literal[1] = VERSION
    millstream: str
    began: float
    seconds: float
    ending: str
    ending_detail: str
    test: Mapping[str, Any]
    spent: float | None
    client: Client
    models: Mapping[str, Model]
    warm_up_s: float = 0.0
    cool_down_s: float = 0.0
    unmeasured: tuple[str, ...] = ()
    spent_unsure: float = 0.0
