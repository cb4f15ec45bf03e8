"""The gateway's HTTP over real sockets, byte by byte, and as another reader of HTTP understands what it writes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import h11
import pytest
from gateways import CHAT, MODEL, Both, Client, gateway, get, post, question, until

from millstream.fixtures.provider import Latency, Options
from millstream.interfaces.http.http_connection import LINGER_S

Scenario = Callable[[Both, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
TYPE = b"Content-Type: application/json\r\n"
HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost:%d\r\n\r\n"


def run(folder: Path, scenario: Scenario, options: Options | None = None) -> None:
    async def whole() -> None:
        async with gateway(folder, None, options) as both:
            reader, writer = await asyncio.open_connection("127.0.0.1", both.port)
            try:
                await scenario(both, reader, writer)
            finally:
                writer.close()
            await until(lambda: both.running.listener.connections.open == 0)

    asyncio.run(asyncio.wait_for(whole(), 30))


def asked(port: int, head: bytes = b"", body: bytes | None = None, version: bytes = b"1.1") -> bytes:
    """A question for a model; of its length only `head` speaks, where there is one."""
    body = json.dumps(question()).encode() if body is None else body
    head = head or b"Content-Length: %d\r\n" % len(body)
    return b"POST %b HTTP/%b\r\nHost: localhost:%d\r\n%b%b\r\n%b" % (CHAT.encode(), version, port, TYPE, head, body)


async def one(reader: asyncio.StreamReader) -> tuple[int, bytes, bytes]:
    """Status, head and body of an answer that tells its length."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
    return int(head.split(b" ")[1]), head, await reader.readexactly(length)


def test_another_reader_of_http_finds_in_it_what_was_meant(tmp_path: Path) -> None:
    """Many answers of every kind on one connection."""

    async def scenario(both: Both, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = h11.Connection(h11.CLIENT)

        async def asks(method: str, target: str, body: object = None) -> tuple[int, dict[bytes, bytes], bytes]:
            data = b"" if body is None else json.dumps(body).encode()
            headers = [("Host", f"localhost:{both.port}"), ("Content-Type", "application/json")]
            headers += [("Content-Length", str(len(data)))] if data else []
            for event in (
                h11.Request(method=method, target=target, headers=headers),
                h11.Data(data=data),
                h11.EndOfMessage(),
            ):
                writer.write(client.send(event) or b"")
            got: h11.Response | None = None
            came = b""
            while True:
                found = client.next_event()
                if found is h11.NEED_DATA:
                    client.receive_data(await reader.read(7))
                elif isinstance(found, h11.Response):
                    got = found
                elif isinstance(found, h11.Data):
                    came += found.data
                elif isinstance(found, h11.EndOfMessage):
                    assert got is not None
                    client.start_next_cycle()
                    return got.status_code, dict(got.headers), came
                else:
                    raise AssertionError(found)

        status, headers, whole = await asks("POST", CHAT, question())
        assert status == 200 and int(headers[b"content-length"]) == len(whole) and b"date" in headers
        status, headers, streamed = await asks("POST", CHAT, question(stream=True))
        assert (status, headers[b"transfer-encoding"]) == (200, b"chunked") and streamed.endswith(b"[DONE]\n\n")
        assert (await asks("POST", CHAT, {}))[0] == 400
        assert (await asks("GET", "/nowhere"))[0] == 404
        status, headers, nothing = await asks("HEAD", "/health")
        assert (status, nothing) == (200, b"") and int(headers[b"content-length"]) > 0
        assert (await asks("HEAD", CHAT))[0] == 405
        status, headers, body = await asks("GET", f"/v1/models/{MODEL}")
        assert status == 200 and json.loads(body)["id"] == MODEL
        assert (await asks("POST", CHAT, question()))[0] == 200
        assert both.running.listener.connections.open == 1

    run(tmp_path, scenario)


def test_what_stands_before_garbage_is_answered_and_nothing_behind_it(tmp_path: Path) -> None:
    async def scenario(both: Both, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(asked(both.port) + b"\0garbage\r\n\r\n" + asked(both.port))
        assert (await one(reader))[0] == 200
        status, head, body = await one(reader)
        assert status == 400 and b"Connection: close\r\n" in head and b"no HTTP request" in body
        assert await reader.read() == b"" and both.calls == 1

    run(tmp_path, scenario, Options(latency=Latency(a=0.1)))


SMUGGLED = {
    "length and chunks": b"Content-Length: 6\r\nTransfer-Encoding: chunked\r\n",
    "two lengths": b"Content-Length: 5\r\nContent-Length: 6\r\n",
    "chunks within something": b"Transfer-Encoding: gzip, chunked\r\n",
    "a space before the colon": b"Transfer-Encoding : chunked\r\n",
}


@pytest.mark.parametrize("case", SMUGGLED)
def test_no_request_hides_behind_a_length_that_can_be_read_in_two_ways(tmp_path: Path, case: str) -> None:
    async def scenario(both: Both, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(asked(both.port, SMUGGLED[case], b"0\r\n\r\n" + asked(both.port)))
        status, _, body = await one(reader)
        assert (status, json.loads(body)["error"]["type"]) == (400, "invalid_request_error")
        assert await reader.read() == b"" and both.calls == 0

    run(tmp_path, scenario)


@pytest.mark.parametrize("is_kept", [False, True])
def test_older_clients_are_answered_as_they_understand_it(tmp_path: Path, is_kept: bool) -> None:
    async def scenario(both: Both, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        body = json.dumps(question(stream=True)).encode()
        keep = b"Connection: keep-alive\r\n" if is_kept else b""
        if is_kept:
            writer.write((HEALTH % both.port).replace(b"1.1\r\n", b"1.0\r\nConnection: keep-alive\r\n"))
            _, head, _ = await one(reader)
            assert head.startswith(b"HTTP/1.0 200 ") and b"Connection: keep-alive\r\n" in head
        writer.write(asked(both.port, keep + b"Content-Length: %d\r\n" % len(body), body, b"1.0"))
        head, _, streamed = (await reader.read()).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.0 200 ") and b"chunked" not in head and b"keep-alive" not in head
        assert streamed.startswith(b"data: ") and streamed.endswith(b"data: [DONE]\n\n")

    run(tmp_path, scenario)


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_client_that_says_it_closes_is_answered_and_closed(tmp_path: Path, is_streamed: bool) -> None:
    async def scenario(both: Both, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        body = json.dumps(question(stream=is_streamed)).encode()
        writer.write(asked(both.port, b"Connection: close\r\nContent-Length: %d\r\n" % len(body), body))
        answered = await reader.read()
        assert b"\r\nConnection: close\r\n" in answered
        assert answered.endswith(b"0\r\n\r\n") if is_streamed else answered.endswith(b"}")

    run(tmp_path, scenario)


def test_a_client_that_waits_for_a_word_before_its_body_gets_it(tmp_path: Path) -> None:
    async def scenario(both: Both, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        body = json.dumps(question()).encode()
        head = b"Expect: 100-continue\r\nContent-Length: %d\r\n" % len(body)
        writer.write(asked(both.port, head, b""))
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(body)
        assert (await one(reader))[0] == 200
        # Who didn't wait needs no word.
        writer.write(asked(both.port, head, body))
        assert (await one(reader))[0] == 200

    run(tmp_path, scenario)


REFUSED: dict[str, tuple[bytes, int]] = {
    "too large": (b"Content-Length: 17000000\r\n", 413),
    "packed otherwise": (b"Content-Length: 100\r\nContent-Encoding: br\r\n", 415),
    "of a page": (b"Content-Length: 100\r\nOrigin: https://evil.example\r\n", 403),
}


@pytest.mark.parametrize("case", REFUSED)
def test_one_that_would_be_refused_all_the_same_is_told_before_it_sends_its_body(tmp_path: Path, case: str) -> None:
    async def scenario(both: Both, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head, expected = REFUSED[case]
        writer.write(asked(both.port, b"Expect: 100-continue\r\n" + head, b""))
        status, told, _ = await one(reader)
        assert status == expected and b"Connection: close\r\n" in told and await reader.read() == b""

    run(tmp_path, scenario)


def test_a_client_that_sends_all_of_too_much_before_it_reads_is_told_too(tmp_path: Path) -> None:
    async def scenario(both: Both, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        writer.write(asked(both.port, b"Content-Length: 40000000\r\n", b"x" * 40_000_000))
        await writer.drain()
        status, told, _ = await one(reader)
        assert status == 413 and b"Connection: close\r\n" in told and await reader.read() == b""
        assert loop.time() - began < LINGER_S

    run(tmp_path, scenario)


def test_a_refusal_before_a_short_body_has_come_costs_no_connection(tmp_path: Path) -> None:
    async def scenario(both: Both, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sent = asked(both.port, b"Origin: https://evil.example\r\nContent-Length: 9\r\n", b"GET / HTT")
        writer.write(sent[:-9])
        assert (await one(reader))[0] == 403
        writer.write(sent[-9:] + asked(both.port))
        assert (await one(reader))[0] == 200

    run(tmp_path, scenario)


def test_what_is_stored_is_answered_to_a_client_that_sent_its_request_and_closed_its_half(tmp_path: Path) -> None:
    async def scenario(both: Both, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert (await post(both.port, question(), X_Millstream_Trial="0")).status == 200
        body = json.dumps(question()).encode()
        writer.write(asked(both.port, b"X-Millstream-Trial: 0\r\nContent-Length: %d\r\n" % len(body), body))
        writer.write_eof()
        assert b"choices" in await reader.read()

    run(tmp_path, scenario)


def test_while_it_drains_what_waits_behind_a_call_is_refused_and_idle_connections_end_with_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with gateway(tmp_path, None, Options(latency=Latency(a=0.3))) as both:
            listener = both.running.listener
            busy, idle = Client(both.port), Client(both.port)
            await busy.__aenter__()
            await idle.__aenter__()
            idle.send(HEALTH % both.port)
            assert (await idle.answer()).status == 200
            busy.send(asked(both.port) * 2)
            await until(lambda: both.calls == 1)
            await listener.drain()
            assert [(await busy.answer()).status for _ in range(2)] == [200, 503]
            with pytest.raises(OSError):
                await get(both.port, "/health")
            assert listener.connections.open == 2
        assert listener.connections.open == 0
        for client in (busy, idle):
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await client.answer()
            client.hang_up()

    asyncio.run(asyncio.wait_for(scenario(), 30))
