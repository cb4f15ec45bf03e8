"""The engines of one event loop, one for each set of arguments.

Inspect creates models anywhere and closes few of them, and each evaluation has a loop of its own. So an engine opens at
its first call, lives in a task of its own, and closes when the loop ends or its last model is closed. Knows no class of
Inspect.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context

from ...configuration.options import SendingOptions
from ...engine.call import Call, Outcome
from ...wiring import Settings
from ...wiring.engine import Engine
from .trials import TrialNumbers


class SharedEngine:
    """An engine that several models (`users`) share. It opens at its first call and closes after its last user; `ended`
    is then called with it."""

    def __init__(self, settings: Settings, ended: Callable[[SharedEngine], None]) -> None:
        loop = asyncio.get_running_loop()
        self.users: set[int] = set()
        self._settings = settings
        self._ended = ended
        self._opened: asyncio.Future[Engine] = loop.create_future()
        self._closing = asyncio.Event()
        self._asking: set[asyncio.Task[Outcome]] = set()
        # In a context of its own, which keeps nothing of the sample alive that happened to ask first.
        self._task = loop.create_task(self._live(), context=Context())

    async def _live(self) -> None:
        try:
            async with Engine(settings=self._settings) as engine:
                self._opened.set_result(engine)
                await self._closing.wait()
        except Exception as error:
            if self._opened.done():
                raise
            # The caller gets the error; nothing else awaits this task.
            self._opened.set_exception(error)
        finally:
            self._ended(self)

    async def ask(self, call: Call) -> Outcome:
        """Returns the outcome of a call, which runs in a task of its own: Inspect's scopes cancel what is awaited in
        them again and again, and freeing a slot may have to wait."""
        engine = await asyncio.shield(self._opened)
        task = asyncio.get_running_loop().create_task(engine.ask(call), context=Context())
        self._asking.add(task)
        task.add_done_callback(self._forget_task)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.cancel()
            raise

    def _forget_task(self, task: asyncio.Task[Outcome]) -> None:
        self._asking.discard(task)
        if not task.cancelled():
            task.exception()  # the caller may be gone: marks the error as seen, so that asyncio does not report it

    async def close(self) -> None:
        self._closing.set()
        await asyncio.wait({self._task})


class LoopEngines:
    """The engines of one event loop, by their arguments, and the loop's trial numbers."""

    def __init__(self) -> None:
        self.trials = TrialNumbers()
        self._engines: dict[SendingOptions, SharedEngine] = {}

    def engine(self, sending: SendingOptions, settings: Settings, user: int) -> SharedEngine:
        shared = self._engines.get(sending)
        if shared is None:
            shared = self._engines[sending] = SharedEngine(settings, self._forget)
        shared.users.add(user)
        return shared

    async def leave(self, user: int) -> None:
        for shared in tuple(self._engines.values()):
            shared.users.discard(user)
            if not shared.users:
                self._forget(shared)
                await shared.close()

    def _forget(self, ended: SharedEngine) -> None:
        self._engines = {sending: shared for sending, shared in self._engines.items() if shared is not ended}
