"""Quotas over encrypted connections whose handshakes a server of the test's own holds back, in real time."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import ssl
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from certificates import make_certificate
from endpoints import ask, endpoint, transport
from raw_server import Visit, answer, http
from scripted import worst_minute
from torture import IS_LONG, record

from millstream.engine.lanes.ledger import Ledger
from millstream.engine.limits import Quota

pytestmark = pytest.mark.process

RPM = 600
# Another process, since OpenSSL reads its variables once.
ASKING = """
import asyncio, sys
import millstream as ms
from millstream.providers.table import Provider

async def main(port, folder, name, count):
    settings = ms.Settings(
        lanes=(ms.Lane("mylab/m", rpm=600),),
        providers={"mylab": Provider(f"https://localhost:{port}/v1", "KEY")},
        cache=folder,
        environment={"KEY": "sk-of-the-test"},
    )
    async with ms.Engine(settings=settings) as engine:
        async for outcome in engine.run(ms.Call("mylab/m", f"{name} {n}") for n in range(count)):
            assert outcome.status == "ok", outcome.failure

asyncio.run(main(sys.argv[1], __import__("pathlib").Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])))
"""


class SlowToGreet:
    """A server whose TLS handshakes take as long as `held_s` says at the second in which a client connects. Keeps when
    each request arrived, in seconds of the system's monotonic clock."""

    def __init__(self, folder: Path, held_s: Callable[[float], float]) -> None:
        self.certificate, key = make_certificate(folder)
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(self.certificate, key)
        self._held_s = held_s
        self.arrivals: list[float] = []
        self._greetings: list[asyncio.Task[None]] = []

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[int]:
        """Gives the port."""
        loop = asyncio.get_running_loop()
        self.began = loop.time()
        with socket.create_server(("127.0.0.1", 0), backlog=512) as listening:
            listening.setblocking(False)
            async with asyncio.TaskGroup() as visits:
                accepting = visits.create_task(self._accept(listening, visits))
                yield listening.getsockname()[1]
                accepting.cancel()

    def stop(self) -> None:
        """Ends the handshakes that stand still."""
        for greeting in self._greetings:
            greeting.cancel()

    async def _accept(self, listening: socket.socket, visits: asyncio.TaskGroup) -> None:
        while True:
            connection, _ = await asyncio.get_running_loop().sock_accept(listening)
            self._greetings.append(visits.create_task(self._greet(connection)))

    async def _greet(self, connection: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        try:
            await asyncio.sleep(self._held_s(loop.time() - self.began))
        except asyncio.CancelledError:
            connection.close()
            raise
        reader = asyncio.StreamReader()
        protocol = asyncio.StreamReaderProtocol(reader)
        try:
            transport, _ = await loop.connect_accepted_socket(lambda: protocol, connection, ssl=self._context)
        except OSError:
            return connection.close()
        visit = Visit(0, reader, asyncio.StreamWriter(transport, protocol, reader, loop))
        with suppress(ConnectionError):
            while await visit.request() is not None:
                self.arrivals.append(loop.time())
                await visit.send(http(answer("yes")))
        visit.writer.close()


async def asking(server: SlowToGreet, port: int, folder: Path, name: str, count: int) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-c", ASKING, str(port), str(folder), name, str(count)),
        env={**os.environ, "SSL_CERT_FILE": server.certificate},
    )


def test_calls_held_by_a_handshake_count_in_the_minute_that_begins_when_they_are_written(tmp_path: Path) -> None:
    held_s = 4.0

    async def main() -> list[float]:
        server = SlowToGreet(tmp_path, lambda since: max(0.0, held_s - since))
        async with server.serving() as port:
            process = await asking(server, port, tmp_path / "cache", "a", 60)
            assert await process.wait() == 0
        return server.arrivals

    sent = asyncio.run(asyncio.wait_for(main(), 60))
    assert len(sent) == 60
    (path,) = (tmp_path / "cache" / "lanes").glob("*.ledger")
    ledger = Ledger(Quota(rpm=RPM), path)
    # What a minute from the first arrival on still counts, seen by the next process: all of them.
    assert ledger.used(sent[0] + 59.0)[0] == 60


def test_an_address_that_accepts_no_connection_is_named_within_five_seconds(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        server = SlowToGreet(tmp_path, lambda since: 600.0)
        async with server.serving() as port, transport() as over:
            url = f"https://localhost:{port}/v1"
            waiting = asyncio.create_task(ask(endpoint(over, url, timeout_s=60)))
            await asyncio.sleep(5)
            assert over.unanswered.texts == (
                f"https://localhost:{port} has accepted no connection for 4 s: check host, port and firewalls",
            )
            waiting.cancel()
            server.stop()

    asyncio.run(asyncio.wait_for(main(), 60))
    assert any("has accepted no connection" in line.getMessage() for line in caplog.records)


@pytest.mark.skipif(not IS_LONG, reason="some four minutes: make torture")
def test_in_real_minutes_two_processes_and_their_restarts_keep_the_quota_over_held_handshakes(tmp_path: Path) -> None:
    """Handshakes stand still for 12 s at the start and for 20 s after each 100 s; one process is killed in a stall."""

    def held_s(since: float) -> float:
        return max(0.0, 12 - since, 20 - since % 100 if since > 100 else 0.0)

    async def main() -> list[float]:
        server = SlowToGreet(tmp_path, held_s)
        async with server.serving() as port:
            first = await asking(server, port, tmp_path / "cache", "a", 1_000)
            second = await asking(server, port, tmp_path / "cache", "b", 1_000)
            await asyncio.sleep(8)
            first.send_signal(signal.SIGKILL)
            await first.wait()
            await asyncio.sleep(10)
            first = await asking(server, port, tmp_path / "cache", "a", 1_000)
            assert (await first.wait(), await second.wait()) == (0, 0)
        return sorted(server.arrivals)

    sent = asyncio.run(asyncio.wait_for(main(), 600))
    fullest = worst_minute([(at, 1) for at in sent])
    quiet = sum(30 <= at - sent[0] < 90 for at in sent)
    record("8", 1, int(fullest <= RPM), f"over held handshakes the fullest minute had {fullest} of {RPM} requests")
    assert fullest <= RPM and quiet >= 0.95 * RPM
