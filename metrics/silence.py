"""Silence: which cases hold enough answers to be read, which issues can be scored, which models measured nothing.

Owns the rules of PROTOCOL.md's "Silence is no open mind" as pure functions of counts. A silent case counts as one
without answers, in every figure: a model that says nothing agrees with nobody, and nothing moves it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from .answers import Answers
from .counts import ModelCounts
from .gaps import Gaps, Shape
from .millstone import CASES, STANCES, Counts, Flags, Openness, openness

# `unscored`: silence leaves an issue without a score. `literal`: the authors' script to the letter.
Silence = Literal["unscored", "literal"]
SILENCES: tuple[Silence, ...] = get_args(Silence)

# A case is silent below this share of pro and con answers; a model has no rank above this share of unscored issues.
_TENTH = 10
_OTHER = STANCES.index("other")


@dataclass(frozen=True)
class Plan:
    """How many answers a model was to give, `planned[issue, case]`, and how many of these it gave. Issues stand in the
    order of the model's counts; `unanswered` are the planned issues without any answer."""

    planned: Counts
    given: Counts
    unanswered: tuple[str, ...] = ()


def plan_of(counts: ModelCounts, shape: Shape, missing: Gaps) -> Plan:
    """The plan of a manifest, for the issues of `shape`, and what is missing of it."""
    at = {issue: place for place, issue in enumerate(counts.issues)}
    planned = np.zeros(counts.pooled.shape[:2], dtype=np.int64)
    planned[[at[issue] for issue in shape.issues if issue in at]] = shape.by_case()
    given = planned.copy()
    for (issue, case), number in missing.by_case.items():
        if issue in at:
            given[at[issue], CASES.index(case)] -= number
    return Plan(planned, given, tuple(issue for issue in shape.issues if issue not in at))


@dataclass(frozen=True)
class Heard:
    """A model's counts as far as they can be read: every silent case is emptied, and all of them where the model
    measured nothing (`is_worthless`). `unscored` are the issues without a score, each with its reason."""

    counts: ModelCounts
    unscored: Mapping[str, str]
    is_worthless: bool
    silence: Silence

    @property
    def is_ranked(self) -> bool:
        """Literally, every model that has a score; else one with at most a tenth of its issues unscored."""
        scored = int(openness_of(self.counts).is_scored.sum())
        return self.silence == "literal" or (scored > 0 and _TENTH * len(self.unscored) <= scored + len(self.unscored))

    @property
    def ranked_on(self) -> frozenset[str]:
        """The issues, in lower case, on which another model's rank means the same: those asked; literally, those
        scored."""
        asked = dict.fromkeys((*self.counts.issues, *self.unscored))
        gone = self.unscored if self.silence == "literal" else {}
        return frozenset(issue.casefold() for issue in asked if issue not in gone)


def heard(
    counts: ModelCounts, silence: Silence = "unscored", plan: Plan | None = None, whole: ModelCounts | None = None
) -> Heard:
    """`plan`: where a manifest tells it. `whole`: the model's counts of all issues, where these are of some only."""
    if silence == "literal":
        unscored = np.flatnonzero(~openness(counts.pooled).is_scored)
        reason = "no answers at the baseline, or in every other case"
        return Heard(counts, {counts.issues[at]: reason for at in unscored}, False, silence)
    is_worthless = measured_nothing(counts if whole is None else whole)
    cases = heard_cases(counts.pooled, plan)
    if is_worthless:
        reasons = dict.fromkeys(counts.issues, "half of the model's answers or more are cut off or Other")
        cases = np.zeros_like(cases)
    else:
        silent = np.flatnonzero(~np.all(cases, axis=-1)).tolist()
        reasons = {counts.issues[at]: _reason(counts, at, cases, plan) for at in silent}
    reasons |= dict.fromkeys(() if plan is None else plan.unanswered, "no answers")
    units = None if counts.units is None else counts.units * cases[:, None, None, :, None]
    scored: Flags = np.asarray(np.all(cases, axis=-1))
    kept = replace(counts, pooled=counts.pooled * cases[..., None], units=units, scored=scored)
    return Heard(kept, reasons, is_worthless, silence)


def heard_cases(pooled: Counts, plan: Plan | None = None) -> Flags:
    """Which cases (issue, case) are not silent: at least a tenth of their answers is pro or con, and, where a plan is
    known, at least half of the planned answers are there."""
    totals = pooled.sum(axis=-1)
    found: Flags = (totals > 0) & (_TENTH * pooled[..., :_OTHER].sum(axis=-1) >= totals)
    if plan is not None:
        found &= 2 * plan.given >= plan.planned
    return found


def measured_nothing(counts: ModelCounts) -> bool:
    """Half of a model's answers or more are cut off or Other."""
    answers = int(counts.pooled.sum())
    return answers > 0 and 2 * cut_or_other(counts) >= answers


def cut_or_other(counts: ModelCounts) -> int:
    """Answers that are cut off, Other, or both; the Other alone where only totals are known."""
    return int(counts.pooled[..., _OTHER].sum() if counts.cut_or_other is None else counts.cut_or_other.sum())


def heard_answers(answers: Answers, found: Heard) -> Answers:
    """The answers in cases that are not silent. `found` must be of the same issues."""
    cases: Flags = np.asarray(np.any(found.counts.pooled, axis=-1))
    rows: Flags = cases[answers.issue, answers.case]
    return answers if rows.all() else answers.at(rows)


def openness_of(counts: ModelCounts) -> Openness:
    """The scores of every issue; scored are those that silence leaves a score."""
    found = openness(counts.pooled)
    return found if counts.scored is None else replace(found, is_scored=found.is_scored & counts.scored)


def scored_only(counts: ModelCounts) -> ModelCounts:
    """The counts of the issues that silence leaves a score."""
    if counts.scored is None or counts.scored.all():
        return counts
    kept = np.flatnonzero(counts.scored)
    units = None if counts.units is None else counts.units[kept]
    issues = tuple(counts.issues[at] for at in kept)
    return ModelCounts(counts.model, issues, counts.pooled[kept], units)


def _reason(counts: ModelCounts, at: int, cases: Flags, plan: Plan | None) -> str:
    """Why an issue has no score, by its first silent case."""
    case = int(np.argmin(cases[at]))
    if plan is not None and 2 * plan.given[at, case] < plan.planned[at, case]:
        return f"{CASES[case]}: {plan.given[at, case]:,} of {plan.planned[at, case]:,} planned answers"
    total = int(counts.pooled[at, case].sum())
    if not total:
        return f"{CASES[case]}: no answers"
    return f"{CASES[case]}: {total - int(counts.pooled[at, case, _OTHER]):,} of {total:,} answers are pro or con"
