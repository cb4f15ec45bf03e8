"""A panel: the verdicts of several judges on the same answers, the scores under each of them, and its figures: how far
the judges agree, what the majority says, and which labels each judge leans to. Pure.

A reply that could not be read is no verdict here. Each figure names the answers that it is over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from statistics import fmean

from msgspec import Struct

from .....engine.pairs import Pair
from .....format import count_text, part_of
from .....metrics.statistics.agreement import Agreement, agreement
from .....metrics.statistics.alpha import Alpha, interval_alpha, nominal_alpha
from ...door.judging import JudgeScore
from ...door.kept_answer import Key, Verdict

MAJORITY = "majority"
"""The name of the majority among the judges of `Panel.scores`."""
ALL_MODELS = "all"


class JudgedAnswer(Struct, frozen=True):
    """One answer with the verdicts on it."""

    key: Key
    """The key of the answer."""
    verdicts: Mapping[str, Verdict]
    """Each judge's verdict; a judge that has not judged this answer is missing."""


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
        return f"{self.judge}: {part_of(self.unread, self.answers, 'replies')} were unreadable and count as no verdict"


class Panel(Struct, frozen=True, dict=True):
    """The judges of one run's answers."""

    judges: tuple[str, ...]
    """All judges, the run's own first."""
    answers: Sequence[JudgedAnswer]
    """All answers that a judge reads."""
    labels: tuple[str, ...]
    """The labels that can be given, in their order; empty: judges give grades."""
    scores: Mapping[str, Mapping[Pair, Mapping[str, JudgeScore]]]
    """For each judge, and for `majority`: each model's scores, by name."""
    scores_of: int
    """The number of answers that all judges judged; all scores are over these alone."""
    asked_again: int = 0
    """The number of answers that the run's own judge was asked about again."""
    same_again: int = 0
    """The number of these with the same verdict as in the run."""

    @property
    def own(self) -> str:
        """The run's own judge."""
        return self.judges[0]

    @cached_property
    def readable(self) -> list[JudgedAnswer]:
        """The answers without the verdicts that could not be read."""
        return [
            JudgedAnswer(each.key, {j: v for j, v in each.verdicts.items() if v.is_read(self.labels)})
            for each in self.answers
        ]

    @cached_property
    def replies(self) -> list[JudgeReplies]:
        """The replies of each judge; empty with a single one, like all figures."""
        if len(self.judges) < 2:
            return []
        asked, read = (Counter(j for each in every for j in each.verdicts) for every in (self.answers, self.readable))
        return [JudgeReplies(judge, asked[judge], asked[judge] - read[judge]) for judge in self.judges]

    @cached_property
    def agreement(self) -> list[PanelAgreement]:
        """The agreement of all judges: first on all models, then on each if there are several."""
        if len(self.judges) < 2:
            return []
        of_pairs: dict[Pair, list[JudgedAnswer]] = {}
        for answer in self.readable:
            of_pairs.setdefault(answer.key.pair, []).append(answer)
        agreements = [_agreement(ALL_MODELS, self.readable, self)]
        if len(of_pairs) > 1:
            agreements += [_agreement(str(pair), answers, self) for pair, answers in of_pairs.items()]
        return agreements

    @cached_property
    def pairs(self) -> list[JudgePair]:
        """The agreement of each two judges."""
        return [_pair(first, second, self.readable, self.labels) for first, second in combinations(self.judges, 2)]

    @cached_property
    def biases(self) -> list[JudgeBias]:
        """Each judge's bias for each label; empty if no answer has a verdict of every judge."""
        return list(_biases(_by_all(self.readable, self), self)) if len(self.judges) > 1 else []

    @property
    def again_text(self) -> str:
        """The sentence on the run's own judge asked again."""
        asked = count_text(self.asked_again, "answer")
        return (
            f"{self.own}, the run's own judge, was asked again about {asked}: {self.same_again:,} verdicts are the same"
        )

    def score_rows(self) -> Iterator[tuple[Pair, str, dict[str, JudgeScore | None]]]:
        """Yields each model and the name of each of its scores, with the score under every judge; None: it has none
        there."""
        names = dict.fromkeys(name for pairs in self.scores.values() for scores in pairs.values() for name in scores)
        for pair in dict.fromkeys(pair for scores in self.scores.values() for pair in scores):
            for name in names:
                row = {judge: scores.get(pair, {}).get(name) for judge, scores in self.scores.items()}
                if any(row.values()):
                    yield pair, name, row


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
        for judge, value in means.items():
            others = fmean(mean for other, mean in means.items() if other != judge)
            yield JudgeBias(judge, label, len(answers), value, others)


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
