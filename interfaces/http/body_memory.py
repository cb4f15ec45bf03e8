"""The bound on the memory of all long bodies together: each waits for its share, first come, first served.

A share lasts from a body's first bytes until its request has been answered, since a call under way holds as much as its
body. Knows no socket: while a share waits, its connection reads nothing more of the body.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from msgspec import Struct

# A shorter body has no share, and is read at once.
LONG_BYTES = 64 << 10
ROOM_BYTES = 24 << 20


class MemoryShare(Struct, eq=False):
    """One body's share of the memory, `size` bytes. `granted` is called when a waiting share is given its bytes."""

    _room: BodyMemory
    size: int
    granted: Callable[[], None]
    is_granted: bool = False

    def shrink(self, size: int) -> None:
        """Gives back what a shorter body does not need; `size` is its bytes."""
        if size < self.size:
            self._room.give_back(self, self.size - size)

    def release(self) -> None:
        self._room.leave(self)


class BodyMemory:
    """The memory of all long bodies: `size` bytes, given out in shares."""

    def __init__(self, size: int = ROOM_BYTES) -> None:
        self._size = size
        self._taken = 0
        self._waiting: deque[MemoryShare] = deque()

    def __repr__(self) -> str:
        return f"<BodyMemory [{self._taken:,} of {self._size:,} bytes taken, {len(self._waiting)} waiting]>"

    def enter(self, size: int, granted: Callable[[], None]) -> MemoryShare:
        share = MemoryShare(self, size, granted)
        self._waiting.append(share)
        self._grant()
        return share

    def give_back(self, share: MemoryShare, size: int) -> None:
        share.size -= size
        if share.is_granted:
            self._taken -= size
        self._grant()

    def leave(self, share: MemoryShare) -> None:
        if not share.is_granted and share in self._waiting:
            self._waiting.remove(share)
        self.give_back(share, share.size)

    def _grant(self) -> None:
        while self._waiting and (not self._taken or self._taken + self._waiting[0].size <= self._size):
            share = self._waiting.popleft()
            share.is_granted = True
            self._taken += share.size
            share.granted()
