"""An event loop whose clock jumps: hours of waiting pass in milliseconds, in the order they would have passed.

Only timers exist here; a wait with no timer left is a deadlock and says so.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Deadlock(Exception):
    """Everything waits and no timer is left that could end it."""


class _NoSelector(selectors.SelectSelector):
    """Never blocks: instead of sleeping, the loop's clock is moved on."""

    clock: VirtualLoop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready:
            if timeout is None:
                raise Deadlock(f"at {self.clock.now:.3f} s every task waits for something that no timer will bring")
            # A real clock moves on between two rounds, however quick: without that, a timer set for a rounding error
            # from now would be due for ever.
            self.clock.now += max(timeout, 1e-9)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    selector_class = _NoSelector

    def __init__(self) -> None:
        self.now = 0.0
        selector = self.selector_class()
        selector.clock = self
        super().__init__(selector)

    def time(self) -> float:
        return self.now


def run_virtually(main: Coroutine[Any, Any, T]) -> T:
    """Run to the end in virtual time; the clock begins at 0."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)


# Both ends of a connection live in one process, so bytes are never on their way for longer; other threads may be.
_LOOK_S = 0.001


class _Watchful(_NoSelector):
    """Looks for some real time whether sockets or threads have anything to say, before the clock is moved on."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        real_s = 10.0 if timeout is None else min(timeout, _LOOK_S)
        return selectors.SelectSelector.select(self, real_s) or super().select(timeout)


class VirtualSocketLoop(VirtualLoop):
    """The same beside real sockets, whose both ends live in this loop."""

    selector_class = _Watchful


def run_with_sockets(main: Coroutine[Any, Any, T]) -> T:
    """Run to the end in virtual time, with real sockets between parts of this program."""
    with asyncio.Runner(loop_factory=VirtualSocketLoop) as runner:
        return runner.run(main)
