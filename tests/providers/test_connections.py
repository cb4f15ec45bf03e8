"""Bytes that nobody asked for, and connections that end between requests: no answer is lost or mixed up."""

from __future__ import annotations

import asyncio

import pytest
from endpoints import ask, endpoint, fault_in, text_of, transport
from loops import on_each_loop, run_on
from raw_server import RawServer, Visit, answer, http

from millstream.engine.call import Reply
from millstream.engine.endpoint import Fault
from millstream.fixtures.provider import ModelProvider

# --- a body longer than it says ---

STRAY = {
    "bytes": b"#" * 20,
    "one byte": b"#",
    "a whole response": http(answer("stray")),
    "two responses": http(answer("stray")) * 2,
    "a head": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
    "half a head": b"HTTP/1.1 200 OK\r\nContent-Len",
    "an interim response": b"HTTP/1.1 100 Continue\r\n\r\n" + http(answer("stray")),
}


@on_each_loop
@pytest.mark.parametrize("when", ["in the same segment", "while the connection is idle"])
def test_what_comes_beyond_the_declared_bytes_costs_no_answer_and_becomes_none(when: str, loop: str) -> None:
    async def scenario(stray: bytes) -> list[str]:
        async def handler(visit: Visit) -> None:
            while await visit.request() is not None:
                sound = http(answer(f"right {visit.number}"))
                if when == "in the same segment":
                    await visit.send(sound + stray)
                    continue
                await visit.send(sound)
                await asyncio.sleep(0.1)
                await visit.send(stray)

        async with RawServer(handler) as server, transport() as over:
            at = endpoint(over, server.base_url)
            texts = []
            for _ in range(3):
                texts.append(text_of(await ask(at)))
                # The stray bytes must have come: those that a next request overtakes can't be told from its answer.
                await asyncio.sleep(0.3)
            return texts

    async def scenarios() -> dict[str, list[str]]:
        return dict(zip(STRAY, await asyncio.gather(*map(scenario, STRAY.values())), strict=True))

    assert run_on(loop, scenarios()) == {stray: ["right 1", "right 2", "right 3"] for stray in STRAY}


# --- connections that end between requests ---


@on_each_loop
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("fault", ["early_close", "reset_keepalive=0.01"])
def test_a_connection_that_was_closed_in_between_costs_nothing_once_that_is_known(
    fault: str, stream: bool, loop: str
) -> None:
    async def scenario() -> None:
        async with ModelProvider() as provider, transport() as over:
            at = endpoint(over, provider.base_url, fault=fault)
            for number in range(5):
                assert isinstance(await ask(at, f"prompt {number}", stream=stream), Reply)
                for _ in range(6_000):
                    if "[0 idle]" in repr(over):
                        break
                    await asyncio.sleep(0.005)
            assert set(provider.counts().values()) == {1}

    run_on(loop, scenario())


@on_each_loop
def test_a_connection_that_closes_as_the_request_comes_may_have_been_billed_and_is_tried_again_at_once(
    loop: str,
) -> None:
    async def handler(visit: Visit) -> None:
        assert await visit.request() is not None
        await visit.send(http(answer("A")))
        await visit.request()

    async def scenario() -> tuple[Reply | Fault, Reply | Fault, Reply | Fault]:
        async with RawServer(handler) as server, transport() as over:
            at = endpoint(over, server.base_url)
            return await ask(at), await ask(at), await ask(at)

    first, second, third = run_on(loop, scenario())
    assert text_of(first) == text_of(third) == "A"
    fault = fault_in(second)
    assert (fault.kind, fault.action, fault.quota, fault.is_billed_maybe, fault.is_immediate) == (
        "disconnected", "retry", "keep", True, True,
    )  # fmt: skip


@on_each_loop
def test_what_is_no_http_may_have_been_billed(loop: str) -> None:
    async def handler(visit: Visit) -> None:
        await visit.request()
        await visit.send(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")

    async def scenario() -> Reply | Fault:
        async with RawServer(handler) as server, transport() as over:
            return await ask(endpoint(over, server.base_url))

    fault = fault_in(run_on(loop, scenario()))
    assert (fault.kind, fault.action, fault.is_billed_maybe) == ("incomplete", "retry", True)
    assert "no HTTP" in fault.detail


@on_each_loop
def test_a_server_that_hangs_up_after_streams_costs_one_attempt_and_not_one_for_each_connection(loop: str) -> None:
    """What llama.cpp does, at the worst moment each time: every kept connection ends when the next request comes."""

    are_open = asyncio.Event()

    async def handler(visit: Visit) -> None:
        request = await visit.request()
        if request is not None:
            if visit.number == 8:
                are_open.set()
            await are_open.wait()
            await visit.send(http(answer("A"), *(["Connection: close"] if b"Connection: close" in request else [])))
            await visit.request()

    async def scenario() -> tuple[list[Reply | Fault], list[Reply | Fault]]:
        async with RawServer(handler) as server, transport() as over:
            at = endpoint(over, server.base_url)
            kept = await asyncio.gather(*(ask(at, stream=True) for _ in range(8)))
            return list(kept), [await ask(at, stream=True) for _ in range(12)]

    kept, after = run_on(loop, scenario())
    assert [text_of(result) for result in kept] == ["A"] * 8
    assert fault_in(after[0]).kind == "disconnected"
    assert [text_of(result) for result in after[1:]] == ["A"] * 11
