"""Models in trouble: what one client does wrong ends nothing for the others, and what stopped is tried again."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from gateways import MODEL, QUICK, Both, Client, files_of_at_most, gateway, gateway_before, get, post, question, until
from msgspec import structs
from raw_server import RawServer, Visit, answer, http

from millstream.fixtures.provider import Options

SOON = structs.replace(QUICK, reopened_s=0.3)
LATER = structs.replace(QUICK, reopened_s=100.0)


def refusal_of(status: int, kind: str) -> bytes:
    body = b'{"error":{"message":"%b","type":"%b","code":"%b"}}' % ((kind.encode(),) * 3)
    head = b"HTTP/1.1 %d No\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    return head % (status, len(body)) + body


def test_one_clients_rejections_stop_no_model_for_the_others(tmp_path: Path) -> None:
    async def provider(visit: Visit) -> None:
        while asked := await visit.request():
            await visit.send(refusal_of(400, "bad tool") if b"bad" in asked else http(answer("fine")))

    async def scenario() -> None:
        async with RawServer(provider) as server, gateway_before(server.base_url, tmp_path) as running:
            for number in range(25):
                assert (await post(running.port, question(f"bad {number}"))).status == 400
            assert (await post(running.port, question("good"))).status == 200

    asyncio.run(asyncio.wait_for(scenario(), 30))


STOPS = {
    "dead_key": (401, "invalid_api_key"),
    "empty_account": (429, "insufficient_quota"),
}


@pytest.mark.parametrize("reason", STOPS)
def test_a_model_that_stopped_is_tried_again_after_a_while_with_the_key_of_then(tmp_path: Path, reason: str) -> None:
    environment = {"LAB_KEY": "sk-old"}
    keys = set()

    async def provider(visit: Visit) -> None:
        while asked := await visit.request():
            key = asked.lower().partition(b"authorization: bearer ")[2].partition(b"\r\n")[0]
            keys.add(key)
            await visit.send(http(answer("fine")) if key == b"sk-new" else refusal_of(*STOPS[reason]))

    async def scenario() -> None:
        async with (
            RawServer(provider) as server,
            gateway_before(server.base_url, tmp_path, environment=environment, policy=SOON) as running,
        ):
            first = await post(running.port, question())
            stopped = await post(running.port, question())
            assert (first.status, stopped.status, stopped.headers["retry-after"]) == (503, 503, "1")
            assert running.summary()["stopped"] == [MODEL]
            environment["LAB_KEY"] = "sk-new"
            await asyncio.sleep(0.4)
            again = await asyncio.gather(*(post(running.port, question(str(number))) for number in range(3)))
            assert [one.status for one in again] == [200] * 3 and running.summary()["stopped"] == []
        assert keys == {b"sk-old", b"sk-new"}

    asyncio.run(asyncio.wait_for(scenario(), 30))


def test_until_then_it_is_not_asked_and_says_how_long_that_is(tmp_path: Path) -> None:
    async def scenario(both: Both) -> None:
        assert (await post(both.port, question())).status == 503
        calls = both.calls
        stopped = await post(both.port, question("another"), X_Millstream_Trial="0")
        assert stopped.status == 503 and 90 < int(stopped.headers["retry-after"]) <= 100
        assert stopped.headers["x-should-retry"] == "false" and both.calls == calls

    async def whole() -> None:
        async with gateway(tmp_path, None, Options(faults=("unauthorized",)), policy=LATER) as both:
            await scenario(both)

    asyncio.run(asyncio.wait_for(whole(), 30))


def test_a_disk_that_has_room_again_is_used_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with gateway(tmp_path, policy=SOON) as both:
            with files_of_at_most(8_192):
                assert (await post(both.port, question("first"))).status == 200
                await until(lambda: both.running.engine.scheduler.routes.halted is not None)
                for _ in range(2):
                    refused = await post(both.port, question("second"))
                    said = refused.json["error"]["message"]
                    assert (refused.status, both.calls) == (500, 1)
                    assert "can't be written" in said and "resume" not in said and "by itself" in said
                    await asyncio.sleep(0.4)
            again = await post(both.port, question("second"))
            assert (again.status, again.is_cached, both.calls) == (200, False, 2)
            await until(lambda: both.running.engine.scheduler.under_way == 0)
            assert (await post(both.port, question("second"), X_Millstream_Trial="0")).is_cached

    asyncio.run(asyncio.wait_for(scenario(), 30))


def test_what_a_call_cost_is_told_though_who_had_it_sent_hung_up(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with gateway(tmp_path, None, Options(faults=("slow_headers=0.5",))) as both:
            async with Client(both.port) as client:
                client.post(question(), headers={"X-Millstream-Trial": "0"})
                await until(lambda: both.calls > 0)
                other = asyncio.create_task(post(both.port, question(), X_Millstream_Trial="0"))
                await asyncio.sleep(0.1)
            assert (await other).is_cached
            await until(lambda: both.running.engine.scheduler.under_way == 0)
            told = (await get(both.port, "/metrics")).body.decode()
            lines = dict(line.rsplit(" ", 1) for line in told.splitlines() if not line.startswith("#"))
            assert float(lines['millstream_cost_dollars_total{caller=""}']) == both.running.engine.budget.spent > 0
            assert float(lines['millstream_tokens_total{caller="",direction="output"}']) > 0

    asyncio.run(asyncio.wait_for(scenario(), 30))
