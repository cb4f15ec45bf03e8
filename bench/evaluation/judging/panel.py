"""A panel: the verdicts of several judges on the same answers, and the scores under each of them. Plain values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from ....engine.runs.pairs import Pair
from ....format import count_text
from ..labelling.sample import Key


class Verdict(Struct, frozen=True):
    """What one judge makes of one answer; neither label nor grade if its reply could not be read."""

    label: str | None
    """One of a closed set of labels; None: the judge gives grades only."""
    grade: float | None
    """A grade; None: the judge gives labels only."""
    confidence: float | None = None
    """How sure the judge is of the label, from 0 to 1; None: it did not say."""

    def is_read(self, labels: tuple[str, ...]) -> bool:
        """Whether the reply could be read: where judges give `labels` it has a label, else a grade."""
        return (self.label if labels else self.grade) is not None


class JudgedAnswer(Struct, frozen=True):
    """One answer with the verdicts on it."""

    key: Key
    """The key of the answer."""
    verdicts: Mapping[str, Verdict]
    """Each judge's verdict; a judge that has not judged this answer is missing."""


class JudgeScore(Struct, frozen=True):
    """One score of one model under one judge."""

    value: float | None
    """The score; None: there is none."""
    low: float | None
    """The lower end of its 95% interval; None: there is none."""
    high: float | None
    """The upper end of its 95% interval; None: there is none."""
    n: int
    """The number of conversations or items that it is over."""


class Panel(Struct, frozen=True):
    """The judges of one run's answers."""

    judges: tuple[str, ...]
    """All judges, the run's own first."""
    own: str
    """The run's own judge."""
    answers: Sequence[JudgedAnswer]
    """All answers that a judge reads."""
    labels: tuple[str, ...]
    """The labels that can be given, in their order; empty: judges give grades."""
    score_names: tuple[str, ...]
    """The names of the scores, in their order."""
    scores: Mapping[str, Mapping[Pair, Mapping[str, JudgeScore]]]
    """For each judge, and for `majority`: each model's scores, by name."""
    scores_of: int
    """The number of answers that all judges judged; all scores are over these alone."""
    asked_again: int = 0
    """The number of answers that the run's own judge was asked about again."""
    same_again: int = 0
    """The number of these with the same verdict as in the run."""

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
        for pair in dict.fromkeys(pair for scores in self.scores.values() for pair in scores):
            for name in self.score_names:
                row = {judge: scores.get(pair, {}).get(name) for judge, scores in self.scores.items()}
                if any(row.values()):
                    yield pair, name, row
