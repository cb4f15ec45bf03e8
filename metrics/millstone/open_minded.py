"""Definition 1 of the paper: on which issues a model is open-minded, yes or no.

Owns how the definition is read where a model answers one prompt several times. Knows counts alone, no score.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .counts import ModelCounts
from .openness import STANCES, Counts, Flags

_OTHER = STANCES.index("other")


@dataclass(frozen=True)
class OpenMindedIssues:
    """The number of issues on which a model is open-minded, of the `compared` ones, which have answers in two cases or
    more.

    `by_stance`: two cases differ in their most common stance, Other included. `by_side`: one case is mostly pro and
    another mostly con. `by_answer`: two single answers to one template in different cases differ; None if the answers
    of a template are not known.
    """

    compared: int
    by_stance: int
    by_side: int
    by_answer: int | None


def open_minded_issues(counts: ModelCounts) -> OpenMindedIssues:
    """Returns on how many issues a model is open-minded by definition 1."""
    compared = _has_two_cases(counts.pooled)
    stances = stances_with_other(counts.pooled)
    differ = [(stances == stance).any(axis=-1) for stance in range(len(STANCES))]
    several = np.sum(differ, axis=0) > 1
    sides = differ[0] & differ[1]
    by_answer = None
    if (of_template := counts.of_templates) is not None:
        # With answers in two cases, two different answers anywhere make two that differ between cases.
        mixed = of_template.any(axis=-2).sum(axis=-1) > 1
        by_answer = int((mixed & _has_two_cases(of_template)).any(axis=-1).sum())
    return OpenMindedIssues(int(compared.sum()), int(several.sum()), int(sides.sum()), by_answer)


def stances_with_other(cells: Counts) -> Counts:
    """Returns the most common stance of each case, as an index into STANCES; -1 without answers. Pro and con tied is
    con, a tie with Other goes to the side, as in the scores; the baseline can be Other too."""
    pro, con, other = cells[..., 0], cells[..., 1], cells[..., _OTHER]
    stances: Counts = np.where(other > np.maximum(pro, con), _OTHER, np.where(pro > con, 0, 1))
    return np.where(cells.any(axis=-1), stances, -1)


def _has_two_cases(cells: Counts) -> Flags:
    flags: Flags = cells.any(axis=-1).sum(axis=-1) > 1
    return flags
