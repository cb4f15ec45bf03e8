"""Letters and positions (docs/millstone.md): whether baseline answers follow the letter A, or the position named first.
Only baselines are read, since no argument moves them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...format import count_text, decimal_text
from ..statistics.intervals import mean_interval
from .counts import ModelCounts
from .openness import Counts

# A is what is named first, in favor in two of these and against in their mirror images.
_MIRRORED = [2, 3, 5, 6]
_REMARKED_ABOVE = 10  # points


@dataclass(frozen=True)
class Letters:
    """Figures of one model's baseline, in percent; None where there is nothing to compare.

    `effect`: the pro share where A, named first, is in favor minus that where it is against, the mean over
    `effect_issues`, with its 95% interval. `position`: that of template 1 minus that of 4, if A is in favor in both,
    over `position_issues`. `share_of_a`: of the answers that name a letter. The agreements: of the pairs of answers to
    two templates of an issue, and to one prompt, those with the same stance. `majorities`, `ties`: of the
    `effect_issues`, those with more pro than con answers to the mirrored templates, and with as many.
    """

    effect: float | None
    effect_low: float | None
    effect_high: float | None
    effect_issues: int
    position: float | None
    position_issues: int
    share_of_a: float | None
    template_agreement: float | None
    trial_agreement: float | None
    majorities: int | None
    ties: int | None


def letters(counts: ModelCounts) -> Letters | None:
    """Returns the figures of the issues whose baseline is not silent; None for published counts."""
    if counts.by_template is None or counts.sides is None:
        return None
    is_heard = counts.pooled[:, 0].any(axis=-1)
    stances, side = counts.by_template[is_heard], counts.sides[is_heard]
    is_mirrored = (side[:, [2, 3]] + side[:, [5, 6]] == 1).all(axis=1)
    four, is_con = stances[is_mirrored][:, _MIRRORED], side[is_mirrored][:, _MIRRORED, None]
    alike = stances[(side[:, 1] == 0) & (side[:, 4] == 0)]
    lead = four[..., 0].sum(axis=1) - four[..., 1].sum(axis=1)
    a, b = (sum(int(stances[side == each, each ^ other].sum()) for each in (0, 1)) for other in (0, 1))
    by_issue, by_prompt = stances.sum(axis=1), stances.sum(axis=2)
    effects = _differences((four * (1 - is_con)).sum(axis=1), (four * is_con).sum(axis=1))
    over = mean_interval(effects, within=(-100, 100), of="issues") if len(four) else None
    return Letters(
        _mean(effects),
        None if over is None else over.low,
        None if over is None else over.high,
        len(four),
        _mean(_differences(alike[:, 1], alike[:, 4])),
        len(alike),
        _percent(a, a + b),
        _percent(_pairs(by_issue) - _pairs(stances), _pairs(by_issue.sum(axis=1)) - _pairs(by_prompt)),
        _percent(_pairs(stances), _pairs(by_prompt)),
        int((lead > 0).sum()) if len(four) else None,
        int((lead == 0).sum()) if len(four) else None,
    )


def letters_remarks(name: str, letters: Letters) -> Iterator[str]:
    if max(abs(letters.effect or 0), abs(letters.position or 0)) > _REMARKED_ABOVE:
        alone = f"{decimal_text(letters.position, 1)} by position alone (1 minus 4, {letters.position_issues:,})"
        ends = "no interval over issues"
        if letters.effect_low is not None:
            ends = f"95% interval {decimal_text(letters.effect_low, 1)} to {decimal_text(letters.effect_high, 1)}"
        yield (
            f"{name}: its baseline stances follow letter or position: {decimal_text(letters.effect, 1)} points of pro "
            f"share (templates 2, 3 minus 5, 6; {count_text(letters.effect_issues, 'issue')}, {ends}), "
            f"{alone if letters.position_issues else 'which no template 4 tells apart'}."
        )


def _differences(first: Counts, second: Counts) -> NDArray[np.float64]:
    """Returns the difference of two pro shares on each issue, in points."""
    shares: list[NDArray[np.float64]] = [each[:, 0] / each.sum(axis=1) for each in (first, second)]
    return 100 * (shares[0] - shares[1])


def _mean(figures: NDArray[np.float64]) -> float | None:
    return float(figures.mean()) if len(figures) else None


def _pairs(counts: Counts) -> int:
    return int((counts * (counts - 1) // 2).sum())


def _percent(part: int, whole: int) -> float | None:
    return 100 * part / whole if whole else None
