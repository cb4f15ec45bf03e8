"""Machines that share a server: engines over a scripted provider, each with a cache folder of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from scripted import Bench, ScriptedProvider, engine_over

from millstream.engine.attempts.retry import RetryPolicy
from millstream.engine.lane import Lane
from millstream.engine.server_address import address_of
from millstream.engine.shared.answers import SharedAnswers
from millstream.engine.shared.connection import SharedConnection
from millstream.engine.store.cache import Cache

MODEL = "script/m"


class Machine:
    """One engine, its connection, and the answers that it shares."""

    def __init__(self, bench: Bench, connection: SharedConnection, answers: SharedAnswers) -> None:
        self.bench = bench
        self.connection = connection
        self.answers = answers
        self.ask = bench.scheduler.ask

    @property
    def cache(self) -> Cache:
        return self.bench.scheduler.cache

    async def vanish(self) -> None:
        """Ends as a machine does that loses its power: nothing is given back."""
        await self.connection.close()


@asynccontextmanager
async def machine(
    address: str,
    folder: Path,
    provider: ScriptedProvider | None = None,
    *,
    patience_s: float = 60.0,
    deadline_s: float = 5.0,
    concurrency: int = 16,
    mode: Any = "record",
    **options: Any,
) -> AsyncIterator[Machine]:
    policy = RetryPolicy(patience_s=patience_s)
    lane = Lane(MODEL, concurrency=concurrency)
    providers = {MODEL: provider or ScriptedProvider(latency_s=0.01)}
    async with engine_over(providers, folder, lane, policy=policy, mode=mode) as bench:
        connection = SharedConnection(address_of(address), patience_s=patience_s, deadline_s=deadline_s)
        await connection.open()
        answers = SharedAnswers(connection, bench.scheduler.cache, sends=mode != "strict", **options)
        bench.scheduler.shared = answers
        connection.on_lost = partial(bench.scheduler.halt, "local_fault")
        try:
            yield Machine(bench, connection, answers)
        finally:
            await bench.scheduler.end()
            await answers.close()
            await connection.close()


class SlowProxy:
    """Stands before a server on loopback and passes everything on after `delay_s`, in both directions."""

    def __init__(self, port: int, delay_s: float) -> None:
        self._port = port
        self._delay_s = delay_s
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: list[asyncio.StreamWriter] = []
        self.address = ""

    async def __aenter__(self) -> SlowProxy:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.address = f"redis://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        for writer in self._writers:
            writer.close()
        await asyncio.gather(*self._tasks, *(writer.wait_closed() for writer in self._writers), return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        theirs, ours = await asyncio.open_connection("127.0.0.1", self._port)
        self._writers += [ours, writer]
        for source, sink in ((reader, ours), (theirs, writer)):
            task = asyncio.create_task(self._pass_on(source, sink))
            self._tasks.add(task)

    async def _pass_on(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        loop = asyncio.get_running_loop()
        while data := await source.read(65_536):
            loop.call_later(self._delay_s, sink.write, data)
        await asyncio.sleep(self._delay_s)
        sink.close()
