"""Arguments: their effects on a model's answers, whether models agree on them, and whether the first or the last one
decides.

Owns figure 6 and the order effects: an argument's effect, and its correlation between models; which models are sizes
and variants of the same one, by their names alone (parts of a name are provider, version, size and date). Knows an
argument by issue and id alone, never its text, and no provider's list of models.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..statistics.comparisons import Comparison, difference_of
from ..statistics.intervals import Correlation, correlation, ratio_figures
from .answers import AnswerReading, AnswerRows
from .openness import CASES, STANCES, Counts, Shares
from .paired import t_test_p

_MAKER = re.compile(r"^(?:[a-z]+\.)+(?=[a-z])|^meta-(?=llama)")
_BUILD = re.compile(r"-v\d+:\d+$")
_DATE = re.compile(r"-(?:20\d\d-[01]\d-[0-3]\d|[01]\d-20\d\d|[01]\d-[0-3]\d|20\d{6}|\d{6}|\d{3,4})(?=-|$)")
_SIZE = re.compile(r"(?:\d+x)?\d+(?:\.\d+)?[bmte]")
_VERSION = re.compile(r"[a-z]?\d+(?:\.\d+)?[a-z]?")
_SIZES = "nano mini micro tiny lite small medium large pro plus max ultra"
_TIERS = "haiku sonnet opus flash turbo fast scout maverick"
_STATES = "preview beta exp experimental latest instruct it chat thinking reasoning maas"
_VARIANTS = frozenset(f"{_SIZES} {_TIERS} {_STATES}".split())


def family_of(model: str) -> str:
    """Returns a model's family: its name without provider, size, variant, state and date.

    `openai/gpt-4o-mini-2024-07-18` is of gpt-4o, `x/Meta-Llama-3.1-8B-Instruct` of llama-3.1. A size word before the
    version stays, as it names another line of models: claude-3.5-haiku is of claude-3.5 and claude-opus-4 of
    claude-opus-4. Without a version all such words are removed.
    """
    name = model.partition(" @ ")[0].rpartition("/")[2].lower()
    name = re.sub(r"[_:@\s]+", "-", _BUILD.sub("", name))
    name = _DATE.sub("", _MAKER.sub("", name))
    # The same version is written llama3.1 and llama-3.1, 3-5 and 3.5.
    name = re.sub(r"(?<![a-z0-9])([a-z]{3,})(?=\d)", r"\1-", name)
    name = re.sub(r"(?<![\w.])(\d)-(\d)(?=-|$)", r"\1.\2", name)
    words = [word for word in name.split("-") if word and not _SIZE.fullmatch(word)]
    if not words:
        return model
    version = next((at for at, word in enumerate(words) if at and _VERSION.fullmatch(word)), 0)
    return "-".join([*words[: version + 1], *(word for word in words[version + 1 :] if word not in _VARIANTS)])


SIDES = STANCES[:2]
Position = Literal["first", "last"]
POSITIONS: tuple[Position, ...] = ("first", "last")
# The cases that show arguments of both sides.
ORDER_CASES = ("balanced", "clear-pro", "clear-con")


@dataclass(frozen=True)
class Effects:
    """The effects of the arguments that a model was shown: `shares[n]` is the effect of `arguments[n]`, an (issue, id):
    the share of pro answers among the answers whose prompts contain it."""

    model: str
    arguments: tuple[tuple[str, str], ...]
    shares: Shares


def argument_effects(answers: AnswerRows, reading: AnswerReading = "recorded") -> Effects:
    """Returns, for every argument, the share of pro answers to prompts that contain it, in any configuration."""
    # By list first: models share their lists, and a list has many members.
    lists = len(answers.lists.starts) - 1
    times = np.bincount(answers.shown, minlength=lists)
    sums = np.bincount(answers.shown, weights=answers.stances[reading] == 0, minlength=lists)
    list_of, member = _distinct_members(answers)
    number = len(answers.lists.arguments)
    appearances = np.bincount(member, weights=times[list_of], minlength=number)
    effects = np.bincount(member, weights=sums[list_of], minlength=number)
    places = np.flatnonzero(appearances)
    shares = effects[places] / appearances[places]
    return Effects(answers.name, tuple(answers.lists.arguments[at] for at in places), shares)


@dataclass(frozen=True)
class Correlations:
    """Pearson's correlations of two models' effects over the arguments shown to both. A key of `pairs` has the indices
    of the two in `models`, the smaller first. Intervals are over issues: the arguments of an issue are dependent."""

    models: tuple[str, ...]
    pairs: Mapping[tuple[int, int], Correlation]


def correlations(effects: Sequence[Effects]) -> Correlations:
    """Returns the correlation of every pair of models, in the order of the effects."""
    places: dict[tuple[str, str], int] = {}
    for one in effects:
        for argument in one.arguments:
            places.setdefault(argument, len(places))
    values = np.full((len(effects), len(places)), np.nan)
    for row, one in zip(values, effects, strict=True):
        row[[places[argument] for argument in one.arguments]] = one.shares
    issues = [issue for issue, _ in places]
    pairs = {
        (first, second): correlation(values[first], values[second], issues, of="issues")
        for first, second in combinations(range(len(effects)), 2)
    }
    return Correlations(tuple(one.model for one in effects), pairs)


@dataclass(frozen=True)
class Medians:
    """The median correlation of pairs of different models, within and between families, each with its number of pairs;
    None without a pair. Two temperatures or runs of the same model are not compared."""

    within: float | None
    between: float | None
    pairs_within: int
    pairs_between: int


def medians(correlations: Correlations, families: Sequence[str], models: Sequence[str]) -> Medians:
    """Returns the median correlations within and between families; `families` and `models` have each row's own."""
    pairs: dict[bool, list[float]] = {True: [], False: []}
    for (first, second), each in correlations.pairs.items():
        if models[first] != models[second] and each.r is not None:
            pairs[families[first] == families[second]].append(each.r)
    within, between = (float(np.median(some)) if some else None for some in (pairs[True], pairs[False]))
    return Medians(within, between, len(pairs[True]), len(pairs[False]))


@dataclass(frozen=True)
class OrderEffect:
    """The number of `answers` in a case, and how many of them `agree` with the side of the first or the last argument.
    `base_rate` is the share (0 to 1) expected if the order had no effect, `excess` the observed share minus that; both
    None without an answer. `tested` compares `excess` with 0 over issues; `p` is its Student's t, that order does
    nothing, None where no interval can be given. Answers are not counted where the side of that argument is unknown."""

    case: str
    position: Position
    answers: int
    agree: int
    base_rate: float | None
    excess: float | None
    tested: Comparison | None

    @property
    def rate(self) -> float | None:
        return self.agree / self.answers if self.answers else None

    @property
    def p(self) -> float | None:
        return None if self.tested is None else t_test_p(self.tested)


def order_effects(answers: AnswerRows, reading: AnswerReading = "recorded") -> tuple[OrderEffect, ...]:
    """Returns the effect of either position in every case that shows arguments of both sides. One-sided cases have no
    order of sides."""
    return tuple(order_effect(answers, case, position, reading) for case in ORDER_CASES for position in POSITIONS)


def order_effect(
    answers: AnswerRows,
    case: str = "balanced",
    position: Position = "last",
    reading: AnswerReading = "recorded",
) -> OrderEffect:
    """Returns how often the stance in a case is the side of the first or last argument shown, beyond the base rate.

    The base rate is the agreement if stance and that side were independent given the issue: of an issue with n answers,
    of which P are pro and L have a pro argument there (C and K for con), (P x L + C x K) / n answers are expected to
    agree. An answer of Other agrees with neither side. The figure of an issue is its contribution to the excess over
    all answers.
    """
    rows = np.flatnonzero(answers.case == CASES.index(case))
    starts, lists = answers.lists.starts, answers.shown[rows]
    rows = rows[starts[lists + 1] > starts[lists]]
    place = starts[answers.shown[rows]] if position == "first" else starts[answers.shown[rows] + 1] - 1
    side = _sides(answers)[answers.lists.members[place]]
    rows, side = rows[side >= 0], side[side >= 0]

    shape = (len(answers.issues), len(SIDES), len(STANCES))
    places = np.ravel_multi_index((answers.issue[rows], side, answers.stances[reading][rows]), shape)
    pooled = np.bincount(places, minlength=int(np.prod(shape))).reshape(shape)
    # Issues without answers are no sample.
    counts = pooled[np.unique(answers.issue[rows])]
    agree, expected, total = (part.sum().item() for part in _agreement(counts))
    tested = difference_of(_excess(counts), within=(-1, 1), of="issues") if len(counts) else None
    return OrderEffect(
        case=case,
        position=position,
        answers=total,
        agree=agree,
        base_rate=expected / total if total else None,
        excess=(agree - expected) / total if total else None,
        tested=tested,
    )


def _distinct_members(answers: AnswerRows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns two arrays with each list's distinct arguments: the list's number and the argument's index."""
    lists = answers.lists
    list_of = np.repeat(np.arange(len(lists.starts) - 1), np.diff(lists.starts))
    number = max(len(lists.arguments), 1)
    pairs = np.sort(list_of * number + lists.members)
    pairs = pairs[np.diff(pairs, prepend=-1) > 0]
    return pairs // number, pairs % number


def _sides(answers: AnswerRows) -> NDArray[np.int64]:
    """Returns the index in SIDES of each argument's side: that of the one-sided case it is shown in, else that of its
    id (`pro-2`); -1 if unknown."""
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
    """Returns, by issue and side of the argument, the agreeing, the expected and all answers; `counts` is (…,
    issue, last side, stance)."""
    total = counts.sum(axis=-1)
    of_issue = counts.sum(axis=(-1, -2))[..., None]
    by_stance = counts.sum(axis=-2)[..., :2]
    return np.diagonal(counts, axis1=-2, axis2=-1), total * by_stance / np.maximum(of_issue, 1), total


def _excess(counts: Counts) -> Shares:
    agree, expected, total = (part.sum(axis=-1) for part in _agreement(counts))
    return ratio_figures(agree - expected, total)
