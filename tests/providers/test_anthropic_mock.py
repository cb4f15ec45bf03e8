"""A mock of Anthropic Messages that nobody here wrote: both answer alike, whole and streamed, in both versions of the
API. It knows no Claude on Vertex."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from endpoints import CANARY, fault_in, transport
from loops import run_on
from mocks import aimock, why_no_aimock

from millstream.engine.call import Call, Message, Reply
from millstream.engine.endpoint import Fault, send
from millstream.providers.credentials.authorizer import Authorizer, bearer, key_in
from millstream.providers.llm.anthropic.messages import OLDER_VERSION, PROTOCOL, VERSION
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


def failing(prompt: str, status: int, kind: str, message: str = "No.", **more: Any) -> dict[str, Any]:
    return given(prompt, status=status, error={"message": message, "type": kind}, **more)


POOR = "Your credit balance is too low to access the Anthropic API."
USAGE = {"input_tokens": 11, "output_tokens": 5}
FIXTURES = [
    *(given(prompt, content=text, usage=USAGE) for prompt, text in ANSWERS.items()),
    given("thought aloud", content="A", reasoning="Perhaps B. " * 20, usage=USAGE),
    given("cut by length", content="hal", finishReason="length"),
    given("refused", content="no", finishReason="refusal"),
    failing("too fast", 429, "rate_limit_error", retryAfter=3),
    failing("no money", 400, "invalid_request_error", POOR),
    failing("billing", 402, "billing_error"),
    failing("broken", 500, "api_error"),
    failing("overloaded", 529, "overloaded_error"),
    failing("late", 504, "timeout_error"),
    failing("no key", 401, "authentication_error"),
    failing("no right", 403, "permission_error"),
    failing("no such model", 404, "not_found_error"),
    failing("too large", 413, "request_too_large"),
    failing("wrong", 400, "invalid_request_error"),
]
# kind, action, seconds to wait, whether the rate is cut
FAULTS = {
    "too fast": ("rate_limited", "throttle", 3.0, False),
    "no money": ("rate_limited", "stop", None, False),
    "billing": ("rate_limited", "stop", None, False),
    "broken": ("server_error", "retry", None, False),
    "overloaded": ("server_error", "retry", None, True),
    "late": ("server_error", "retry", None, False),
    "no key": ("rejected", "confirm", None, False),
    "no right": ("rejected", "confirm", None, False),
    "no such model": ("rejected", "never", None, False),
    "too large": ("rejected", "never", None, False),
    "wrong": ("rejected", "never", None, False),
    "what no fixture matches": ("rejected", "never", None, False),
}

on_node = pytest.mark.skipif(bool(why_no_aimock()), reason=why_no_aimock() or "it can be used")
whole_and_streamed = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
in_both_versions = pytest.mark.parametrize("version", [VERSION, OLDER_VERSION])


@pytest.fixture(scope="module")
def base_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with aimock(tmp_path_factory.mktemp("aimock"), FIXTURES) as base_url:
        yield base_url


def asked(
    base_url: str, prompt: str | tuple[Message, ...], *, stream: bool, version: str = VERSION, **more: Any
) -> Reply | Fault:
    authorizer: Authorizer = bearer(CANARY) if version == VERSION else key_in("x-api-key", CANARY)
    target = Target(base_url, "mock", "claude-sonnet-4-6", "anthropic", version=version)

    async def once() -> Reply | Fault:
        async with transport() as over:
            at = ModelEndpoint(PROTOCOL, target, authorizer, over, 10.0)
            return at.decode(
                await send(at, at.encode(Call("anthropic/claude-sonnet-4-6", prompt, stream=stream, **more)))
            )

    return run_on("asyncio", once())


@on_node
@in_both_versions
@whole_and_streamed
@pytest.mark.parametrize("prompt", ANSWERS)
def test_an_answer_comes_as_it_was_given(base_url: str, version: str, prompt: str, stream: bool) -> None:
    reply = asked(base_url, prompt, stream=stream, version=version)
    assert isinstance(reply, Reply), reply
    assert (reply.text, reply.finish_reason, reply.refused) == (ANSWERS[prompt], "stop", False)
    assert reply.usage is not None and (reply.usage.input, reply.usage.output) == (11, 5)


@on_node
@whole_and_streamed
def test_a_conversation_with_everything_set_is_understood(base_url: str, stream: bool) -> None:
    talk = (
        Message("system", "Be brief."),
        Message("user", "x"),
        Message("assistant", "y"),
        Message("user", "a letter"),
    )
    schema = {"type": "object", "properties": {"letter": {"type": "string"}}}
    known: dict[str, Any] = {"max_tokens": 9, "stop": ("\n",), "json_schema": schema, "reasoning_effort": "low"}
    newer = asked(base_url, talk, stream=stream, **known)
    older = asked(base_url, talk, stream=stream, version=OLDER_VERSION, temperature=0.5, top_p=0.9, **known)
    for reply in (newer, older):
        assert isinstance(reply, Reply) and reply.text == ANSWERS["a letter"]


@on_node
@whole_and_streamed
def test_what_was_thought_aloud_is_no_part_of_the_text(base_url: str, stream: bool) -> None:
    reply = asked(base_url, "thought aloud", stream=stream)
    assert isinstance(reply, Reply) and reply.text == "A"


@on_node
@whole_and_streamed
def test_an_ending_comes_as_it_was_given(base_url: str, stream: bool) -> None:
    cut = asked(base_url, "cut by length", stream=stream)
    assert isinstance(cut, Reply) and cut.truncated and cut.text == "hal"
    refused = asked(base_url, "refused", stream=stream)
    assert isinstance(refused, Reply) and refused.refused and refused.text == "no"


@on_node
@whole_and_streamed
@pytest.mark.parametrize("prompt", FAULTS)
def test_an_error_is_the_fault_that_the_table_says(base_url: str, prompt: str, stream: bool) -> None:
    fault = fault_in(asked(base_url, prompt, stream=stream))
    assert (fault.kind, fault.action, fault.retry_after_s, fault.cuts_rate) == FAULTS[prompt]
