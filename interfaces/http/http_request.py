"""One request on a connection, and the part of its body received so far.

Owns the bound on bodies. Knows no socket, no path and no JSON: http_framing makes requests, request_handler reads them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from msgspec import Struct, field

from ...providers.llm.serve_dialect import Problem, RequestRefusal
from .body_memory import LONG_BYTES, BodyMemory, MemoryShare

BODY_BYTES_MAX = 16 << 20
# The rest of a body this short is on its way: closing the connection for it is not worth while.
_SOON_BYTES = 64 << 10
_PIECE_BYTES = 256 << 10


def too_large() -> RequestRefusal:
    return RequestRefusal(f"the body is larger than {BODY_BYTES_MAX >> 20} MiB: cut it", None, "too_large", 413)


class RequestHead(Struct, frozen=True):
    """The head of one request. `headers` has all values of each header in order, by its name in lower case. `remote`
    and `local`: the addresses at the two ends of the connection."""

    method: str
    target: str
    headers: Mapping[str, list[str]]
    remote: str
    local: str


class Body(Struct, eq=False):
    """The received part of a request's body, still compressed. `size` is in bytes."""

    size: int = 0
    is_whole: bool = False
    # Small pieces are joined, since each would cost many times its length; none grows so large that moving it takes
    # long.
    _pieces: list[bytes | bytearray] = []
    _fault: RequestRefusal | None = None
    _waiter: asyncio.Future[None] | None = None

    def take(self, data: bytes) -> None:
        self.size += len(data)
        last = self._pieces[-1] if self._pieces else b""
        if isinstance(last, bytearray) and len(last) < _PIECE_BYTES:
            last += data
        else:
            self._pieces.append(data if not last or len(data) >= _PIECE_BYTES else bytearray(data))

    def end(self, fault: RequestRefusal | None = None) -> None:
        """Marks the body as whole; `fault`: why it never will be."""
        self.is_whole = fault is None
        self._fault = fault
        if fault is not None:
            self._pieces.clear()
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def forget(self) -> None:
        """Drops the bytes, which are not needed any more."""
        self._pieces.clear()

    @property
    def is_broken(self) -> bool:
        return self._fault is not None

    @property
    def data(self) -> bytes:
        """The bytes received so far in one piece, joined anew at each access."""
        return b"".join(self._pieces)

    async def whole(self) -> None:
        """Waits until the body is whole; only one may wait. Raises RequestRefusal if it never will be."""
        if not self.is_whole and self._fault is None:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        if self._fault is not None:
            raise self._fault


class HttpRequest(Struct, eq=False):
    """One request on a connection. `is_new`: it is HTTP/1.1, else 1.0; `is_last`: none follows it on its connection;
    `length`: its body's declared bytes, 0 if not declared; `fault`: why it can't be read at all; `share`: a long
    body's share of the memory, None for a short one."""

    seen: RequestHead
    is_new: bool = True
    is_last: bool = False
    length: int = 0
    fault: Problem | None = None
    body: Body = field(default_factory=Body)
    share: MemoryShare | None = None
    _admitted: asyncio.Future[None] | None = None

    @property
    def is_long(self) -> bool:
        """Whether the body is long, or may become so when it is decompressed."""
        return max(self.length, self.body.size) > LONG_BYTES or "content-encoding" in self.seen.headers

    @property
    def is_waiting(self) -> bool:
        """Whether the body still waits for its share of the memory."""
        return self.share is not None and not self.share.is_granted

    def enter(self, room: BodyMemory, granted: Callable[[], None]) -> None:
        """Takes a share of the memory, or waits for one; `granted` is called when it has it."""

        def admitted() -> None:
            if self._admitted is not None and not self._admitted.done():
                self._admitted.set_result(None)
            granted()

        size = self.length
        if "content-encoding" in self.seen.headers or not size:
            size = BODY_BYTES_MAX  # not known before it is received
        self.share = room.enter(min(size, BODY_BYTES_MAX), admitted)

    async def admitted(self) -> None:
        """Waits until there is memory for the body; only one may wait."""
        if self.is_waiting:
            self._admitted = asyncio.get_running_loop().create_future()
            await self._admitted

    def leave(self) -> None:
        if self.share is not None:
            share, self.share = self.share, None
            share.release()

    @property
    def is_soon_whole(self) -> bool:
        """Whether the body is whole, or is so short that it soon will be. False for a client that waits for `100
        Continue`, since it may not send the body any more."""
        body = self.body
        if body.is_whole or body.is_broken:
            return body.is_whole
        return 0 < self.length <= _SOON_BYTES and "expect" not in self.seen.headers

    def header(self, name: str) -> str | None:
        """Returns a header's values joined by commas, as HTTP defines it, so that none of several is taken for the only
        one; None if it is missing."""
        values = self.seen.headers.get(name)
        return None if values is None else ", ".join(values)
