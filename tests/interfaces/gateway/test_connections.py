"""Connections: one that is of no more use is closed, and there are never more than files for them."""

from __future__ import annotations

import asyncio
import json
import resource
import socket
from pathlib import Path

import pytest
from gateways import CHAT, Client, gateway, gateway_before, get, post, question, request, until
from raw_server import RawServer, Visit, answer, http

from millstream.wiring.file_limits import FILES_SPARED, connections_max

# More than the system takes for a client by itself.
LONG = "x" * (12 << 20)


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_client_that_takes_nothing_is_not_waited_for_for_ever(tmp_path: Path, is_streamed: bool) -> None:
    async def provider(visit: Visit) -> None:
        while await visit.request():
            await visit.send(http(answer(LONG)))

    async def scenario() -> None:
        async with RawServer(provider) as server, gateway_before(server.base_url, tmp_path) as running:
            running.listener.connections.taking_s = 0.5
            client = socket.socket()
            with client:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
                client.connect(("127.0.0.1", running.port))
                body = json.dumps(question(stream=is_streamed)).encode()
                lines = [("Host", f"127.0.0.1:{running.port}"), ("Content-Type", "application/json")]
                client.sendall(request("POST", CHAT, lines, body))
                await until(lambda: running.state.under_way == 1)
                await until(lambda: running.state.under_way == 0)
                await until(lambda: running.listener.connections.open == 0)
            kept = await post(running.port, question(), X_Millstream_Trial="0")
            assert kept.is_cached and kept.json["choices"][0]["message"]["content"] == LONG

    asyncio.run(asyncio.wait_for(scenario(), 30))


def test_one_connection_too_many_is_closed_and_those_there_are_answered(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with gateway(tmp_path) as both:
            listener = both.running.listener
            listener.connections_max = 2
            async with Client(both.port) as first, Client(both.port):
                await until(lambda: listener.connections.open == 2)
                with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                    await get(both.port, "/health")
                first.post(question())
                assert (await first.answer()).status == 200
            await until(lambda: listener.connections.open == 0)
            assert (await get(both.port, "/health")).status == 200

    asyncio.run(asyncio.wait_for(scenario(), 30))


def test_clients_leave_files_for_whom_they_ask() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (1_000, hard))
        assert 2 * connections_max() + FILES_SPARED <= 1_000
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_head_that_is_too_long_is_told_so(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with gateway(tmp_path) as both:
            for headers, path in (({"X-Long": "x" * 9_000}, "/health"), ({}, "/" + "x" * 9_000)):
                refused = await get(both.port, path, **headers)
                assert (refused.status, refused.json["error"]["type"]) == (400, "invalid_request_error")
                assert "too long" in refused.json["error"]["message"]

    asyncio.run(asyncio.wait_for(scenario(), 30))
