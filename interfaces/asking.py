"""A model asked for a data set: one engine, its progress, and what a signal does to it.

Owns the life of the engine. What is asked and what counts as an answer is the bench's.
"""

from __future__ import annotations

import asyncio
import io
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol, TextIO

from msgspec import structs

from ..wiring import Engine, Settings
from .output import note
from .progress import Progress, Style
from .signals import DRAIN_S, Interruption


class Questions(Protocol):
    """What is asked until it is through, or a lane stops. `watch` is given the number of calls that begin."""

    async def run(self, runner: Engine, watch: Callable[[int], AbstractContextManager[object]]) -> None: ...


def ask_all(questions: Questions, settings: Settings, name: str, *, show_progress: bool) -> int | None:
    """The number of the signal that came, if one did. `name`: by which the same command, killed, is known again."""
    settings = structs.replace(settings, budget_name=name)
    return asyncio.run(_ask(questions, settings, show_progress=show_progress))


async def _ask(questions: Questions, settings: Settings, *, show_progress: bool) -> int | None:
    task = asyncio.current_task()
    assert task is not None
    async with Engine(settings=settings) as engine:

        def drain(name: str) -> None:
            engine.halt("interrupted", f"interrupted by {name}")
            note(f"millstream: {name}: waiting up to {DRAIN_S:.0f} s for calls in flight; once more drops them")

        def cancel() -> None:
            task.cancel()

        # A process started with stderr closed has none.
        stream: TextIO | None = sys.stderr
        style: Style = "auto" if show_progress and stream is not None else "none"

        def watch(calls: int) -> AbstractContextManager[object]:
            return Progress(engine, calls, 0, stream=stream or io.StringIO(), style=style)

        with Interruption(drain, cancel) as interruption:
            try:
                await questions.run(engine, watch)
            except asyncio.CancelledError:
                if interruption.number is None:
                    raise
                task.uncancel()
        return interruption.number
