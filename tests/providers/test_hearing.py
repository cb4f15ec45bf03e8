"""What a caller hears of an answer while it comes: its text, nothing else, and no secret."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

import anthropic_shapes
import bedrock_shapes
import chat_shapes
import gemini_shapes
import pytest
import response_shapes
from endpoints import endpoint, transport
from hypothesis import given
from hypothesis import strategies as st
from loops import run_on
from msgspec import structs

from millstream.engine.call import Call, Reply
from millstream.engine.endpoint import Response, send
from millstream.fixtures.provider import ModelProvider, Options, parse_latency
from millstream.providers.llm.answer_listeners import (
    EventListener,
    chat_text,
)
from millstream.providers.llm.anthropic import messages as anthropic
from millstream.providers.llm.bedrock import converse as bedrock
from millstream.providers.llm.google import generate as gemini
from millstream.providers.llm.openai import chat as openai_chat
from millstream.providers.llm.openai import responses as openai_responses
from millstream.providers.llm.protocol import AnswerListener, WireProtocol
from millstream.providers.transport.secrets import Secrets
from millstream.providers.transport.text_listener import TextListener

SECRET = "sk-canary-9f8e/7d+6c5b"
STREAMS: dict[str, tuple[WireProtocol, Sequence[bytes]]] = {
    "chat": (openai_chat.PROTOCOL, chat_shapes.STREAM),
    "responses": (openai_responses.PROTOCOL, response_shapes.STREAM),
    "messages": (anthropic.PROTOCOL, anthropic_shapes.STREAM),
    "candidates": (gemini.PROTOCOL, gemini_shapes.STREAM),
    "frames": (bedrock.PROTOCOL, bedrock_shapes.STREAM),
}


def opened(name: str) -> tuple[Callable[[], AnswerListener], Sequence[bytes]]:
    protocol, stream = STREAMS[name]
    assert protocol.listen is not None
    return protocol.listen, stream


def heard_of(listener: AnswerListener, pieces: Sequence[bytes], secrets: Secrets | None = None) -> str:
    told: list[str] = []
    hearing = TextListener(listener, secrets or Secrets(), lambda piece: told.append(piece or ""))
    for piece in pieces:
        hearing.take(piece)
    return "".join(told)


@pytest.mark.parametrize("name", STREAMS)
def test_all_of_the_text_is_heard_wherever_the_bytes_are_divided(name: str) -> None:
    listener, stream = opened(name)
    body = b"".join(stream)
    reply = STREAMS[name][0].decode(Response(200, body, stream=True))
    assert isinstance(reply, Reply)
    assert reply.text
    for at in range(len(body) + 1):
        assert heard_of(listener(), (body[:at], body[at:])) == reply.text
    assert heard_of(listener(), [body[at : at + 1] for at in range(len(body))]) == reply.text


@pytest.mark.parametrize("name", [name for name in STREAMS if name != "frames"])
def test_lines_may_end_as_they_do_elsewhere(name: str) -> None:
    listener, stream = opened(name)
    body = b"".join(stream)
    other = body.replace(b"\n", b"\r\n")
    assert heard_of(listener(), [other[at : at + 1] for at in range(len(other))]) == heard_of(listener(), (body,))


@pytest.mark.parametrize("name", STREAMS)
@given(garbage=st.binary(max_size=200))
def test_garbage_says_nothing_and_raises_nothing(name: str, garbage: bytes) -> None:
    listener, stream = opened(name)
    heard_of(listener(), (garbage, *stream, garbage))


def chunks_of(text: str, sizes: Sequence[int]) -> list[bytes]:
    pieces, at = [], 0
    for size in sizes:
        pieces.append(chat_shapes.chunk({"content": text[at : at + size]}))
        at += size
    return [*pieces, chat_shapes.chunk({"content": text[at:]}), chat_shapes.chunk({}, "stop")]


TEXTS = st.text(st.sampled_from("abks-/\\u0 c✓"), max_size=30)


@given(TEXTS, TEXTS, st.lists(st.integers(1, 9), max_size=20), st.booleans())
def test_nothing_of_a_secret_is_heard(before: str, behind: str, sizes: list[int], is_escaped: bool) -> None:
    written = SECRET.replace("/", "\\/") if is_escaped else SECRET
    text = before + written + behind
    heard = heard_of(EventListener(chat_text), chunks_of(text, sizes), Secrets((SECRET,)))
    assert before.startswith(heard)


@given(st.text(st.sampled_from("skany- c✓\n"), max_size=60), st.lists(st.integers(1, 9), max_size=20))
def test_all_but_what_may_begin_a_secret_is_heard(text: str, sizes: list[int]) -> None:
    heard = heard_of(EventListener(chat_text), chunks_of(text, sizes), Secrets((SECRET,)))
    assert text.startswith(heard)
    # A form of the secret in base64 may begin with any of the letters, none with the end of a line.
    assert heard.count("\n") == text.count("\n")


@given(
    st.lists(st.sampled_from([b"\n\n", b"\r\n\r\n", b"\n\r\n", b"\r\n\n", b"\r\r"]), min_size=1, max_size=6),
    st.lists(st.integers(1, 40), min_size=1, max_size=20),
)
def test_events_end_as_they_please_wherever_the_bytes_are_divided(ends: list[bytes], sizes: list[int]) -> None:
    events = [b'data: {"choices": [{"delta": {"content": "%d"}}]}' % number for number in range(len(ends))]
    # Of a last \r only what comes after it tells that the line is over.
    stream = b"".join(event + end for event, end in zip(events, ends, strict=True)) + b":"
    listener, said, at = EventListener(chat_text), [], 0
    for number in range(len(stream)):
        size = sizes[number % len(sizes)]
        said.append(listener.take(stream[at : at + size]))
        at += size
    assert "".join(said) == "".join(map(str, range(len(ends))))


def test_an_event_of_many_megabytes_is_not_looked_at_again_with_each_of_its_pieces() -> None:
    """As a server in disorder sends it. Looked at with each piece, these would take a minute of the processor."""
    listener, piece = EventListener(chat_text), b"x" * 8_192
    began = time.process_time()
    assert listener.take(b"data: ") == "" and all(listener.take(piece) == "" for _ in range(4_096))
    assert listener.take(b'\n\ndata: {"choices": [{"delta": {"content": "a"}}]}\n\n') == "a"
    assert time.process_time() - began < 5.0


def test_half_a_character_is_left_to_the_whole_answer() -> None:
    halves = [chat_shapes.event({"choices": [{"index": 0, "delta": {"content": "a"}}]})]
    halves += [
        b'data: {"choices": [{"index": 0, "delta": {"content": "%b"}}]}\n\n' % half for half in (rb"\ud83d", rb"\ude00")
    ]
    assert heard_of(EventListener(chat_text), halves) == "a"


def test_text_is_heard_while_it_comes() -> None:
    async def check() -> None:
        options = Options(token_latency=parse_latency("0.02"))
        async with ModelProvider(options) as provider, transport() as carrier:
            heard: list[tuple[float, str]] = []
            clock = asyncio.get_running_loop().time
            over = endpoint(carrier, provider.base_url)
            request = over.encode(Call("sim/steady", "Say A or B.", stream=True))
            request = structs.replace(request, hear=lambda piece: heard.append((clock(), piece or "")))
            reply = over.decode(await send(over, request))
            assert isinstance(reply, Reply)
            assert "".join(piece for _, piece in heard) == reply.text
            assert heard[-1][0] - heard[0][0] > 0.01

    run_on("asyncio", check())
