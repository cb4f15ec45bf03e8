"""How judges are asked: with the temperature of their calls where they take one, else without.

Owns that the first call to a judge of which nothing is known decides for all. Knows no benchmark.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable

from msgspec import structs

from ....configuration.errors import UsageError
from ....engine.call import Call, Outcome
from ....engine.endpoint import EncodeError
from ....wiring import Settings, access_to, keyless_endpoint_to


class Judges:
    """The judges of one run, shared by all of its items. Without `settings` nothing is known of them."""

    def __init__(self, settings: Settings | None = None) -> None:
        self._settings = settings
        self._takes: dict[tuple[str, str | None], bool | None] = {}
        self._settling: dict[tuple[str, str | None], asyncio.Lock] = defaultdict(asyncio.Lock)

    def as_sent(self, call: Call) -> Call:
        """Returns a call without its temperature if its judge takes none, as far as is known."""
        judge = call.model, call.reasoning_effort
        if judge not in self._takes:
            is_refused = self._settings is not None and not takes_temperature(*judge, self._settings)
            self._takes[judge] = False if is_refused else None
        return structs.replace(call, temperature=None) if self._takes[judge] is False else call

    async def ask(self, call: Call, send: Callable[[Call], Awaitable[Outcome]]) -> Outcome:
        """Sends a call without its temperature if the judge takes none; another one than 0 is meant, so a judge of
        which nothing is known may reject it. The outcome has the call that was sent."""
        judge = call.model, call.reasoning_effort
        if self.as_sent(call).temperature == 0 and self._takes[judge] is None:
            # Otherwise a judge that rejects a temperature would get as many rejected calls as there are items.
            async with self._settling[judge]:
                if self._takes[judge] is None:
                    outcome = await send(call)
                    if _may_lie_in_temperature(outcome):
                        without = await send(structs.replace(call, temperature=None))
                        outcome = outcome if _may_lie_in_temperature(without) else without
                    if outcome.reply is not None:
                        self._takes[judge] = outcome.call.temperature is not None
                    return outcome
        return await send(self.as_sent(call))


def takes_temperature(model: str, effort: str | None, settings: Settings) -> bool:
    """Returns whether a temperature is sent to a model: neither the table of models nor its protocol is against it."""
    try:
        keyless_endpoint_to(access_to(model, settings)).encode(Call(model, "?", temperature=0.0))
    except EncodeError:
        return False
    return settings.facts_of(model).takes_temperature(effort)


def judge_note(model: str, effort: str | None, settings: Settings, set_at: str = "") -> tuple[str, ...]:
    """Returns a sentence if a judge is sent no temperature. Raises UsageError if one is set; `set_at` says where."""
    if takes_temperature(model, effort, settings):
        return ()
    if set_at:
        raise UsageError(f"{set_at}: the judge {model} takes no temperature: leave the judge's temperature out")
    return (f"the judge {model} takes no temperature: none is sent, it judges at its own",)


def _may_lie_in_temperature(outcome: Outcome) -> bool:
    """Returns whether the temperature may be why a call failed: its rejection mentions it, or, in a run from the cache
    alone, the answer is not cached, as for every rejected call."""
    kind, detail = ("", "") if outcome.failure is None else (outcome.failure.kind, outcome.failure.detail)
    return kind == "not_cached" or (kind == "rejected" and "temperature" in detail.lower())
