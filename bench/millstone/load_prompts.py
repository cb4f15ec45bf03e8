"""Provides the prompts of MillStone's grid for a load test."""

from __future__ import annotations

from pathlib import Path

from ..evaluation.door.benchmark import LoadPrompts
from .dataset import load
from .grid import Grid
from .labels import compared
from .sample import sample_ids
from .work import SAMPLE

# Enough prompts to include all kinds of a grid, few enough to be held in memory.
GRID_MOST = 5_000


def load_prompts(dataset: Path | None) -> LoadPrompts:
    """Returns the prompts of a run over a data set (None: the sample), or 5,000 of them spread over the whole grid if
    there are more."""
    grid = Grid(load(dataset or SAMPLE))
    wanted = set(sample_ids(grid, GRID_MOST))
    prompts = [item.prompt for item in grid.items(lambda item_id: item_id not in wanted)]
    many = f"{len(prompts):,}" if len(prompts) == len(grid) else f"{len(prompts):,} of the {len(grid):,}"
    labels = compared(grid.dataset, range(1, grid.templates + 1))
    differ = f"; its {labels.used} (a load test reads no label)" if labels.mismatches else ""
    return LoadPrompts(prompts, f"{many} prompts of MillStone's grid ({grid.dataset.name}){differ}")
