"""The display of a run: a timer of the running loop looks at it, so that no thread competes with the run.

Owns the rhythm of the looks. The words: progress_lines; the stream: painter; other processes: live_run.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, TextIO

from ...bench.evaluation.door.watch import ItemProgress, OpenRun, Watch, unwatched
from .live_run import LiveRun
from .painter import Painter
from .progress_lines import last_line, plain_line, screen_lines
from .run_progress import LOOK_EVERY_S, RunProgress, RunView

if TYPE_CHECKING:
    from ...wiring.engine import Engine


@contextmanager
def showing(
    engine: Engine,
    total: int,
    already: int,
    item: str = "",
    run: OpenRun | None = None,
    *,
    stream: TextIO | None,
    cpu_s: Callable[[], float] = time.process_time,
) -> Iterator[ItemProgress]:
    """Shows an open engine's run of `total` items, `already` of which were done before it, during the block; then its
    last state stays on the stream. `item`: the word for an item, empty: calls; `run`: where other processes see it and
    steer it; `stream` None: nobody else sees it."""
    if stream is None and run is None:
        with unwatched(engine, total, already, item) as nothing:
            yield nothing
        return
    loop, routes = asyncio.get_running_loop(), engine.scheduler.routes
    looked, cpu_before = loop.time(), cpu_s()
    progress = RunProgress(total, already, routes.lasting, engine.budget, looked, hosts=routes.hosts, item=item)
    painter = Painter(stream, looked)
    live = None if run is None else LiveRun(engine, run)

    def look(lag_s: float) -> RunView:
        nonlocal looked, cpu_before
        now, cpu_now = loop.time(), cpu_s()
        passed_s = now - looked
        # Over a few milliseconds the clock's resolution would decide the result.
        cpu_share = (cpu_now - cpu_before) / passed_s if passed_s > LOOK_EVERY_S / 10 else 0.0
        looked, cpu_before = now, cpu_now
        return progress.look(now, cpu_share, lag_s)

    timer: asyncio.Handle
    due = 0.0

    def wait() -> None:
        nonlocal timer, due
        due = looked + LOOK_EVERY_S
        timer = loop.call_at(due, tick)

    def tick() -> None:
        # uvloop's handle of a time that has passed has no when().
        view = look(loop.time() - due)
        painter.show(partial(screen_lines, view), lambda: [plain_line(view)], looked)
        if live is not None:
            live.turn(view, looked, progress.view)
        wait()

    wait()
    unsubscribe = engine.events.subscribe(progress.hear)
    try:
        yield progress
    finally:
        timer.cancel()
        unsubscribe()
        if live is not None:
            live.close()
        last = look(0.0)
        painter.end(partial(screen_lines, last, is_last=True), lambda: [last_line(last)])


def watch_on_stderr(*, is_shown: bool = True) -> Watch:
    """Returns a function that shows a run on stderr, and to other processes in its folder. On stderr stands nothing if
    that is closed, or `is_shown` is False."""
    return partial(showing, stream=sys.stderr if is_shown else None)
