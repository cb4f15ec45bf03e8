"""A mock that nobody here wrote, asked for tools as Anthropic, Gemini, Vertex and Bedrock are: it finds our tools and
our results in what it is sent, and we its calls in what it answers, whole and streamed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from endpoints import CANARY, transport
from loops import run_on
from mocks import aimock, why_no_aimock
from tool_talk import TOOLS

from millstream.engine.call import Call, Message, Reply
from millstream.engine.content import ToolResult
from millstream.engine.endpoint import send
from millstream.providers.credentials.authorizer import Authorizer, bearer, key_in
from millstream.providers.credentials.aws import AwsAuthorizer
from millstream.providers.credentials.aws_signature import Keys
from millstream.providers.llm import vertex
from millstream.providers.llm.anthropic import messages as anthropic
from millstream.providers.llm.bedrock import converse as bedrock
from millstream.providers.llm.google import generate as gemini
from millstream.providers.llm.protocol import Target, WireProtocol
from millstream.providers.transport.endpoint import ModelEndpoint

pytestmark = pytest.mark.skipif(bool(why_no_aimock()), reason=why_no_aimock() or "it can be used")
whole_and_streamed = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
in_each = pytest.mark.parametrize("service", ["anthropic", "gemini", "vertex", "bedrock"])

HERE, THERE = '{"place":"Köln 😀","days":2}', '{"place":"Bonn"}'
CALLS = [
    {"id": "toolu_1", "name": "get_weather", "arguments": HERE},
    {"id": "toolu_2", "name": "get_weather", "arguments": THERE},
]
FIXTURES: list[dict[str, Any]] = [
    {"match": {"toolCallId": "toolu_2", "toolResultContains": "rainy"}, "response": {"content": "Not there."}},
    {"match": {"userMessage": "two at once", "toolName": "get_weather"}, "response": {"toolCalls": CALLS}},
    {
        "match": {"userMessage": "with words", "toolName": "get_weather"},
        "response": {"content": "I look.", "toolCalls": CALLS[:1], "reasoning": "Perhaps B. " * 9},
    },
]


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with aimock(tmp_path_factory.mktemp("aimock"), FIXTURES) as base_url:
        yield base_url.removesuffix("/v1")


def reached(origin: str, service: str) -> tuple[WireProtocol, Target, Authorizer]:
    if service == "anthropic":
        return anthropic.PROTOCOL, Target(origin, "mock", "claude-sonnet-5-5", service), bearer(CANARY)
    if service == "gemini":
        target = Target(f"{origin}/v1beta", "mock", "gemini-3-flash", service)
        return gemini.PROTOCOL, target, key_in("x-goog-api-key", CANARY)
    if service == "vertex":
        target = Target(f"{origin}/v1", "mock", "gemini-2.5-flash", service, project="p", region="us-central1")
        return vertex.GEMINI, target, bearer(CANARY)
    signing = AwsAuthorizer(Keys("AKIATESTKEY123456789", "a-secret-of-nobodys"), "eu-west-1")
    return bedrock.PROTOCOL, Target(origin, "mock", "eu.anthropic.claude-v1:0", service), signing


def asked(origin: str, service: str, *turns: Message, stream: bool) -> Reply:
    async def once() -> Reply:
        async with transport() as over:
            protocol, target, authorizer = reached(origin, service)
            at = ModelEndpoint(protocol, target, authorizer, over, 5.0)
            request = at.encode(Call(f"{service}/m", turns, stream=stream, tools=TOOLS, tool_choice="auto"))
            result = at.decode(await send(at, request))
            assert isinstance(result, Reply), result
            return result

    return run_on("asyncio", once())


@in_each
@whole_and_streamed
def test_calls_come_as_they_were_given_and_their_results_are_found(origin: str, service: str, stream: bool) -> None:
    user = Message("user", "two at once")
    first = asked(origin, service, user, stream=stream)
    assert (first.text, first.finish_reason) == ("", "tool_calls")
    assert [(one.id, one.name, json.loads(one.arguments)) for one in first.tool_calls] == [
        ("toolu_1", "get_weather", json.loads(HERE)),
        ("toolu_2", "get_weather", json.loads(THERE)),
    ]
    said = zip(first.tool_calls, ("sunny", "rainy"), strict=True)
    results = [Message("tool", (ToolResult(one.id, text),)) for one, text in said]
    second = asked(origin, service, user, Message("assistant", first.parts), *results, stream=stream)
    assert (second.text, second.finish_reason, second.tool_calls) == ("Not there.", "stop", ())


@in_each
@whole_and_streamed
def test_words_and_thoughts_stand_before_the_call(origin: str, service: str, stream: bool) -> None:
    reply = asked(origin, service, Message("user", "with words"), stream=stream)
    assert (reply.text, reply.finish_reason) == ("I look.", "tool_calls")
    thought, words, call = reply.parts
    assert "Perhaps B. Perhaps B." in repr(thought)
    assert words == "I look." and call == reply.tool_calls[0] and json.loads(reply.tool_calls[0].arguments)["days"] == 2
