"""What a driver and its workers hand each other: calls in batches one way, their outcomes the other.

Each is pickled whole: both ends are one program in one version, and a batch costs a microsecond a call. Owns no
connection.
"""

from __future__ import annotations

from typing import Any, Protocol

from msgspec import Struct, field

from ..call import Call, Outcome
from ..events import Event
from ..fault import Stop
from .grants import Grant, Spending

# Stands in an outcome for its call, whose number goes with it.
NO_CALL = Call("any/model", "")


class WorkerDied(Exception):
    """Raised by a link whose worker, or its machine, is gone. The message says what the cluster knows of it."""


class Link(Protocol):
    """The way to one worker. `node`: its machine; `name`: what messages call it."""

    @property
    def name(self) -> str: ...

    @property
    def node(self) -> str: ...

    async def ask(self, method: str, *arguments: Any, **options: Any) -> Any:
        """Calls a method of the worker. Raises WorkerDied if it has ended, or ends with it."""
        ...

    async def close(self) -> None:
        """Lets the worker close its engine and end."""
        ...


class CallLink(Link, Protocol):
    """The way to a worker that carries a driver's calls."""

    def send(self, given: bytes) -> None:
        """Hands a `Given`, pickled, to the worker, if it lives."""
        ...

    async def receive(self) -> bytes:
        """Returns the worker's next `Taken`, pickled. Raises WorkerDied."""
        ...


class Given(Struct):
    """What a driver hands to a worker. `calls`, each with its number; `left`: the numbers of calls that nobody waits
    for any more; `stops`: lanes that have stopped elsewhere."""

    calls: list[tuple[int, Call]] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    stops: list[Stop] = field(default_factory=list)
    grant: Grant = field(default_factory=Grant)


class Taken(Struct):
    """What a worker hands back. `ended`: the number of each call that has ended, and its outcome, the stop of its lane
    or the error with which it ended; `maybe_billed`: attempts so far for calls that ended without an outcome;
    `in_flight`: of each lane, now."""

    ended: list[tuple[int, Outcome | Stop | Exception]] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    maybe_billed: int = 0
    spending: Spending = field(default_factory=Spending)
    in_flight: dict[str, int] = {}
