"""The interface of progress displays."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from ....engine.pairs import Pair
from ....engine.runs.run_folder import RunFolder

if TYPE_CHECKING:
    from ....wiring.engine import Engine


class ItemProgress(Protocol):
    """The interface of a run's progress display."""

    def item_ended(self) -> None:
        """Counts one more finished item; called only where items take several calls."""
        ...

    def scored(self, pair: Pair, score: float) -> None:
        """Adds the score of a record that was written."""
        ...


class OpenRun(Struct, frozen=True):
    """A run whose folder is open, so that other processes may see it there and steer it."""

    folder: RunFolder
    """Its folder."""
    lanes: tuple[str, ...]
    """The lanes of all models that it calls."""


class Watch(Protocol):
    """Opens the progress display of a run, entered when the first call is about to be sent. Its arguments: the engine,
    the number of items, how many are done already, the noun for an item (empty: an item is one call), and the run if
    it has a folder that others may look into."""

    def __call__(
        self, engine: Engine, total: int, already: int, item: str, run: OpenRun | None = None, /
    ) -> AbstractContextManager[ItemProgress]: ...


class _NoView:
    def item_ended(self) -> None:
        pass

    def scored(self, pair: Pair, score: float) -> None:
        pass


UNSEEN: ItemProgress = _NoView()
"""A display that shows nothing."""


@contextmanager
def unwatched(
    engine: Engine, total: int, already: int, item: str, run: OpenRun | None = None
) -> Iterator[ItemProgress]:
    """Opens a display that shows nothing."""
    yield UNSEEN
