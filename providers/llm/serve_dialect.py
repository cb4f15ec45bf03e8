"""The interface of a served dialect: a client's request becomes a call, and outcomes become that client's answer.

Values in, values and bytes out. Knows no socket, no token and no engine: the gateway and batch files do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from ...engine.call import Call, Outcome


class ServedRequest(Struct, frozen=True):
    """A client's request. `model` is the client's own name for the model, which answers repeat; `count` the number of
    samples; `told` the request's fields that the dialect needs to write the answer; `spare` the names in the call's
    `extra` that a provider of another family can do without."""

    call: Call
    model: str
    is_streamed: bool = False
    count: int = 1
    told: Mapping[str, Any] = {}
    spare: frozenset[str] = frozenset()


Read = Callable[[Mapping[str, Any], Callable[[str], str]], ServedRequest]


class Problem(Struct, frozen=True):
    """The reason that there is no answer. `kind` is our own word (a failure's kind, a stop's reason, or `invalid`,
    `unknown_model`, `unauthorized`, `forbidden`, `not_found`, `conflict`, `too_large`, `over_budget`); `param` the
    field of the request that is wrong; `retry_after_s` the seconds until a new attempt makes sense; `request_id` the
    request's own, for dialects whose errors repeat it."""

    status: int
    kind: str
    message: str
    param: str | None = None
    retry_after_s: int | None = None
    request_id: str | None = None


class RequestRefusal(Exception):
    """Raised for a request that can't become a call; the message is in the words of the client's protocol."""

    def __init__(self, message: str, param: str | None = None, kind: str = "invalid", status: int = 400) -> None:
        super().__init__(message)
        self.problem = Problem(status, kind, message, param)


def refusing(read: Read) -> Read:
    """Returns a reader of requests that also refuses what the call itself refuses, as text that UTF-8 can't hold."""

    def reading(request: Mapping[str, Any], named: Callable[[str], str]) -> ServedRequest:
        try:
            return read(request, named)
        except (TypeError, ValueError) as error:
            raise RequestRefusal(str(error)) from error

    return reading


class ServedModel(Struct, frozen=True):
    """A model that clients may name."""

    name: str
    provider: str


class AnswerStream(Protocol):
    """The writer of one streamed answer to a client. Called in this order: `begin`; `text` for each piece of the
    visible text; then `end` with one outcome for each sample, which writes the rest of the text and all else, or
    `fail`. The caller makes sure that the first outcome's text begins with the pieces. `ping`, at any time, writes
    bytes that clients skip."""

    def begin(self) -> bytes: ...

    def text(self, piece: str) -> bytes: ...

    def end(self, outcomes: Sequence[Outcome]) -> bytes: ...

    def fail(self, problem: Problem) -> bytes: ...

    def ping(self) -> bytes: ...


class Dialect(Struct, frozen=True):
    """A protocol as its servers speak it, and the `family` of protocols that it belongs to. `read` reads a request's
    JSON object, with a function that returns our model for a client's name (and raises if there is none). `whole`
    writes the body of an answer from outcomes that all have a reply, `stream` the same as server-sent events, `problem`
    the body of an error, `listing` and `listed` models."""

    family: str
    read: Read
    whole: Callable[[ServedRequest, Sequence[Outcome]], bytes]
    stream: Callable[[ServedRequest], AnswerStream]
    problem: Callable[[Problem], bytes]
    listing: Callable[[Sequence[ServedModel]], bytes]
    listed: Callable[[ServedModel], bytes]
