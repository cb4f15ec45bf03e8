"""Clients that stop waiting: their call ends at the provider too, at once, and its place is free for the next one."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import anthropic
import openai
import pytest
from google import genai
from google.genai import types
from served import Served

# One call at a time: whatever kept its place would keep the next one waiting.
TOKEN = "token-of-a-slim"
MODEL = "lab/steady"
# Far less than what the provider would take, and more than a busy machine may need for it.
FREED_S = 5.0
# Its own session of aiohttp's.
pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning")


def of_openai(gateway: Served) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(api_key=TOKEN, base_url=gateway.base_url)


def of_anthropic(gateway: Served) -> anthropic.AsyncAnthropic:
    return anthropic.AsyncAnthropic(api_key=TOKEN, base_url=gateway.origin)


def of_genai(gateway: Served) -> Any:
    return genai.Client(api_key=TOKEN, vertexai=False, http_options=types.HttpOptions(base_url=gateway.origin)).aio


def talk(text: str) -> Any:
    return [{"role": "user", "content": text}]


async def chat(client: Any, text: str) -> Any:
    return await client.chat.completions.create(model=MODEL, messages=talk(text))


async def respond(client: Any, text: str) -> Any:
    return await client.responses.create(model=MODEL, input=text)


async def message(client: Any, text: str) -> Any:
    return await client.messages.create(model=MODEL, max_tokens=200, messages=talk(text))


async def generate(client: Any, text: str) -> Any:
    return await client.models.generate_content(model=MODEL, contents=text)


WHOLE: dict[str, tuple[Callable[[Served], Any], Callable[[Any, str], Awaitable[Any]]]] = {
    "chat": (of_openai, chat),
    "responses": (of_openai, respond),
    "anthropic": (of_anthropic, message),
    "genai": (of_genai, generate),
}


@pytest.fixture
def faults(gateway: Served) -> Iterator[Callable[..., None]]:
    """Sets what the provider does, and forgets it afterwards."""
    gateway.provider.reset()
    yield gateway.provider.set_faults
    gateway.provider.set_faults()


@pytest.mark.parametrize("name", WHOLE)
def test_a_cancelled_task_ends_its_call_and_the_next_one_is_answered(
    gateway: Served, faults: Callable[..., None], name: str
) -> None:
    opened, ask = WHOLE[name]
    faults("silence=60")

    async def scenario() -> Any:
        async with opened(gateway) as client:
            task = asyncio.ensure_future(ask(client, f"never answered {name}"))
            await asyncio.to_thread(gateway.await_in_flight, 1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.to_thread(gateway.await_in_flight, 0, FREED_S)
            faults()
            return await asyncio.wait_for(ask(client, f"never answered {name}"), FREED_S)

    assert asyncio.run(scenario()) is not None
    # The same question: what was given up is no answer.
    assert gateway.provider.calls() == 2


async def chat_pieces(gateway: Served, text: str) -> AsyncIterator[Any]:
    async with (
        of_openai(gateway) as client,
        await client.chat.completions.create(model=MODEL, messages=talk(text), stream=True) as chunks,
    ):
        async for chunk in chunks:
            if chunk.choices and chunk.choices[0].delta.content:
                yield chunk


async def response_pieces(gateway: Served, text: str) -> AsyncIterator[Any]:
    async with of_openai(gateway) as client, client.responses.stream(model=MODEL, input=text) as events:
        async for event in events:
            if event.type == "response.output_text.delta":
                yield event


async def message_pieces(gateway: Served, text: str) -> AsyncIterator[Any]:
    async with (
        of_anthropic(gateway) as client,
        client.messages.stream(model=MODEL, max_tokens=200, messages=talk(text)) as events,
    ):
        async for piece in events.text_stream:
            yield piece


async def generated_pieces(gateway: Served, text: str) -> AsyncIterator[Any]:
    async with of_genai(gateway) as client:
        async for piece in await client.models.generate_content_stream(model=MODEL, contents=text):
            if piece.text:
                yield piece


STREAMED: dict[str, Callable[[Served, str], AsyncIterator[Any]]] = {
    "chat": chat_pieces,
    "responses": response_pieces,
    "anthropic": message_pieces,
    "genai": generated_pieces,
}


@pytest.mark.parametrize("name", STREAMED)
def test_a_stream_that_is_left_after_its_first_piece_ends_its_call(
    gateway: Served, faults: Callable[..., None], name: str
) -> None:
    faults("slow_body=12")

    async def scenario() -> None:
        pieces: Any = STREAMED[name](gateway, f"told slowly {name}")
        async with contextlib.aclosing(pieces):
            await anext(pieces)
            assert gateway.provider.summary()["in_flight"] == 1
        await asyncio.to_thread(gateway.await_in_flight, 0, FREED_S)

    asyncio.run(asyncio.wait_for(scenario(), 60))


def test_a_stream_that_is_closed_without_await_ends_its_call(gateway: Served, faults: Callable[..., None]) -> None:
    faults("slow_body=12")
    with openai.OpenAI(api_key=TOKEN, base_url=gateway.base_url) as client:
        with client.chat.completions.create(model=MODEL, messages=talk("told slowly"), stream=True) as chunks:
            next(iter(chunks))
            gateway.await_in_flight(1)
        gateway.await_in_flight(0, FREED_S)
    with anthropic.Anthropic(api_key=TOKEN, base_url=gateway.origin) as other:
        with other.messages.stream(model=MODEL, max_tokens=200, messages=talk("told as slowly")) as events:
            next(iter(events))
            gateway.await_in_flight(1)
        gateway.await_in_flight(0, FREED_S)


def test_a_client_that_runs_out_of_time_tries_again_by_itself_and_gets_the_sample_that_it_missed(
    gateway: Served, faults: Callable[..., None]
) -> None:
    faults("silence=60,at=1")
    asked: Any = talk("answered at the second try")
    with openai.OpenAI(api_key=TOKEN, base_url=gateway.base_url, timeout=2.0) as client:
        raw = client.chat.completions.with_raw_response.create(model=MODEL, messages=asked)
    assert (raw.headers["x-millstream-trial"], raw.headers["x-millstream-cached"]) == ("0", "false")
    assert (raw.retries_taken, gateway.provider.calls()) == (1, 2)


def test_a_client_without_tries_left_says_that_it_ran_out_of_time(gateway: Served, faults: Callable[..., None]) -> None:
    faults("silence=60")
    given: Any = {"api_key": TOKEN, "timeout": 0.5, "max_retries": 0}
    with openai.OpenAI(base_url=gateway.base_url, **given) as client, pytest.raises(openai.APITimeoutError):
        client.chat.completions.create(model=MODEL, messages=talk("no time"))
    gateway.await_in_flight(0, FREED_S)
    with anthropic.Anthropic(base_url=gateway.origin, **given) as other, pytest.raises(anthropic.APITimeoutError):
        other.messages.create(model=MODEL, max_tokens=200, messages=talk("no time either"))
    gateway.await_in_flight(0, FREED_S)
