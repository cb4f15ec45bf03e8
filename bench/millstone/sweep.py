"""A MillStone run: what decides its answers, which items are done, and the calls of all its models at once.

Owns the specification, and that each (model, temperature, id) gets one journal line at most. The open folder and the
runner of calls are passed in; builds no engine, reads no clock, prints nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from ...engine.fault import Stop
from ...engine.runs.pairs import FinishedItems, Pair
from ...engine.runs.run_folder import RunFolder
from ...metrics.millstone.stance import Reading
from ..evaluation.journals import read_done as read_done
from ..evaluation.sweep import StreamRunner, send_calls
from .grid import Grid, calls, default_max_tokens
from .records import row

# A model that has never answered is given up after twenty identical rejections: these must be spread over the grid, not
# come from one issue whose words the model rejects.
_SPREAD = 20


class GridSpec(Struct, frozen=True):
    """The models of a run and the parameters of their calls. A temperature None is not sent. `max_tokens` None: `unset`
    has each model's value, decided when the run began; a model that it lacks gets the protocol's value for its name.
    `reading`: how a text becomes a stance."""

    models: tuple[str, ...]
    temperatures: tuple[float | None, ...] = (None,)
    max_tokens: int | None = None
    reading: Reading = "paper"
    unset: Mapping[str, int | None] = {}

    def __post_init__(self) -> None:
        for name, values in (("models", self.models), ("temperatures", self.temperatures)):
            if not values or len(set(values)) < len(values):
                raise ValueError(f"{name} ({', '.join(map(str, values))}) must be at least one, each named once")

    def pairs(self) -> list[Pair]:
        return [Pair(model, temperature) for model in self.models for temperature in self.temperatures]

    def max_tokens_of(self, model: str) -> int | None:
        if self.max_tokens is not None:
            return self.max_tokens
        return self.unset[model] if model in self.unset else default_max_tokens(model)


def specification(grid: Grid, asked: GridSpec, endpoints: Mapping[str, str]) -> dict[str, Any]:
    """Returns the values that decide prompts and answers; `endpoints` has each model's address as in its cache keys."""
    return {
        "benchmark": "millstone",
        **grid.specification(),
        "models": list(asked.models),
        "endpoints": dict(endpoints),
        "temperatures": list(asked.temperatures),
        "max_tokens": {model: asked.max_tokens_of(model) for model in asked.models},
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
            pair.model,
            pair.temperature,
            asked.max_tokens_of(pair.model),
            done.of(pair).__contains__,
            spread=0 if pair.model in done.answered else _SPREAD,
        )
        for pair in asked.pairs()
    }
    return await send_calls(runner, streams, folder.sink(lambda outcome: row(outcome, asked.reading)))
