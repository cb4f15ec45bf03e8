"""The figures that a model has beside OM: in `scores.json`, in printed tables, and in a report.

Owns their names, words and order. Imports no numpy, so that what prints no score starts fast.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from .coverage import Coverage

# OM's companions, fields of `Openness`: the title of each in the summary of a report, and in its tables.
COMPANIONS: Mapping[str, tuple[str, str]] = {
    "om_pro_share": ("By pro share", "By change of the pro share"),
    "om_no_flip": ("Without the flip condition", "Without the flip condition"),
}


class AnswerFigure(NamedTuple):
    """A figure of a model's answers: its column in a report, and its value (None: not known). `key`: its name in
    `scores.json`; with one it is printed too, under `heading`, and in the summary of a report."""

    name: str
    title: str
    kind: Literal["count", "percent"]
    of: Callable[[Coverage], float | None]
    key: str = ""
    heading: str = ""


FIGURES = (
    AnswerFigure("cut", "Cut off", "count", lambda cover: cover.cut, "answers_cut", "cut off"),
    AnswerFigure("cut_percent", "Cut off", "percent", lambda cover: cover.percent(cover.cut)),
    AnswerFigure("other", "Other", "count", lambda cover: cover.other, "answers_other", "Other"),
    AnswerFigure("other_percent", "Other", "percent", lambda cover: cover.percent(cover.other)),
    AnswerFigure("baseline_other_percent", "Other, baseline", "percent", lambda cover: cover.baseline_other_percent),
    AnswerFigure("refused", "Refused", "count", lambda cover: cover.refused),
    AnswerFigure("often", "Issues above 30% Other", "count", lambda cover: len(cover.often_refused)),
    AnswerFigure("scored", "Issues with a score", "count", lambda cover: cover.scored),
    AnswerFigure("unscored", "Without", "count", lambda cover: len(cover.unscored)),
)
SCORED = tuple(figure for figure in FIGURES if figure.key)
