"""A line for each request of a gateway, for a person who watches: time, model, status, duration, tokens and cost.

No line holds a prompt, an answer, a token or the query of an address.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import reduce
from operator import add

from ...engine.call import NOT_REPORTED, Outcome, Usage
from ...format import dollars, measured_time
from ...providers.llm.serve_dialect import Problem


def time_of_day() -> str:
    """Returns the local time as `14:03:59`."""
    return time.strftime("%H:%M:%S")


class RequestLog:
    """The log of one gateway: each line goes to `write`, with the time that `clock` returns before it."""

    def __init__(self, write: Callable[[str], None], clock: Callable[[], str] = time_of_day) -> None:
        self._write = write
        self._clock = clock

    def ended(self, model: str, status: int, seconds: float, outcomes: Sequence[Outcome], problem: str = "") -> None:
        """Writes the line of a request to a model. `problem`: the kind of the problem that it was answered with, empty:
        none; `outcomes` are empty where there was no answer."""
        parts = [model or "-", str(status), measured_time(seconds)]
        self._line([*parts, *(_facts_of(outcomes) if outcomes else [problem or "no answer"])])

    def refused(self, method: str, path: str, problem: Problem) -> None:
        """Writes the line of a request that was no question to a model, or not allowed."""
        self._line([method[:10], path[:100], str(problem.status), problem.kind])

    def _line(self, parts: Sequence[str]) -> None:
        self._write("  ".join((self._clock(), *parts)))


def _facts_of(outcomes: Sequence[Outcome]) -> list[str]:
    usage = reduce(add, (one.reply.usage or NOT_REPORTED for one in outcomes if one.reply is not None), Usage(0, 0))
    facts = []
    if usage.input is not None and usage.output is not None and all(one.reply is not None for one in outcomes):
        facts.append(f"{usage.input:,} + {usage.output:,} tokens")
    sent = [one for one in outcomes if not one.cached]
    if not sent:
        return [*facts, "cached"]
    costs = [one.cost for one in sent if one.cost is not None]
    facts.append(dollars(sum(costs)) if len(costs) == len(sent) else "cost unknown")
    return [*facts, f"{len(outcomes) - len(sent)} of {len(outcomes)} cached"] if len(sent) < len(outcomes) else facts
