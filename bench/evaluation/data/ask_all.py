"""Asks a model questions to build a data set: opens the engine, sends in order, shows progress, ends at a signal.

The caller decides what is asked and which answers are accepted.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager

from msgspec import structs

from ....wiring import Settings
from ....wiring.engine import Engine
from ....wiring.event_loop import run_in_loop
from ....wiring.running import RunEnd, running
from ..door.watch import Watch, unwatched

Asking = Callable[[Engine, Callable[[int], AbstractContextManager[object]]], Awaitable[None]]
"""Asks questions until each has an accepted answer or a lane stops. The second argument receives the number of calls
that are about to begin."""


def ask_all(ask: Asking, settings: Settings, name: str, watch: Watch = unwatched) -> RunEnd:
    """Asks and returns how that ended; raises LocalFault. `name` identifies the command, so that after a
    kill it continues with the same budget."""
    end = run_in_loop(_ask(ask, structs.replace(settings, budget_name=name), watch))
    if end.fault is not None:
        raise end.fault
    return end


async def _ask(ask: Asking, settings: Settings, watch: Watch) -> RunEnd:
    engine = Engine(settings=settings)
    async with running(engine) as end:
        await ask(engine, lambda calls: watch(engine, calls, 0, ""))
    return end
