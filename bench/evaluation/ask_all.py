"""Asks a model questions to build a data set: opens the engine, sends in order, shows progress, ends at a signal.

The caller decides what is asked and which answers are accepted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from msgspec import structs

from ...wiring import Settings
from ...wiring.engine import Engine
from ...wiring.signals import until_interrupted
from .watch import Watch, unwatched


class QuestionBatch(Protocol):
    """The interface of questions that are asked until each has an accepted answer or a lane stops. `watch` receives the
    number of calls that are about to begin."""

    async def run(self, runner: Engine, watch: Callable[[int], AbstractContextManager[object]]) -> None: ...


def ask_all(questions: QuestionBatch, settings: Settings, name: str, watch: Watch = unwatched) -> int | None:
    """Asks all questions and returns the number of the signal that ended it (None: no signal). `name` identifies the
    command, so that after a kill it continues with the same budget."""
    return asyncio.run(_ask(questions, structs.replace(settings, budget_name=name), watch))


async def _ask(questions: QuestionBatch, settings: Settings, watch: Watch) -> int | None:
    async with Engine(settings=settings) as engine:

        def watch_calls(calls: int) -> AbstractContextManager[object]:
            return watch(engine, calls, 0, "")

        return await until_interrupted(engine, questions.run(engine, watch_calls))
