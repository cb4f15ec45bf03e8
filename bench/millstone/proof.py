"""Verifies a MillStone run: compares manifest, journals, data set and scores.

Every line must be intact, and every id of the grid must occur exactly once for each model and temperature. A record's
parts must be those of its id, its letter and stance those of its text, its arguments those that the prompt showed.
Digests and scores must equal those computed again. Reports, repairs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from typing import Any, get_args

from ...metrics.millstone.stance import Letter, Reading, letter_of, stance_of
from ..evaluation.door.item import Item
from ..evaluation.door.listed_run import ListedRun
from .dataset import DatasetError
from .grid import CONFIGS, Grid, grid_of
from .records import Record
from .recount import TEXTS_REMEMBERED
from .work import dataset_of

_READINGS = get_args(Reading)
_NOT_COMPARED = "arguments: the run's prompts can't be built here, so nobody compared what they showed"


def listed_grid(manifest: Mapping[str, Any]) -> ListedRun:
    """Returns the items of a run's grid, and how its records are checked. If its data set can't be read, its digest is
    not compared."""
    specification = manifest["specification"]
    try:
        dataset = dataset_of(manifest)
    except (DatasetError, OSError):
        dataset = None
    # None also if the data set is not the run's, or this version makes other prompts of it.
    grid = None if dataset is None else grid_of(specification, dataset)
    # Models repeat themselves.
    letter = lru_cache(TEXTS_REMEMBERED)(partial(letter_of, reading=specification["stance"]))
    return ListedRun(
        items=map(Item, ids_of(specification)) if grid is None else _shown_items(grid),
        data=None if dataset is None else dataset.digest,
        check=partial(_wrong_in, reading=specification["stance"], letter_in=letter),
        unproven=(_NOT_COMPARED,) if grid is None else (),
    )


def _shown_items(grid: Grid) -> Iterator[Item]:
    """Yields the items of a grid, each with its orientation and arguments as its data."""
    return (Item(name, (side, arguments)) for name, side, arguments in grid.shown())


def _wrong_in(
    record: Record, item: Item | None, reading: Reading, letter_in: Callable[[str], Letter | None]
) -> list[str]:
    """Returns what contradicts something else in a record, or the data set: a line that was changed and sealed anew."""
    wrong = []
    cell = f"{record.issue}/{record.template}/{record.config}/{record.trial}"
    if cell != record.id:
        wrong.append(f"{record.id}: its fields are of {cell}")
    if item is not None and item.data is not None:
        orientation, arguments = item.data
        if record.orientation != orientation:
            wrong.append(f"{record.id}: orientation {record.orientation}; the data set gives {orientation}")
        if record.arguments != arguments:
            has, in_prompt = (", ".join(each) or "none" for each in (record.arguments, arguments))
            wrong.append(f"{record.id}: arguments {has}; the run showed {in_prompt}")
    if reading not in _READINGS:
        expected = " or ".join(_READINGS)
        wrong.append(f"{record.id}: manifest.json has the stance reading {reading}, expected {expected}")
    elif record.stance is not None and record.orientation is not None:
        letter = None if record.status == "refused" else letter_in(record.text or "")
        stance = stance_of(letter, record.orientation)
        if (record.letter, record.stance) != (letter, stance):
            has = f"letter {record.letter}, stance {record.stance}"
            wrong.append(f"{record.id}: {has}; its text gives {letter}, {stance}")
    return wrong


def ids_of(specification: Mapping[str, Any]) -> Iterator[str]:
    """Yields the ids of the grid's items, computed from the specification alone."""
    for issue in specification["issues"]:
        for template in range(1, specification["templates"] + 1):
            for config in CONFIGS[specification["protocol"]]:
                for trial in range(specification["trials"]):
                    yield f"{issue}/{template}/{config.name}/{trial}"
