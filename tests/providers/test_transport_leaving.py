"""Calls that are left and transports that close: nothing stays behind, and nothing is taken for what it is not."""

from __future__ import annotations

import asyncio
import time

import pytest
from endpoints import ask, endpoint, fault_in, text_of, transport
from loops import on_each_loop, run_on
from open_files import eventually, open_files
from raw_server import RawServer, Visit, answer, http

from millstream.engine.call import Reply


@on_each_loop
@pytest.mark.parametrize("moment", ["before the head", "in the body"])
def test_a_cancelled_call_closes_its_connection_at_once(moment: str, loop: str) -> None:
    async def scenario() -> float:
        arrived = asyncio.Event()

        async def handler(visit: Visit) -> None:
            await visit.request()
            if moment == "in the body":
                await visit.send(http(answer("A"), length=1_000))
            arrived.set()
            await visit.hung_up()

        async with RawServer(handler) as server, transport() as over:
            call = asyncio.create_task(ask(endpoint(over, server.base_url)))
            await arrived.wait()
            await asyncio.sleep(0.02)
            call.cancel()
            began = time.perf_counter()
            await eventually(lambda: server.open == 0, 1)
            assert call.cancelled()
            return time.perf_counter() - began

    assert run_on(loop, scenario()) < 1


@on_each_loop
def test_a_call_that_is_cancelled_while_it_goes_out_leaves_nothing_behind(loop: str) -> None:
    async def scenario() -> None:
        arrived = asyncio.Event()

        async def handler(visit: Visit) -> None:
            await visit.some()
            arrived.set()
            await asyncio.sleep(0.05)
            await visit.hung_up()

        async with RawServer(handler) as server, transport() as over:
            call = asyncio.create_task(ask(endpoint(over, server.base_url), "x" * (12 << 20)))
            await arrived.wait()
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
            assert call.cancelled()
            await eventually(lambda: server.open == 0, 5)

    run_on(loop, scenario())


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


@on_each_loop
def test_many_cancelled_calls_leave_no_socket_behind(loop: str) -> None:
    async def handler(visit: Visit) -> None:
        while await visit.request() is not None:
            await asyncio.sleep(0.01)
            await visit.send(http(answer("A")))

    async def scenario() -> None:
        async with RawServer(handler) as server, transport() as over:
            at = endpoint(over, server.base_url)
            assert isinstance(await ask(at), Reply)
            before = open_files()
            for wave in range(20):
                calls = [asyncio.create_task(ask(at)) for _ in range(50)]
                await asyncio.sleep(0.002 * (wave % 8))
                for call in calls:
                    call.cancel()
                await asyncio.gather(*calls, return_exceptions=True)
                assert all(call.done() for call in calls)
            assert text_of(await ask(at)) == "A"
            # Two files a connection in this process; answered ones may still stand in the pool.
            await eventually(lambda: server.open <= 50, 1)
            await over.close()
            await eventually(lambda: server.open == 0, 1)
            await eventually(lambda: open_files() <= before - 2, 1)

    run_on(loop, scenario())


@on_each_loop
@pytest.mark.parametrize(
    "interim", [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n"]
)
def test_what_is_said_before_the_answer_is_not_taken_for_it(interim: bytes, loop: str) -> None:
    async def hints_first(visit: Visit) -> None:
        while await visit.request() is not None:
            for part in (interim, interim):
                await visit.send(part)
                await asyncio.sleep(0.03)
            await visit.send(http(answer("A")))

    async def scenario() -> list[str]:
        async with RawServer(hints_first) as server, transport() as over:
            one = endpoint(over, server.base_url)
            return [text_of(await ask(one)) for _ in range(2)]

    assert run_on(loop, scenario()) == ["A", "A"]
