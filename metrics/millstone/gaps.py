"""Gaps: the answers of a run's grid that a model did not give.

Owns the comparison of answers with their grid, so that no figure silently averages over missing ones. Knows neither why
an answer is missing nor where the grid is stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .answers import AnswerRows
from .openness import CASES, CONFIGS, case_of


@dataclass(frozen=True)
class Shape:
    """A grid of answers: every issue with every template, configuration and trial, each named once."""

    issues: tuple[str, ...]
    templates: tuple[int, ...]
    configs: tuple[str, ...]
    trials: tuple[int, ...]

    def by_case(self) -> NDArray[np.int64]:
        """Returns the number of answers that an issue has in each case, in the order of CASES."""
        configs = np.bincount([CASES.index(case_of(config) or "") for config in self.configs], minlength=len(CASES))
        return configs * (len(self.templates) * len(self.trials))

    def __len__(self) -> int:
        return len(self.issues) * len(self.templates) * len(self.configs) * len(self.trials)

    def __repr__(self) -> str:
        return (
            f"<Shape [{len(self.issues)} issues x {len(self.templates)} templates x {len(self.configs)} configurations"
            f" x {len(self.trials)} trials = {len(self):,} answers]>"
        )


@dataclass(frozen=True)
class Gaps:
    """One model's answers compared with a shape. `answered` counts cells of the shape, each once; `by_case` has the
    number of missing answers for each (issue, case) that lacks any, in order of issue and case.

    `beyond` counts answers outside the shape.
    """

    expected: int
    answered: int
    missing: int
    by_case: Mapping[tuple[str, str], int]
    beyond: int

    @property
    def is_complete(self) -> bool:
        return self.missing == 0


def inferred(answers: AnswerRows, run: Sequence[AnswerRows] = ()) -> Shape:
    """Returns the shape inferred from a model's answers, for runs without a manifest.

    Its issues are those with answers, so a model asked on some issues only is complete if these are. Templates,
    configurations and trials are all that occur anywhere in `run`, the answers of the same run. An answer that no model
    of a run gave can't be known to be missing.
    """
    beside = (answers, *run)
    return Shape(
        answers.issues,
        tuple(np.unique(np.concatenate([np.unique(other.template) for other in beside])).tolist()),
        tuple(CONFIGS[at] for at in np.unique(np.concatenate([np.unique(other.config) for other in beside]))),
        tuple(np.unique(np.concatenate([np.unique(other.trial) for other in beside])).tolist()),
    )


def gaps(answers: AnswerRows, shape: Shape) -> Gaps:
    """Returns how a model's answers differ from a shape: which are missing, or outside of it."""
    places = {issue: at for at, issue in enumerate(shape.issues)}
    of_issue = np.array([places.get(issue, -1) for issue in answers.issues], dtype=np.int64)
    of_config = np.array(
        [shape.configs.index(config) if config in shape.configs else -1 for config in CONFIGS], dtype=np.int64
    )
    sizes = (len(shape.templates), len(shape.configs), len(shape.trials))
    columns = (
        of_issue[answers.issue],
        _places(answers.template, shape.templates),
        of_config[answers.config],
        _places(answers.trial, shape.trials),
    )
    within = np.logical_and.reduce([column >= 0 for column in columns])
    issue, template, config, trial = (column[within] for column in columns)
    numbers = ((issue * sizes[0] + template) * sizes[1] + config) * sizes[2] + trial
    cells, _ = np.unique(numbers, return_counts=True)  # without the counts, numpy loads numpy.ma
    by_case = _missing_by_case(cells, shape)
    return Gaps(
        expected=len(shape),
        answered=len(cells),
        missing=len(shape) - len(cells),
        by_case={
            (shape.issues[issue], CASES[case]): int(by_case[issue, case]) for issue, case in np.argwhere(by_case > 0)
        },
        beyond=len(answers) - len(issue),
    )


def _missing_by_case(cells: NDArray[np.int64], shape: Shape) -> NDArray[np.int64]:
    """Returns the number of missing answers by issue and case, from the numbers of the answered cells. It makes no
    array of the whole shape, which a stray trial number would make huge."""
    case_of_config = np.array([CASES.index(case_of(config) or "") for config in shape.configs], dtype=np.int64)
    config = cells // max(len(shape.trials), 1)
    issue = config // max(len(shape.configs) * len(shape.templates), 1)
    place = issue * len(CASES) + case_of_config[config % max(len(shape.configs), 1)]
    answered = np.bincount(place, minlength=len(shape.issues) * len(CASES)).reshape(-1, len(CASES))
    missing: NDArray[np.int64] = shape.by_case() - answered
    return missing


def _places(values: NDArray[np.int32], allowed: tuple[int, ...]) -> NDArray[np.int64]:
    """Returns each value's index among the sorted allowed ones; -1 if it is not allowed."""
    if not allowed:
        return np.full(len(values), -1, dtype=np.int64)
    ordered = np.array(sorted(allowed), dtype=np.int64)
    at = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    return np.where(ordered[at] == values, at, -1)
