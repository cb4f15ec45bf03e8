"""The event loop of our own programs: uvloop if it is installed, else asyncio's own. The engine itself runs in any
loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TypeVar

from ..engine.collector import calm_collector

_T = TypeVar("_T")


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Returns a factory of loops for asyncio.Runner; None: asyncio's default."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


def run_in_loop(work: Coroutine[None, None, _T]) -> _T:
    """Runs a coroutine to its end in a loop of its own, with few garbage collections meanwhile."""
    with calm_collector(), asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(work)
