"""The requests of a gateway for a person who watches: time, model, status, duration, tokens and cost. The last ones are
kept for the page; each can be written as a line too.

Nothing here holds a prompt, an answer, a token or the query of an address.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import reduce
from operator import add
from typing import NamedTuple

from ...engine.call import NOT_REPORTED, Outcome, Usage
from ...format import dollars, measured_time
from ...providers.llm.serve_dialect import Problem

LAST = 20


class CallFacts(NamedTuple):
    """What a call of a request took. `usage` None: it has no reply."""

    usage: Usage | None
    cost: float | None
    is_cached: bool


class EndedRequest(NamedTuple):
    """A request that has ended, `at` seconds after the epoch. `what` it asked: a model, or a method and a path; `calls`
    are empty where it has no answer, and `problem` is why."""

    at: float
    what: str
    status: int
    seconds: float | None
    calls: Sequence[CallFacts]
    problem: str

    def cells(self) -> tuple[str, str, str, str, str]:
        """Returns the time of day, what was asked, the status, the duration, and what it took or why it failed."""
        when = time.strftime("%H:%M:%S", time.localtime(self.at))
        lasted = "" if self.seconds is None else measured_time(self.seconds)
        end = "  ".join(_facts_of(self.calls)) if self.calls else self.problem or "no answer"
        return when, self.what, str(self.status), lasted, end


class RequestLog:
    """The last requests of one gateway, and the last without an answer, newest first. `write` gets a line for each,
    None: nobody reads them."""

    def __init__(self, write: Callable[[str], None] | None = None, clock: Callable[[], float] = time.time) -> None:
        self.last: deque[EndedRequest] = deque(maxlen=LAST)
        self.failed: deque[EndedRequest] = deque(maxlen=LAST)
        self._write = write
        self._clock = clock

    def ended(self, model: str, status: int, seconds: float, outcomes: Sequence[Outcome], problem: str = "") -> None:
        """Notes a request to a model. `problem`: the kind of the problem that it was answered with, empty: none;
        `outcomes` are empty where there was no answer."""
        # Usage and cost alone: an answer may be long, and is not kept here.
        calls = [
            CallFacts(None if one.reply is None else one.reply.usage or NOT_REPORTED, one.cost, one.cached)
            for one in outcomes
        ]
        self._note(EndedRequest(self._clock(), model or "-", status, seconds, calls, problem))

    def refused(self, method: str, path: str, problem: Problem) -> None:
        """Notes a request that was no question to a model, or not allowed."""
        what = f"{method[:10]}  {path[:100]}"
        self._note(EndedRequest(self._clock(), what, problem.status, None, (), problem.kind))

    def _note(self, request: EndedRequest) -> None:
        self.last.appendleft(request)
        if not request.calls:
            self.failed.appendleft(request)
        if self._write is not None:
            self._write("  ".join(filter(None, request.cells())))


def _facts_of(calls: Sequence[CallFacts]) -> list[str]:
    usage = reduce(add, (one.usage for one in calls if one.usage is not None), Usage(0, 0))
    facts = []
    if usage.input is not None and usage.output is not None and all(one.usage is not None for one in calls):
        facts.append(f"{usage.input:,} + {usage.output:,} tokens")
    sent = [one for one in calls if not one.is_cached]
    if not sent:
        return [*facts, "cached"]
    costs = [one.cost for one in sent if one.cost is not None]
    facts.append(dollars(sum(costs)) if len(costs) == len(sent) else "cost unknown")
    return [*facts, f"{len(calls) - len(sent)} of {len(calls)} cached"] if len(sent) < len(calls) else facts
