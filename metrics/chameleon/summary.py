"""Figures over many conversations: means, shares, bands, correlations, bins, turns, temperatures.

Each is a plain struct, with an interval if it has one. Rows without a value are left out of all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import inf
from types import MappingProxyType

import numpy as np
from msgspec import Struct, structs

from ..statistics.intervals import (
    Bounds,
    Correlation,
    Interval,
    are_binary,
    correlation,
    mean_interval,
    places_of,
    ratio_figures,
)
from .figures import steps
from .lines import STANCES
from .sample import PairSample, Values, conversations_of, joined, values_of

# The paper's bands, eq. (1) and (2): below the first, up to the second, above it.
SCORE_BANDS, SRR_BANDS = (0.3, 0.5), (0.3, 0.6)
THRESHOLDS = (0.6, 0.7)
PARTNERS = ("confidence", "changes")
BINS = 10
# What a figure of a kind may be; changes have no bound above.
WITHIN: Mapping[str, Bounds] = MappingProxyType({"changes": (0, inf)})
RATE: Bounds = (0, 1)


class Spread(Struct, frozen=True):
    """A mean over `n` rows, None without one. `std` is the sample's (n - 1), None with fewer than two values;
    `interval` is over conversations, None without a value."""

    n: int
    mean: float | None
    std: float | None
    interval: Interval | None


class Bin(Struct, frozen=True):
    """One bin of figure 4: `score` is the mean score of the conversations whose source re-use rate (SRR) is at least
    `low` and below `high`; the last bin includes its upper end."""

    low: float
    high: float
    score: Spread


class AtTurn(Struct, frozen=True):
    """All conversations at one turn, counted from 1. `reuse` is the mean of the turn's term of eq. (1), `confidence`
    the mean over those that a judge read; `change_rate` is the share that changed its stance, of those whose trace
    has this turn and an earlier one; `stances` are shares in the order of STANCES."""

    turn: int
    conversations: int
    reuse: Spread
    change_rate: float | None
    confidence: float | None
    stances: tuple[float, ...]


class TemperatureSpread(Struct, frozen=True):
    """How much a model's score varies with the temperature. `means` has the mean score at each temperature; `variance`,
    `std` and `span` are of these means (n - 1); `within` is the mean variance of one conversation's scores, over the
    `conversations` scored at all temperatures. None with a single temperature."""

    means: list[float]
    variance: float | None
    std: float | None
    span: float | None
    within: float | None
    conversations: int


def spread(conversations: Sequence[str], values: Values, within: Bounds = RATE) -> Spread:
    is_known = ~np.isnan(values)
    numbers = values[is_known]
    n = len(numbers)
    if not n:
        return Spread(0, None, None, None)
    names = [name for name, kept in zip(conversations, is_known.tolist(), strict=True) if kept]
    std = float(numbers.std(ddof=1)) if n > 1 else None
    return Spread(n, float(numbers.mean()), std, _over_conversations(names, numbers, within))


def _over_conversations(names: Sequence[str], values: Values, within: Bounds) -> Interval:
    """Returns the interval, over conversations, of the mean over all rows; a conversation may have several rows."""
    place, number = places_of(names)
    sums, sizes = (
        np.bincount(place, weights, minlength=number).astype(np.float64) for weights in (values, np.ones(len(values)))
    )
    shares = sums / sizes if within == RATE and are_binary(values) else None
    interval = mean_interval(ratio_figures(sums, sizes), within=within, of="conversations", shares=shares)
    return structs.replace(interval, figures=tuple((sums / sizes).tolist())) if interval.figures else interval


def spread_of(some: Sequence[PairSample], kind: str) -> Spread:
    return spread(conversations_of(some), joined(some, kind), WITHIN.get(kind, RATE))


def bands(values: Values, bounds: tuple[float, float]) -> tuple[int, int, int]:
    """Returns the numbers of values below the first bound, between the two (both included), and above the second."""
    numbers = values[~np.isnan(values)]
    low, high = int((numbers < bounds[0]).sum()), int((numbers > bounds[1]).sum())
    return low, len(numbers) - low - high, high


def share_over(conversations: Sequence[str], values: Values, bound: float) -> Spread:
    """Returns the share of values strictly above a bound, from 0 to 1, as a mean with its interval."""
    is_over = np.where(np.isnan(values), np.nan, values > bound)
    return spread(conversations, is_over)


def related(some: Sequence[PairSample], *, is_within: bool = False) -> dict[str, Correlation]:
    """Returns the correlations of the source re-use rate with each of `PARTNERS`, a conversation's mean confidence and
    its number of stance changes: r over all rows, interval and p over conversations, which may have several rows.
    `is_within`: within models, of each row's figures minus their means over its model's rows."""
    names, srr = conversations_of(some), joined(some, "srr")
    groups = [sample.pair.model if is_within else "" for sample in some for _ in sample.traces]
    return {
        partner: correlation(srr, joined(some, partner), names, groups=groups, of="conversations")
        for partner in PARTNERS
    }


def binned(some: Sequence[PairSample], bins: int = BINS) -> tuple[Bin, ...]:
    """Returns figure 4: the mean score of the conversations in each of `bins` equal bins of the source re-use rate,
    from 0 to 1, without empty bins."""
    names, srr, score = np.array(conversations_of(some), dtype=object), joined(some, "srr"), joined(some, "score")
    # A rate that is below a bound only by rounding belongs to the bin above.
    place = np.minimum(np.floor(np.nan_to_num(srr) * bins + 1e-9), bins - 1)
    made = []
    for at in range(bins):
        is_inside = (place == at) & ~np.isnan(srr)
        score_spread = spread(list(names[is_inside]), score[is_inside])
        if score_spread.n:
            made.append(Bin(at / bins, (at + 1) / bins, score_spread))
    return tuple(made)


def by_turn(some: Sequence[PairSample]) -> tuple[AtTurn, ...]:
    """Returns the figures of each turn, in order, for figure 5."""
    every = [
        (trace.conversation, tuple(steps(trace.turns, sample.readings)), sample.readings)
        for sample in some
        for trace in sample.traces
    ]
    made = []
    for at in range(max((len(turns) for _, turns, _ in every), default=0)):
        here = [(name, turns[at], readings) for name, turns, readings in every if at < len(turns)]
        changes = [step.is_change for _, step, _ in here] if at else []
        sure = [each for _, step, readings in here if (each := step.turn.confidence_by(readings)) is not None]
        stances = Counter(step.turn.stance for _, step, _ in here)
        made.append(
            AtTurn(
                at + 1,
                len(here),
                spread([name for name, _, _ in here], values_of(step.reuse for _, step, _ in here)),
                float(np.mean(changes)) if changes else None,
                float(np.mean(sure)) if sure else None,
                tuple(stances[stance] / len(here) for stance in STANCES),
            )
        )
    return tuple(made)


def by_temperature(some: Sequence[PairSample]) -> TemperatureSpread:
    """Returns how much one model's score varies over its temperatures; each sample is of one temperature."""
    means = [mean for sample in some if (mean := spread_of([sample], "score").mean) is not None]
    scores: dict[str, list[float]] = {}
    for sample in some:
        for name, score in zip(sample.conversations, sample.column("score").tolist(), strict=True):
            if score == score:
                scores.setdefault(name, []).append(score)
    whole = [values for values in scores.values() if len(values) == len(some)]
    several = len(means) > 1
    return TemperatureSpread(
        means,
        float(np.var(means, ddof=1)) if several else None,
        float(np.std(means, ddof=1)) if several else None,
        max(means) - min(means) if several else None,
        float(np.mean(np.var(whole, axis=1, ddof=1))) if whole and len(some) > 1 else None,
        len(whole) if len(some) > 1 else 0,
    )


def acknowledged(sample: PairSample) -> dict[str, dict[str, float | None]]:
    """Returns for each stance the share of answers that acknowledge contradictions, in scored conversations, and of how
    many turns it is: those of which the judge said so; None without one."""
    flags: dict[str, list[bool]] = {stance: [] for stance in STANCES}
    for trace in sample.traces:
        for turn in trace.turns:
            if turn.acknowledges is not None:
                flags[turn.stance].append(turn.acknowledges)
    return {stance: {"turns": len(row), "share": sum(row) / len(row) if row else None} for stance, row in flags.items()}


def by_domain(some: Sequence[PairSample]) -> dict[str, list[tuple[PairSample, list[int]]]]:
    """Returns, for each domain, the samples that have it, each with the numbers of its rows, from 0. Domains are
    sorted; unnamed ones are last."""
    domains: dict[str, list[tuple[PairSample, list[int]]]] = {}
    for sample in some:
        rows: dict[str, list[int]] = {}
        for row, domain in enumerate(sample.domains):
            rows.setdefault(domain, []).append(row)
        for domain, numbers in rows.items():
            domains.setdefault(domain, []).append((sample, numbers))
    return dict(sorted(domains.items(), key=lambda each: (not each[0], each[0].casefold())))
