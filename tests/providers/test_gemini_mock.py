"""A mock of Gemini and of Vertex AI that nobody here wrote: both answer alike, whole and streamed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from endpoints import CANARY, fault_in, transport
from loops import run_on
from mocks import aimock, why_no_aimock

from millstream.engine.call import Call, Message, Reply
from millstream.engine.endpoint import Fault, send
from millstream.providers.credentials.authorizer import bearer, key_in
from millstream.providers.llm import vertex
from millstream.providers.llm.google import generate as gemini
from millstream.providers.llm.protocol import Target
from millstream.providers.transport.endpoint import ModelEndpoint

ANSWERS = {
    "a letter": "position <<A>> – ✓ 😀",
    "many lines": 'one\n\ntwo\r\n"three"\\\tdata: four\n\n',
    "nothing": "",
    "a long text": "word " * 2_000,
}


def given(prompt: str, **response: Any) -> dict[str, Any]:
    return {"match": {"userMessage": prompt}, "response": response}


def failing(prompt: str, status: int, word: str, **more: Any) -> dict[str, Any]:
    return given(prompt, status=status, error={"message": "No.", "type": word}, **more)


USAGE = {"promptTokenCount": 11, "candidatesTokenCount": 5, "totalTokenCount": 16}
FIXTURES = [
    *(given(prompt, content=text, usage=USAGE) for prompt, text in ANSWERS.items()),
    given("thought aloud", content="A", reasoning="Perhaps B. " * 20, usage=USAGE),
    given("cut by length", content="hal", finishReason="length"),
    given("filtered", content="no", finishReason="content_filter"),
    given("broken off", content="no", finishReason="MALFORMED_RESPONSE"),
    failing("too fast", 429, "RESOURCE_EXHAUSTED", retryAfter=3),
    failing("broken", 500, "INTERNAL"),
    failing("overloaded", 503, "UNAVAILABLE"),
    failing("late", 504, "DEADLINE_EXCEEDED"),
    failing("no key", 401, "UNAUTHENTICATED"),
    failing("no right", 403, "PERMISSION_DENIED"),
    failing("no such model", 404, "NOT_FOUND"),
    failing("wrong", 400, "INVALID_ARGUMENT"),
]
# kind, action, seconds to wait, whether the rate is cut
FAULTS = {
    "too fast": ("rate_limited", "throttle", 3.0, False),
    "broken": ("server_error", "retry", None, False),
    "overloaded": ("server_error", "retry", None, False),
    "late": ("server_error", "retry", None, False),
    "no key": ("rejected", "confirm", None, False),
    "no right": ("rejected", "confirm", None, False),
    "no such model": ("rejected", "never", None, False),
    "wrong": ("rejected", "never", None, False),
    "broken off": ("server_error", "retry", None, False),
    "what no fixture matches": ("rejected", "never", None, False),
}

pytestmark = pytest.mark.skipif(bool(why_no_aimock()), reason=why_no_aimock() or "it can be used")
whole_and_streamed = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
in_both = pytest.mark.parametrize("service", ["gemini", "vertex"])


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with aimock(tmp_path_factory.mktemp("aimock"), FIXTURES) as base_url:
        yield base_url.removesuffix("/v1")


def asked(origin: str, service: str, prompt: str | tuple[Message, ...], *, stream: bool, **more: Any) -> Reply | Fault:
    """The mock knows one version of each: the older one of Gemini."""

    async def once() -> Reply | Fault:
        async with transport() as over:
            if service == "gemini":
                target = Target(f"{origin}/v1beta", "mock", "gemini-2.5-flash", service)
                at = ModelEndpoint(gemini.PROTOCOL, target, key_in("x-goog-api-key", CANARY), over, 5.0)
            else:
                target = Target(f"{origin}/v1", "mock", "gemini-2.5-flash", service, project="p", region="us-central1")
                at = ModelEndpoint(vertex.GEMINI, target, bearer(CANARY), over, 5.0)
            request = at.encode(Call(f"{service}/gemini-2.5-flash", prompt, stream=stream, **more))
            return at.decode(await send(at, request))

    return run_on("asyncio", once())


@in_both
@whole_and_streamed
@pytest.mark.parametrize("prompt", ANSWERS)
def test_an_answer_comes_as_it_was_given(origin: str, service: str, prompt: str, stream: bool) -> None:
    reply = asked(origin, service, prompt, stream=stream)
    assert isinstance(reply, Reply), reply
    assert (reply.text, reply.finish_reason, reply.refused) == (ANSWERS[prompt], "stop", False)
    assert reply.usage is not None and (reply.usage.input, reply.usage.output) == (11, 5)


@in_both
@whole_and_streamed
def test_a_conversation_with_everything_set_is_understood(origin: str, service: str, stream: bool) -> None:
    talk = (
        Message("system", "Be brief."),
        Message("user", "x"),
        Message("assistant", "y"),
        Message("user", "a letter"),
    )
    known: dict[str, Any] = {"temperature": 0, "top_p": 0.5, "max_tokens": 9, "stop": ("\n",), "seed": 7, "logprobs": 2}
    schema = {"type": "object", "properties": {"letter": {"type": "string"}}}
    reply = asked(origin, service, talk, stream=stream, json_schema=schema, reasoning_effort="low", **known)
    assert isinstance(reply, Reply) and reply.text == ANSWERS["a letter"]


@in_both
@whole_and_streamed
def test_what_was_thought_aloud_is_no_part_of_the_text(origin: str, service: str, stream: bool) -> None:
    reply = asked(origin, service, "thought aloud", stream=stream)
    assert isinstance(reply, Reply) and reply.text == "A"


@in_both
@whole_and_streamed
def test_an_ending_comes_as_it_was_given(origin: str, service: str, stream: bool) -> None:
    cut = asked(origin, service, "cut by length", stream=stream)
    assert isinstance(cut, Reply) and cut.truncated and cut.text == "hal"
    filtered = asked(origin, service, "filtered", stream=stream)
    assert isinstance(filtered, Reply) and filtered.refused


@in_both
@whole_and_streamed
@pytest.mark.parametrize("prompt", FAULTS)
def test_an_error_is_the_fault_that_the_table_says(origin: str, service: str, prompt: str, stream: bool) -> None:
    fault = fault_in(asked(origin, service, prompt, stream=stream))
    assert (fault.kind, fault.action, fault.retry_after_s, fault.cuts_rate) == FAULTS[prompt]
