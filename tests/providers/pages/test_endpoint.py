"""One hop: what is said to a host, what is taken from it, and what every kind of refusal and breakage means."""

from __future__ import annotations

import asyncio
import gzip
import socket
import ssl
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from loops import on_each_loop, run_on
from page_hops import attempt, endpoint, hop, saying
from page_hosts import PAGE, Connected, http, infos, leading_to
from raw_server import RawServer, Visit

from millstream.engine.call import Call, Message, Reply
from millstream.engine.endpoint import EncodeError, Fault
from millstream.engine.key import key_of
from millstream.providers.pages.connections import AddressInfo, PageConnection, PageConnections
from millstream.providers.pages.endpoint import CRAWL_DELAY_S, POLICY, WITHIN_S, PageEndpoint
from millstream.providers.pages.guard import Guard, parse_allowed
from millstream.providers.pages.hop import USER_AGENT


def fault_of(data: bytes) -> Fault:
    found, _ = hop(saying(data))
    assert isinstance(found, Fault), found
    return found


@on_each_loop
def test_a_page_is_asked_for_under_a_true_name_and_comes_as_it_was_sent(loop: str) -> None:
    heard: list[bytes] = []
    body = gzip.compress(PAGE)
    answer = http(body, "Content-Type: text/html; charset=x", "Content-Encoding: gzip", "Set-Cookie: a=b")
    found, _ = hop(saying(answer, heard), loop=loop)
    assert isinstance(found, Reply) and found.fetched is not None
    fetched = found.fetched
    assert (fetched.status, fetched.content_type, fetched.encoding) == (200, "text/html; charset=x", "gzip")
    assert fetched.body == body and fetched.location is None
    lines = heard[0].decode().split("\r\n")
    assert lines[:2] == ["GET /x?y HTTP/1.1", "Host: a.example"]
    assert f"User-Agent: {USER_AGENT}" in lines and USER_AGENT.startswith("millstream/")
    assert "Accept-Encoding: gzip, deflate" in lines
    assert not any(line.lower().startswith(("cookie", "authorization", "referer")) for line in lines)


@on_each_loop
def test_an_answer_without_a_length_ends_with_its_connection_and_one_in_chunks_with_its_last(loop: str) -> None:
    for data, body in (
        (b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nhello", b"hello"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n", b"hello"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + http(b"hello"), b"hello"),
        (http(b"hello") + b"stray", b"hello"),
        (b"HTTP/1.0 200 OK\r\n\r\nhello", b"hello"),
    ):
        found, _ = hop(saying(data), loop=loop)
        assert isinstance(found, Reply) and found.fetched is not None and found.fetched.body == body, data


@pytest.mark.parametrize("status", [300, 301, 302, 303, 307, 308])
def test_a_redirect_is_a_reply(status: int) -> None:
    found, _ = hop(saying(http(b"moved", "Location: /there", status=status)))
    assert isinstance(found, Reply) and found.fetched is not None
    assert (found.fetched.status, found.fetched.location) == (status, "/there")


@pytest.mark.parametrize(
    ("status", "kind", "action"),
    [(status, "rejected", "never") for status in (400, 401, 402, 403, 404, 405, 410, 418, 451)]
    + [(status, "server_error", "retry") for status in (500, 502, 503, 504, 520)]
    + [(status, "empty", "never") for status in (204, 205, 304)],
)
def test_a_status_means(status: int, kind: str, action: str) -> None:
    found = fault_of(http(status=status))
    assert (found.kind, found.action, found.status) == (kind, action, status)
    assert not found.is_billed_maybe
    assert POLICY.attempts_max == 2 and not found.is_repeated_once


@pytest.mark.parametrize(
    ("status", "wait", "action", "pause_s"),
    [
        (429, "1", "retry", 1.0),
        (503, "3", "retry", 3.0),
        (429, None, "retry", 2.0),
        (429, "soon", "retry", 2.0),
        (429, "0", "retry", 0.1),
        (429, "6", "never", None),
        (503, "3600", "never", None),
    ],
)
def test_a_short_pause_is_the_lanes_and_a_long_one_is_final(
    status: int, wait: str | None, action: str, pause_s: float | None
) -> None:
    headers = () if wait is None else (f"Retry-After: {wait}",)
    found, response = hop(saying(http(b"", *headers, status=status)))
    assert isinstance(found, Fault) and response is not None
    assert (found.kind, found.action, found.status) == ("rate_limited", action, status)
    limits = endpoint(1).limits(response)
    assert [limit.wait_s for limit in limits] == ([] if pause_s is None else [pause_s])


def test_a_host_that_wants_a_long_pause_is_not_asked_meanwhile_and_others_are() -> None:
    async def visit() -> tuple[list[Reply | Fault], int]:
        async with RawServer(saying(http(b"", "Retry-After: 60", status=429))) as server:
            at = endpoint(server.port)
            urls = ("http://a.example/1", "http://a.example/2", "http://b.example/1")
            return [(await attempt(at, Call("web", url)))[0] for url in urls], server.connections

    found, connections = run_on("asyncio", visit())
    assert connections == 2
    assert [fault.status for fault in found if isinstance(fault, Fault)] == [429, None, 429]
    second = found[1]
    assert isinstance(second, Fault) and second.kind == "rate_limited" and "ends in" in second.detail


def test_the_pause_that_rules_for_robots_ask_for_reaches_the_lane_and_not_the_key() -> None:
    async def visit() -> None:
        async with RawServer(saying(http(b"x"))) as server:
            at = endpoint(server.port)
            url = "http://a.example/"
            plain, told = Call("web", url), Call("web", url, extra={CRAWL_DELAY_S: 7.0, WITHIN_S: 3.0})
            assert key_of(at.encode(plain), 0) == key_of(at.encode(told), 0)
            _, response = await attempt(at, told)
            assert response is not None
            (limit,) = at.limits(response)
            assert (limit.of, limit.window_s, limit.limit) == ("requests", 7.0, 1)
            assert limit.wait_s == pytest.approx(7.0 - response.latency_ms / 1000)
            _, response = await attempt(at, Call("web", url, extra={CRAWL_DELAY_S: 86_400}))
            assert response is not None and [limit.window_s for limit in at.limits(response)] == [20.0]
            _, response = await attempt(at, plain)
            assert response is not None and at.limits(response) == ()

    run_on("asyncio", visit())


def test_one_page_has_one_key_however_it_is_spelled() -> None:
    at = endpoint(1)
    keys = {key_of(at.encode(Call("web", url)), 0) for url in ("http://a.example", "HTTP://A.example:80/#x")}
    assert len(keys) == 1
    assert key_of(at.encode(Call("web", "http://a.example/?")), 0) not in keys


@on_each_loop
@pytest.mark.parametrize("is_declared", [True, False])
def test_more_than_five_mebibytes_are_dropped(loop: str, is_declared: bool) -> None:
    async def handle(visit: Visit) -> None:
        await visit.request()
        length = f"Content-Length: {PageConnection.body_max + 1}\r\n" if is_declared else ""
        await visit.send(f"HTTP/1.1 200 OK\r\n{length}\r\n".encode())
        if not is_declared:
            for _ in range(PageConnection.body_max // 65_536 + 2):
                await visit.send(bytes(65_536))
        await visit.hung_up()

    found, _ = hop(handle, loop=loop)
    assert isinstance(found, Fault) and (found.kind, found.action) == ("too_large", "never")


def test_exactly_five_mebibytes_are_taken() -> None:
    found, _ = hop(saying(http(bytes(PageConnection.body_max))))
    assert isinstance(found, Reply) and found.fetched is not None and len(found.fetched.body) == PageConnection.body_max


@on_each_loop
@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200 OK\r\n", http(b"some", "X: y")[:-1]])
def test_a_host_that_dawdles_is_left_at_the_deadline_and_hung_up_on(loop: str, sent: bytes) -> None:
    gone: list[str] = []

    async def handle(visit: Visit) -> None:
        await visit.request()
        await visit.send(sent)
        await visit.hung_up()
        gone.append("hung up")

    async def visit() -> Reply | Fault:
        async with RawServer(handle) as server:
            found, _ = await attempt(endpoint(server.port, 0.4), Call("web", "http://a.example/"))
            for _ in range(100):
                if gone:
                    break
                await asyncio.sleep(0.02)
        return found

    found = run_on(loop, visit())
    assert isinstance(found, Fault) and (found.kind, found.action) == ("timeout", "never")
    assert gone == ["hung up"]


def test_a_call_may_shorten_its_deadline_and_not_lengthen_it() -> None:
    async def handle(visit: Visit) -> None:
        await visit.request()
        await visit.hung_up()

    async def visit() -> list[str]:
        async with RawServer(handle) as server:
            found = []
            for within_s in (0.1, 60.0):
                fault, _ = await attempt(
                    endpoint(server.port, 0.3), Call("web", "http://a.example/", extra={WITHIN_S: within_s})
                )
                assert isinstance(fault, Fault)
                found.append(fault.detail)
            return found

    assert run_on("asyncio", visit()) == ["no whole page within 0.1 s", "no whole page within 0.3 s"]


@on_each_loop
@pytest.mark.parametrize(
    ("data", "kind", "action"),
    [
        (b"", "disconnected", "retry"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", "incomplete", "retry"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhalf", "incomplete", "retry"),
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "incomplete", "never"),
        (b"HTTP/1.1 200 OK\r\nA: " + b"a" * (1 << 21) + b"\r\n\r\n", "incomplete", "never"),
        (b"HTTP/1.1 200 OK\r\n" + b"A: a\r\n" * 300_000 + b"\r\n", "incomplete", "never"),
    ],
)
def test_a_broken_answer_is_none(loop: str, data: bytes, kind: str, action: str) -> None:
    found, _ = hop(saying(data), loop=loop)
    assert isinstance(found, Fault) and (found.kind, found.action) == (kind, action), found


def test_what_breaks_late_has_cost_its_page_enough() -> None:
    async def handle(visit: Visit) -> None:
        await visit.request()
        await asyncio.sleep(2.2)

    found, _ = hop(handle)
    assert isinstance(found, Fault) and (found.kind, found.action) == ("disconnected", "never")


def test_a_host_that_does_not_listen_or_has_no_name_is_final() -> None:
    async def no_name(host: str, port: int) -> list[AddressInfo]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    async def no_answer(host: str, port: int) -> Sequence[AddressInfo]:
        if host == "a.example":
            raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        return infos(port, "8.8.8.8")

    def meaning(connections: PageConnections) -> tuple[str, str]:
        found, _ = run_on("asyncio", attempt(PageEndpoint(connections), Call("web", "http://a.example/")))
        assert isinstance(found, Fault)
        return found.kind, found.action

    refused = PageConnections(Guard(), resolve=leading_to("8.8.8.8"), new_socket=Connected(is_cut_off=True))
    assert meaning(refused) == ("connect", "never")
    assert meaning(PageConnections(Guard(), resolve=no_name)) == ("dns", "never")
    assert meaning(PageConnections(Guard(), resolve=no_answer, has_route=lambda: True)) == ("dns", "retry")
    assert meaning(PageConnections(Guard(), resolve=leading_to())) == ("dns", "never")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A certificate for a.example that nobody vouches for, and its key."""
    folder: Path = tmp_path_factory.mktemp("certificate")
    found, key = str(folder / "certificate"), str(folder / "key")
    name = ["-subj", "/CN=a.example", "-addext", "subjectAltName=DNS:a.example"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *name]
    subprocess.run([*command, "-keyout", key, "-out", found], check=True, capture_output=True)
    return found, key


async def safely(url: str, certificate: tuple[str, str]) -> Reply | Fault:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if await reader.readline():
            writer.write(http(b"safe"))
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    async with server:
        found, _ = await attempt(endpoint(server.sockets[0].getsockname()[1]), Call("web", url))
    return found


@on_each_loop
def test_a_certificate_that_nobody_vouches_for_is_final(loop: str, certificate: tuple[str, str]) -> None:
    found = run_on(loop, safely("https://a.example/", certificate))
    assert isinstance(found, Fault) and (found.kind, found.action) == ("connect", "never")
    assert "certificate" in found.detail


@on_each_loop
def test_a_page_comes_over_a_safe_connection_from_the_host_that_the_certificate_names_alone(
    loop: str, certificate: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", certificate[0])
    found = run_on(loop, safely("https://a.example/", certificate))
    assert isinstance(found, Reply) and found.fetched is not None and found.fetched.body == b"safe"
    found = run_on(loop, safely("https://b.example/", certificate))
    assert isinstance(found, Fault) and (found.kind, found.action) == ("connect", "never")


def test_a_port_that_does_not_speak_safely_is_final() -> None:
    async def handle(visit: Visit) -> None:
        await visit.send(http(b"x"))

    found, _ = hop(handle, "https://a.example/")
    assert isinstance(found, Fault) and (found.kind, found.action) == ("connect", "never"), found


@pytest.mark.parametrize(
    "asked", ["ftp://a.example/", "", "http://127.0.0.1/", (Message("user", "http://a.example/"),)]
)
def test_what_is_no_public_page_is_never_put_into_a_request(asked: str | tuple[Message, ...]) -> None:
    with pytest.raises(EncodeError):
        endpoint(1).encode(Call("web", asked))


def test_a_cancelled_hop_hangs_up() -> None:
    async def visit() -> int:
        begun = asyncio.Event()

        async def handle(visit: Visit) -> None:
            await visit.request()
            begun.set()
            await visit.hung_up()

        async with RawServer(handle) as server:
            task = asyncio.create_task(attempt(endpoint(server.port), Call("web", "http://a.example/")))
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            for _ in range(100):
                if not server.open:
                    break
                await asyncio.sleep(0.02)
            return server.open

    assert run_on("asyncio", visit()) == 0


def test_names_are_looked_up_beside_the_loop_and_their_threads_end() -> None:
    async def visit() -> str:
        connections = PageConnections(Guard((parse_allowed("localhost"),)))
        async with RawServer(saying(http(b"found"))) as server:
            found, _ = await attempt(PageEndpoint(connections), Call("web", f"http://localhost:{server.port}/"))
        connections.close()
        assert isinstance(found, Reply) and found.fetched is not None
        return found.fetched.body.decode()

    assert run_on("asyncio", visit()) == "found"
