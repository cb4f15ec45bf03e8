"""Wrong addresses: each is reported once, at its first call, with what to do, while the calls are retried."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import time
from pathlib import Path

import pytest
from endpoints import ask, endpoint, transport
from loops import on_each_loop, run_on
from raw_server import RawServer, Visit, answer, http
from yarl import URL

from millstream import Engine, Settings
from millstream.engine.call import Call
from millstream.engine.endpoint import Fault
from millstream.engine.fault import Stopped
from millstream.providers.access import ConfigurationError, ReachSettings, accesses
from millstream.providers.llm.anthropic import messages
from millstream.providers.table import Provider
from millstream.providers.transport.connection_faults import fault_of
from millstream.providers.transport.unanswered import UnansweredAddresses


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def troubles(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]


async def asked(base_url: str, times: int) -> tuple[str, ...]:
    """Sends this many calls one after the other, and returns what is known of addresses without answers."""
    async with transport() as over:
        at = endpoint(over, base_url)
        for _ in range(times):
            await ask(at)
        return over.unanswered.texts


@on_each_loop
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_refused_connection_names_the_address_once(host: str, loop: str, caplog: pytest.LogCaptureFixture) -> None:
    where = f"http://{host}:{closed_port()}"
    began = time.perf_counter()
    texts = run_on(loop, asked(f"{where}/v1", 3))
    assert time.perf_counter() - began < 2
    assert troubles(caplog) == [*texts] == [f"{where} refuses connections: is the server up, is the port right?"]


@on_each_loop
def test_a_host_name_that_does_not_exist_is_named(loop: str, caplog: pytest.LogCaptureFixture) -> None:
    run_on(loop, asked("http://millstream.invalid/v1", 2))
    (text,) = troubles(caplog)
    assert text.startswith("the host name millstream.invalid can't be resolved (") and "check its spelling" in text


async def in_plain_http(visit: Visit) -> None:
    await visit.some()
    await visit.send(http(b"{}", status="400 Bad Request"))


@on_each_loop
def test_https_to_a_server_of_plain_http_advises_http(loop: str, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> int:
        async with RawServer(in_plain_http) as server:
            await asked(f"https://127.0.0.1:{server.port}/v1", 2)
            return int(server.port)

    port = run_on(loop, scenario())
    (text,) = troubles(caplog)
    assert text.startswith(f"https://127.0.0.1:{port} does not speak TLS (")
    assert text.endswith(f"): try http://127.0.0.1:{port}")


# What OpenSSL answers to bytes that are no TLS: an alert, level fatal, "protocol_version".
ALERT = b"\x15\x03\x01\x00\x02\x02\x46"


@on_each_loop
def test_a_server_whose_tls_is_too_old_is_told_what_it_needs(loop: str, caplog: pytest.LogCaptureFixture) -> None:
    async def handler(visit: Visit) -> None:
        await visit.some()
        await visit.send(ALERT)

    async def scenario() -> int:
        async with RawServer(handler) as server:
            await asked(f"https://127.0.0.1:{server.port}/v1", 2)
            return int(server.port)

    port = run_on(loop, scenario())
    (text,) = troubles(caplog)
    assert text.startswith(f"https://127.0.0.1:{port} has no version of TLS that is still safe (")
    assert text.endswith("it needs TLS 1.2 or 1.3")


@on_each_loop
@pytest.mark.parametrize(("sent", "what"), [(ALERT, "answers, but not in HTTP"), (b"", "closes connections without")])
def test_plain_http_to_a_server_of_tls_advises_https(
    sent: bytes, what: str, loop: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def handler(visit: Visit) -> None:
        await visit.some()
        await visit.send(sent)

    async def scenario() -> list[int]:
        async with RawServer(handler) as server:
            counts = []
            # One connection may be closed by accident; the third says that all are.
            for times in (2, 3):
                await asked(server.base_url, times)
                counts.append(len(troubles(caplog)))
            return counts

    assert run_on(loop, scenario()) == [0, 1]
    assert what in troubles(caplog)[0] and "does it expect https://?" in troubles(caplog)[0]


@on_each_loop
def test_an_address_that_has_answered_is_never_called_wrong(loop: str, caplog: pytest.LogCaptureFixture) -> None:
    async def handler(visit: Visit) -> None:
        await visit.request()
        if visit.number == 1:
            await visit.send(http(answer("A"), "Connection: close"))

    async def scenario() -> tuple[str, ...]:
        async with RawServer(handler) as server:
            return await asked(server.base_url, 6)

    assert run_on(loop, scenario()) == () and troubles(caplog) == []


async def no_such_path(visit: Visit) -> None:
    while (request := await visit.request()) is not None:
        status = "200 OK" if request.startswith(b"POST /v1/") else "404 Not Found"
        await visit.send(http(answer("A"), status=status))


@pytest.mark.parametrize(("path", "is_advised"), [("", True), ("/", True), ("/v1", False), ("/api", False)])
def test_a_404_without_a_path_advises_v1(path: str, is_advised: bool, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> int:
        async with RawServer(no_such_path) as server:
            await asked(f"http://127.0.0.1:{server.port}{path}", 2)
            return int(server.port)

    port = asyncio.run(scenario())
    advice = f"http://127.0.0.1:{port}{path} answers 404, and has no path: try http://127.0.0.1:{port}/v1"
    assert troubles(caplog) == ([advice] if is_advised else [])


def test_a_404_of_a_protocol_without_v1_in_its_address_gets_no_advice(caplog: pytest.LogCaptureFixture) -> None:
    async def handler(visit: Visit) -> None:
        await visit.request()
        await visit.send(http(b"{}", status="404 Not Found"))

    async def scenario() -> None:
        async with RawServer(handler) as server, transport() as over:
            await ask(endpoint(over, f"http://127.0.0.1:{server.port}", protocol=messages.PROTOCOL))

    asyncio.run(scenario())
    assert troubles(caplog) == []


def test_an_address_with_the_path_of_a_request_is_refused_with_the_right_one() -> None:
    means = ReachSettings(variables={}, base_url="http://127.0.0.1:8000/v1/chat/completions/")
    with pytest.raises(ConfigurationError, match=r"ends with /chat/completions, .* give http://127\.0\.0\.1:8000/v1$"):
        accesses("vllm/any", means)


def test_how_long_calls_are_repeated_is_told_where_they_are(caplog: pytest.LogCaptureFixture) -> None:
    url, fault = URL("http://127.0.0.1:9/v1"), Fault("connect", "http://127.0.0.1:9 refuses connections", "retry")
    for patience_s, told in (
        (600.0, " Calls are repeated for 10 min (--patience); stop with Ctrl-C."),
        (None, ""),
    ):
        caplog.clear()
        addresses = UnansweredAddresses(patience_s)
        addresses.note_fault(url, fault)
        assert troubles(caplog) == [f"{fault.detail}{told}"] and addresses.texts == (fault.detail,)


def test_an_interrupted_engine_names_the_address_that_never_answered(tmp_path: Path) -> None:
    where = f"http://127.0.0.1:{closed_port()}"
    settings = Settings(providers={"mylab": Provider(f"{where}/v1", None)}, cache=tmp_path)

    async def scenario() -> str:
        async with Engine(settings=settings) as engine:
            retried = asyncio.Event()
            engine.events.subscribe(lambda event: retried.set() if event.kind == "retried" else None)
            task = asyncio.ensure_future(engine.ask(Call("mylab/any", "hi")))
            await retried.wait()
            engine.halt("interrupted", "interrupted by SIGINT")
            with pytest.raises(Stopped) as stopped:
                await task
            return str(stopped.value)

    assert asyncio.run(asyncio.wait_for(scenario(), 10)) == (
        f"interrupted by SIGINT; {where} refuses connections: is the server up, is the port right?"
    )


@pytest.mark.parametrize(("port", "told"), [(8099, True), (8000, False)])
def test_a_simulator_that_is_not_there_is_told_with_the_command_that_starts_it(port: int, told: bool) -> None:
    refused = ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
    fault = fault_of(refused, 10.0, URL(f"http://127.0.0.1:{port}/v1/chat/completions"))
    assert f"http://127.0.0.1:{port} refuses connections" in fault.detail
    assert ("`millstream sim`" in fault.detail) is told
