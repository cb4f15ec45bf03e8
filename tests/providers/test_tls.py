"""Connections that are encrypted: whose certificate is believed, and what an end without a farewell is worth."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from certificates import make_certificate
from endpoints import ask, endpoint, fault_in, transport
from loops import on_each_loop, run_on
from raw_server import Visit, answer, http

from millstream.engine.call import Reply
from millstream.engine.endpoint import Fault

# Another process, since OpenSSL reads its variables once.
ASKING = """
import sys
from certificates import make_certificate
from endpoints import ask, endpoint, transport
from loops import run_on
from millstream.engine.call import Reply

async def scenario(url):
    async with transport() as over:
        at = endpoint(over, url)
        found = [await ask(at) for _ in range(2)]
        return [one.text if isinstance(one, Reply) else f"{one.kind}: {one.detail}" for one in found]

for loop in ("asyncio", "uvloop"):
    print(*run_on(loop, scenario(sys.argv[1])), sep=", ")
"""
SUPPORT = Path(__file__).parents[1] / "support"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A certificate for localhost that nobody vouches for, and its key."""
    return make_certificate(tmp_path_factory.mktemp("certificate"))


@asynccontextmanager
async def serving(certificate: tuple[str, str], handler: Callable[[Visit], Awaitable[None]]) -> AsyncIterator[int]:
    """A server that speaks safely, one connection at a time to `handler`; gives its port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    visits = 0

    async def visit(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal visits
        visits += 1
        try:
            await handler(Visit(visits, reader, writer))
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(visit, "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def sound(visit: Visit) -> None:
    request = 0
    while await visit.request() is not None:
        request += 1
        await visit.send(http(answer(f"{visit.number}/{request}")))


def cutting(data: bytes) -> Callable[[Visit], Awaitable[None]]:
    """Sends so much, and ends the connection beneath the encryption."""

    async def handler(visit: Visit) -> None:
        if await visit.request() is not None:
            await visit.send(data)
            beneath = socket.socket(fileno=os.dup(visit.writer.get_extra_info("socket").fileno()))
            with beneath:
                beneath.shutdown(socket.SHUT_RDWR)

    return handler


def asked_elsewhere(certificate: tuple[str, str], handler: Callable[[Visit], Awaitable[None]]) -> list[str]:
    """What a process that believes this certificate is answered, on each loop."""

    async def scenario() -> str:
        async with serving(certificate, handler) as port:
            asking = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-c", f"import sys; sys.path.insert(0, {str(SUPPORT)!r})\n{ASKING}"),
                f"https://localhost:{port}/v1",
                env={**os.environ, "SSL_CERT_FILE": certificate[0]},
                stdout=asyncio.subprocess.PIPE,
            )
            told, _ = await asking.communicate()
            assert asking.returncode == 0
            return told.decode()

    return run_on("asyncio", scenario()).splitlines()


def test_who_is_vouched_for_by_a_file_of_the_users_own_is_believed_and_a_connection_kept(
    certificate: tuple[str, str],
) -> None:
    assert asked_elsewhere(certificate, sound) == ["1/1, 1/2", "2/1, 2/2"]


def test_a_body_without_a_length_that_ends_without_a_farewell_is_whole_only_if_its_json_is(
    certificate: tuple[str, str],
) -> None:
    head, body = b"HTTP/1.1 200 OK\r\n\r\n", answer("A")
    assert asked_elsewhere(certificate, cutting(head + body)) == ["A, A"] * 2
    (first, second) = asked_elsewhere(certificate, cutting(head + body[:-4]))
    assert first == second and first.count("bad_json") == 2


def test_a_body_that_is_cut_beneath_the_encryption_is_never_whole(certificate: tuple[str, str]) -> None:
    (first, second) = asked_elsewhere(certificate, cutting(http(answer("A"), length=500)))
    assert first == second and first.count("incomplete") == 2


def refused(certificate: tuple[str, str], host: str, loop: str) -> Fault:
    async def scenario() -> Reply | Fault:
        async with serving(certificate, sound) as port, transport() as over:
            return await ask(endpoint(over, f"https://{host}:{port}/v1"))

    return fault_in(run_on(loop, scenario()))


@on_each_loop
def test_a_certificate_that_nobody_vouches_for_is_told_with_what_to_do(certificate: tuple[str, str], loop: str) -> None:
    fault = refused(certificate, "localhost", loop)
    assert (fault.kind, fault.action, fault.quota, fault.is_billed_maybe) == ("connect", "retry", "refund", False)
    assert fault.detail.startswith("the certificate of localhost:")
    assert "self-signed" in fault.detail and "SSL_CERT_FILE" in fault.detail


@on_each_loop
def test_a_server_that_never_shakes_hands_costs_no_more_than_the_time_to_connect(loop: str) -> None:
    async def scenario() -> Reply | Fault:
        with socket.create_server(("127.0.0.1", 0)) as deaf:
            async with transport() as over:
                return await ask(endpoint(over, f"https://127.0.0.1:{deaf.getsockname()[1]}/v1", timeout_s=0.4))

    fault = fault_in(run_on(loop, scenario()))
    assert (fault.kind, fault.quota, fault.is_billed_maybe) == ("connect", "refund", False)
