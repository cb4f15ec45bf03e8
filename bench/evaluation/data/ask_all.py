"""Asks a model questions to build a data set: opens the engine, sends in order, shows progress, ends at a signal.

The caller decides what is asked and which answers are accepted.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from msgspec import structs

from ....wiring import Settings
from ....wiring.engine import Engine
from ....wiring.event_loop import run_in_loop
from ....wiring.running import RunEnd, running
from ..door.watch import Watch, unwatched


class QuestionBatch(Protocol):
    """The interface of questions that are asked until each has an accepted answer or a lane stops. `watch` receives the
    number of calls that are about to begin."""

    async def run(self, runner: Engine, watch: Callable[[int], AbstractContextManager[object]]) -> None: ...


def ask_all(questions: QuestionBatch, settings: Settings, name: str, watch: Watch = unwatched) -> RunEnd:
    """Asks all questions and returns how that ended; raises LocalFault. `name` identifies the command, so that after a
    kill it continues with the same budget."""
    end = run_in_loop(_ask(questions, structs.replace(settings, budget_name=name), watch))
    if end.fault is not None:
        raise end.fault
    return end


async def _ask(questions: QuestionBatch, settings: Settings, watch: Watch) -> RunEnd:
    engine = Engine(settings=settings)
    async with running(engine) as end:
        await questions.run(engine, lambda calls: watch(engine, calls, 0, ""))
    return end
