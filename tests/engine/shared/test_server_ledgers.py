"""Ledgers on a server: words are stored over the version that was read, and over no other."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from shared_server import KEEPING, REDIS, VALKEY, SharedServer

from millstream.engine.server_address import address_of
from millstream.engine.shared.connection import SharedConnection
from millstream.engine.shared.owner import ExchangeLost
from millstream.engine.shared.server_ledgers import ServerLedgers


def on_server(
    folder: Path, work: Callable[[ServerLedgers, SharedServer], Coroutine[Any, Any, None]], kind: str = VALKEY
) -> None:
    async def within(server: SharedServer) -> None:
        connection = SharedConnection(address_of(server.address))
        await connection.open()
        try:
            await work(ServerLedgers(connection), server)
        finally:
            await connection.close()

    with SharedServer(folder, *KEEPING, kind=kind) as server:
        asyncio.run(asyncio.wait_for(within(server), 60))


@pytest.mark.parametrize("kind", [VALKEY, REDIS])
def test_words_are_stored_once_over_the_version_that_was_read(tmp_path: Path, kind: str) -> None:
    async def work(ledgers: ServerLedgers, _: SharedServer) -> None:
        assert (await ledgers.exchange("a", 0, b"", b"me"))[:3] == (False, 0, b"")
        first = await ledgers.exchange("a", 0, b"one", b"me")
        # A version is as large as the time in microseconds: none is used again after a loss.
        assert first.is_stored and abs(first.version / 1e6 - time.time()) < 5
        stale = await ledgers.exchange("a", 0, b"two", b"you")
        assert not stale.is_stored and (stale.version, stale.words) == (first.version, b"one")
        # The same words again are those whose reply was lost.
        again = await ledgers.exchange("a", 0, b"one", b"me")
        assert again.is_stored and again.version == first.version
        assert (await ledgers.exchange("b", 0, b"", b"me")).words == b""

    on_server(tmp_path, work, kind)


def test_who_was_too_late_has_the_next_turn(tmp_path: Path) -> None:
    async def work(ledgers: ServerLedgers, _: SharedServer) -> None:
        first = await ledgers.exchange("a", 0, b"one", b"fast")
        late = await ledgers.exchange("a", 0, b"two", b"slow")
        assert not late.is_stored
        refused = await ledgers.exchange("a", first.version, b"three", b"fast")
        assert not refused.is_stored
        second = await ledgers.exchange("a", late.version, b"two", b"slow")
        assert second.is_stored and second.version > first.version
        assert (await ledgers.exchange("a", second.version, b"three", b"fast")).is_stored

    on_server(tmp_path, work)


def test_words_that_may_have_been_stored_before_a_break_are_lost(tmp_path: Path) -> None:
    async def work(ledgers: ServerLedgers, server: SharedServer) -> None:
        held = await ledgers.exchange("a", 0, b"one", b"me")
        await asyncio.to_thread(server.kill)
        waiting = asyncio.ensure_future(ledgers.exchange("a", held.version - 1, b"two", b"me"))
        await asyncio.sleep(0.3)
        assert not waiting.done()
        await asyncio.to_thread(server.start)
        with pytest.raises(ExchangeLost):
            await waiting
        kept = await ledgers.exchange("a", 0, b"", b"me")
        assert (kept.version, kept.words) == (held.version, b"one") and kept.uptime_s < 30

    on_server(tmp_path, work)
