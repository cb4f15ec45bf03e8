"""The interface of progress displays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ....wiring.engine import Engine


class ItemProgress(Protocol):
    """The interface of a run's progress display."""

    def item_ended(self) -> None:
        """Counts one more finished item; called only where items take several calls."""
        ...


Watch = Callable[["Engine", int, int, str], AbstractContextManager[ItemProgress]]
"""Opens the progress display of a run, entered when the first call is about to be sent. Its arguments: the engine, the
number of items, how many are done already, and the noun for an item (empty: an item is one call)."""


class _NoView:
    def item_ended(self) -> None:
        pass


@contextmanager
def unwatched(engine: Engine, total: int, already: int, item: str) -> Iterator[ItemProgress]:
    """Opens a display that shows nothing."""
    yield _NoView()
