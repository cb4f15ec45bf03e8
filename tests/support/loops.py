"""Real loops for tests on real sockets: asyncio's own and uvloop's, which break connections in different words."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest
import uvloop

T = TypeVar("T")

FACTORIES: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}

on_each_loop = pytest.mark.parametrize("loop", sorted(FACTORIES))


def run_on(loop: str, work: Coroutine[Any, Any, T], within_s: float = 30.0) -> T:
    """Run to the end on a loop of that name; what hangs fails."""
    with asyncio.Runner(loop_factory=FACTORIES[loop]) as runner:
        return runner.run(asyncio.wait_for(work, within_s))
