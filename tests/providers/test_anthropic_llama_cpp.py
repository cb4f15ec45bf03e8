"""A real llama.cpp server, which speaks Anthropic Messages too: our protocol against one that nobody here wrote."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest
from llama_server import llama_server
from msgspec import structs

from millstream import Call, Engine, Message, Outcome
from millstream.engine.attempts.retry import RetryPolicy
from millstream.providers.llm.anthropic.messages import OLDER_VERSION
from millstream.providers.table import PROVIDERS
from millstream.wiring import Settings

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("xllamacpp") is None, reason="xllamacpp has no wheel for this platform"
)
MODEL = "anthropic/tiny"
# It has sampling, and so has the older version.
OLDER = {"anthropic": structs.replace(PROVIDERS["anthropic"], version=OLDER_VERSION)}
whole_and_streamed = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with llama_server() as base_url:
        yield base_url


def asked(server: str, folder: Path, *calls: Call) -> list[Outcome]:
    """Calls through a whole engine, with an empty cache."""
    policy = RetryPolicy(wait_min_s=0.01, wait_max_s=0.05)
    settings = Settings(base_url=server, cache=folder, policy=policy, environment={}, providers=OLDER)

    async def run() -> list[Outcome]:
        async with Engine(settings=settings) as engine:
            return [await engine.ask(call) for call in calls]

    return asyncio.run(run())


@whole_and_streamed
def test_a_message_is_the_same_text_as_a_chat_completion(server: str, tmp_path: Path, stream: bool) -> None:
    talk = (Message("system", "Be brief."), Message("user", "Hello ✓"), Message("assistant", "A"), Message("user", "B"))
    for prompt in ("Say A or B.", talk):
        call = Call(MODEL, prompt, temperature=0, max_tokens=8, stream=stream)
        ours, chat = asked(server, tmp_path, call, structs.replace(call, model="llamacpp/tiny"))
        assert ours.reply is not None and chat.reply is not None, (ours.failure, chat.failure)
        assert ours.reply.text == chat.reply.text
        assert ours.reply.usage is not None and chat.reply.usage is not None
        assert (ours.reply.usage.input, ours.reply.usage.output) == (chat.reply.usage.input, 8)
        assert (ours.reply.finish_reason, ours.reply.truncated) == ("length", True)
