"""The connections of one engine to providers: pools by server, and how many may be open at once.

Connections belong to a server, not to a lane or a key, so that thousands of lanes need few. Idle ones are closed soon;
where this machine allows no more, calls wait for room. Knows HTTP's connection and nothing above it.
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Protocol, cast

import aiohttp
from aiohttp.connector import Connection
from yarl import URL

from .connection_faults import silent_address
from .http_connection import HttpConnection
from .unanswered import UnansweredAddresses

# An address that has never answered is named after so many seconds without a connection.
SILENT_S = 4.0
# Below the five seconds after which common servers close an idle connection.
KEEPALIVE_S = 4.0


class LineConnector(aiohttp.TCPConnector):
    """A connector that makes connections and keeps none: its caller pools or closes them."""

    def __init__(self) -> None:
        # Only lanes decide how many calls are in flight: the connector must not queue as well.
        super().__init__(limit=0, ttl_dns_cache=60)
        self._factory = functools.partial(HttpConnection, self._loop)  # type: ignore[assignment, arg-type]


class Waiter(Protocol):
    """A call that waits for a connection."""

    def take(self, held: PooledConnection | None) -> None:
        """Takes an idle connection of its pool, or None, which is the room for a new one; calls nothing back before it
        returns."""
        ...


class ConnectionPools:
    """All pools of one engine, of which at most `connections_max` connections are open at once. The connector is made
    with the first call, since it belongs to a running loop."""

    def __init__(self, unanswered: UnansweredAddresses, connections_max: int = 1 << 14) -> None:
        self.unanswered = unanswered
        self._connector: LineConnector | None = None
        self._pools: dict[tuple[URL, bool, float], Pool] = {}
        self.sweep: asyncio.TimerHandle | None = None
        self._room = connections_max
        self.waiting: OrderedDict[Waiter, Pool] = OrderedDict()
        self._opening: deque[Callable[[], None]] = deque()

    def __repr__(self) -> str:
        idle = sum(pool.idle for pool in self._pools.values())
        return f"<ConnectionPools [{f'{idle} idle' if self._connector is not None else 'closed'}]>"

    @property
    def connector(self) -> LineConnector:
        if self._connector is None:
            self._connector = LineConnector()
        return self._connector

    def pool(self, url: URL, connect_s: float, *, is_alone: bool) -> Pool:
        """Returns the pool of a URL's origin, which all channels share: many models of one server need no connection
        each. Requests with a connection of their own (`is_alone`) have another."""
        key = url.origin(), is_alone, connect_s
        pool = self._pools.get(key)
        if pool is None:
            request = aiohttp.ClientRequest("POST", url, loop=asyncio.get_running_loop())
            pool = Pool(self, request, aiohttp.ClientTimeout(total=None, connect=connect_s))
            self._pools[key] = pool
        return pool

    def take_room(self, pool: Pool, waiter: Waiter) -> bool:
        """Takes the room for one more connection. If there is none, the waiter gets it later, or a connection of the
        pool that has become idle, unless it leaves."""
        if (
            not self._room
            and (other := next((each for each in self._pools.values() if each.has_idle), None)) is not None
        ):
            other.close_oldest()
        if self._room:
            self._room -= 1
            return True
        self.waiting[waiter] = pool
        return False

    def leave(self, waiter: Waiter) -> None:
        """Ends a wait for room."""
        self.waiting.pop(waiter, None)

    def free_room(self) -> None:
        """Gives the room of a closed connection to the first call that waits."""
        if self.waiting:
            self.waiting.popitem(last=False)[0].take(None)
        else:
            self._room += 1

    def hand_over(self, held: PooledConnection, pool: Pool) -> None:
        """Gives an idle connection to the first call that waits, or its room to one that needs another server."""
        waiter, wanted = next(iter(self.waiting.items()))
        if wanted is pool:
            del self.waiting[waiter]
            waiter.take(held)
        else:
            held.close()

    def open_in_turn(self, begin: Callable[[], None]) -> None:
        """Calls what begins to open a connection, one in each turn of the loop: a server may hold only a few that it
        has not accepted yet, and a call on one beyond them waits for as long as its system tries again."""
        self._opening.append(begin)
        if len(self._opening) == 1:
            asyncio.get_running_loop().call_soon(self._open_next)

    def _open_next(self) -> None:
        begin = self._opening[0]
        try:
            begin()
        finally:
            self._opening.popleft()
            if self._opening:
                asyncio.get_running_loop().call_soon(self._open_next)

    def sweep_later(self) -> None:
        """Closes idle connections when they are too old, so that an idle server keeps no descriptors."""
        self.sweep = asyncio.get_running_loop().call_later(KEEPALIVE_S, self._close_old)

    def _close_old(self) -> None:
        self.sweep = None
        for pool in self._pools.values():
            pool.close_old()
        if any(pool.has_idle for pool in self._pools.values()):
            self.sweep_later()

    async def close(self) -> None:
        if self.sweep is not None:
            self.sweep.cancel()
            self.sweep = None
        for pool in self._pools.values():
            pool.close()
        self._pools.clear()
        if self._connector is not None:
            await self._connector.close()
            self._connector = None


class PooledConnection:
    """A connection, with aiohttp's handle that closes it. `since`: when it was last given back, by time.monotonic."""

    __slots__ = ("_connection", "_pools", "line", "since")

    def __init__(self, line: HttpConnection, connection: Connection, pools: ConnectionPools) -> None:
        self.line = line
        self._connection = connection
        self._pools = pools
        self.since = 0.0

    def drop(self) -> None:
        """Closes the connection at once instead of giving it back: bytes that still arrive belong to no call."""
        self.line.abort()
        self.close()

    def close(self) -> None:
        self._connection.close()
        self._pools.free_room()


class Pool:
    """Idle connections to one address. Kept here, since taking one from aiohttp's connector and giving it back costs as
    much as parsing an answer."""

    def __init__(self, pools: ConnectionPools, request: aiohttp.ClientRequest, timeout: aiohttp.ClientTimeout) -> None:
        self._pools = pools
        self._connector = pools.connector
        self._request = request
        self._timeout = timeout
        # A plain attribute, since it is read once a call.
        self.has_answered = False
        self._idle: deque[PooledConnection] = deque()

    @property
    def url(self) -> URL:
        """The URL of the first request, whose origin all of them share."""
        return self._request.url

    @property
    def idle(self) -> int:
        """The number of waiting connections that are not known to be closed."""
        return sum(held.line.is_connected() for held in self._idle)

    @property
    def has_idle(self) -> bool:
        """Whether a connection waits, though it may be closed."""
        return bool(self._idle)

    def take(self) -> PooledConnection | None:
        """Returns an idle connection that can be used, None if there is none; closes those that are too old."""
        idle = self._idle
        if idle:
            fresh_since = time.monotonic() - KEEPALIVE_S
            while idle:
                held = idle.popleft()
                if held.since > fresh_since and not held.line.should_close and held.line.is_connected():
                    return held
                held.close()
        return None

    async def connect(self) -> PooledConnection:
        """Opens and returns a new connection, for which there is room, which its caller frees if this fails."""
        silent = None
        if not self.has_answered:
            loop, note = asyncio.get_running_loop(), self._pools.unanswered.note_fault
            silent = loop.call_later(SILENT_S, note, self.url, silent_address(self.url, SILENT_S))
        try:
            connection = await self._connector.connect(self._request, [], self._timeout)
        except TimeoutError as error:
            raise aiohttp.ConnectionTimeoutError(f"no connection to {self._request.url.origin()}") from error
        finally:
            if silent is not None:
                silent.cancel()
        return PooledConnection(cast(HttpConnection, connection.protocol), connection, self._pools)

    def give_back(self, held: PooledConnection) -> None:
        if held.line.should_close:
            held.close()
        elif self._pools.waiting:
            self._pools.hand_over(held, self)
        else:
            held.since = time.monotonic()
            self._idle.append(held)
            if self._pools.sweep is None:
                self._pools.sweep_later()

    def close_old(self) -> None:
        """Closes the idle connections that are too old to be used again."""
        fresh_since = time.monotonic() - KEEPALIVE_S
        while self._idle and self._idle[0].since <= fresh_since:
            self.close_oldest()

    def close_oldest(self) -> None:
        self._idle.popleft().close()

    def close(self) -> None:
        while self._idle:
            self.close_oldest()
