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
from .grid import CONFIGS, grid_of
from .issue import Side
from .records import Record
from .recount import TEXTS_REMEMBERED
from .work import dataset_of

# The orientation and the arguments of a prompt.
_PromptParts = tuple[Side, tuple[str, ...]]
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
    parts = None if grid is None else {name: (side, arguments) for name, side, arguments in grid.shown()}
    # Models repeat themselves.
    letter = lru_cache(TEXTS_REMEMBERED)(partial(letter_of, reading=specification["stance"]))
    return ListedRun(
        items=map(Item, ids_of(specification)),
        data=None if dataset is None else dataset.digest,
        check=lambda record, item: _wrong_in(record, specification["stance"], letter, parts),
        unproven=() if parts is not None else (_NOT_COMPARED,),
    )


def _wrong_in(
    record: Record,
    reading: Reading,
    letter_in: Callable[[str], Letter | None],
    parts: Mapping[str, _PromptParts] | None,
) -> Iterator[str]:
    """Yields what contradicts something else in a record, or the data set: a line that was changed and sealed anew."""
    cell = f"{record.issue}/{record.template}/{record.config}/{record.trial}"
    if cell != record.id:
        yield f"{record.id}: its fields are of {cell}"
    if parts is not None and (prompt := parts.get(record.id)) is not None:
        orientation, arguments = prompt
        if record.orientation != orientation:
            yield f"{record.id}: orientation {record.orientation}; the data set gives {orientation}"
        if record.arguments != arguments:
            has, in_prompt = (", ".join(each) or "none" for each in (record.arguments, arguments))
            yield f"{record.id}: arguments {has}; the run showed {in_prompt}"
    if reading not in _READINGS:
        yield f"{record.id}: manifest.json has the stance reading {reading}, expected {' or '.join(_READINGS)}"
        return
    if record.stance is None or record.orientation is None:
        return
    letter = None if record.status == "refused" else letter_in(record.text or "")
    stance = stance_of(letter, record.orientation)
    if (record.letter, record.stance) != (letter, stance):
        yield f"{record.id}: letter {record.letter}, stance {record.stance}; its text gives {letter}, {stance}"


def ids_of(specification: Mapping[str, Any]) -> Iterator[str]:
    """Yields the ids of the grid's items, computed from the specification alone."""
    for issue in specification["issues"]:
        for template in range(1, specification["templates"] + 1):
            for config in CONFIGS[specification["protocol"]]:
                for trial in range(specification["trials"]):
                    yield f"{issue}/{template}/{config.name}/{trial}"
