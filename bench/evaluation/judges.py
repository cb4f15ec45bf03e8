"""How judges are asked: with the temperature of their calls where they take one, else without.

Owns that the first call to a judge of which nothing is known decides for all. Knows no benchmark.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from msgspec import structs

from ...engine.call import Call, Failure, Outcome
from ...engine.endpoint import EncodeError
from ...wiring import Settings, access_to, keyless_endpoint_to

Send = Callable[[Call], Awaitable[Outcome]]


class Judges:
    """The judges of one run, shared by all of its items. Without `settings` the first call alone shows what each
    takes."""

    def __init__(self, settings: Settings | None = None) -> None:
        self._settings = settings
        self._judges: dict[tuple[str, str | None], _Judge] = {}

    def as_sent(self, call: Call) -> Call:
        """Returns a call without its temperature if its judge takes none, as far as is known."""
        if call.temperature is None or self._judge(call).takes is not False:
            return call
        return structs.replace(call, temperature=None)

    async def ask(self, call: Call, send: Send) -> Outcome:
        """Sends a call, without its temperature if its judge takes none; the outcome has the call that was sent."""
        judge = self._judge(call)
        if call.temperature is not None and judge.takes is None:
            # Otherwise a judge that rejects a temperature would get as many rejected calls as there are items.
            async with judge.settling:
                if judge.takes is None:
                    return await _first(call, judge, send)
        return await send(self.as_sent(call))

    def _judge(self, call: Call) -> _Judge:
        place = call.model, call.reasoning_effort
        if place not in self._judges:
            is_told = self._settings is not None and not takes_temperature(*place, self._settings)
            self._judges[place] = _Judge(False if is_told else None)
        return self._judges[place]


class _Judge:
    """Whether one judge takes a temperature; None: not known yet."""

    def __init__(self, takes: bool | None) -> None:
        self.takes = takes
        self.settling = asyncio.Lock()


def takes_temperature(model: str, effort: str | None, settings: Settings) -> bool:
    """Returns whether a temperature is sent to a model: neither the table of models nor its protocol is against it."""
    if not settings.facts_of(model).takes_temperature(effort):
        return False
    try:
        keyless_endpoint_to(access_to(model, settings)).encode(Call(model, "?", temperature=0.0))
    except EncodeError:
        return False
    return True


def judge_note(model: str, effort: str | None, settings: Settings) -> tuple[str, ...]:
    """Returns a sentence if a judge is sent no temperature, for the notes of a plan or run."""
    if takes_temperature(model, effort, settings):
        return ()
    return (f"the judge {model} takes no temperature: none is sent, it judges at its own",)


def may_lie_in_temperature(failure: Failure | None) -> bool:
    """Returns whether the temperature may be why a call failed: its rejection mentions it, or, in a run from the cache
    alone, the answer is not cached, as for every rejected call."""
    if failure is None:
        return False
    return failure.kind == "not_cached" or (failure.kind == "rejected" and "temperature" in failure.detail.lower())


async def _first(call: Call, judge: _Judge, send: Send) -> Outcome:
    outcome = await send(call)
    if not may_lie_in_temperature(outcome.failure):
        judge.takes = True if outcome.reply is not None else None
        return outcome
    without = await send(structs.replace(call, temperature=None))
    if may_lie_in_temperature(without.failure):
        return outcome
    judge.takes = False if without.reply is not None else None
    return without
