"""A mock of every protocol that nobody here wrote: answers and thoughts come as they were given, whole and streamed.
It knows one version of Gemini and of Vertex AI, and no Claude on Vertex."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from endpoints import CANARY, fault_in, transport
from loops import run_on
from mocks import aimock, why_no_aimock

from millstream.engine.call import Call, Message, Reply
from millstream.engine.endpoint import Fault, send
from millstream.providers.credentials.authorizer import Authorizer, bearer, key_in
from millstream.providers.credentials.aws import AwsAuthorizer
from millstream.providers.credentials.aws_signature import Keys
from millstream.providers.llm import vertex
from millstream.providers.llm.anthropic import messages
from millstream.providers.llm.bedrock import converse
from millstream.providers.llm.google import generate
from millstream.providers.llm.openai import chat, responses
from millstream.providers.llm.protocol import Target, WireProtocol
from millstream.providers.transport.endpoint import ModelEndpoint

pytestmark = pytest.mark.skipif(bool(why_no_aimock()), reason=why_no_aimock() or "it can be used")

ANSWERS = {
    "a letter": "position <<A>> – ✓ 😀",
    "many lines": 'one\n\ntwo\r\n"three"\\\tdata: four\n\n',
    "nothing": "",
    "a long text": "word " * 2_000,
}
# The counts of tokens that the mock tells in each family's words.
FAMILIES = {
    "openai": {"prompt_tokens": 11, "completion_tokens": 5, "input_tokens": 11, "output_tokens": 5, "total_tokens": 16},
    "anthropic": {"input_tokens": 11, "output_tokens": 5},
    "google": {"promptTokenCount": 11, "candidatesTokenCount": 5, "totalTokenCount": 16},
    "bedrock": {"input_tokens": 11, "output_tokens": 5},
}
CUT = "bedrock: cut off"


def given(prompt: str, **response: Any) -> dict[str, Any]:
    return {"match": {"userMessage": prompt}, "response": response}


def fixtures() -> Iterator[dict[str, Any]]:
    for name, usage in FAMILIES.items():
        for prompt, text in ANSWERS.items():
            yield given(f"{name}: {prompt}", content=text, usage=usage)
        yield given(f"{name}: thought aloud", content="A", reasoning="Perhaps B. " * 20, usage=usage)
    yield {**given(CUT, content="word " * 200), "truncateAfterChunks": 4, "latency": 20}


class Service(NamedTuple):
    """One way to ask the mock. `place`: of its address."""

    family: str
    protocol: WireProtocol
    authorizer: Authorizer
    model: str
    place: str = ""
    version: str | None = None
    project: str | None = None
    region: str | None = None


AWS = AwsAuthorizer(Keys("AKIATESTKEY123456789", "a-secret-of-nobodys"), "eu-west-1")
CLAUDE, GEMINI = "claude-sonnet-4-6", "gemini-2.5-flash"
SERVICES = {
    "chat": Service("openai", chat.PROTOCOL, bearer(CANARY), "steady", "/v1"),
    "responses": Service("openai", responses.PROTOCOL, bearer(CANARY), "steady", "/v1"),
    "anthropic": Service("anthropic", messages.PROTOCOL, bearer(CANARY), CLAUDE, "/v1", messages.VERSION),
    "anthropic, older": Service(
        "anthropic", messages.PROTOCOL, key_in("x-api-key", CANARY), CLAUDE, "/v1", messages.OLDER_VERSION
    ),
    "gemini": Service("google", generate.PROTOCOL, key_in("x-goog-api-key", CANARY), GEMINI, "/v1beta"),
    "vertex": Service("google", vertex.GEMINI, bearer(CANARY), GEMINI, "/v1", project="p", region="us-central1"),
    "bedrock": Service("bedrock", converse.PROTOCOL, AWS, "eu.anthropic.claude-v1:0"),
}
in_each = pytest.mark.parametrize("service", SERVICES)
whole_and_streamed = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with aimock(tmp_path_factory.mktemp("aimock"), list(fixtures())) as base_url:
        yield base_url.removesuffix("/v1")


def asked(origin: str, name: str, prompt: str | tuple[Message, ...], *, stream: bool, **more: Any) -> Reply | Fault:
    service = SERVICES[name]
    target = Target(
        f"{origin}{service.place}",
        "mock",
        service.model,
        "mock",
        version=service.version,
        project=service.project,
        region=service.region,
    )

    async def once() -> Reply | Fault:
        async with transport() as over:
            at = ModelEndpoint(service.protocol, target, service.authorizer, over, 10.0)
            return at.decode(await send(at, at.encode(Call(f"mock/{service.model}", prompt, stream=stream, **more))))

    return run_on("asyncio", once())


@in_each
@whole_and_streamed
@pytest.mark.parametrize("prompt", ANSWERS)
def test_an_answer_comes_as_it_was_given(origin: str, service: str, prompt: str, stream: bool) -> None:
    reply = asked(origin, service, f"{SERVICES[service].family}: {prompt}", stream=stream)
    assert isinstance(reply, Reply), reply
    assert (reply.text, reply.finish_reason, reply.refused) == (ANSWERS[prompt], "stop", False)
    assert reply.usage is not None and (reply.usage.input, reply.usage.output) == (11, 5)


SAMPLING: dict[str, Any] = {"temperature": 0.5, "top_p": 0.9}
MORE: dict[str, dict[str, Any]] = {
    "anthropic": {},
    "anthropic, older": SAMPLING,
    "gemini": {**SAMPLING, "seed": 7, "logprobs": 2},
    "vertex": {**SAMPLING, "seed": 7, "logprobs": 2},
}


@pytest.mark.parametrize("service", MORE)
@whole_and_streamed
def test_a_conversation_with_everything_set_is_understood(origin: str, service: str, stream: bool) -> None:
    turns = (("system", "Be brief."), ("user", "x"), ("assistant", "y"))
    last = Message("user", f"{SERVICES[service].family}: a letter")
    schema = {"type": "object", "properties": {"letter": {"type": "string"}}}
    known: dict[str, Any] = {"max_tokens": 9, "stop": ("\n",), "json_schema": schema, "reasoning_effort": "low"}
    talk = (*(Message(role, text) for role, text in turns), last)
    reply = asked(origin, service, talk, stream=stream, **known, **MORE[service])
    assert isinstance(reply, Reply) and reply.text == ANSWERS["a letter"], reply


@in_each
@whole_and_streamed
def test_what_was_thought_aloud_is_no_part_of_the_text(origin: str, service: str, stream: bool) -> None:
    reply = asked(origin, service, f"{SERVICES[service].family}: thought aloud", stream=stream)
    assert isinstance(reply, Reply) and reply.text == "A"


@whole_and_streamed
def test_a_stream_that_the_server_cuts_is_none(origin: str, stream: bool) -> None:
    result = asked(origin, "bedrock", CUT, stream=stream)
    if stream:
        fault = fault_in(result)
        assert (fault.kind, fault.action, fault.is_billed_maybe) == ("incomplete", "retry", True)
    else:
        assert isinstance(result, Reply) and result.text == "word " * 200
