"""The interface through which the engine reaches the outside: `encode`, `begin`, `decode`, and what they exchange.

`encode` turns a call into a request, `begin` transmits it, `decode` reads the answer. The engine knows nothing of HTTP
or of any provider; an implementation of `Endpoint` knows nothing of lanes or caches.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Literal, Protocol

from msgspec import Struct, structs

from .call import Call, FailureKind, Reply
from .limits import Limit

Action = Literal["retry", "never", "throttle", "wait", "otherwise", "confirm", "stop"]
"""What a fault asks of the lane.

retry     send again after a back-off; counts as an attempt
never     not sent again: the same bytes would fail the same way
throttle  send again when the whole lane has waited; not an attempt where the provider said how long
wait      our own machine ran out of something; send again, not an attempt
otherwise send again at once, as the request's `instead`; not an attempt, and no trouble of the lane
confirm   the API key looks dead: one confirming probe, then stop
stop      the account is unusable: nothing more is sent with this API key; or the address: nothing more on this lane
"""

Quota = Literal["keep", "refund", "settle"]

Hear = Callable[[str | None], None]
"""A listener to a streamed answer. It receives the pieces of the text in their order, and None where an attempt begins,
which makes all earlier pieces void. Only the outcome says whether an answer was whole. Must not raise."""

Cleared = Callable[[], Awaitable[None]]
"""Returns when the request may be written, and counts it as sent. Raises Withdrawn if it may not be written any more.
"""


class Request(Struct, frozen=True):
    """A call encoded in its provider's wire protocol."""

    url: str
    """The address it is sent to."""
    identity: str
    """The endpoint's part of the cache key: everything in address and headers that may change the answer."""
    body: bytes
    """The canonical JSON that the cache key is made of."""
    wire: bytes
    """The bytes that are sent: `body`, with the extra fields of a streamed call and those that change no answer."""
    prompt: bytes
    """The JSON of the prompt alone; `cache why` compares it."""
    params: bytes
    """The JSON of the parameters alone; `cache why` compares it."""
    stream: bool = False
    """Whether the answer is streamed."""
    method: Literal["POST", "GET"] = "POST"
    """The HTTP method."""
    hear: Hear | None = None
    """The caller's listener to the streamed text; None: nobody listens."""
    instead: bytes | None = None
    """The bytes that are sent after a fault with the action `otherwise`; None: there are none."""

    def after(self, again: str) -> Request:
        """Returns what is sent after a fault; `again` is that of its Verdict."""
        if again != "otherwise" or self.instead is None:
            return self
        return structs.replace(self, wire=self.instead, instead=None)


class Response(Struct, frozen=True, array_like=True, gc=False):
    """The bytes of an HTTP response, its times, and the few headers that matter."""

    status: int
    """The HTTP status."""
    body: bytes
    """The body's bytes."""
    stream: bool = False
    """Whether it was streamed."""
    is_cut: bool = False
    """Whether the connection ended early. Its own end mark may still prove a stream whole."""
    latency_ms: float = 0.0
    """Milliseconds from send to last byte."""
    first_byte_ms: float | None = None
    """Milliseconds from send to first byte; None: not measured."""
    headers: dict[str, str] = {}
    """Headers of quotas and errors: always where the status is not 200, sampled where it is."""


class Fault(Struct, frozen=True):
    """An attempt without a reply, and what the engine does about it."""

    kind: FailureKind
    """The kind of failure, should it be the call's last attempt."""
    detail: str
    """One line: what happened."""
    action: Action
    """What the lane does next; see `Action`."""
    status: int | None = None
    """The HTTP status; None: there was no response."""
    retry_after_s: float | None = None
    """The pause that the provider named, in seconds; None: it named none."""
    quota: Quota = "keep"
    """Whether reserved tokens stay counted (`keep`), are returned (`refund`) or become `usage_tokens` (`settle`)."""
    is_billed_maybe: bool = False
    """Whether the provider may have billed the attempt."""
    is_immediate: bool = False
    """Whether the first repeat needs no back-off."""
    cuts_rate: bool = False
    """Whether an adaptive lane lowers its rate."""
    is_repeated_once: bool = False
    """Whether the call has no third attempt after it, however many the policy allows."""
    usage_tokens: int | None = None
    """The tokens that the provider counted for the attempt, input and output together; None: it did not report them.
    """
    is_full: bool = False
    """Whether the provider, or the tier of service that was asked for, has no room for the call now."""


class SendError(Exception):
    """Raised by a transport that received no whole response; `fault` says why."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.detail)
        self.fault = fault


class Withdrawn(Exception):
    """Raised by `Receiver.clear`: nothing was written, and the call asks its lane again."""


class EncodeError(Exception):
    """Raised for a call that the provider's wire protocol can't express; nothing was sent."""


class Receiver(Protocol):
    """Who gets the answer of an attempt. Its methods are called on the loop, may be called before `begin` returns, and
    don't raise, except `clear`."""

    def clear(self) -> float:
        """The last check, just before the first byte of the request is written, when connecting is over. 0.0: it may be
        written now, and the send counts from now on; else the seconds after which it is to be asked again. Raises
        Withdrawn if it may not be written any more."""
        ...

    def received(self, response: Response) -> None:
        """Takes a whole response (secrets struck out)."""
        ...

    def broke(self, error: Exception) -> None:
        """Takes the end of an attempt without a response: a SendError with its fault, Withdrawn, or any other error."""
        ...


class Attempt(Protocol):
    """One request under way."""

    def abort(self) -> None:
        """Ends it at once and closes its connection; the receiver hears nothing more. Does nothing if it has ended."""
        ...


class Endpoint(Protocol):
    """One address with one wire protocol and one API key. `limits` returns what a response's headers report of the
    provider's quotas; empty: nothing."""

    @property
    def base_url(self) -> str: ...

    def encode(self, call: Call) -> Request: ...

    def begin(self, request: Request, receiver: Receiver) -> Attempt:
        """Sends a request; exactly one of the receiver's `received` and `broke` follows, unless this raises or it is
        aborted."""
        ...

    def decode(self, response: Response) -> Reply | Fault: ...

    def limits(self, response: Response) -> tuple[Limit, ...]: ...


async def send(endpoint: Endpoint, request: Request) -> Response:
    """Sends a request and returns the response. Raises what its receiver would hear of; see `Receiver`."""
    answer = _Answer()
    attempt = endpoint.begin(request, answer)
    try:
        return await answer
    finally:
        attempt.abort()


class _Answer(asyncio.Future[Response]):
    """A receiver that is awaited, and may have been left."""

    def clear(self) -> float:
        return 0.0

    def received(self, response: Response) -> None:
        if not self.done():
            self.set_result(response)

    def broke(self, error: Exception) -> None:
        if not self.done():
            self.set_exception(error)


class AwaitingEndpoint(Endpoint, Protocol):
    """An endpoint whose attempts are coroutines."""

    async def send(self, request: Request, cleared: Cleared) -> Response:
        """Returns the response; `cleared` is awaited just before the first byte is written."""
        ...

    def begin(self, request: Request, receiver: Receiver) -> Attempt:
        return _AttemptTask(self, request, receiver)


class _AttemptTask:
    """An attempt that awaits, in a task."""

    def __init__(self, endpoint: AwaitingEndpoint, request: Request, receiver: Receiver) -> None:
        self._receiver = receiver
        self._task = asyncio.get_running_loop().create_task(self._run(endpoint, request))

    def __repr__(self) -> str:
        return f"<Attempt [{'over' if self._task.done() else 'under way'}]>"

    def abort(self) -> None:
        self._task.cancel()

    async def _run(self, endpoint: AwaitingEndpoint, request: Request) -> None:
        try:
            tell = partial(self._receiver.received, await endpoint.send(request, self._cleared))
        except Exception as error:  # noqa: BLE001 (the receiver decides what it means)
            tell = partial(self._receiver.broke, error)
        if not self._task.cancelling():  # else it was aborted, and ended in another way
            tell()

    async def _cleared(self) -> None:
        wait_s = self._receiver.clear()
        while wait_s > 0:
            await asyncio.sleep(wait_s)
            wait_s = self._receiver.clear()
