"""SIGINT and SIGTERM while a run is under way: the first drains, a second one or the end of the drain cancels.

Owns the handlers between `with` and its end. Knows nothing of runs but the two functions it is given.
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
    """`drain` is called at the first signal with its name, `cancel` when waiting is over."""

    def __init__(self, drain: Callable[[str], None], cancel: Callable[[], None]) -> None:
        self.number: int | None = None
        self._drain = drain
        self._cancel = cancel
        self._timer: asyncio.TimerHandle | None = None
        self._installed: list[signal.Signals] = []

    def __enter__(self) -> Interruption:
        # Signals reach the main thread alone; elsewhere somebody else's loop decides.
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
