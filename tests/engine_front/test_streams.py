"""A streamed answer on its way to listeners and clients: in order, as it comes, whole or visibly broken off."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from chat_gateway import BOB, ChatGateway, Speech, chat_gateway, texts_in
from chat_server import COST, MODEL, PRICE, QUICK, Asked, ChatServer, Step, settings_for, text_to, until
from gateways import Client
from msgspec import structs

import millstream as ms

CALL = ms.Call(MODEL, "call", max_tokens=20, stream=True)
PIECES = ["Once", " upon", " a", " time", " ✓ 😀"]
WHOLE = "".join(PIECES)


def scenario(folder: Path, check: Callable[[ChatGateway, Speech], Awaitable[None]]) -> None:
    """Checks a gateway whose first request is answered by a speech; those after it whole and at once."""

    async def main() -> None:
        speech = Speech()
        first: Callable[[Asked], Step | None] = lambda asked: speech.step if asked.number == 1 else None  # noqa: E731
        async with chat_gateway(folder, first, max_cost=1000.0) as at:
            await check(at, speech)
            while await at.in_flight():  # noqa: ASYNC110
                await asyncio.sleep(0.005)

    asyncio.run(asyncio.wait_for(main(), 30))


def listened(folder: Path, check: Callable[[ms.Engine, ChatServer, Speech], Awaitable[None]], **more: Any) -> None:
    """Checks an engine whose call is first answered by a speech, then whole and at once."""

    async def main() -> None:
        speech = Speech()
        async with ChatServer(lambda asked: speech.step if asked[1:3] == ("call", 1) else None) as server:
            made = settings_for(server.base_url, folder, ms.Lane(MODEL, concurrency=1), prices={MODEL: PRICE}, **more)
            async with ms.Engine(settings=made) as engine:
                await check(engine, server, speech)
                statistics = engine.statistics()
                assert (statistics.in_flight, statistics.reserved) == (0, 0.0)

    asyncio.run(asyncio.wait_for(main(), 30))


async def next_text(client: Client) -> str:
    """The next piece of text that a client receives."""
    while True:
        line = await asyncio.wait_for(client.line(), 5)
        assert line, "the stream ended"
        if texts := texts_in(line):
            return texts[0]


# Through the gateway


def test_each_piece_goes_out_before_the_next_is_said(tmp_path: Path) -> None:
    async def check(at: ChatGateway, speech: Speech) -> None:
        async with at.asking("call", stream=True) as client:
            for piece in PIECES:
                speech.say(piece)
                assert await next_text(client) == piece
            speech.end()
            rest = b""
            while b"[DONE]" not in rest:
                rest += await asyncio.wait_for(client.line(), 5)
            assert texts_in(rest) == [] and b"error" not in rest
        assert await at.left() == 1000.0 - COST

    scenario(tmp_path, check)


def test_a_streamed_answer_is_stored_and_given_in_every_form(tmp_path: Path) -> None:
    async def check(at: ChatGateway, speech: Speech) -> None:
        speech.say(*PIECES)
        speech.end()
        first = await at.ask("call", stream=True)
        assert "".join(texts_in(first.body)) == WHOLE
        streamed, whole = await at.ask("call", BOB, stream=True), await at.ask("call", BOB)
        assert streamed.is_cached and whole.is_cached and at.server.counts() == {"call": 1}
        assert "".join(texts_in(streamed.body)) == WHOLE and streamed.body.endswith(b"data: [DONE]\n\n")
        assert whole.json["choices"][0]["message"]["content"] == WHOLE

    scenario(tmp_path, check)


def test_an_answer_that_was_not_streamed_is_streamed_from_the_store(tmp_path: Path) -> None:
    async def main() -> None:
        async with chat_gateway(tmp_path) as at:
            await at.ask("call")
            streamed = await at.ask("call", stream=True)
            assert streamed.is_cached and "".join(texts_in(streamed.body)) == text_to("call")
            assert at.server.counts() == {"call": 1}

    asyncio.run(asyncio.wait_for(main(), 30))


def test_a_client_that_leaves_in_mid_stream_closes_the_upstream_and_frees_all(tmp_path: Path) -> None:
    async def check(at: ChatGateway, speech: Speech) -> None:
        async with at.asking("call", stream=True) as client:
            speech.say(*PIECES[:2])
            assert await next_text(client) == PIECES[0]
        await until(lambda: at.server.lost == ["call"], within_s=1.0)
        # Half an answer is none: it is asked for again.
        again = await at.ask("call", stream=True)
        assert "".join(texts_in(again.body)) == text_to("call") and at.server.counts() == {"call": 2}

    scenario(tmp_path, check)


@pytest.mark.parametrize("is_first", [True, False])
def test_of_two_clients_one_leaves_and_the_other_has_the_whole(is_first: bool, tmp_path: Path) -> None:
    async def check(at: ChatGateway, speech: Speech) -> None:
        async with at.asking("call", stream=True) as one:
            speech.say(*PIECES[:2])
            assert await next_text(one) == PIECES[0]
            async with at.asking("call", BOB, stream=True) as other:
                # Who joins late has what was said before, perhaps in one piece.
                assert (await next_text(other)).startswith(PIECES[0])
                staying, leaving = (other, one) if is_first else (one, other)
                leaving.hang_up()
                await asyncio.sleep(0.05)
                assert at.server.lost == []
                speech.say(*PIECES[2:])
                speech.end()
                rest = b""
                while b"[DONE]" not in rest:
                    rest += await asyncio.wait_for(staying.line(), 5)
                assert WHOLE.endswith("".join(texts_in(rest))) and texts_in(rest)[-1] == PIECES[-1]
        assert (await at.ask("call")).is_cached and at.server.counts() == {"call": 1}

    scenario(tmp_path, check)


def test_a_client_that_wants_no_stream_joins_one(tmp_path: Path) -> None:
    async def check(at: ChatGateway, speech: Speech) -> None:
        async with at.asking("call", stream=True) as client:
            speech.say(*PIECES)
            assert await next_text(client) == PIECES[0]
            whole = asyncio.create_task(at.ask("call", BOB))
            await asyncio.sleep(0.05)
            speech.end()
            answer = await asyncio.wait_for(whole, 5)
        assert answer.json["choices"][0]["message"]["content"] == WHOLE and at.server.counts() == {"call": 1}

    scenario(tmp_path, check)


def test_an_upstream_that_breaks_off_each_time_ends_a_stream_that_says_so(tmp_path: Path) -> None:
    async def broken(asked: Asked) -> bool:
        speech = Speech()
        speech.say(*PIECES[:2])
        speech.cut()
        return await speech.step(asked)

    async def main() -> None:
        async with chat_gateway(tmp_path, lambda asked: broken) as at:
            answer = await at.ask("call", stream=True)
            assert texts_in(answer.body) == PIECES[:2]
            assert b'"error"' in answer.body and b"[DONE]" not in answer.body
            assert len(at.server.asked) == QUICK.attempts_max
            # Nothing of it is stored.
            at.server.script = lambda asked: None
            again = await at.ask("call")
            assert (again.status, again.is_cached) == (200, False)

    asyncio.run(asyncio.wait_for(main(), 30))


# Through the engine


def test_a_listener_hears_each_piece_as_it_comes(tmp_path: Path) -> None:
    async def check(engine: ms.Engine, server: ChatServer, speech: Speech) -> None:
        heard: list[str | None] = []
        task = asyncio.create_task(engine.ask(CALL, hear=heard.append))
        await until(lambda: server.in_flight == 1)
        for count, piece in enumerate(PIECES, 1):
            speech.say(piece)
            await until(lambda count=count: heard == [None, *PIECES[:count]])  # type: ignore[misc]
        assert not task.done()
        speech.end()
        outcome = await task
        assert outcome.reply is not None and outcome.reply.text == WHOLE and outcome.cost == COST
        # A stored answer is heard by nobody.
        assert (await engine.ask(CALL, hear=heard.append)).cached and len(heard) == 1 + len(PIECES)

    listened(tmp_path, check)


def test_a_second_attempt_makes_void_what_was_heard(tmp_path: Path) -> None:
    async def check(engine: ms.Engine, server: ChatServer, speech: Speech) -> None:
        heard: list[str | None] = []
        speech.say(*PIECES[:2])
        speech.cut()
        outcome = await engine.ask(CALL, hear=heard.append)
        assert outcome.reply is not None and outcome.reply.text == text_to("call")
        assert heard[:4] == [None, *PIECES[:2], None]
        assert "".join(piece or "" for piece in heard[4:]) in ("", text_to("call"))
        assert (outcome.attempts, outcome.maybe_billed) == (2, 1)

    listened(tmp_path, check)


def test_one_that_joins_hears_what_was_said_before_and_goes_on_alone(tmp_path: Path) -> None:
    async def check(engine: ms.Engine, server: ChatServer, speech: Speech) -> None:
        first, second = list[str | None](), list[str | None]()
        one = asyncio.create_task(engine.ask(CALL, hear=first.append))
        await until(lambda: server.in_flight == 1)
        speech.say(*PIECES[:2])
        await until(lambda: len(first) == 3)
        other = asyncio.create_task(engine.ask(structs.replace(CALL), hear=second.append))
        await until(lambda: len(second) == 1)
        assert second == ["".join(PIECES[:2])]
        one.cancel()
        with suppress(asyncio.CancelledError):
            await one
        speech.say(*PIECES[2:])
        speech.end()
        outcome = await other
        assert outcome.reply is not None and "".join(piece or "" for piece in second) == outcome.reply.text == WHOLE
        assert len(first) == 3 and server.counts() == {"call": 1}

    listened(tmp_path, check)


def test_a_run_takes_a_streamed_answer_whole(tmp_path: Path) -> None:
    async def check(engine: ms.Engine, server: ChatServer, speech: Speech) -> None:
        speech.say(*PIECES)
        speech.end()
        calls = [CALL, ms.Call(MODEL, "other", stream=True)]
        texts = {
            str(outcome.call.input): outcome.reply.text
            async for outcome in engine.run(calls)
            if outcome.reply is not None
        }
        assert texts == {"call": WHOLE, "other": text_to("other")}

    listened(tmp_path, check)
