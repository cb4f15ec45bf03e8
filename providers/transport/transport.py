"""The transport of one engine: pools of connections by server, and how many may be open at once.

Connections belong to a server, not to a lane or a key, so that thousands of lanes need few. Idle ones are closed soon;
where this machine allows no more, calls wait for room. Knows HTTP's connection and nothing above it.
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections import deque
from typing import Protocol, cast

import aiohttp
from yarl import URL

from .connection_faults import silent_address
from .http_connection import HttpConnection, NeverSent
from .unanswered import UnansweredAddresses

# An address that has never answered is named after so many seconds without a connection.
SILENT_S = 4.0
# Below the five seconds after which common servers close an idle connection.
KEEPALIVE_S = 4.0
# The seconds between two answers with status 200 whose headers are read for quotas: reading costs a hundredth of a
# call.
LOOK_EVERY_S = 0.1


class Waiter(Protocol):
    """A call that waits for a connection; exactly one of its methods is called, once, unless it leaves."""

    def take(self, line: HttpConnection) -> None: ...

    def failed(self, error: Exception) -> None: ...


class LineConnector(aiohttp.TCPConnector):
    """A connector that makes connections and keeps none: its caller pools or closes them."""

    def __init__(self) -> None:
        # Only lanes decide how many calls are in flight: the connector must not queue as well.
        super().__init__(limit=0, ttl_dns_cache=60)
        self._factory = functools.partial(HttpConnection, self._loop)  # type: ignore[assignment, arg-type]


class Transport:
    """What all channels of one engine share: its pools of connections, and the addresses that have never answered. The
    headers of sound answers, which hardly change, are read once in `look_every_s` seconds. `patience_s`: how long calls
    to an address without answers are repeated (None: not). `connections_max`: how many connections may be open at
    once. The connector is made with the first call, since it belongs to a running loop."""

    def __init__(
        self,
        look_every_s: float = LOOK_EVERY_S,
        patience_s: float | None = None,
        connections_max: int = 1 << 14,
    ) -> None:
        self.look_every_s = look_every_s
        self.unanswered = UnansweredAddresses(patience_s)
        self._connector: LineConnector | None = None
        self._pools: dict[tuple[URL, bool, float], Pool] = {}
        self.sweep: asyncio.TimerHandle | None = None
        self.room = connections_max
        # The pools in which calls wait, in their turn.
        self.waiting: dict[Pool, None] = {}
        self._is_serving = False

    def __repr__(self) -> str:
        idle = sum(line.is_connected() for pool in self._pools.values() for line in pool.idle)
        return f"<Transport [{f'{idle} idle' if self._connector is not None else 'closed'}]>"

    def pool(self, url: URL, connect_s: float, *, is_alone: bool) -> Pool:
        """Returns the pool of a URL's origin, which all channels share: many models of one server need no connection
        each. Requests with a connection of their own (`is_alone`) have another."""
        key = url.origin(), is_alone, connect_s
        pool = self._pools.get(key)
        if pool is None:
            if self._connector is None:
                self._connector = LineConnector()
            pool = self._pools[key] = Pool(self, self._connector, url, connect_s)
        return pool

    def free_room(self) -> None:
        self.room += 1
        self.serve_soon()

    def serve_soon(self) -> None:
        """Serves those that wait in the next turn of the loop."""
        if self.waiting and not self._is_serving:
            self._is_serving = True
            asyncio.get_running_loop().call_soon(self._serve)

    def _serve(self) -> None:
        self._is_serving = False
        if sum(pool.serve() for pool in tuple(self.waiting)):  # all of them, whichever could do something
            self.serve_soon()

    def make_room(self) -> bool:
        """Returns whether one more connection may be opened; closes an idle one for it if it must."""
        if not self.room and (other := next((pool for pool in self._pools.values() if pool.idle), None)):
            other.close(other.idle.popleft())
        return self.room > 0

    def sweep_later(self) -> None:
        """Closes idle connections when they are too old, so that an idle server keeps no descriptors."""
        self.sweep = asyncio.get_running_loop().call_later(KEEPALIVE_S, self._close_old)

    def _close_old(self) -> None:
        self.sweep = None
        fresh_since = time.monotonic() - KEEPALIVE_S
        for pool in self._pools.values():
            while pool.idle and pool.idle[0].since <= fresh_since:
                pool.close(pool.idle.popleft())
        if any(pool.idle for pool in self._pools.values()):
            self.sweep_later()

    async def close(self) -> None:
        if self.sweep is not None:
            self.sweep.cancel()
            self.sweep = None
        for pool in self._pools.values():
            await pool.end()
        self._pools.clear()
        if self._connector is not None:
            await self._connector.close()
            self._connector = None


class Pool:
    """Connections to one address, those in `idle` from the oldest on. Kept here, since taking one from aiohttp's
    connector and giving it back costs as much as parsing an answer. `url`: that of the first request, whose origin all
    of them share.

    A call that waits gets the first connection that is opened or given back, whichever it was opened for: a server
    holds only a few connections that it has not accepted yet, and one beyond them is opened only when its system tries
    again, after one second, three, seven and so on."""

    def __init__(self, transport: Transport, connector: LineConnector, url: URL, connect_s: float) -> None:
        self.transport = transport
        self.url = url
        self.has_answered = False
        self.idle: deque[HttpConnection] = deque()
        self._waiting: dict[Waiter, None] = {}
        self._opening: set[asyncio.Task[HttpConnection]] = set()
        self._connector = connector
        self._request = aiohttp.ClientRequest("POST", url, loop=asyncio.get_running_loop())
        self._timeout = aiohttp.ClientTimeout(total=None, connect=connect_s)

    def __repr__(self) -> str:
        counts = f"{len(self.idle)} idle, {len(self._opening)} opening, {len(self._waiting)} calls waiting"
        return f"<Pool {self.url.origin()} [{counts}]>"

    def take(self) -> HttpConnection | None:
        """Returns an idle connection that can be used, None if there is none; closes those that are too old."""
        idle = self.idle
        if idle:
            fresh_since = time.monotonic() - KEEPALIVE_S
            while idle:
                line = idle.popleft()
                wire = line.transport
                if line.since > fresh_since and not line.should_close and wire is not None and not wire.is_closing():
                    return line
                self.close(line)
        return None

    def take_first(self) -> HttpConnection | None:
        """Returns an idle connection for a call that begins. While there is room, those that wait need none of them."""
        return self.take() if self.transport.room or not self._waiting else None

    def wait(self, waiter: Waiter) -> None:
        """Calls the waiter's `take` when it gets a connection, or its `failed` if too few can be opened."""
        self._waiting[waiter] = self.transport.waiting[self] = None
        self.transport.serve_soon()

    def leave(self, waiter: Waiter) -> None:
        """Forgets a waiter, if it waits here, and stops opening a connection that nobody waits for any more."""
        if waiter in self._waiting:
            self._forget(waiter)
            if len(self._opening) > len(self._waiting):
                self._opening.pop().cancel()

    def _forget(self, waiter: Waiter) -> Waiter:
        del self._waiting[waiter]
        if not self._waiting:
            del self.transport.waiting[self]
        return waiter

    def _first(self) -> Waiter:
        """Returns who has waited for longest, and forgets it."""
        return self._forget(next(iter(self._waiting)))

    def serve(self) -> bool:
        """Hands out the idle connections. Where there are none, opens one in each turn of the loop. Returns whether it
        could do something; then it is the others' turn."""
        transport = self.transport
        if self.idle:
            while self._waiting and (line := self.take()) is not None:
                self._first().take(line)
        elif len(self._opening) < len(self._waiting) and transport.make_room():
            transport.room -= 1
            task = asyncio.get_running_loop().create_task(self._connect())
            self._opening.add(task)
            task.add_done_callback(self._opened)
        else:
            return False
        if self._waiting:
            del transport.waiting[self]
            transport.waiting[self] = None
        return True

    def _opened(self, task: asyncio.Task[HttpConnection]) -> None:
        self._opening.discard(task)
        if not task.cancelled() and task.exception() is None:
            if self._waiting:
                self._first().take(task.result())
            else:
                self.give_back(task.result())
            return
        self.transport.free_room()
        if not task.cancelled() and len(self._opening) < len(self._waiting):
            self._first().failed(cast(Exception, task.exception()))

    async def _connect(self) -> HttpConnection:
        silent = None
        if not self.has_answered:
            loop, note = asyncio.get_running_loop(), self.transport.unanswered.note_fault
            silent = loop.call_later(SILENT_S, note, self.url, silent_address(self.url, SILENT_S))
        try:
            handle = await self._connector.connect(self._request, [], self._timeout)
        except TimeoutError as error:
            raise aiohttp.ConnectionTimeoutError(f"no connection to {self.url.origin()}") from error
        finally:
            if silent is not None:
                silent.cancel()
        line = cast(HttpConnection, handle.protocol)
        line.handle = handle
        return line

    def give_back(self, line: HttpConnection) -> None:
        """Keeps a connection for the next call, the first that waits, unless it must be closed."""
        transport, line.since = self.transport, time.monotonic()
        if line.should_close or self._connector.closed:
            self.close(line)
            return
        if not transport.room and transport.waiting and next(iter(transport.waiting)) is not self:
            self.close(line)  # its room is for another server
            return
        self.idle.append(line)
        if self._waiting:
            transport.serve_soon()
        if transport.sweep is None:
            transport.sweep_later()

    def close(self, line: HttpConnection) -> None:
        """Closes a connection, whose room is free then."""
        assert line.handle is not None
        line.handle.close()
        self.transport.free_room()

    async def end(self) -> None:
        """Closes what nobody uses. Who waits hears that nothing was sent."""
        while self._waiting:
            self._first().failed(NeverSent("the transport was closed"))
        for task in self._opening:
            task.cancel()
        await asyncio.gather(*self._opening, return_exceptions=True)
        while self.idle:  # one that has just been opened among them
            self.close(self.idle.popleft())
