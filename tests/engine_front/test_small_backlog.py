"""A server that holds few connections which it has not accepted, as one of Python's own does."""

from __future__ import annotations

import asyncio
from pathlib import Path

from chat_server import MODEL, chat, settings_for
from recorder import recording

import millstream as ms


def test_a_crowd_of_first_calls_does_not_overrun_it(tmp_path: Path) -> None:
    calls = [ms.Call(MODEL, f"call {number}", max_tokens=5) for number in range(128)]

    async def main(address: str) -> None:
        made = settings_for(address, tmp_path, ms.Lane(MODEL, concurrency=128))
        async with ms.Engine(settings=made) as engine:
            assert [outcome.status async for outcome in engine.run(calls)] == ["ok"] * 128

    with recording(chat("yes")) as server:
        # A system tries again after one second, three, seven and so on; no call waits for one connection alone.
        asyncio.run(asyncio.wait_for(main(server.base_url), 20))
