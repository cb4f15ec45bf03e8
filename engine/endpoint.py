"""What the engine is given to reach the outside: three functions and the values that pass between them.

`encode` turns a call into a request, `send` carries it, `decode` reads the answer. The engine knows
nothing of HTTP or of any provider; whoever implements `Endpoint` knows nothing of lanes or caches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol

from msgspec import Struct

from .call import Call, FailureKind, Reply
from .limits import Limit

Action = Literal["retry", "never", "throttle", "wait", "confirm", "stop"]
"""What a fault asks of the lane.

retry     send again after a back-off; counts as an attempt
never     the same bytes would fail the same way
throttle  send again when the whole lane has waited; not an attempt where the provider said how long
wait      our own machine ran out of something; send again, not an attempt
confirm   the key looks dead: one confirming probe, then stop
stop      the account or the address is unusable: nothing more is sent on this lane
"""

Quota = Literal["keep", "refund", "settle"]

Hear = Callable[[str | None], None]
"""Told what is said while an answer is streamed: pieces of its text in their order, and None where an attempt begins,
which makes void what the one before it said. Only the outcome tells whether an answer was whole. Must not raise."""


class Request(Struct, frozen=True):
    """A call in the provider's words. `identity` names the endpoint in the key, with whatever of URL and headers may
    change the answer; streaming changes `url` and `wire` alone. `body` is the canonical JSON that is hashed and, unless
    `wire` differs, sent. `prompt` and `params` are the two halves of the body, kept so that a cache miss can be
    explained. `hear` is the caller's, who wants to know what is said while it comes."""

    url: str
    identity: str
    body: bytes
    wire: bytes
    prompt: bytes
    params: bytes
    stream: bool = False
    method: Literal["POST", "GET"] = "POST"
    hear: Hear | None = None


class Response(Struct, frozen=True, array_like=True):
    """Bytes that came back, with the few headers that mean something: always where the status is not 200, now and then
    those of the provider's quotas where it is. A stream may be cut: whether it was whole all the same, its own marks
    tell."""

    status: int
    body: bytes
    stream: bool = False
    is_cut: bool = False
    latency_ms: float = 0.0
    first_byte_ms: float | None = None
    headers: dict[str, str] = {}


class Fault(Struct, frozen=True):
    """An attempt that brought no reply, and what FAULTS gives it."""

    kind: FailureKind
    detail: str
    action: Action
    status: int | None = None
    retry_after_s: float | None = None
    quota: Quota = "keep"
    is_billed_maybe: bool = False
    is_immediate: bool = False
    cuts_rate: bool = False
    attempts_max: int | None = None
    usage_tokens: int = 0


class SendError(Exception):
    """The transport could not bring a whole response."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.detail)
        self.fault = fault


class EncodeError(Exception):
    """The call can't be put into the provider's words: nothing was sent."""


class Endpoint(Protocol):
    """One address that speaks one wire protocol with one key. `limits`: what an answer's headers tell of the provider's
    quotas."""

    @property
    def base_url(self) -> str: ...

    def encode(self, call: Call) -> Request: ...

    async def send(self, request: Request) -> Response: ...

    def decode(self, response: Response) -> Reply | Fault: ...

    def limits(self, response: Response) -> tuple[Limit, ...]: ...
