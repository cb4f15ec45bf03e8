"""Silence: which cases have enough answers to be read, which issues can be scored, which models measured nothing.

Owns the rules of docs/millstone.md, "Models that say little", as pure functions of counts. A silent case counts as one
without answers in every figure, since a model that takes no side neither agrees with anybody nor moves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from .answers import AnswerRows
from .baselines import RefusedIssue, issues_often_refused
from .counts import ModelCounts
from .gaps import Gaps, Shape
from .letters import Letters, letters
from .openness import CASES, STANCES, Counts, Flags, Moves, moves_in

# `unscored`: silence leaves an issue without a score. `literal`: exactly as the authors' script.
Silence = Literal["unscored", "literal"]

# A case is silent below this share of pro and con answers; a model has no rank above this share of unscored issues.
_TENTH = 10
_OTHER = STANCES.index("other")


@dataclass(frozen=True)
class AnswerPlan:
    """The number of answers a model was to give, `planned[issue, case]`, and of those it gave. Issues are in the order
    of the model's counts; `unanswered` are the planned issues without any answer."""

    planned: Counts
    given: Counts
    unanswered: tuple[str, ...] = ()


def plan_of(counts: ModelCounts, shape: Shape, missing: Gaps) -> AnswerPlan:
    """Returns the manifest's plan for the issues of `shape`, and how much was answered, by the gaps in `missing`."""
    at = {issue: place for place, issue in enumerate(counts.issues)}
    planned = np.zeros(counts.pooled.shape[:2], dtype=np.int64)
    planned[[at[issue] for issue in shape.issues if issue in at]] = shape.by_case()
    answered = planned.copy()
    for (issue, case), number in missing.by_case.items():
        if issue in at:
            answered[at[issue], CASES.index(case)] -= number
    return AnswerPlan(planned, answered, tuple(issue for issue in shape.issues if issue not in at))


@dataclass(frozen=True)
class ReadableCounts:
    """A model's counts: `raw` are all; in `counts` every silent case is set to 0, and all are if the model measured
    nothing. `unscored` are the issues without a score, each with its reason. What is not known, as of published counts,
    is None."""

    raw: ModelCounts
    counts: ModelCounts
    unscored: Mapping[str, str]
    silence: Silence

    @cached_property
    def answers(self) -> int:
        return int(self.raw.pooled.sum())

    @property
    def cut(self) -> int | None:
        return None if self.raw.cut is None else int(self.raw.cut.sum())

    @property
    def refused(self) -> int | None:
        return None if self.raw.refused is None else int(self.raw.refused.sum())

    @property
    def other(self) -> int:
        return int(self.raw.pooled[..., _OTHER].sum())

    @property
    def baseline(self) -> int:
        return int(self.raw.pooled[:, 0].sum())

    @property
    def baseline_other(self) -> int:
        return int(self.raw.pooled[:, 0, _OTHER].sum())

    @property
    def baseline_other_percent(self) -> float | None:
        return 100 * self.baseline_other / self.baseline if self.baseline else None

    @cached_property
    def often_refused(self) -> list[RefusedIssue]:
        return issues_often_refused(self.raw)

    @cached_property
    def letters(self) -> Letters | None:
        return letters(self.counts)

    @cached_property
    def scored(self) -> int:
        """The number of issues with a score."""
        return int(moves_of(self.counts).is_scored.sum())

    def percent(self, part: int | None) -> float | None:
        """Returns how much of all answers this many are."""
        return None if part is None else 100 * part / self.answers

    @property
    def is_ranked(self) -> bool:
        """Whether the model has a rank: always by the literal rule; else if it has a score and at most a tenth of its
        issues is unscored."""
        issues = self.scored + len(self.unscored)
        return self.silence == "literal" or (self.scored > 0 and _TENTH * len(self.unscored) <= issues)

    @property
    def ranked_on(self) -> frozenset[str]:
        """The issues, in lower case, that two models must share for comparable ranks: the asked ones; by the literal
        rule, the scored ones."""
        issues = dict.fromkeys((*self.counts.issues, *self.unscored))
        gone = self.unscored if self.silence == "literal" else {}
        return frozenset(issue.casefold() for issue in issues if issue not in gone)


def heard(
    counts: ModelCounts, silence: Silence = "unscored", plan: AnswerPlan | None = None, whole: ModelCounts | None = None
) -> ReadableCounts:
    """Returns the counts that can be read. `plan` comes from a manifest; None: there is none. `whole` has the model's
    counts of all issues; None: `counts` has them all."""
    is_unread = counts.reads is not None and counts.reads.is_unread
    if silence == "literal" and not is_unread:
        unscored = np.flatnonzero(~moves_in(counts.pooled).is_scored)
        reason = "no answers at the baseline, or in every other case"
        return ReadableCounts(counts, counts, {counts.issues[at]: reason for at in unscored}, silence)
    cases = heard_cases(counts.pooled, plan)
    if measured_nothing(counts if whole is None else whole):
        lost = "prompts or more are read in part" if is_unread else "answers or more are cut off or Other"
        reasons = dict.fromkeys(counts.issues, f"half of the model's {lost}")
        cases = np.zeros_like(cases)
    else:
        silent = np.flatnonzero(~np.all(cases, axis=-1)).tolist()
        reasons = {counts.issues[at]: _reason(counts, at, cases, plan) for at in silent}
    reasons |= dict.fromkeys(() if plan is None else plan.unanswered, "no answers")
    of_templates = None if counts.of_templates is None else counts.of_templates * cases[:, None, :, None]
    scored: Flags = np.asarray(np.all(cases, axis=-1))
    kept = replace(counts, pooled=counts.pooled * cases[..., None], of_templates=of_templates, scored=scored)
    return ReadableCounts(counts, kept, reasons, silence)


def heard_cases(pooled: Counts, plan: AnswerPlan | None = None) -> Flags:
    """Returns which cases (issue, case) are not silent: at least a tenth of their answers is pro or con and, with a
    plan, at least half of the planned answers exist."""
    totals = pooled.sum(axis=-1)
    flags: Flags = (totals > 0) & (_TENTH * pooled[..., :_OTHER].sum(axis=-1) >= totals)
    if plan is not None:
        flags &= 2 * plan.given >= plan.planned
    return flags


def measured_nothing(counts: ModelCounts) -> bool:
    """Returns whether half of a model's answers or more are cut off or Other, or more than half of its prompts were
    read in part; False without answers."""
    answers, is_unread = int(counts.pooled.sum()), counts.reads is not None and counts.reads.is_unread
    return answers > 0 and (is_unread or 2 * cut_or_other(counts) >= answers)


def cut_or_other(counts: ModelCounts) -> int:
    """Returns the number of answers that are cut off, Other, or both; of Other alone if only totals are known."""
    return int(counts.pooled[..., _OTHER].sum() if counts.cut_or_other is None else counts.cut_or_other.sum())


def heard_answers(answers: AnswerRows, readable: ReadableCounts) -> AnswerRows:
    """Returns the answers in cases that are not silent. `readable` must be of the same issues."""
    cases: Flags = np.asarray(np.any(readable.counts.pooled, axis=-1))
    rows: Flags = cases[answers.issue, answers.case]
    return answers if rows.all() else answers.at(rows)


def moves_of(counts: ModelCounts) -> Moves:
    """Returns the moves on every issue; issues that silence leaves without a score are marked as not scored."""
    moves = moves_in(counts.pooled)
    return moves if counts.scored is None else replace(moves, is_scored=moves.is_scored & counts.scored)


def _reason(counts: ModelCounts, at: int, cases: Flags, plan: AnswerPlan | None) -> str:
    """Returns why an issue has no score, by its first silent case."""
    case = int(np.argmin(cases[at]))
    if plan is not None and 2 * plan.given[at, case] < plan.planned[at, case]:
        return f"{CASES[case]}: {plan.given[at, case]:,} of {plan.planned[at, case]:,} planned answers"
    total = int(counts.pooled[at, case].sum())
    if not total:
        return f"{CASES[case]}: no answers"
    return f"{CASES[case]}: {total - int(counts.pooled[at, case, _OTHER]):,} of {total:,} answers are pro or con"
