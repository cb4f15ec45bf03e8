"""A few prompts that represent a whole grid: the same ones on every machine, spread over issues, templates,
configurations and trials.

Owns which items are chosen and in which order. Every item has the same probability, and each beginning of the order is
spread as the whole is, so that a sample can be cut short or made larger later.
"""

from __future__ import annotations

from itertools import count
from math import gcd

from .draws import numbers
from .grid import Grid

SAMPLE_VERSION = 2
# Configurations that follow each other in a protocol's table are alike.
_STRIDE = 4


def sample_ids(grid: Grid, size: int) -> list[str]:
    """Returns the ids of `size` items, or of all if the grid has fewer; a smaller sample is the beginning of a larger
    one.

    Issues take turns, in an order drawn by lot. Each has the next template, another configuration and another trial
    than the issue before it; the first ones are drawn.
    """
    issues = [issue.id for issue in grid.dataset.issues]
    pairs = grid.templates * len(grid.configs)
    seed = f"millstone-sample-{SAMPLE_VERSION}/{grid.dataset.draw_digest}"
    *lots, first_pair, first_trial = numbers(seed, [*[65536] * len(issues), pairs, grid.trials])
    issues = [issue for _, issue in sorted(zip(lots, issues, strict=True))]
    # Eleven configurations and up to six templates have no common divisor: so each pair comes once in `pairs` turns.
    step = next(number for number in count(len(issues)) if gcd(number, pairs) == 1)
    ids = []
    for number in range(min(size, len(grid))):
        turn, at = divmod(number, len(issues))
        pair = (first_pair + turn * step + at) % pairs
        trial = (first_trial + turn // pairs + pair) % grid.trials
        config = grid.configs[_STRIDE * pair % len(grid.configs)].name
        ids.append(f"{issues[at]}/{pair % grid.templates + 1}/{config}/{trial}")
    return ids
