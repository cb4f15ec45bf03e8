"""Texts gone on with, through a whole engine to the simulated provider and to a llama.cpp server."""

from __future__ import annotations

import asyncio
import importlib.util
import math
from pathlib import Path
from typing import Any

import pytest
from llama_server import llama_server

from millstream import Call, Engine, Reply, Settings
from millstream.fixtures.provider import ModelProvider
from millstream.fixtures.provider.completions import score_tokens, tokens_of

STREAM = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


async def reply_to(engine: Engine, call: Call, *, is_cached: bool = False) -> Reply:
    outcome = await engine.ask(call)
    assert outcome.reply is not None, outcome.failure
    assert outcome.cached == is_cached
    return outcome.reply


def settings_to(base_url: str, folder: Path) -> Settings:
    return Settings(base_url=base_url, cache=folder, environment={})


@STREAM
def test_every_token_of_an_echoed_prompt_has_its_log_probability(stream: bool, tmp_path: Path) -> None:
    prompt = "Question: A or B?\nAnswer: A"

    async def scenario() -> Reply:
        async with (
            ModelProvider() as provider,
            Engine(settings=settings_to(provider.base_url, tmp_path)) as engine,
        ):
            asked: dict[str, Any] = {"max_tokens": 1, "logprobs": 1, "extra": {"echo": True}, "stream": stream}
            return await reply_to(engine, Call("vllm-completions/open", prompt, **asked))

    reply = asyncio.run(scenario())
    rows = score_tokens("open", [*tokens_of(prompt), "This"], 1)
    assert reply.text == f"{prompt}This" == "".join(one.token for one in reply.logprobs or ())
    assert reply.usage is not None and (reply.usage.input, reply.usage.output) == (7, 1)
    assert reply.logprobs is not None and math.isnan(reply.logprobs[0].logprob) and reply.logprobs[0].top == ()
    assert [(one.token, one.logprob, dict(one.top)) for one in reply.logprobs[1:]] == [
        (row.token, row.logprob, row.top) for row in rows[1:]
    ]


@pytest.mark.skipif(importlib.util.find_spec("xllamacpp") is None, reason="xllamacpp has no wheel for this platform")
@STREAM
def test_a_llama_cpp_server_goes_on_with_a_text_and_tells_its_log_probabilities(stream: bool, tmp_path: Path) -> None:
    async def ask(base_url: str) -> Reply:
        async with Engine(settings=settings_to(base_url, tmp_path)) as engine:
            asked: dict[str, Any] = {"temperature": 0, "max_tokens": 6, "logprobs": 2, "stream": stream}
            return await reply_to(engine, Call("vllm-completions/tiny", "Say A or", **asked))

    with llama_server() as base_url:
        reply = asyncio.run(ask(base_url))
    assert (reply.finish_reason, reply.truncated) == ("length", True)
    assert reply.usage is not None and reply.usage.output == 6
    assert reply.logprobs is not None and len(reply.logprobs) == 6
    assert all(one.logprob < 0 and len(one.top) == 2 for one in reply.logprobs)
