"""Connections and their ends: what each break means, what is given back, and that nothing is left behind."""

from __future__ import annotations

import asyncio
import gzip
import socket
import time
import zlib
from typing import Any

import pytest
from endpoints import CANARY, ask, endpoint, fault_in, text_of, transport
from loops import on_each_loop, run_on
from open_files import eventually, open_files
from raw_server import RawServer, Visit, answer, http

from millstream.engine.call import Reply
from millstream.engine.endpoint import Fault
from millstream.providers.transport.http_connection import BODY_MAX

# --- nothing was sent ---


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@on_each_loop
@pytest.mark.parametrize(
    ("base_url", "kind"),
    [
        ("http://127.0.0.1:{port}/v1", "connect"),
        ("https://127.0.0.1:{port}/v1", "connect"),
        ("http://millstream.invalid/v1", "dns"),
    ],
)
def test_what_was_never_sent_is_given_back(base_url: str, kind: str, loop: str) -> None:
    async def scenario() -> Reply | Fault:
        async with transport() as over:
            return await ask(endpoint(over, base_url.format(port=free_port())))

    fault = fault_in(run_on(loop, scenario()))
    assert (fault.kind, fault.action, fault.quota, fault.is_billed_maybe) == (kind, "retry", "refund", False)


@on_each_loop
def test_a_connection_that_is_never_accepted_is_given_back_and_no_timeout(loop: str) -> None:
    async def scenario() -> tuple[Reply | Fault, float]:
        with socket.socket() as deaf:
            deaf.bind(("127.0.0.1", 0))
            deaf.listen(0)
            port = deaf.getsockname()[1]
            callers = [socket.socket() for _ in range(4)]
            for caller in callers:  # they fill the backlog, so that the next one hears nothing
                caller.setblocking(False)
                caller.connect_ex(("127.0.0.1", port))
            await asyncio.sleep(0.05)
            began = time.perf_counter()
            async with transport() as over:
                result = await ask(endpoint(over, f"http://127.0.0.1:{port}/v1", timeout_s=0.6))
            for caller in callers:
                caller.close()
            return result, time.perf_counter() - began

    result, took = run_on(loop, scenario())
    fault = fault_in(result)
    assert (fault.kind, fault.action, fault.quota, fault.is_billed_maybe) == ("connect", "retry", "refund", False)
    assert took < 0.6


class Deaf(asyncio.SelectorEventLoop):
    """Whoever asks it for an address waits for ever."""

    async def getaddrinfo(self, *args: Any, **settings: Any) -> Any:
        await asyncio.Event().wait()


def test_a_name_that_nobody_answers_for_is_given_back_and_no_timeout() -> None:
    async def scenario() -> Reply | Fault:
        async with transport() as over:
            return await ask(endpoint(over, "http://model.example/v1", timeout_s=0.4))

    with asyncio.Runner(loop_factory=Deaf) as runner:
        fault = fault_in(runner.run(scenario()))
    assert (fault.kind, fault.action, fault.quota, fault.is_billed_maybe) == ("connect", "retry", "refund", False)


# --- time ---


@on_each_loop
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_the_deadline_is_for_the_whole_call_however_steadily_it_drips(stream: bool, loop: str) -> None:
    hung_up = asyncio.Event()

    async def handler(visit: Visit) -> None:
        await visit.request()
        await visit.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        try:
            while True:
                await visit.send(b"1\r\n \r\n")
                await asyncio.sleep(0.02)
        finally:
            hung_up.set()

    async def scenario() -> tuple[Reply | Fault, float]:
        async with RawServer(handler) as server, transport() as over:
            began = time.perf_counter()
            result = await ask(endpoint(over, server.base_url, timeout_s=0.4), stream=stream)
            took = time.perf_counter() - began
            await asyncio.wait_for(hung_up.wait(), 1)
            return result, took

    result, took = run_on(loop, scenario())
    fault = fault_in(result)
    assert (fault.kind, fault.action, fault.quota, fault.is_billed_maybe) == ("timeout", "retry", "keep", True)
    assert "0.4 s" in fault.detail
    assert 0.39 <= took < 0.9


# --- size ---


@on_each_loop
@pytest.mark.parametrize("coding", ["identity", "gzip", "deflate"])
@pytest.mark.parametrize(("over_by", "kind"), [(0, None), (1, "too_large")])
def test_decoded_bytes_are_counted_and_the_last_allowed_one_is_allowed(
    over_by: int, kind: str | None, coding: str, loop: str
) -> None:
    frame = len(answer(""))
    body = answer("x" * (BODY_MAX - frame + over_by))
    packed = {"identity": lambda data: data, "gzip": gzip.compress, "deflate": zlib.compress}[coding](body)

    async def handler(visit: Visit) -> None:
        await visit.request()
        await visit.send(http(packed, *([] if coding == "identity" else [f"Content-Encoding: {coding}"])))

    async def scenario() -> Reply | Fault:
        async with RawServer(handler) as server, transport() as over:
            result = await ask(endpoint(over, server.base_url))
            await eventually(lambda: server.open == 0, 1)
            return result

    result = run_on(loop, scenario())
    if kind is None:
        assert len(text_of(result)) == BODY_MAX - frame
    else:
        fault = fault_in(result)
        assert (fault.kind, fault.action, fault.is_billed_maybe) == ("too_large", "never", True)
        assert "16 MiB" in fault.detail


@on_each_loop
def test_a_bomb_is_dropped_long_before_it_is_unpacked(loop: str) -> None:
    bomb = gzip.compress(b" " * (256 << 20), 1)
    assert len(bomb) < 2 << 20

    async def handler(visit: Visit) -> None:
        await visit.request()
        await visit.send(http(bomb, "Content-Encoding: gzip"))

    async def scenario() -> tuple[Reply | Fault, float]:
        async with RawServer(handler) as server, transport() as over:
            began = time.perf_counter()
            return await ask(endpoint(over, server.base_url)), time.perf_counter() - began

    result, took = run_on(loop, scenario())
    assert fault_in(result).kind == "too_large"
    assert took < 1


@on_each_loop
@pytest.mark.parametrize("header", ["Connection: close", "X: y"])
def test_a_refusal_that_comes_while_the_request_still_goes_out_is_heard_and_its_connection_dropped(
    header: str, loop: str
) -> None:
    refusal = http(b'{"error": {"message": "far too long"}}', header, status="413 Content Too Large")

    async def handler(visit: Visit) -> None:
        if visit.number == 1:
            await visit.some()
            await visit.send(refusal)
            if header != "Connection: close":
                await visit.hung_up()
        elif await visit.request() is not None:
            await visit.send(http(answer("A")))

    async def scenario() -> tuple[Reply | Fault, Reply | Fault]:
        async with RawServer(handler) as server, transport() as over:
            at = endpoint(over, server.base_url)
            return await ask(at, "x" * (12 << 20)), await ask(at)

    first, second = run_on(loop, scenario())
    fault = fault_in(first)
    assert (fault.kind, fault.status) == ("rejected", 413)
    assert "far too long" in fault.detail
    assert text_of(second) == "A"


@on_each_loop
def test_a_server_that_refuses_and_reads_no_further_keeps_no_connection_of_ours(loop: str) -> None:
    async def scenario() -> None:
        is_over = asyncio.Event()

        async def handler(visit: Visit) -> None:
            await visit.some()
            visit.writer.transport.pause_reading()  # type: ignore[attr-defined]
            await visit.send(http(b"{}", status="413 Content Too Large"))
            await is_over.wait()

        async with RawServer(handler) as server, transport() as over:
            at = endpoint(over, server.base_url)
            before = open_files()
            assert fault_in(await ask(at, "x" * (12 << 20))).status == 413
            # The server's end of it stays.
            await eventually(lambda: open_files() <= before + 1, 5)
            is_over.set()

    run_on(loop, scenario())


# --- where a key goes ---


def test_a_call_carries_its_key_in_one_header_and_no_cookie_ever() -> None:
    heads: list[bytes] = []

    async def handler(visit: Visit) -> None:
        while (request := await visit.request()) is not None:
            heads.append(request)
            await visit.send(http(answer("A"), "Set-Cookie: session=1; Path=/"))

    async def scenario() -> None:
        async with RawServer(handler) as server, transport() as over:
            for _ in range(2):
                await ask(endpoint(over, server.base_url))

    run_on("asyncio", scenario())
    assert len(heads) == 2
    for head in heads:
        assert head.count(CANARY.encode()) == 1
        assert f"\r\nAuthorization: Bearer {CANARY}\r\n".encode() in head
        assert b"cookie" not in head.lower()


@on_each_loop
def test_calls_that_fly_when_the_transport_closes_are_told_at_once(loop: str) -> None:
    async def scenario() -> None:
        arrived = asyncio.Event()

        async def handler(visit: Visit) -> None:
            await visit.request()
            if visit.number == 8:
                arrived.set()
            await visit.hung_up()

        async with RawServer(handler) as server, transport() as over:
            before = open_files()
            at = endpoint(over, server.base_url, timeout_s=60)
            calls = [asyncio.create_task(ask(at)) for _ in range(8)]
            await arrived.wait()
            await over.close()
            found = [fault_in(await call) for call in calls]
            assert {(fault.kind, fault.is_billed_maybe) for fault in found} == {("disconnected", True)}
            later = fault_in(await ask(at))
            assert (later.kind, later.quota) == ("connect", "refund")
            await eventually(lambda: server.open == 0 and open_files() <= before, 5)

    run_on(loop, scenario())
