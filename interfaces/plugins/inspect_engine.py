"""The engine of one event loop and one set of arguments, for as long as that loop runs.

Inspect makes models where it likes and closes few of them, and each evaluation has a loop of its own. So an engine
opens with the first call, lives in a task of its own and is closed when the loop ends, or when the last model that
used it is closed. Knows nothing of Inspect's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context

from ...engine.call import Call, Outcome
from ...wiring import Engine, Settings
from ..options import Sending
from .trials import Trials


class SharedEngine:
    """Opened on its first call; `users` are the models that use it."""

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
            # Who asks is told; nobody else waits for this task.
            self._opened.set_exception(error)
        finally:
            self._ended(self)

    async def ask(self, call: Call) -> Outcome:
        """The call runs in a task of its own: Inspect's scopes cancel whatever is awaited in them again and again, and
        what frees a slot may have to wait itself."""
        engine = await asyncio.shield(self._opened)
        task = asyncio.get_running_loop().create_task(engine.ask(call), context=Context())
        self._asking.add(task)
        task.add_done_callback(self._asked)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.cancel()
            raise

    def _asked(self, task: asyncio.Task[Outcome]) -> None:
        self._asking.discard(task)
        if not task.cancelled():
            task.exception()  # who asked may be gone, and nobody is to be told that it was never looked at

    async def close(self) -> None:
        self._closing.set()
        await asyncio.wait({self._task})


class LoopEngines:
    """The engines of one loop, by their arguments, and the count of identical calls there. Holds nothing of the loop
    once its engines have ended."""

    def __init__(self) -> None:
        self.trials = Trials()
        self._engines: dict[Sending, SharedEngine] = {}

    def engine(self, sending: Sending, settings: Settings, user: int) -> SharedEngine:
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
