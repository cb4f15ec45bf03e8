"""A model's answers as plain rows, for second implementations to read, and the same rows as columns and as counts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from millstream.engine.pairs import Pair
from millstream.metrics.millstone.answers import AnswerRows, AnswerTally, without_issues
from millstream.metrics.millstone.counts import ModelCounts
from millstream.metrics.millstone.openness import CASES, STANCES, case_of

Cell = tuple[int, int, int]

CONFIGS = ("baseline", "one-sided-pro", "one-sided-con", "clear-pro-1", "clear-con-2", "balanced-1", "balanced-4")
IDS = ("pro-1", "pro-2", "con-1", "con-2", "con-3")


class Row(NamedTuple):
    """One answer; its stances are those of the recorded, the paper's and the careful reading."""

    issue: str
    template: int
    config: str
    trial: int
    stances: tuple[str, str, str]
    arguments: tuple[str, ...] = ()

    @property
    def case(self) -> str:
        return case_of(self.config) or ""


def answers_of(rows: Iterable[Row], model: str = "m") -> AnswerRows:
    """The rows as columns; no row at all is a model without an answer."""
    tally = AnswerTally()
    tally.add(Pair(model, None), "none", 1, "baseline", 0, ("pro", None, None))
    for row in rows:
        tally.add(Pair(model, None), row.issue, row.template, row.config, row.trial, row.stances, False, row.arguments)
    return without_issues(tally.models()[0], ["none"])


@st.composite
def surveys(draw: st.DrawFn, max_size: int = 40) -> list[Row]:
    """Few issues, templates, trials and arguments, so that ties, missing cells and shared arguments are common."""
    places = st.tuples(st.sampled_from("abc"), st.integers(1, 3), st.sampled_from(CONFIGS), st.integers(0, 3))
    stance = st.sampled_from(STANCES)
    rows = []
    for place in draw(st.lists(places, unique=True, max_size=max_size)):
        arguments = draw(st.lists(st.sampled_from(IDS), max_size=4)) if place[2] != "baseline" else []
        rows.append(Row(*place, draw(st.tuples(stance, stance, stance)), tuple(arguments)))
    return rows


def counts_from(model: str, cells: dict[str, list[Cell]]) -> ModelCounts:
    """A model known by its totals alone: for each issue, its cases' (pro, con, other)."""
    issues = tuple(sorted(cells))
    pooled = np.array([cells[issue] for issue in issues], dtype=np.int64).reshape(-1, len(CASES), len(STANCES))
    return ModelCounts(model, issues, pooled)


# Ties, zero cells, all Other, and the very bounds of a tenth, of four fifths and of 30%.
cells = (
    st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3))
    | st.sampled_from([(0, 0, 0), (0, 0, 3), (10, 0, 0), (9, 1, 0), (1, 9, 0), (0, 10, 0), (7, 0, 3), (19, 1, 0)])
)  # fmt: skip
pooled_counts = st.dictionaries(st.sampled_from("abcd"), st.lists(cells, min_size=6, max_size=6), max_size=4)
