"""The interface between a benchmark's run and the verbs that execute it. Knows no benchmark by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from ....engine.fault import Stop
from ....engine.runs.pairs import FinishedItems, Pair, PairCounts
from ....engine.runs.run_folder import RunFolder
from ....metrics.naming import treated_name
from ....wiring import Settings

if TYPE_CHECKING:
    from ....wiring.engine import Engine


class RunCounts(Struct, frozen=True):
    """What a run's journals hold: how each pair's items ended, and the scores. `remarks` are a benchmark's own
    sentences, `details` the same for programs.

    `unmeasured` has a sentence with the reason for each thing that could not be measured, such as a model without
    answers. If there is one, the exit code is 3, or 4 while work is pending.
    """

    ended: Mapping[Pair, PairCounts]
    scores: dict[str, Any]
    remarks: tuple[str, ...] = ()
    details: Mapping[str, Any] = MappingProxyType({})
    unmeasured: tuple[str, ...] = ()

    def of(self, pair: Pair) -> PairCounts:
        return self.ended.get(pair) or PairCounts()


class Remainder(Struct, frozen=True):
    """The prompts that one pair is still to be sent, and their characters; None: they contain answers."""

    prompts: int
    chars: int | None


class BenchmarkRun(Protocol):
    """The interface of a benchmark's run that is ready to be sent. An item is the unit of a journal line: a prompt or a
    turn."""

    @property
    def benchmark(self) -> str: ...

    @property
    def item(self) -> str:
        """The noun for one item."""
        ...

    @property
    def is_item_a_call(self) -> bool: ...

    @property
    def items(self) -> int:
        """The number of items of each pair."""
        ...

    @property
    def lanes(self) -> tuple[str, ...]:
        """The lanes of all models that are called, without repetition."""
        ...

    @property
    def max_tokens(self) -> Mapping[str, int | None]:
        """The highest max_tokens of each model's calls; None where its calls set none."""
        ...

    def pairs(self) -> list[Pair]: ...

    def worst_calls(self, settings: Settings) -> dict[str, float]:
        """Returns the dollars of the dearest possible call on each lane with a price."""
        ...

    def read_done(self, folder: RunFolder) -> FinishedItems: ...

    async def send(
        self, engine: Engine, folder: RunFolder, done: FinishedItems, item_ended: Callable[[], None]
    ) -> list[Stop]:
        """Sends the items that are not done. Calls `item_ended` after every line, where an item takes several calls."""
        ...

    def count(self, folder: RunFolder) -> RunCounts: ...

    @property
    def score_columns(self) -> tuple[str, ...]: ...

    def score_cells(self, scores: Mapping[str, Any], pair: Pair) -> tuple[str, ...]:
        """Returns the texts of a pair's row under `score_columns`."""
        ...


def entry_of(scores: Mapping[str, Any], pair: Pair) -> Mapping[str, Any]:
    """Returns a pair's scores, empty if it has none. A model with a single treatment has an entry under its
    name alone; under that name there may also be an entry for each treatment."""
    models = scores["models"]
    entry: Mapping[str, Any] = models.get(treated_name(pair)) or models.get(pair.model) or {}
    nested = entry.get(pair.treatment)
    return nested if isinstance(nested, Mapping) else entry
