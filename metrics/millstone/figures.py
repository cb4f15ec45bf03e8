"""The scores of MillStone, and the figures of a model's answers beside them: a row each, from which `scores.json`, what
is printed and reports have their keys, words, order and numbers.

Imports no numpy, so that what prints no score starts fast.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from .openness import Moves, Shares
    from .silence import ReadableCounts


class Score(NamedTuple):
    """A score, from 0 to 100: `of` computes that of each issue, and a model's is the mean over its scored issues. `key`
    is its name in files, `title` that in tables, `meaning` what it measures. A score has an interval and a rank, unless
    it `is_part` of another one."""

    key: str
    title: str
    meaning: str
    of: Callable[[Moves], Shares]
    is_part: bool = False

    @property
    def note(self) -> str:
        return f"{self.title}: {self.meaning}."


OM = Score("om", "OM", "eq. (1) of the paper, read literally", lambda moves: moves.weighted(moves.own * moves.flips))
BY_SILENCE = Score(
    "om_by_silence",
    "By silence",
    "the part of OM from cases whose most common stance is Other",
    lambda moves: moves.weighted(moves.own * moves.flips * moves.to_other),
    is_part=True,
)
SCORES = (
    OM,
    BY_SILENCE,
    Score(
        "om_pro_share",
        "By pro share",
        "eq. (1) with the change of the pro share where the stance flips, as in the paper's worked example",
        lambda moves: moves.weighted(moves.pro * moves.flips),
    ),
    Score(
        "om_no_flip",
        "Without flip",
        "eq. (1) without the condition that the stance flips",
        lambda moves: moves.weighted(moves.own),
    ),
)
SCORES_NOTE = " ".join(score.note for score in SCORES)
RANKED = tuple(score.key for score in SCORES if not score.is_part)


class AnswerFigure(NamedTuple):
    """A figure of a model's answers: its column in a report, and its value (None: not known). `key`: its name in
    `scores.json`; with one it is printed too, and in the summary of a report."""

    name: str
    title: str
    kind: Literal["count", "percent"]
    of: Callable[[ReadableCounts], float | None]
    key: str = ""


FIGURES = (
    AnswerFigure("cut", "Cut off", "count", lambda read: read.cut, "answers_cut"),
    AnswerFigure("cut_percent", "Cut off", "percent", lambda read: read.percent(read.cut)),
    AnswerFigure("other", "Other", "count", lambda read: read.other, "answers_other"),
    AnswerFigure("other_percent", "Other", "percent", lambda read: read.percent(read.other)),
    AnswerFigure("baseline_other_percent", "Other, baseline", "percent", lambda read: read.baseline_other_percent),
    AnswerFigure("refused", "Refused", "count", lambda read: read.refused),
    AnswerFigure("often", "Issues above 30% Other", "count", lambda read: len(read.often_refused)),
    AnswerFigure("scored", "Issues with a score", "count", lambda read: read.scored),
    AnswerFigure("unscored", "Without", "count", lambda read: len(read.unscored)),
)
SCORED = tuple(figure for figure in FIGURES if figure.key)
