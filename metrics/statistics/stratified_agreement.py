"""Agreement of two labellings in a whole population, from a sample that was drawn evenly over strata.

An even sample shows rare strata more often than the population has them, so each pair counts as many times as the
members of its stratum that it stands for. Pure: knows neither what was labelled nor by whom.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from .agreement import Interval
from .distributions import LEVEL
from .shares import share_interval

Cell = tuple[str, str]


@dataclass(frozen=True)
class StratumPairs:
    """The labelled members of one stratum, which was sampled at random: a pair of labels each."""

    size: int
    """The members of the stratum in the population."""
    pairs: Sequence[Cell]
    """The first and the second label of each labelled member."""


@dataclass(frozen=True)
class WeightedShare:
    """A share of the population, estimated from labelled members."""

    count: int
    """The labelled members that it is computed from."""
    share: float | None
    """The share, from 0 to 1; None without a labelled member."""
    interval: Interval | None
    """The exact interval for the effective sample size; None without a labelled member."""


@dataclass(frozen=True)
class StratifiedAgreement:
    """How far two labellings agree in a population. Strata without a labelled member are left out; `covered` says how
    many members the other strata have."""

    population: int
    """The members of all strata."""
    covered: int
    """The members of the strata that have at least one labelled member: what the figures are of."""
    agreed: WeightedShare
    """The share of the covered members that both label alike."""
    kappa: float | None
    """Cohen's kappa; None without a labelled member, or if both use one and the same label throughout."""
    kappa_interval: Interval | None
    """The interval of kappa; None where kappa is."""

    @property
    def share(self) -> float | None:
        return self.agreed.share

    @property
    def share_interval(self) -> Interval | None:
        return self.agreed.interval

    def __repr__(self) -> str:
        kappa = "undefined" if self.kappa is None else f"{self.kappa:.3f}"
        return f"<StratifiedAgreement [Labelled: {self.agreed.count}, Of: {self.covered}, Kappa: {kappa}]>"


@dataclass(frozen=True)
class SingleLabelAgreement:
    """How far two labellings agree on one label, against all other labels together."""

    first: WeightedShare
    """Of what the first labels so, the share that the second labels so too."""
    second: WeightedShare
    """Of what the second labels so, the share that the first labels so too."""
    whole: StratifiedAgreement
    """The agreement on whether the label applies."""


def stratified_agreement(strata: Iterable[StratumPairs], level: float = LEVEL) -> StratifiedAgreement:
    """Returns the agreement in the population of these strata."""
    every = list(strata)
    labelled = [stratum for stratum in every if stratum.pairs]
    population, covered = sum(stratum.size for stratum in every), sum(stratum.size for stratum in labelled)
    count = sum(len(stratum.pairs) for stratum in labelled)
    if not count:
        return StratifiedAgreement(population, 0, WeightedShare(0, None, None), None, None)
    table = _table(labelled, covered)
    share = min(1.0, math.fsum(weight for (first, second), weight in table.items() if first == second))
    if len({label for cell in table for label in cell}) == 1:
        agreed = WeightedShare(count, share, _interval(share, _effective(labelled, covered), level))
        return StratifiedAgreement(population, covered, agreed, None, None)
    firsts, seconds = _margins(table)
    by_chance = math.fsum(firsts[label] * seconds[label] for label in firsts)
    beyond = 1 - by_chance
    agrees = {cell: float(cell[0] == cell[1]) for cell in table}
    # How much the estimate of kappa moves with the share of a cell, times `beyond`: the linearization behind the
    # standard error of Fleiss, Cohen and Everitt.
    moves = {
        (first, second): agrees[first, second] - (1 - share) / beyond * (seconds[first] + firsts[second])
        for first, second in table
    }
    agreed = WeightedShare(count, share, _interval(share, _size_of(labelled, covered, agrees, share), level))
    low, high = _interval(share, _size_of(labelled, covered, moves, share), level)
    kappa = (share - by_chance) / beyond
    ends = (max(-1.0, (low - by_chance) / beyond), min(1.0, (high - by_chance) / beyond))
    return StratifiedAgreement(population, covered, agreed, kappa, ends)


def single_label_agreement(strata: Iterable[StratumPairs], label: str, level: float = LEVEL) -> SingleLabelAgreement:
    """Returns the agreement on one label in the population of these strata."""
    every = [
        StratumPairs(stratum.size, [(_or_other(pair[0], label), _or_other(pair[1], label)) for pair in stratum.pairs])
        for stratum in strata
    ]
    return SingleLabelAgreement(
        _share_within(every, 0, label, level), _share_within(every, 1, label, level), stratified_agreement(every, level)
    )


def _interval(share: float, size: float, level: float) -> Interval:
    return share_interval(share * size, size, level)


def _or_other(value: str, label: str) -> str:
    return label if value == label else f"not {label}"


def _share_within(strata: Sequence[StratumPairs], side: int, label: str, level: float) -> WeightedShare:
    """Returns, of the members that one side gives the label, the share that the other gives it too."""
    weights: list[float] = []
    alike: list[float] = []
    for stratum in strata:
        for pair in stratum.pairs:
            if pair[side] == label:
                weights.append(stratum.size / len(stratum.pairs))
                alike.append(weights[-1] if pair[1 - side] == label else 0.0)
    if not weights:
        return WeightedShare(0, None, None)
    share = min(1.0, math.fsum(alike) / math.fsum(weights))
    effective = math.fsum(weights) ** 2 / math.fsum(weight * weight for weight in weights)
    return WeightedShare(len(weights), share, _interval(share, effective, level))


def _table(strata: Sequence[StratumPairs], covered: int) -> dict[Cell, float]:
    """Returns the share of the covered members in each cell."""
    table: dict[Cell, float] = defaultdict(float)
    for stratum in strata:
        for cell, count in Counter(stratum.pairs).items():
            table[cell] += stratum.size / covered * count / len(stratum.pairs)
    return dict(table)


def _margins(table: Mapping[Cell, float]) -> tuple[dict[str, float], dict[str, float]]:
    names = {label for cell in table for label in cell}
    firsts, seconds = dict.fromkeys(names, 0.0), dict.fromkeys(names, 0.0)
    for (first, second), weight in table.items():
        firsts[first] += weight
        seconds[second] += weight
    return firsts, seconds


def _effective(strata: Sequence[StratumPairs], covered: int) -> float:
    """Returns Kish's effective sample size: that of a simple random sample if strata did not matter."""
    return 1 / math.fsum((stratum.size / covered) ** 2 / len(stratum.pairs) for stratum in strata)


def _size_of(strata: Sequence[StratumPairs], covered: int, values: Mapping[Cell, float], share: float) -> float:
    """Returns the size of the simple random sample whose share has the standard error that the mean of these values
    has; at most Kish's, since the spread within small strata is often estimated as none."""
    most = _effective(strata, covered)
    middle = math.fsum(
        stratum.size / covered * math.fsum(values[pair] for pair in stratum.pairs) / len(stratum.pairs)
        for stratum in strata
    )
    spread = math.fsum(
        (stratum.size / covered) ** 2 * _variance([values[pair] for pair in stratum.pairs], middle) / len(stratum.pairs)
        for stratum in strata
    )
    return min(most, share * (1 - share) / spread) if spread > 0 and 0 < share < 1 else most


def _variance(values: Sequence[float], middle: float) -> float:
    """Returns the variance within a stratum; that of a single value is its distance from the whole's mean, squared."""
    if len(values) == 1:
        return (values[0] - middle) ** 2
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
