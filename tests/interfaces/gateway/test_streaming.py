"""Answers on their way: pieces as they come, nothing that the whole answer takes back, and clients that hang up."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

import pytest
from gateways import Client, gateway, gateway_before, post, question, until
from raw_server import RawServer, Visit, answer, http

from millstream.fixtures.provider import Latency, Options
from millstream.interfaces.gateway.streaming import StreamedText

SLOW = Options(latency=Latency(a=0.02), token_latency=Latency(a=0.02))


def pieces(body: bytes) -> list[str]:
    events = [line.removeprefix(b"data: ") for line in body.split(b"\n\n") if line.startswith(b"data: {")]
    choices = (json.loads(event).get("choices") or [{}] for event in events)
    return [choice[0].get("delta", {}).get("content") or "" for choice in choices]


def test_pieces_go_out_as_they_come_and_make_the_stored_answer(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with gateway(tmp_path, None, SLOW) as both:
            streamed = await post(both.port, question(stream=True))
            whole = await post(both.port, question(), X_Millstream_Trial="0")
            said = [piece for piece in pieces(streamed.body) if piece]
            assert len(said) > 3
            assert whole.is_cached and "".join(said) == whole.json["choices"][0]["message"]["content"]
            assert streamed.body.endswith(b"data: [DONE]\n\n") and "content-length" not in streamed.headers
            again = await post(both.port, question(stream=True), X_Millstream_Trial="0")
            assert again.is_cached and "".join(pieces(again.body)) == "".join(said) and both.calls == 1

    asyncio.run(asyncio.wait_for(scenario(), 30))


def models_in(body: bytes) -> set[str]:
    return {json.loads(line[6:])["model"] for line in body.split(b"\n\n") if line.startswith(b"data: {")}


def test_a_stream_whose_answer_is_there_before_its_head_names_the_model_that_answered(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with gateway(tmp_path, None, Options(faults=("served_as=grok-4.3",))) as both:
            whole = await post(both.port, question(), X_Millstream_Trial="0")
            stored = await post(both.port, question(stream=True), X_Millstream_Trial="0")
            assert stored.is_cached and whole.json["model"] == "grok-4.3"
            assert models_in(stored.body) == {"grok-4.3"}

    asyncio.run(asyncio.wait_for(scenario(), 30))


def test_who_joins_late_is_told_what_was_said_before(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with gateway(tmp_path, None, SLOW) as both, Client(both.port) as first:
            first.post(question(stream=True), headers={"X-Millstream-Trial": "0"})
            while b'{"content":' not in await first.line():
                pass
            second = await post(both.port, question(stream=True), X_Millstream_Trial="0")
            whole = await post(both.port, question(), X_Millstream_Trial="0")
            assert "".join(pieces(second.body)) == whole.json["choices"][0]["message"]["content"]
            assert both.calls == 1

    asyncio.run(asyncio.wait_for(scenario(), 30))


def test_what_fails_before_anything_was_said_is_an_error_with_its_status(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with gateway(tmp_path, None, Options(faults=("rejected=422",))) as both:
            refused = await post(both.port, question(stream=True))
            assert (refused.status, refused.headers["content-type"]) == (422, "application/json")

    asyncio.run(asyncio.wait_for(scenario(), 30))


def events(*words: str) -> bytes:
    return b"".join(
        b'data: {"choices":[{"index":0,"delta":{"content":%b}}]}\n\n' % json.dumps(word).encode() for word in words
    )


END = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize(("second", "is_same"), [(("Once", " upon", " a time"), True), (("Never",), False)])
def test_a_second_attempt_goes_on_where_the_first_broke_off_or_ends_the_stream(
    tmp_path: Path, second: tuple[str, ...], is_same: bool
) -> None:
    async def provider(visit: Visit) -> None:
        await visit.request()
        if visit.number == 1:
            await visit.send(HEAD + events("Once", " upon"))
            await asyncio.sleep(0.1)
        else:
            await visit.send(HEAD + events(*second) + END)

    async def scenario() -> None:
        async with RawServer(provider) as server, gateway_before(server.base_url, tmp_path) as running:
            got = await post(running.port, question(stream=True))
            said = "".join(pieces(got.body))
            if is_same:
                assert said == "Once upon a time" and got.body.endswith(b"[DONE]\n\n")
            else:
                assert said == "Once upon" and b'"error"' in got.body and b"[DONE]" not in got.body
                # It was paid for, and is stored: whoever asks again has it, under the same number.
                again = await post(running.port, question(stream=True))
                assert (again.is_cached, again.trial, "".join(pieces(again.body))) == (True, 0, "Never")

    asyncio.run(asyncio.wait_for(scenario(), 30))


def test_while_nothing_comes_clients_hear_that_we_are_there(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with gateway(tmp_path, None, Options(latency=Latency(a=0.4))) as both:
            both.running.state.ping_s = 0.05
            got = await post(both.port, question(stream=True))
            assert got.body.count(b": ping") >= 3 and got.body.endswith(b"[DONE]\n\n")

    asyncio.run(asyncio.wait_for(scenario(), 30))


def test_saying_never_takes_back_what_was_said() -> None:
    saying = StreamedText()
    for piece in (None, "Once", " upon"):
        saying.hear(piece)
    assert saying.take() == "Once upon"
    for piece in (None, "Once", " up"):
        saying.hear(piece)
    assert saying.take() == ""
    saying.hear("on a")
    assert saying.take() == " a"
    for piece in (None, "Twice upon a time"):
        saying.hear(piece)
    assert saying.take() == "" and saying.said == "Once upon a"


def test_a_piece_costs_no_more_for_what_was_said_before_it() -> None:
    saying, piece = StreamedText(), "fifty characters of an answer that never seems to "
    began = time.process_time()
    for _ in range(2):
        saying.hear(None)
        for _ in range(30_000):
            saying.hear(piece)
            saying.take()
    # Copied for each piece, 1.5 MB takes a minute.
    assert time.process_time() - began < 5
    assert saying.said == piece * 30_000


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_client_that_hangs_up_frees_its_upstream_within_a_second(tmp_path: Path, is_streamed: bool) -> None:
    gone: list[float] = []

    async def provider(visit: Visit) -> None:
        await visit.request()
        await visit.hung_up()
        gone.append(asyncio.get_running_loop().time())

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        async with RawServer(provider) as server, gateway_before(server.base_url, tmp_path) as running:
            async with Client(running.port) as client:
                client.post(question(stream=is_streamed))
                await until(lambda: running.engine.scheduler.under_way == 1)
                await asyncio.sleep(0.1)
                left = loop.time()
            await until(lambda: bool(gone))
            assert gone[0] - left < 1.0
            await until(lambda: running.state.under_way == 0)
            assert running.engine.scheduler.routes.lasting["lab/open"].lane.in_flight == 0

    asyncio.run(asyncio.wait_for(scenario(), 30))


def test_a_call_that_others_wait_for_goes_on_when_the_first_hangs_up(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with gateway(tmp_path, None, Options(latency=Latency(a=0.4))) as both:
            async with Client(both.port) as first:
                first.post(question(), headers={"X-Millstream-Trial": "0"})
                await until(lambda: both.calls == 1)
                second = asyncio.create_task(post(both.port, question(), X_Millstream_Trial="0"))
                await asyncio.sleep(0.1)
            assert ((await second).status, both.calls) == (200, 1)

    asyncio.run(asyncio.wait_for(scenario(), 30))


def test_a_client_that_hung_up_gets_the_same_number_when_it_asks_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with gateway(tmp_path, None, Options(latency=Latency(a=0.2))) as both:
            async with Client(both.port) as first:
                first.post(question())
                await until(lambda: both.calls == 1)
            await until(lambda: both.running.state.under_way == 0)
            assert (await post(both.port, question(), X_Stainless_Retry_Count="1")).trial == 0

    asyncio.run(asyncio.wait_for(scenario(), 30))


def test_a_body_that_does_not_come_is_not_waited_for(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with gateway(tmp_path) as both, Client(both.port) as client:
            both.running.state.body_s = 0.1
            client.send(
                f"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:{both.port}\r\n"
                "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{".encode()
            )
            assert (await client.answer()).status == 408

    asyncio.run(asyncio.wait_for(scenario(), 30))


def test_an_answer_of_a_server_that_cannot_stream_is_told_whole(tmp_path: Path) -> None:
    async def provider(visit: Visit) -> None:
        while await visit.request():
            await visit.send(http(answer("whole")))

    async def scenario() -> None:
        async with RawServer(provider) as server, gateway_before(server.base_url, tmp_path) as running:
            got = await post(running.port, question(stream=True))
            assert "".join(pieces(got.body)) == "whole"

    asyncio.run(asyncio.wait_for(scenario(), 30))
