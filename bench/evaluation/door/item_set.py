"""The items of a run: counted, chosen and made when they are asked, so that never all prompts are held."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from .expected import Remainder
from .item import Item, steps_of


def no_item(item: str) -> bool:
    """Skips no item."""
    return False


class ItemSet:
    """The items of a run, and what its manifest and a reader must know of their data. `items` are kept, or made anew by
    a function each time that they are needed. A benchmark with very many items extends this class, to count and choose
    them without making them."""

    ids_are = "its ids are as"
    """The words before an example of an id."""
    have_changed = "the data have changed since the run began"
    """A sentence for a run whose data are others by now."""

    def __init__(
        self,
        items: Sequence[Item] | Callable[[], Iterable[Item]],
        *,
        digest: str = "",
        dataset: Mapping[str, Any] = MappingProxyType({}),
        notes: tuple[str, ...] = (),
        is_balanced: bool = False,
        title: str = "items()",
    ) -> None:
        self._items = items
        self.dataset = dataset
        """The data as the manifest describes them; empty: path, digest and number of items."""
        self.notes = notes
        """Sentences on the data, printed once."""
        self.is_balanced = is_balanced
        """Whether the first items stand for all, so that a pilot takes these. Otherwise it takes items that are spread
        evenly."""
        self.groups: Counter[str] = Counter()
        """The number of items in each group."""
        self._sum = hashlib.sha256()
        self.steps: Mapping[str, int] = steps_of(self._counted(is_hashed=not digest), title)
        """The number of each item's journal lines, by its id."""
        self.lines = sum(self.steps.values())
        """The number of journal lines of each pair."""
        self.digest = digest or self._sum.hexdigest()
        """The digest of the data, by default the SHA-256 of all items; in it, a value that JSON can't hold counts by
        its type's name."""

    def __len__(self) -> int:
        return len(self.steps)

    def __iter__(self) -> Iterator[Item]:
        return self.left(no_item)

    def left(self, skip: Callable[[str], bool], *, is_untried: bool = False) -> Iterator[Item]:
        """Yields the items in the order in which they are asked, except those for whose ids `skip` returns True.
        `is_untried`: they go to a model that has not answered yet."""
        for item in self._each():
            if item.id in self.steps and not skip(item.id):
                yield item

    def keep_in(self, folder: Path) -> None:
        """Writes into the folder of a run that begins what its pages need beside the records; by default nothing."""

    def whole(self) -> Remainder | None:
        """Returns the prompts of a pair and their characters; None: they must be made to be counted."""
        return None

    def longest(self) -> Iterable[Item]:
        """Returns items among which is the one with the longest prompt."""
        return self

    def sample(self, size: int) -> list[str]:
        """Returns the ids of `size` items that stand for all, in the order in which a pilot asks them."""
        names = list(self.steps)
        size = min(size, len(names))
        return [names[at if self.is_balanced else at * len(names) // size] for at in range(size)]

    def only(self, ids: Sequence[str]) -> ItemSet:
        """Returns these items alone, in this order."""
        wanted = set(ids)
        few = {item.id: item for item in self.left(lambda name: name not in wanted)}
        return ItemSet([few[name] for name in ids], digest=self.digest, dataset=self.dataset)

    def _each(self) -> Iterable[Item]:
        return self._items() if callable(self._items) else self._items

    def _counted(self, *, is_hashed: bool) -> Iterator[Item]:
        encode = msgspec.json.Encoder(enc_hook=_type_of, order="sorted").encode
        for item in self._each():
            yield item
            # After the check that it is an item.
            self.groups[item.group] += 1
            if is_hashed:
                self._sum.update(encode([item.id, item.of, item.steps, item.group, item.data]))
                self._sum.update(b"\n")


def _type_of(value: object) -> str:
    # A repr may contain an address in memory, which differs in the next process.
    return type(value).__qualname__
