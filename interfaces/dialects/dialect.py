"""What a dialect is: how a client's request becomes a call, and how an outcome becomes what that client expects.

Values in, values and bytes out. Knows no socket, no token and no engine: the gateway and batch files do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from ...engine.call import Call, Outcome


class Asked(Struct, frozen=True):
    """One request as it was read. `model` is the client's own word for the model, which answers repeat; `count`:
    so many samples are wanted of the same question; `told`: what of the request the dialect needs again in its
    answer; `spare`: names in the call's `extra` that a provider of another family can do without."""

    call: Call
    model: str
    is_streamed: bool = False
    count: int = 1
    told: Mapping[str, Any] = {}
    spare: frozenset[str] = frozenset()


class Problem(Struct, frozen=True):
    """Why there is no answer. `kind`: our own word (a failure's kind, a stop's reason, or `invalid`, `unknown_model`,
    `unauthorized`, `forbidden`, `not_found`, `conflict`, `too_large`, `over_budget`); `param`: what of the
    request it is about; `retry_after_s`: asked again after so long, there may be an answer; `request_id`: the
    request's own, for dialects whose errors repeat it."""

    status: int
    kind: str
    message: str
    param: str | None = None
    retry_after_s: int | None = None
    request_id: str | None = None


class Refused(Exception):
    """A request that can't be a call: the client's own mistake, told in the client's own language."""

    def __init__(self, message: str, param: str | None = None, kind: str = "invalid", status: int = 400) -> None:
        super().__init__(message)
        self.problem = Problem(status, kind, message, param)


class Listed(Struct, frozen=True):
    """A model that clients may name."""

    name: str
    provider: str


class Stream(Protocol):
    """One answer on its way to a client, as the bytes that go out. `begin` comes first; `text` any number of times,
    each a piece of the visible text in its order; then once `end` with the outcomes (one for each sample wanted), which
    says the rest of the text and everything else, or `fail`. What `text` has said begins the first outcome's text: the
    caller sees to it. `ping` may come between any two: something that clients skip."""

    def begin(self) -> bytes: ...

    def text(self, piece: str) -> bytes: ...

    def end(self, outcomes: Sequence[Outcome]) -> bytes: ...

    def fail(self, problem: Problem) -> bytes: ...

    def ping(self) -> bytes: ...


class Dialect(Struct, frozen=True):
    """`read`: a request's JSON object, and who knows which of our models a client's word means (raises Refused for
    none). `whole`: the body of an answer, from outcomes that all have a reply. `stream`: the same as events; media type
    `event-stream` unless `stream_type` says otherwise. `problem`: the body of an error."""

    name: str
    read: Callable[[Mapping[str, Any], Callable[[str], str]], Asked]
    whole: Callable[[Asked, Sequence[Outcome]], bytes]
    stream: Callable[[Asked], Stream]
    problem: Callable[[Problem], bytes]
    listing: Callable[[Sequence[Listed]], bytes]
    listed: Callable[[Listed], bytes]
    stream_type: str = "text/event-stream"
