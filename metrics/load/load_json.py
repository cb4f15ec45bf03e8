"""The structs of `load.json`: all figures of one load test, written and read unchanged.

Only seconds, counts and shares, each percentile with its 95% interval. Measuring and drawing are done elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

VERSION: Literal[1] = 1

Amount = Annotated[float, Meta(ge=0)]
Count = Annotated[int, Meta(ge=0)]


class Percentile(Struct, frozen=True):
    """A percentile in seconds; `low_s` and `high_s` are its 95% interval, None if too few calls determine an end."""

    percent: Annotated[float, Meta(gt=0, lt=100)]
    value_s: Amount
    low_s: Amount | None = None
    high_s: Amount | None = None


class Times(Struct, frozen=True):
    """A histogram: its count, mean, longest time and percentiles. `hdr` is the whole histogram in the compressed form
    that HdrHistogram's tools read (microseconds)."""

    count: Count
    mean_s: Amount
    longest_s: Amount
    percentiles: tuple[Percentile, ...]
    hdr: str = ""

    def at(self, percent: float) -> Percentile | None:
        return next((each for each in self.percentiles if each.percent == percent), None)


class LoadPart(Struct, frozen=True):
    """The calls that were due between `begins_s` and `begins_s + seconds`, counted from the start of the test. `rate`
    is the asked rate in calls a second (None: none, as in a closed loop or a trace). `standing` is a search's
    decision whether the goal is kept here, None outside of a search; `kinds` are the errors by kind. Steps alone have
    `kept`, the answers that kept the promise (None: nothing was promised), `output_tokens`, and the times of `token`
    and `gap`."""

    begins_s: Amount
    seconds: Amount
    calls: Count
    errors: Count
    latency: Times
    first_token: Times
    rate: Amount | None = None
    standing: Literal["kept", "missed", "open", "unmeasured"] | None = None
    is_client_bound: bool = False
    kinds: Mapping[str, int] = {}
    kept: Count | None = None
    output_tokens: Count | None = None
    token: Times | None = None
    gap: Times | None = None

    @property
    def achieved(self) -> float:
        """The number of calls per second; 0 for a part without length."""
        return self.calls / self.seconds if self.seconds > 0 else 0.0


class ShareInterval(Struct, frozen=True):
    value: float
    low: float
    high: float


class GoalFound(Struct, frozen=True):
    """The result of a search, in calls a second. `kept` is the highest rate at which the goal is kept (None: at none).
    `missed` is the lowest at which it is not (None: at no rate that was tried). `client_at` is the rate at which the
    client was the bottleneck, so that the server may handle more (None: at none). `unmeasured` says why the goal's
    time could not be measured; empty where it was."""

    goal: str
    kept: float | None
    missed: float | None
    client_at: float | None
    unmeasured: str = ""


class Knee(Struct, frozen=True):
    """The highest rate, in calls a second, that the server handles as well as low rates; `why`: what happens above."""

    rate: float
    why: str


class ModelFigures(Struct, frozen=True, kw_only=True):
    """The figures of one model.

    `calls` and all times are those of the measured part; `begun` counts every call. Rates are in calls a second: `rate`
    of all calls, `goodput` of the answers that keep the promised times. `latency` and `first_token` are measured from
    the time a call was due, `service` from the time it was sent; `token` is the time of each token after the first,
    `gap` that between two pieces of text. `own_delay` is how late our loop began a call, `held_by_lane` how long quotas
    and slots held it. `held` calls were due while no slot was free, the longest for `hold_max_s` seconds; `unsent_held`
    and `unsent_late` calls were never begun, for lack of a slot or since our loop was late. `slices` are parts of equal
    time, `steps` those of each rate. `empty` answers have no word, and `cut` answers ended at max_tokens. Without an
    answer there is no goodput, no knee and no rate of a goal.
    """

    calls: Count
    answered: Count
    errors: Mapping[str, int]
    error_share: ShareInterval
    begun: int
    held: int
    hold_max_s: float
    unsent_held: int
    unsent_late: int
    in_flight_max: int
    attempts: int
    rate: Amount
    goodput: Amount | None
    input_tokens: int
    output_tokens: int
    output_tokens_per_s: Amount
    spent: float | None
    latency: Times
    service: Times
    first_token: Times
    token: Times
    gap: Times
    own_delay: Times
    held_by_lane: Times
    slices: tuple[LoadPart, ...]
    steps: tuple[LoadPart, ...]
    goal: GoalFound | None = None
    knee: Knee | None = None
    empty: int = 0
    cut: int = 0


class LoadClient(Struct, frozen=True):
    """One of several workers that sent calls: how many, how late they were begun and its loop's lag (99th percentiles,
    in seconds), and its CPU in shares of a core. `clock_offset_s` is by how much its clock was ahead of the
    driver's, which `clock_error_s` bounds; due times were corrected by it."""

    name: str
    calls: Count
    late_p99_s: float
    lag_p99_s: float
    cpu_peak: float
    cpu_mean: float
    clock_offset_s: float
    clock_error_s: float
    is_bottleneck: bool


class Client(Struct, frozen=True):
    """The load of the program that measured: its loop's lag in seconds (99th percentile), and its CPU in shares of a
    core. `reasons` say why it was the bottleneck; without any, the figures are the server's. `workers`: those that sent
    the calls, of which lag and `cpu_peak` are the highest; empty: one process did."""

    reasons: tuple[str, ...]
    lag_p99_s: float
    cpu_peak: float
    cpu_mean: float
    workers: tuple[LoadClient, ...] = ()

    @property
    def is_bottleneck(self) -> bool:
        return bool(self.reasons)


class LoadFigures(Struct, frozen=True, kw_only=True):
    """All figures of a load test.

    `test` has the options by name. `ending` is why it ended. `seconds` is the length of the measured part, between
    warm-up and cool-down; a search has a warm-up in each step, and none here. `began` is in seconds since 1970.
    `unmeasured` has a sentence for each model without a measured answer: the test then ends with exit code 3. `spent`
    is in dollars, None without a price; `spent_unsure` is the part of it that may not have been billed, for calls
    without a whole answer.
    """

    version: Literal[1] = VERSION
    millstream: str
    began: float
    seconds: float
    ending: str
    ending_detail: str
    test: Mapping[str, Any]
    spent: float | None
    client: Client
    models: Mapping[str, ModelFigures]
    warm_up_s: float = 0.0
    cool_down_s: float = 0.0
    unmeasured: tuple[str, ...] = ()
    spent_unsure: float = 0.0
