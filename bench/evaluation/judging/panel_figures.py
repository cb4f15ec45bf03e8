"""The figures of a panel: how far its judges agree, what its majority says, and which labels each judge leans to. Pure.

A reply that could not be read is no verdict here. Each figure names the answers that it is over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations
from statistics import fmean

from msgspec import Struct

from ....engine.runs.pairs import Pair
from ....format import part_of
from ....metrics.statistics.agreement import Agreement, agreement
from ....metrics.statistics.alpha import Alpha, interval_alpha, nominal_alpha
from .panel import JudgedAnswer, Panel, Verdict

MAJORITY = "majority"
"""The name of the majority among the judges of `Panel.scores`."""
ALL_MODELS = "all"


class PanelAgreement(Struct, frozen=True):
    """The agreement of all judges on the answers of one model, or of all."""

    model: str
    """The model with its treatment, or `all`."""
    answers: int
    """The answers that a judge reads."""
    by_all: int
    """Those with a verdict of every judge."""
    alpha: Alpha
    """Krippendorff's alpha over the answers with two verdicts or more: of labels, or of grades as numbers."""
    majority: int
    """The answers with two verdicts or more of which one label has more votes than any other; 0 for grades."""
    ties: int
    """The answers with two verdicts or more without a majority; 0 for grades."""


class JudgePair(Struct, frozen=True):
    """The agreement of two judges, over the answers with a verdict of both."""

    first: str
    """A judge."""
    second: str
    """Another judge."""
    answers: int
    """The answers with a verdict of both."""
    labels: Agreement | None
    """The agreement of their labels; None: they give grades."""
    difference: float | None
    """The mean of the first judge's grades minus the second's; None: they give labels, or share no answer."""


class JudgeBias(Struct, frozen=True):
    """How much more often a judge gives a label than the other judges, over the answers with a verdict of every
    judge; of grades, how much higher they are."""

    judge: str
    """The judge."""
    label: str
    """The label; empty for grades."""
    answers: int
    """The answers with a verdict of every judge."""
    own: float
    """The judge's share of this label, or its mean grade."""
    others: float
    """The mean of the other judges' shares, or of their mean grades."""

    @property
    def bias(self) -> float:
        return self.own - self.others


class JudgeReplies(Struct, frozen=True):
    """How many of a judge's replies could be read."""

    judge: str
    """The judge."""
    answers: int
    """The answers that it was asked about."""
    unread: int
    """Those of them for which its reply could not be read, so that it has no verdict."""

    @property
    def is_unmeasured(self) -> bool:
        """Whether half of its replies or more could not be read."""
        return 0 < self.answers <= 2 * self.unread

    @property
    def unread_text(self) -> str:
        """The sentence on the replies that could not be read."""
        return f"{self.judge}: {part_of(self.unread, self.answers, 'replies')} could not be read and are no verdicts"


class PanelFigures(Struct, frozen=True):
    """All figures of a panel but its scores."""

    replies: Sequence[JudgeReplies]
    """The replies of each judge."""

    agreement: Sequence[PanelAgreement]
    """The agreement of all judges: first on all models, then on each if there are several."""
    pairs: Sequence[JudgePair]
    """The agreement of each two judges."""
    biases: Sequence[JudgeBias]
    """Each judge's bias for each label; empty if no answer has a verdict of every judge."""


def figures_of(panel: Panel) -> PanelFigures:
    """Returns a panel's figures; all empty if it has a single judge."""
    if len(panel.judges) < 2:
        return PanelFigures((), (), (), ())
    every = [_readable(answer, panel) for answer in panel.answers]
    of_pairs: dict[Pair, list[JudgedAnswer]] = {}
    for answer in every:
        of_pairs.setdefault(answer.key.pair, []).append(answer)
    found = [_agreement(ALL_MODELS, every, panel)]
    if len(of_pairs) > 1:
        found += [_agreement(str(pair), answers, panel) for pair, answers in of_pairs.items()]
    pairs = [_pair(first, second, every, panel.labels) for first, second in combinations(panel.judges, 2)]
    replies = [_replies(judge, panel.answers, every) for judge in panel.judges]
    return PanelFigures(replies, found, pairs, list(_biases(_by_all(every, panel), panel)))


def majority_of(answer: JudgedAnswer) -> Verdict | None:
    """Returns the label that more judges give than any other, with the mean confidence of these judges; None for a tie.
    Where judges give grades alone, it is the mean of their grades. A reply that could not be read is no vote."""
    verdicts = answer.verdicts.values()
    labels = Counter(verdict.label for verdict in verdicts if verdict.label is not None)
    if labels:
        (label, most), *others = labels.most_common()
        if others and others[0][1] == most:
            return None
        sure = [each.confidence for each in verdicts if each.label == label and each.confidence is not None]
        return Verdict(label, None, _mean(sure))
    grade = _mean([verdict.grade for verdict in verdicts if verdict.grade is not None])
    return None if grade is None else Verdict(None, grade)


def _replies(judge: str, answers: Iterable[JudgedAnswer], read: Iterable[JudgedAnswer]) -> JudgeReplies:
    asked = sum(judge in answer.verdicts for answer in answers)
    return JudgeReplies(judge, asked, asked - sum(judge in answer.verdicts for answer in read))


def _agreement(model: str, answers: Sequence[JudgedAnswer], panel: Panel) -> PanelAgreement:
    several = [answer for answer in answers if len(answer.verdicts) > 1]
    decided = sum(majority_of(answer) is not None for answer in several) if panel.labels else 0
    if panel.labels:
        alpha = nominal_alpha([_label(verdict) for verdict in answer.verdicts.values()] for answer in several)
    else:
        alpha = interval_alpha([_grade(verdict) for verdict in answer.verdicts.values()] for answer in several)
    return PanelAgreement(
        model=model,
        answers=len(answers),
        by_all=len(_by_all(answers, panel)),
        alpha=alpha,
        majority=decided,
        ties=len(several) - decided if panel.labels else 0,
    )


def _pair(first: str, second: str, answers: Iterable[JudgedAnswer], labels: Sequence[str]) -> JudgePair:
    both = [each.verdicts for each in answers if first in each.verdicts and second in each.verdicts]
    if labels:
        named = agreement([(_label(each[first]), _label(each[second])) for each in both], labels)
        return JudgePair(first, second, len(both), named, None)
    differences = [_grade(each[first]) - _grade(each[second]) for each in both]
    return JudgePair(first, second, len(both), None, _mean(differences))


def _biases(answers: Sequence[JudgedAnswer], panel: Panel) -> Iterable[JudgeBias]:
    if not answers:
        return
    for label in panel.labels or ("",):
        means = {
            judge: fmean(_grade(each.verdicts[judge]) for each in answers)
            if not panel.labels
            else fmean(each.verdicts[judge].label == label for each in answers)
            for judge in panel.judges
        }
        for judge, own in means.items():
            others = fmean(mean for other, mean in means.items() if other != judge)
            yield JudgeBias(judge, label, len(answers), own, others)


def _readable(answer: JudgedAnswer, panel: Panel) -> JudgedAnswer:
    """Returns an answer without the verdicts that could not be read."""
    read = {judge: verdict for judge, verdict in answer.verdicts.items() if verdict.is_read(panel.labels)}
    return JudgedAnswer(answer.key, read)


def _by_all(answers: Iterable[JudgedAnswer], panel: Panel) -> list[JudgedAnswer]:
    return [answer for answer in answers if len(answer.verdicts) == len(panel.judges)]


def _label(verdict: Verdict) -> str:
    assert verdict.label is not None
    return verdict.label


def _grade(verdict: Verdict) -> float:
    assert verdict.grade is not None
    return verdict.grade


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None
