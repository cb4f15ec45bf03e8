"""What verification needs of a run whose manifest lists its items, so that neither data nor the benchmark's own program
is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct

from .item import Item, Wrong


class ListedRun(Struct, frozen=True, kw_only=True):
    """The items of a run, and how its records are checked."""

    items: Iterable[Item] | None
    """The items of the run; None: not known, since the benchmark's code is not available."""
    data: str | None
    """The digest of its data now; None: the data can't be read."""
    why_unread: str = ""
    """Why the data can't be read; empty: they can."""
    check: Callable[[Any, Item | None], Wrong]
    """Returns what is wrong with a record by the benchmark's own rules; the item is None if not known."""
    title: str = ""
    """The name of the records' owner in messages; empty: the benchmark's title."""
    unproven: tuple[str, ...] = ()
    """Sentences on what could not be checked."""
