"""SIGINT and SIGTERM during a run: the first lets calls in flight end, a second one or the end of that time cancels
them.

Owns the handlers while its block lasts. Knows only the two functions that it is given.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable
from types import TracebackType

DRAIN_S = 30.0
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interruption:
    """The handler of SIGINT and SIGTERM while its block lasts. `drain` is called with the first signal's name, `cancel`
    at a second signal or after DRAIN_S seconds. `number` is the first signal's; None: there was none."""

    def __init__(self, drain: Callable[[str], None], cancel: Callable[[], object]) -> None:
        self.number: int | None = None
        self._drain = drain
        self._cancel = cancel
        self._timer: asyncio.TimerHandle | None = None
        self._installed: list[signal.Signals] = []

    def __enter__(self) -> Interruption:
        # Signals reach the main thread only; in other threads the program's own loop handles them.
        if threading.current_thread() is threading.main_thread():
            loop = asyncio.get_running_loop()
            for number in SIGNALS:
                loop.add_signal_handler(number, self._receive, number)
                self._installed.append(number)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        for number in self._installed:
            loop.remove_signal_handler(number)

    def _receive(self, number: signal.Signals) -> None:
        if self.number is not None:
            self._cancel()
            return
        self.number = int(number)
        self._timer = asyncio.get_running_loop().call_later(DRAIN_S, self._cancel)
        self._drain(number.name)
