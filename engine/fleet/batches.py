"""What a driver and its workers hand each other: calls in batches one way, their outcomes the other.

Pickled whole: both ends are one program in one version, and a batch costs a microsecond a call. Owns no connection.
"""

from __future__ import annotations

import pickle
from typing import Protocol

from msgspec import Struct, field

from ..call import Call, Failure, Reply
from ..events import Event
from ..fault import Stop, StopReason
from .grants import Grant, Spending


class WorkerDied(Exception):
    """Raised by a link whose worker, or its machine, is gone. The message says what the cluster knows of it."""


class Link(Protocol):
    """The way to one worker. `node`: its machine; `name`: what messages call it."""

    @property
    def name(self) -> str: ...

    @property
    def node(self) -> str: ...

    async def exchange(self, given: bytes) -> bytes:
        """Hands a `Given` to the worker and returns its `Taken`, both as `packed` makes them. Raises WorkerDied."""
        ...

    async def close(self) -> None:
        """Lets the worker close its engine and end."""
        ...


class Given(Struct):
    """What a driver hands to a worker. `calls`, each with its number; `left`: the numbers of calls that nobody waits
    for any more; `stops`: lanes that have stopped elsewhere; `halted`: nothing more is sent; `waits`: the worker
    answers when it has outcomes, else at once."""

    calls: list[tuple[int, Call]]
    left: list[int]
    stops: list[Stop]
    halted: tuple[StopReason, str] | None = None
    waits: bool = True
    grant: Grant = field(default_factory=Grant)


class Carried(Struct, gc=False):
    """An outcome without its call, whose number stands for it."""

    number: int
    reply: Reply | None
    failure: Failure | None
    key: str
    cached: bool
    attempts: int
    maybe_billed: int
    cost: float | None
    latency_ms: float | None


class Taken(Struct):
    """What a worker hands back. `stopped` and `broken`: numbers of calls whose lane has stopped, and of those that
    ended with an error; `maybe_billed`: attempts so far for calls that ended without an outcome; `in_flight`: of
    each lane, now."""

    carried: list[Carried]
    stopped: list[tuple[int, Stop]]
    broken: list[tuple[int, str, bool]]
    events: list[Event]
    maybe_billed: int = 0
    spending: Spending = field(default_factory=Spending)
    in_flight: dict[str, int] = {}


def packed(batch: Given | Taken) -> bytes:
    return pickle.dumps(batch, pickle.HIGHEST_PROTOCOL)


def given_of(data: bytes) -> Given:
    given: Given = pickle.loads(data)
    return given


def taken_of(data: bytes) -> Taken:
    taken: Taken = pickle.loads(data)
    return taken
