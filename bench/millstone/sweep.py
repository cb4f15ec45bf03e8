"""A MillStone run: what decides its answers, which items are done, and the calls of all its models at once.

Owns the specification, and that each (pair, id) gets one journal line at most. The open folder and the
runner of calls are passed in; builds no engine, reads no clock, prints nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from msgspec import Struct

from ...engine.fault import Stop
from ...engine.runs.pairs import FinishedItems, Pair
from ...engine.runs.run_folder import RunFolder
from ...metrics.millstone.stance import Reading
from ..evaluation.journals import read_done as read_done
from ..evaluation.sweep import StreamRunner, send_calls
from ..evaluation.treatments import specified_pairs
from .grid import Grid, calls, default_max_tokens
from .records import row

# A model that has never answered is given up after twenty identical rejections: these must be spread over the grid, not
# come from one issue whose words the model rejects.
_SPREAD = 20


class GridSpec(Struct, frozen=True):
    """The pairs of a run and the parameters of their calls. `max_tokens` None: `unset` has each pair's value by
    `limit_name`, decided when the run began; a pair that it lacks gets the protocol's value for its model's name.
    `reading`: how a text becomes a stance."""

    pairs: tuple[Pair, ...]
    max_tokens: int | None = None
    reading: Reading = "paper"
    unset: Mapping[str, int | None] = {}

    def __post_init__(self) -> None:
        if not self.pairs or len(set(self.pairs)) < len(self.pairs):
            raise ValueError(f"pairs ({', '.join(map(str, self.pairs))}) must be at least one, each named once")

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(pair.model for pair in self.pairs))

    def max_tokens_of(self, pair: Pair) -> int | None:
        if self.max_tokens is not None:
            return self.max_tokens
        name = limit_name(pair)
        return self.unset[name] if name in self.unset else default_max_tokens(pair.model)

    @property
    def highest_max_tokens(self) -> dict[str, int | None]:
        """The highest max_tokens of each model's calls; None: some are sent none."""
        return {
            model: highest([self.max_tokens_of(pair) for pair in self.pairs if pair.model == model])
            for model in self.models
        }


def highest(limits: Collection[int | None]) -> int | None:
    """Returns the highest of these limits; None, which is no limit, is above all."""
    return None if None in limits else max(limit for limit in limits if limit is not None)


def limit_name(pair: Pair) -> str:
    """Returns the name under which a specification has a pair's max_tokens: it does not depend on the temperature."""
    return str(pair._replace(temperature=None))


def specification(grid: Grid, asked: GridSpec, endpoints: Mapping[str, str]) -> dict[str, Any]:
    """Returns the values that decide prompts and answers; `endpoints` has each model's address as in its cache keys."""
    return {
        "benchmark": "millstone",
        **grid.specification(),
        **specified_pairs(asked.pairs),
        "endpoints": dict(endpoints),
        "max_tokens": {limit_name(pair): asked.max_tokens_of(pair) for pair in asked.pairs},
        "stance": asked.reading,
    }


async def run_sweep(
    runner: StreamRunner, folder: RunFolder, grid: Grid, asked: GridSpec, done: FinishedItems
) -> list[Stop]:
    """Sends the calls that are not done. Returns the stops that left calls pending; raises LocalFault once every pair
    has ended."""
    streams = {
        pair: calls(
            grid,
            pair,
            asked.max_tokens_of(pair),
            done.of(pair).__contains__,
            spread=0 if pair.model in done.answered else _SPREAD,
        )
        for pair in asked.pairs
    }
    return await send_calls(runner, streams, folder.sink(lambda outcome: row(outcome, asked.reading)))
