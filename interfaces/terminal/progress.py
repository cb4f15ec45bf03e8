"""The display of a run: a timer of the running loop looks at it, so that no thread competes with the run.

Owns the rhythm of the looks. The words: progress_lines; the stream: painter.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Protocol, Self, TextIO

from ...bench.evaluation.door.watch import Watch
from ...engine.attempts.money import CostBudget
from ...engine.events import Events
from ...engine.scheduler import Scheduler
from ...wiring.engine import Engine
from .painter import Painter
from .progress_lines import last_line, plain_line, screen_lines
from .run_progress import LOOK_EVERY_S, RunProgress, RunView


class DisplayedEngine(Protocol):
    """The parts of an engine that the display reads."""

    @property
    def scheduler(self) -> Scheduler: ...

    @property
    def events(self) -> Events: ...

    @property
    def budget(self) -> CostBudget: ...


class RunDisplay:
    """The display of an engine's run of `total` items, `already` of which were done before it. Start it inside the
    running loop, while the engine is open. `item`: the word for an item, empty: calls. `stream` None: shows nothing."""

    def __init__(
        self,
        engine: DisplayedEngine,
        total: int,
        already: int,
        *,
        stream: TextIO | None,
        item: str = "",
        cpu_s: Callable[[], float] = time.process_time,
    ) -> None:
        self._engine = engine
        self._total = total
        self._already = already
        self._stream = stream
        self._item = item
        self._cpu_s = cpu_s
        self._progress: RunProgress | None = None
        self._painter: Painter | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._unsubscribe: Callable[[], None] | None = None
        self._due = self._looked = self._cpu_before = 0.0

    def __repr__(self) -> str:
        return f"<RunDisplay [{'shown' if self._progress is not None else 'not shown'}]>"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        if self._stream is None or self._progress is not None:
            return
        now = asyncio.get_running_loop().time()
        routes, budget = self._engine.scheduler.routes, self._engine.budget
        self._progress = RunProgress(
            self._total, self._already, routes.lasting, budget, now, hosts=routes.hosts, item=self._item
        )
        self._unsubscribe = self._engine.events.subscribe(self._progress.hear)
        self._painter = Painter(self._stream, now)
        self._looked, self._cpu_before = now, self._cpu_s()
        self._wait(now)

    def item_ended(self) -> None:
        """Counts one more item as done. For runs whose items take several calls each; else ended calls are counted."""
        if self._progress is not None:
            self._progress.item_ended()

    def stop(self) -> None:
        """Paints the last state and leaves the stream to others. A second time does nothing."""
        progress, painter = self._progress, self._painter
        self._progress = self._painter = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None
        if progress is not None and painter is not None:
            view = self._look(progress, 0.0)
            painter.end(partial(screen_lines, view, is_last=True), lambda: [last_line(view)])

    def _wait(self, now: float) -> None:
        self._due = now + LOOK_EVERY_S
        self._timer = asyncio.get_running_loop().call_at(self._due, self._tick)

    def _tick(self) -> None:
        progress, painter = self._progress, self._painter
        if progress is None or painter is None:
            return
        now = asyncio.get_running_loop().time()
        view = self._look(progress, now - self._due)
        painter.show(partial(screen_lines, view), lambda: [plain_line(view)], now)
        self._wait(now)

    def _look(self, progress: RunProgress, lag_s: float) -> RunView:
        now, cpu_s = asyncio.get_running_loop().time(), self._cpu_s()
        passed_s = now - self._looked
        # Over a few milliseconds the clock's resolution would decide the result.
        cpu_share = (cpu_s - self._cpu_before) / passed_s if passed_s > LOOK_EVERY_S / 10 else 0.0
        self._looked, self._cpu_before = now, cpu_s
        return progress.look(now, cpu_share, lag_s)


def watch_on_stderr(*, is_shown: bool = True) -> Watch:
    """Returns a function that makes the display of a run on stderr; it shows nothing if stderr is closed, or `is_shown`
    is False."""
    stream = sys.stderr if is_shown else None

    def watch(engine: Engine, total: int, already: int, item: str) -> RunDisplay:
        return RunDisplay(engine, total, already, stream=stream, item=item)

    return watch
