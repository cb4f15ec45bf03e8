"""Providers that are down or break off, as the official clients for Python meet them: after the gateway's own retries,
an error of theirs, and never half an answer. The gateway is in this process, so that its retries need no time."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from asked_by_clients import by_anthropic, by_chat, by_genai, by_responses
from gateways import MODEL, gateway, gateway_before
from google.genai import errors
from mocks import free_port

from millstream.fixtures.provider import Options

CLIENTS = {"chat": by_chat, "responses": by_responses, "anthropic": by_anthropic, "genai": by_genai}
in_each = pytest.mark.parametrize("name", CLIENTS)
both_ways = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
OURS = (openai.APIError, anthropic.APIError, errors.APIError)


async def asked(name: str, port: int, streamed: bool) -> str:
    return await asyncio.to_thread(CLIENTS[name], f"http://127.0.0.1:{port}", "any", streamed, model=MODEL)


async def error_of(name: str, port: int, streamed: bool) -> Any:
    with pytest.raises(OURS) as raised:
        await asked(name, port, streamed)
    return raised.value


@in_each
@both_ways
def test_a_provider_that_is_down_is_a_servers_error_and_asked_for_once(
    tmp_path: Path, name: str, streamed: bool
) -> None:
    async def scenario() -> Any:
        async with gateway_before(f"http://127.0.0.1:{free_port()}/v1", tmp_path) as running:
            error = await error_of(name, running.port, streamed)
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
            await error_of(name, both.port, True)
        assert both.running.metrics.requests == 1
        return both.calls

    assert asyncio.run(asyncio.wait_for(scenario(), 60)) > 1


@in_each
def test_a_stream_that_breaks_off_once_is_gone_on_with_where_it_stood(tmp_path: Path, name: str) -> None:
    async def scenario() -> tuple[str, str, int]:
        async with gateway(tmp_path, None, Options(faults=("stream_cut=before,at=1",))) as both:
            streamed, calls = await asked(name, both.port, True), both.calls
            return streamed, await asked(name, both.port, False), calls

    streamed, whole, calls = asyncio.run(asyncio.wait_for(scenario(), 60))
    assert (streamed, calls) == (whole, 2) and streamed.startswith("This is a simulated answer")
