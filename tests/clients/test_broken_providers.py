"""Providers that are down or break off, as the official clients for Python meet them: after the gateway's own retries,
an error of theirs, and never half an answer. The gateway is in this process, so that its retries need no time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from gateways import MODEL, gateway, gateway_before
from google import genai
from google.genai import errors, types
from mocks import free_port

from millstream.fixtures.provider import Options

Ask = Callable[[int, bool], Awaitable[str]]
TALK: Any = [{"role": "user", "content": "hello"}]
# Its own session of aiohttp's.
pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning")


async def by_chat(port: int, streamed: bool) -> str:
    async with openai.AsyncOpenAI(api_key="any", base_url=f"http://127.0.0.1:{port}/v1") as client:
        answer: Any = await client.chat.completions.create(model=MODEL, messages=TALK, stream=streamed)
        if not streamed:
            return str(answer.choices[0].message.content)
        return "".join([choice.delta.content or "" async for chunk in answer for choice in chunk.choices])


async def by_responses(port: int, streamed: bool) -> str:
    async with openai.AsyncOpenAI(api_key="any", base_url=f"http://127.0.0.1:{port}/v1") as client:
        if not streamed:
            return (await client.responses.create(model=MODEL, input="hello")).output_text
        async with client.responses.stream(model=MODEL, input="hello") as events:
            return (await events.get_final_response()).output_text


async def by_anthropic(port: int, streamed: bool) -> str:
    async with anthropic.AsyncAnthropic(api_key="any", base_url=f"http://127.0.0.1:{port}") as client:
        given: Any = {"model": MODEL, "max_tokens": 200, "messages": TALK}
        if not streamed:
            block: Any = (await client.messages.create(**given)).content[0]
            return str(block.text)
        async with client.messages.stream(**given) as events:
            return await events.get_final_text()


async def by_genai(port: int, streamed: bool) -> str:
    options = types.HttpOptions(base_url=f"http://127.0.0.1:{port}")
    async with genai.Client(api_key="any", vertexai=False, http_options=options).aio as client:
        if not streamed:
            return (await client.models.generate_content(model=MODEL, contents="hello")).text or ""
        stream = await client.models.generate_content_stream(model=MODEL, contents="hello")
        return "".join([piece.text or "" async for piece in stream])


CLIENTS: dict[str, Ask] = {"chat": by_chat, "responses": by_responses, "anthropic": by_anthropic, "genai": by_genai}
in_each = pytest.mark.parametrize("name", CLIENTS)
both_ways = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
OURS = (openai.APIError, anthropic.APIError, errors.APIError)


async def error_of(ask: Ask, port: int, streamed: bool) -> Any:
    with pytest.raises(OURS) as raised:
        await ask(port, streamed)
    return raised.value


@in_each
@both_ways
def test_a_provider_that_is_down_is_a_servers_error_and_asked_for_once(
    tmp_path: Path, name: str, streamed: bool
) -> None:
    async def scenario() -> Any:
        async with gateway_before(f"http://127.0.0.1:{free_port()}/v1", tmp_path) as running:
            error = await error_of(CLIENTS[name], running.port, streamed)
        assert running.metrics.requests == 1
        return error

    error = asyncio.run(asyncio.wait_for(scenario(), 60))
    assert isinstance(error, openai.InternalServerError | anthropic.InternalServerError | errors.ServerError)
    assert "connect" in str(error)


@in_each
def test_a_stream_that_breaks_off_for_good_ends_in_an_error_and_not_in_half_an_answer(
    tmp_path: Path, name: str
) -> None:
    async def scenario() -> int:
        async with gateway(tmp_path, None, Options(faults=("stream_cut=before",))) as both:
            await error_of(CLIENTS[name], both.port, True)
        assert both.running.metrics.requests == 1
        return both.calls

    assert asyncio.run(asyncio.wait_for(scenario(), 60)) > 1


@in_each
def test_a_stream_that_breaks_off_once_is_gone_on_with_where_it_stood(tmp_path: Path, name: str) -> None:
    async def scenario() -> tuple[str, str, int]:
        async with gateway(tmp_path, None, Options(faults=("stream_cut=before,at=1",))) as both:
            streamed, calls = await CLIENTS[name](both.port, True), both.calls
            return streamed, await CLIENTS[name](both.port, False), calls

    streamed, whole, calls = asyncio.run(asyncio.wait_for(scenario(), 60))
    assert (streamed, calls) == (whole, 2) and streamed.startswith("This is a simulated answer")
