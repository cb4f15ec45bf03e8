"""What the command line asks of a benchmark, so that one way of carrying a run out serves them all.

Owns the words between a verb and a benchmark; knows none by name. Who offers them: benchmarks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Protocol

from msgspec import Struct

from ..engine.admission import Stop
from ..engine.pairs import Done, Ended, Pair
from ..engine.run_folder import RunFolder
from ..wiring import Engine, Settings


class Counted(Struct, frozen=True):
    """What a run's journals hold: how the items of each pair ended, and the scores of what was answered. `remarks` are
    what a benchmark says of them besides, `details` the same for programs.

    `unmeasured` has a sentence for each thing of which nothing was measured (a model that answered nothing, a web that
    was down), with the reason. Where there is one, the exit code is 3, or 4 while work is pending.
    """

    ended: Mapping[Pair, Ended]
    scores: dict[str, Any]
    remarks: tuple[str, ...] = ()
    details: Mapping[str, Any] = MappingProxyType({})
    unmeasured: tuple[str, ...] = ()

    def of(self, pair: Pair) -> Ended:
        return self.ended.get(pair) or Ended()


class Work(Protocol):
    """A benchmark's run, ready to be sent. An item is what gets a line in a journal: a prompt, a turn."""

    @property
    def benchmark(self) -> str: ...

    @property
    def item(self) -> str:
        """What one of its items is called."""
        ...

    @property
    def is_item_a_call(self) -> bool: ...

    @property
    def items(self) -> int:
        """Of each pair."""
        ...

    @property
    def lanes(self) -> tuple[str, ...]:
        """Every model that calls go to, each once."""
        ...

    def pairs(self) -> list[Pair]: ...

    def worst_calls(self, settings: Settings) -> dict[str, float]:
        """The dollars that the dearest call on each lane with a price can cost."""
        ...

    def read_done(self, folder: RunFolder) -> Done: ...

    async def send(self, engine: Engine, folder: RunFolder, done: Done, item_ended: Callable[[], None]) -> list[Stop]:
        """Ask what is not done. `item_ended` is told of every line written, where an item takes several calls."""
        ...

    def count(self, folder: RunFolder) -> Counted: ...

    @property
    def score_columns(self) -> tuple[str, ...]: ...

    def score_cells(self, scores: Mapping[str, Any], pair: Pair) -> tuple[str, ...]:
        """A pair's cells under `score_columns`."""
        ...
