"""Arguments: what each one does to a model's answers, whether models agree on it, and whether the last one wins.

Owns figure 6 and the order effects: an argument's effect, and its correlation between models. Knows an argument by
issue and id alone, never its text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from .answers import TEMPLATES, AnswerReading, Answers
from .bootstrap import Interval, Resampling, intervals
from .counts import ModelCounts
from .families import family_of as family_of
from .millstone import CASES, STANCES, Counts, Shares

SIDES = STANCES[:2]

# Effects that differ in their last digits only, by the order of a sum, are one effect: their variance is no variance.
_NO_VARIANCE = 1e-14


@dataclass(frozen=True)
class Effects:
    """What each argument a model was shown does: `shares[n]` is the effect of `arguments[n]`, an (issue, id), over the
    `shown[n]` answers whose prompts contain it."""

    model: str
    arguments: tuple[tuple[str, str], ...]
    shares: Shares
    shown: NDArray[np.int64]


def argument_effects(
    answers: Answers, reading: AnswerReading = "recorded", relative_to_baseline: bool = False
) -> Effects:
    """For every argument, the pro share of the answers to prompts that contain it, in whatever configuration.

    `relative_to_baseline`, as in the authors' script: minus the baseline's pro share of the same issue and template,
    averaged over templates by appearances; answers to a template without baseline are then left out.
    """
    values = (answers.stances[reading] == 0).astype(np.float64)
    shown = answers.shown
    if relative_to_baseline:
        values = values - _baseline_of_template(answers, values)
        known = ~np.isnan(values)
        values, shown = values[known], shown[known]
    # By list first: models share their lists, and a list has many members.
    lists = len(answers.lists.starts) - 1
    times = np.bincount(shown, minlength=lists)
    sums = np.bincount(shown, weights=values, minlength=lists)
    list_of, member = _distinct_members(answers)
    number = len(answers.lists.arguments)
    appearances = np.bincount(member, weights=times[list_of], minlength=number).astype(np.int64)
    effects = np.bincount(member, weights=sums[list_of], minlength=number)
    found = np.flatnonzero(appearances)
    return Effects(
        answers.name,
        tuple(answers.lists.arguments[at] for at in found),
        effects[found] / appearances[found],
        appearances[found],
    )


@dataclass(frozen=True)
class Correlations:
    """Pearson's `r[i, j]` of two models' effects over the arguments both were shown, `shared[i, j]` in number.

    `low` and `high` are the 95% interval of a bootstrap over issues, since the arguments of an issue move together. All
    three are NaN where fewer than two arguments are shared, or where one model is moved alike by all of them.
    """

    models: tuple[str, ...]
    r: Shares
    shared: NDArray[np.int64]
    low: Shares
    high: Shares


def correlations(effects: Sequence[Effects], seed: int = 0, resampling: Resampling | None = None) -> Correlations:
    """Every pair of models, each with itself too."""
    places: dict[tuple[str, str], int] = {}
    for one in effects:
        for argument in one.arguments:
            places.setdefault(argument, len(places))
    values = np.full((len(effects), len(places)), np.nan)
    for row, one in zip(values, effects, strict=True):
        row[[places[argument] for argument in one.arguments]] = one.shares
    issue = np.unique([name for name, _ in places], return_inverse=True)[1].astype(np.int64)

    size = (len(effects), len(effects))
    r, low, high = np.full(size, np.nan), np.full(size, np.nan), np.full(size, np.nan)
    shared = np.zeros(size, dtype=np.int64)
    for first in range(len(effects)):
        for second in range(first + 1):
            both = ~np.isnan(values[first]) & ~np.isnan(values[second])
            shared[first, second] = shared[second, first] = both.sum()
            pair = values[[first, second]][:, both]
            if not both.any():
                continue
            # Each pair starts from the same seed, so that its interval does not depend on who else is compared.
            rng = np.random.default_rng(seed)
            terms = _terms(pair)
            found = (_pearson(terms.sum(axis=1)), *_clustered(terms, issue[both], rng, resampling or Resampling()))
            for table, value in zip((r, low, high), found, strict=True):
                table[first, second] = table[second, first] = value
    return Correlations(tuple(one.model for one in effects), r, shared, low, high)


@dataclass(frozen=True)
class Medians:
    """The median correlation of pairs of different models, within families and between them, each with its number of
    pairs; None where there is no such pair. A model at two temperatures, or in two runs, is no pair."""

    within: float | None
    between: float | None
    pairs_within: int
    pairs_between: int


def medians(found: Correlations, families: Sequence[str] | None = None, models: Sequence[str] | None = None) -> Medians:
    """`families` names each row's family, by default what `family_of` says; `models` names which model it is of,
    whatever the row itself is called, by default its name without a temperature."""
    names = [family_of(model) for model in found.models] if families is None else families
    own = [model.partition(" @ ")[0] for model in found.models] if models is None else models
    for what, given in (("families", names), ("models", own)):
        if len(given) != len(found.models):
            raise ValueError(f"{what} ({len(given)}) must be as many as the models ({len(found.models)})")
    pairs: dict[bool, list[float]] = {True: [], False: []}
    for first, second in combinations(range(len(names)), 2):
        if own[first] != own[second] and not np.isnan(found.r[first, second]):
            pairs[names[first] == names[second]].append(float(found.r[first, second]))
    within, between = (float(np.median(some)) if some else None for some in (pairs[True], pairs[False]))
    return Medians(within, between, len(pairs[True]), len(pairs[False]))


@dataclass(frozen=True)
class SideAgreement:
    """Of the `answers` after a last argument, how many `agree` with its side. `base_rate` is the share that would if
    the order did nothing, `excess` the share that does minus that; both None without an answer."""

    answers: int
    agree: int
    base_rate: float | None
    excess: float | None

    @property
    def rate(self) -> float | None:
        return self.agree / self.answers if self.answers else None


@dataclass(frozen=True)
class LastArgument(SideAgreement):
    """All balanced answers, and apart by the side of the last argument. `interval` is that of `excess`; `unknown` are
    balanced answers not counted, as the side of their last argument can't be told."""

    interval: Interval
    by_side: Mapping[str, SideAgreement]
    unknown: int


def last_argument(
    answers: Answers, reading: AnswerReading = "recorded", seed: int = 0, resampling: Resampling | None = None
) -> LastArgument:
    """How often the stance in balanced cases is the side of the last argument shown, beyond the base rate.

    The base rate is what the agreement would be if stance and last side were independent given the issue: of an issue
    with n answers, of which P are pro and L follow a pro argument (C and K for con), (P x L + C x K) / n answers are
    expected to agree; of those that follow a pro argument, P x L / n. An answer of Other agrees with neither side. The
    interval resamples issues, then trials.
    """
    rows = np.flatnonzero(answers.case == CASES.index("balanced"))
    starts, shown = answers.lists.starts, answers.shown[rows]
    rows = rows[starts[shown + 1] > starts[shown]]
    side = _sides(answers)[answers.lists.members[starts[answers.shown[rows] + 1] - 1]]
    unknown = len(shown) - int((side >= 0).sum())
    rows, side = rows[side >= 0], side[side >= 0]

    templates, template = np.unique(answers.template[rows], return_inverse=True)
    trials, trial = np.unique(answers.trial[rows], return_inverse=True)
    shape = (len(answers.issues), len(templates), len(trials), len(SIDES), len(STANCES))
    places = np.ravel_multi_index((answers.issue[rows], template, trial, side, answers.stances[reading][rows]), shape)
    units = np.bincount(places, minlength=int(np.prod(shape))).reshape(shape)
    # The side of the last argument stands where a model's counts have the case; issues without answers are no sample.
    kept = np.unique(answers.issue[rows])
    names = tuple(answers.issues[at] for at in kept)
    counts = ModelCounts(answers.name, names, units.sum(axis=(1, 2))[kept], units[kept])

    agree, expected, total = (part.sum(axis=0) for part in _agreement(counts.pooled))
    apart = [_side_agreement(*values) for values in zip(agree, expected, total, strict=True)]
    whole = _side_agreement(agree.sum(), expected.sum(), total.sum())
    interval = intervals(counts, {"excess": _excess}, np.random.default_rng(seed), resampling)["excess"]
    return LastArgument(
        whole.answers,
        whole.agree,
        whole.base_rate,
        whole.excess,
        interval,
        MappingProxyType(dict(zip(SIDES, apart, strict=True))),
        unknown,
    )


def _baseline_of_template(answers: Answers, values: Shares) -> Shares:
    """For each answer, the pro share of the baseline with its issue and template; NaN where there is none."""
    place = answers.issue.astype(np.int64) * (TEMPLATES[-1] + 1) + answers.template
    baseline = answers.case == CASES.index("baseline")
    size = len(answers.issues) * (TEMPLATES[-1] + 1)
    times = np.bincount(place[baseline], minlength=size)
    pro = np.bincount(place[baseline], weights=values[baseline], minlength=size)
    shares: Shares = np.where(times > 0, pro / np.maximum(times, 1), np.nan)[place]
    return shares


def _distinct_members(answers: Answers) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Each list with each of its arguments, once however often it is shown there."""
    lists = answers.lists
    list_of = np.repeat(np.arange(len(lists.starts) - 1), np.diff(lists.starts))
    number = max(len(lists.arguments), 1)
    pairs = np.sort(list_of * number + lists.members)
    pairs = pairs[np.diff(pairs, prepend=-1) > 0]
    return pairs // number, pairs % number


def _terms(pair: Shares) -> Shares:
    """What Pearson's r sums over arguments, a row each: 1, x, y, xx, yy, xy, about the means of x and y."""
    x, y = pair - pair.mean(axis=1, keepdims=True)
    return np.stack([np.ones_like(x), x, y, x * x, y * y, x * y])


def _clustered(
    terms: Shares, issue: NDArray[np.int64], rng: np.random.Generator, resampling: Resampling
) -> tuple[float, float]:
    """The percentile interval of r when whole issues are drawn again; NaN where no draw has a correlation."""
    issues, place = np.unique(issue, return_inverse=True)
    sums = np.stack([np.bincount(place, weights=row, minlength=len(issues)) for row in terms], axis=-1)
    picks = rng.integers(len(issues), size=(resampling.replicates, len(issues)))
    picks += np.arange(resampling.replicates)[:, None] * len(issues)
    times = np.bincount(picks.ravel(), minlength=picks.size).reshape(picks.shape)
    found = _pearson(times.astype(np.float64) @ sums)
    known = found[~np.isnan(found)]
    if not known.size:
        return np.nan, np.nan
    tail = (1 - resampling.level) / 2
    low, high = np.quantile(known, (tail, 1 - tail))
    return float(low), float(high)


def _pearson(sums: Shares) -> Shares:
    """r from the sums of the six `_terms` (the last axis); NaN where one side does not vary."""
    number, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    variances = (xx / number - (x / number) ** 2, yy / number - (y / number) ** 2)
    varies = np.minimum(*variances) > _NO_VARIANCE
    scale = np.sqrt(np.where(varies, variances[0] * variances[1], 1))
    r: Shares = np.where(varies, np.clip((xy / number - x * y / number**2) / scale, -1, 1), np.nan)
    return r


def _sides(answers: Answers) -> NDArray[np.int64]:
    """For each argument, its side's place in SIDES: that of the one-sided case it is shown in, else the one its id
    starts with (`pro-2`); -1 where neither tells."""
    lists = answers.lists
    is_shown = []
    for side in SIDES:
        used = np.zeros(len(lists.starts) - 1, dtype=np.bool_)
        used[answers.shown[answers.case == CASES.index(f"one-sided-{side}")]] = True
        members = lists.members[np.repeat(used, np.diff(lists.starts))]
        is_shown.append(np.bincount(members, minlength=len(lists.arguments)) > 0)
    by_id = [next((at for at, side in enumerate(SIDES) if id.startswith(side)), -1) for _, id in lists.arguments]
    pro, con = is_shown
    return np.where(pro & con, -1, np.where(pro, 0, np.where(con, 1, np.array(by_id, dtype=np.int64))))


def _agreement(counts: Counts) -> tuple[Counts, Shares, Counts]:
    """By issue and last side, from counts (…, issue, last side, stance): who agrees, who would, and all answers."""
    total = counts.sum(axis=-1)
    of_issue = counts.sum(axis=(-1, -2))[..., None]
    by_stance = counts.sum(axis=-2)[..., :2]
    return np.diagonal(counts, axis1=-2, axis2=-1), total * by_stance / np.maximum(of_issue, 1), total


def _excess(counts: Counts) -> Shares:
    agree, expected, total = (part.sum(axis=(-1, -2)) for part in _agreement(counts))
    excess: Shares = (agree - expected) / total
    return excess


def _side_agreement(agree: np.int64, expected: np.float64, total: np.int64) -> SideAgreement:
    if not total:
        return SideAgreement(0, 0, None, None)
    return SideAgreement(int(total), int(agree), float(expected / total), float((agree - expected) / total))
