"""One client's connection: its requests answered in their order, one at a time, and its end.

Owns the socket's two directions: what is read while an answer is under way, what waits until a client takes it, and how
long a connection may be idle. Where requests begin and end: http_framing. How they are answered: `Connections.begin`.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections import deque
from collections.abc import Callable, Iterator
from typing import Protocol, cast

from .body_memory import BodyMemory
from .http_framing import RequestFramer
from .http_request import HttpRequest
from .http_response import CONTINUE, LAST_CHUNK, HttpResponse, chunk, stream_head

# Bounds on requests that wait for the answer to an earlier one; reading stops above.
WAITING_MAX = 64
WAITING_BYTES_MAX = 1 << 20
# A client whose connection ends may still be sending: if it were cut off at once, it would not read its answer.
LINGER_S = 10.0
# Seconds after which an idle connection is closed, also one that never sent a whole head.
IDLE_S = 75.0
# Seconds after which a connection is closed whose client takes no data: a person may look at something else meanwhile.
TAKING_S = 120.0
# Seconds that requests get to end when they are cut off.
_CUT_S = 1.0


class PendingAnswer(Protocol):
    """A request on its way to its answer. `whole`: the answer, once it is known. `is_begun`: it goes on by itself and
    calls `told` at its end; then `finish` returns the answer, or None if it must be waited for by `answer`. `end` is
    called once, when the answer was handed over or its client has left."""

    whole: HttpResponse | None
    told: Callable[[], None] | None

    @property
    def is_begun(self) -> bool: ...

    def finish(self) -> HttpResponse | None: ...

    async def answer(self, back: Connection) -> HttpResponse | None:
        """Waits for the answer and returns it; None: it was sent as a stream."""

    def end(self) -> None: ...


class Connections:
    """All open connections of a gateway, and what they share. `begin` answers a request, at once or later; `failed`
    returns the answer to one at which the gateway itself failed. `idle_s`: the seconds after which an idle connection
    is closed; `taking_s`: those after which a client that does not take its answer is cut off; `room`: the memory for
    bodies."""

    def __init__(
        self,
        begin: Callable[[HttpRequest], HttpResponse | PendingAnswer],
        failed: Callable[[BaseException], HttpResponse],
    ) -> None:
        self.begin = begin
        self.failed = failed
        self.idle_s = IDLE_S
        self.taking_s = TAKING_S
        self.room = BodyMemory()
        self._open: set[Connection] = set()
        self._is_empty = asyncio.Event()
        self._is_empty.set()

    def __repr__(self) -> str:
        return f"<Connections [{self.open} open]>"

    def __iter__(self) -> Iterator[Connection]:
        return iter(tuple(self._open))

    @property
    def open(self) -> int:
        return len(self._open)

    @property
    def is_writing(self) -> bool:
        return any(connection.is_writing for connection in self._open)

    def opened(self, connection: Connection) -> None:
        self._open.add(connection)
        self._is_empty.clear()

    def closed(self, connection: Connection) -> None:
        self._open.discard(connection)
        if not self._open:
            self._is_empty.set()

    async def cut(self) -> None:
        """Closes all connections, whatever is under way, and waits for their end for at most two seconds."""
        tasks = [connection.task for connection in self._open if connection.task is not None]
        for connection in self:
            connection.abort()
        if tasks:
            await asyncio.wait(tasks, timeout=_CUT_S)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CUT_S):
                await self._is_empty.wait()


class Connection(asyncio.Protocol):
    """The server's side of one client's connection, driven by asyncio: it takes requests from the bytes received, has
    them answered one at a time in their order, and closes itself when it is idle or broken. An answer that is sent in
    pieces goes back by `begin`, `write` and `end`; `has_begun`: its head was sent, so that no other can be given."""

    def __init__(self, served: Connections, loop: asyncio.AbstractEventLoop) -> None:
        self._served = served
        self._loop = loop
        self._waiting: deque[HttpRequest] = deque()
        self._request: HttpRequest | None = None
        self._work: PendingAnswer | None = None
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._quiet_since = loop.time()
        self._drained: asyncio.Future[None] | None = None
        self._is_write_paused = self._is_read_paused = False
        self.has_begun = self._is_ending = False

    def __repr__(self) -> str:
        state = "ending" if self._is_ending else "idle" if self._request is None else "answering"
        return f"<Connection [{state} | Waiting: {len(self._waiting)}]>"

    @property
    def is_writing(self) -> bool:
        """Whether a part of an answer has not left this process."""
        return self._transport.get_write_buffer_size() > 0

    @property
    def task(self) -> asyncio.Task[None] | None:
        """The task that waits for an answer; None: there is none."""
        return self._task

    # Callbacks of the loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's transports are of no class of asyncio's
        remote, local = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
        self._framing = RequestFramer(str(remote[0]) if remote else "", str(local[0]) if local else "")
        # The system reports a client that is gone or stands still; a write would wait for it for ever.
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            taken_by = transport.get_extra_info("socket")
            taken_by.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(self._served.taking_s * 1_000))
        self._timer = self._loop.call_later(self._served.idle_s, self._look)
        self._served.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_ending = True
        self._forget_waiting()
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
        else:
            self._ended()
        self._served.closed(self)

    def eof_received(self) -> bool:
        return False  # a client that sends nothing more has left

    def data_received(self, data: bytes) -> None:
        if self._is_ending:
            return
        requests = self._framing.feed(data)
        coming = self._framing.coming
        for request in requests if coming is None or coming in requests else (*requests, coming):
            if request.share is None and request.is_long and not request.body.is_broken:
                request.enter(self._served.room, self._regulate)
        if requests:
            self._waiting.extend(requests)
            if self._request is None:
                self._go_on()
        self._regulate()

    def _regulate(self) -> None:
        """Pauses reading while too much waits here, or while there is no memory for a long body; else resumes it."""
        if self._is_ending:
            return
        coming = self._framing.coming
        should_pause = (coming is not None and coming.is_waiting) or (bool(self._waiting) and self._holds_too_much())
        if should_pause != self._is_read_paused:
            self._is_read_paused = should_pause
            self._transport.pause_reading() if should_pause else self._transport.resume_reading()

    def pause_writing(self) -> None:
        self._is_write_paused = True

    def resume_writing(self) -> None:
        self._is_write_paused = False
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)
        # Not at once: asyncio loses a connection twice if it is closed within this call.
        self._loop.call_soon(self._go_on)

    # One request after the other

    def _go_on(self) -> None:
        while self._waiting and self._request is None and not self._is_write_paused and not self._is_ending:
            request = self._waiting.popleft()
            if self._is_read_paused:
                self._regulate()
            self._begin(request)

    def _holds_too_much(self) -> bool:
        waiting = self._waiting
        return len(waiting) > WAITING_MAX or sum(one.body.size for one in waiting) > WAITING_BYTES_MAX

    def _begin(self, request: HttpRequest) -> None:
        self._request = request
        self.has_begun = False
        try:
            begun = self._served.begin(request)
        except Exception as error:  # noqa: BLE001
            # A defect at one request must not take the connection's others, or the gateway, with it.
            begun = self._served.failed(error)
        if isinstance(begun, HttpResponse):
            self._tell(request, begun)
            request.leave()
            self._request = None
        elif begun.whole is not None:
            self._tell(request, begun.whole)
            begun.end()
            request.leave()
            self._request = None
        else:
            self._work = begun
            if begun.is_begun:
                begun.told = self._heard
            else:
                self._carry_on(request, begun)

    def _heard(self) -> None:
        """Writes the answer to a request that went on without a task, or gives it to a task if it has none yet."""
        request, work = self._request, self._work
        assert request is not None and work is not None
        try:
            whole = work.finish()
        except Exception as error:  # noqa: BLE001
            # As above; other requests may wait for the same call.
            whole = self._served.failed(error)
        if whole is None:
            self._carry_on(request, work)
        else:
            self._tell(request, whole)
            # After the answer was written.
            self._loop.call_soon(self._ended)

    def _carry_on(self, request: HttpRequest, work: PendingAnswer) -> None:
        self._task = self._loop.create_task(self._carry(request, work))
        self._task.add_done_callback(self._carried)

    async def _carry(self, request: HttpRequest, work: PendingAnswer) -> None:
        try:
            whole = await work.answer(self)
        except Exception as error:  # noqa: BLE001
            # As above.
            whole = self._served.failed(error)
        if whole is not None:
            self._tell(request, whole)

    def _carried(self, task: asyncio.Task[None]) -> None:
        """Ends a request whose task has ended, even before its first step."""
        self._task = None
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if isinstance(error, Exception):
            self._served.failed(error)
        if error is not None:
            self.abort()
        self._ended()

    def _ended(self) -> None:
        work, self._work, request, self._request = self._work, None, self._request, None
        if request is not None:
            request.leave()
        if work is not None:
            work.end()
            self._go_on()

    def _tell(self, request: HttpRequest, whole: HttpResponse) -> None:
        if self._transport.is_closing():
            return
        if self.has_begun:
            self.abort()  # a stream that broke off must not look like a whole one
            return
        closes = whole.is_last or request.is_last or not request.is_soon_whole
        is_head = request.seen.method == "HEAD"
        self._transport.write(whole.data(is_new=request.is_new, closes=closes, is_head=is_head))
        self._quiet_since = self._loop.time()
        if closes:
            self._leave()

    # The way back for answers in pieces

    def invite(self) -> None:
        """Sends `100 Continue` to a client that waits for it before it sends its body."""
        if not self._transport.is_closing():
            self._transport.write(CONTINUE)

    async def begin(self, fields: str, data: bytes) -> None:
        """Sends the head (`fields` are its lines) and the first piece. Waits, as `write`, until the client takes it."""
        request = self._request
        assert request is not None
        self.has_begun = True
        head = stream_head(fields, is_new=request.is_new, closes=request.is_last or not request.is_new)
        await self._write(head + (chunk(data) if request.is_new else data))

    async def write(self, data: bytes) -> None:
        assert self._request is not None
        if data:
            await self._write(chunk(data) if self._request.is_new else data)

    def end(self) -> None:
        """Ends the stream, which is whole."""
        request = self._request
        assert request is not None
        self._quiet_since = self._loop.time()
        if self._transport.is_closing():
            return
        if request.is_new:
            self._transport.write(LAST_CHUNK)
        if request.is_last or not request.is_new:
            self._leave()

    async def _write(self, data: bytes) -> None:
        if self._transport.is_closing():
            return
        self._transport.write(data)
        if self._is_write_paused:
            self._drained = self._loop.create_future()
            await self._drained

    # Its end

    def _leave(self) -> None:
        """Ends the connection: no more requests are answered, but everything written is still sent."""
        self._is_ending = True
        self._forget_waiting()
        if self._framing.is_between and not self._is_read_paused:
            self._transport.close()
            return
        if self._is_read_paused:
            self._transport.resume_reading()
        # Data that is still received is dropped.
        self._transport.write_eof()
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(LINGER_S, self.abort)

    def _forget_waiting(self) -> None:
        for request in self._waiting:
            request.leave()
        self._waiting.clear()

    def _look(self) -> None:
        """Closes the connection if it has been idle for too long, else looks again later."""
        left = self._quiet_since + self._served.idle_s - self._loop.time()
        if self._request is None and not self.is_writing and left <= 0:
            self._is_ending = True
            self._transport.close()
            return
        self._timer = self._loop.call_later(left if left > 0 else self._served.idle_s, self._look)

    def abort(self) -> None:
        self._is_ending = True
        self._transport.abort()
