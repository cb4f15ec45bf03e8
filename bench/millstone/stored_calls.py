"""Rebuilds the call of one item of a MillStone run, as `resume` would."""

from __future__ import annotations

from ...configuration.errors import UsageError
from ..evaluation.stored_calls import RunLine, StoredCall
from ..evaluation.treatments import pairs_in
from .dataset import select
from .grid import Grid, calls
from .options import Options
from .sweep import GridSpec
from .work import dataset_of


def call_of(line: RunLine) -> StoredCall:
    """Returns the call of a line. Raises UsageError if the run has no such item."""
    run: Options = line.options
    specification = line.manifest["specification"]
    pair = line.pair(pairs_in(specification))
    grid = Grid(select(dataset_of(line.manifest), run.issues), run.protocol, run.templates, run.trials, run.citations)
    limits = specification.get("max_tokens") or {}
    max_tokens = GridSpec((pair,), run.max_tokens, unset=limits).max_tokens_of(pair)
    call = next(calls(grid, pair, max_tokens, lambda other: other != line.id), None)
    if call is None:
        raise UsageError(
            f"{line.folder} has no item {line.id!r}: expected issue/template/config/trial, as {next(grid.ids())}"
        )
    has_changed = grid.dataset.digest != specification.get("data")
    return StoredCall(
        call, ("the data set has changed since the run began, and its prompts may have",) if has_changed else ()
    )
