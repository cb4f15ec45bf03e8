"""Claude on Bedrock from 4.7 on: Anthropic's bodies and answers at Bedrock's address, with Bedrock's credentials."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import anthropic_shapes
import orjson
import pytest
from raw_server import RawServer, Visit, http

from millstream import Call, Engine, Outcome, Settings
from millstream.engine.call import Reply, Usage
from millstream.engine.endpoint import Fault, Request, Response
from millstream.engine.key import key_of
from millstream.providers.kinds import kind_of
from millstream.providers.llm import bedrock_claude as messages
from millstream.providers.llm.bedrock import converse
from millstream.providers.llm.protocol import Target

URL = "https://bedrock-runtime.us-east-1.amazonaws.com"
NAME = "global.anthropic.claude-opus-5-5"
MODEL = f"bedrock/{NAME}"


def encoded(call: Call, **known: Any) -> Request:
    provider, _, model = call.model.partition("/")
    return messages.encode(call, Target(URL, URL, model, provider, **known))


@pytest.mark.parametrize(
    ("model", "protocol"),
    [
        ("us.anthropic.claude-opus-4-7", messages.PROTOCOL),
        ("anthropic.claude-opus-4-8-v1:0", messages.PROTOCOL),
        ("eu.anthropic.claude-sonnet-5", messages.PROTOCOL),
        ("anthropic.claude-haiku-5-5", messages.PROTOCOL),
        ("global.anthropic.claude-fable-5-2", messages.PROTOCOL),
        ("arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-opus-5", messages.PROTOCOL),
        ("us.anthropic.claude-opus-4-6-v1", converse.PROTOCOL),
        ("anthropic.claude-sonnet-4-6", converse.PROTOCOL),
        ("eu.anthropic.claude-sonnet-4-5-20250929-v1:0", converse.PROTOCOL),
        ("anthropic.claude-opus-4-20250514-v1:0", converse.PROTOCOL),
        ("anthropic.claude-3-5-haiku-20241022-v1:0", converse.PROTOCOL),
        ("arn:aws:bedrock:us-east-1:1:application-inference-profile/a5", converse.PROTOCOL),
        ("amazon.nova-pro-v1:0", converse.PROTOCOL),
    ],
)
def test_claude_from_4_7_on_is_asked_through_messages_and_all_else_through_converse(model: str, protocol: Any) -> None:
    assert kind_of("bedrock").protocol(model) is protocol


def test_the_model_stands_in_the_body_and_the_version_in_a_header() -> None:
    request = encoded(Call(MODEL, "x", max_tokens=9, reasoning_effort="low", stream=True))
    assert request.url == f"{URL}/anthropic/v1/messages"
    asked = {"max_tokens": 9, "messages": [{"content": "x", "role": "user"}], "model": NAME}
    assert orjson.loads(request.wire) == {**asked, "output_config": {"effort": "low"}, "stream": True}
    assert "stream" not in orjson.loads(request.body)
    target = Target(URL, URL, NAME, "bedrock")
    assert messages.PROTOCOL.headers(target) == {"anthropic-version": "2023-06-01"}
    other = Target(URL, URL, NAME, "bedrock", version="2026-10-21")
    assert messages.PROTOCOL.headers(other) == {"anthropic-version": "2026-10-21"}
    assert messages.PROTOCOL.max_tokens_sent(NAME) == 16_384


def test_a_version_changes_a_key_and_streaming_does_not() -> None:
    one = key_of(encoded(Call(MODEL, "x")), 0)
    assert one == key_of(encoded(Call(MODEL, "x", stream=True)), 0)
    assert one != key_of(encoded(Call(MODEL, "x"), version="2026-10-21"), 0)


def test_errors_are_anthropics_or_awss() -> None:
    error = {"type": "invalid_request_error", "message": "`temperature` is deprecated for this model."}
    fault = messages.decode(Response(400, orjson.dumps({"type": "error", "error": error})))
    assert isinstance(fault, Fault) and fault.action == "never" and "--temperature none" in fault.detail
    of_aws = b'{"message":"The security token included in the request is expired"}'
    ended = Response(403, of_aws, headers={"x-amzn-errortype": "ExpiredTokenException"})
    fault = messages.decode(ended)
    assert isinstance(fault, Fault) and "the credentials have ended" in fault.detail
    fault = messages.decode(Response(200, b'{"Output":{"__type":"UnknownOperationException"},"Version":"1.0"}'))
    assert isinstance(fault, Fault) and fault.kind == "bad_json"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("by_bearer", [False, True], ids=["signed", "bearer"])
def test_a_call_is_answered_over_a_socket(by_bearer: bool, stream: bool, tmp_path: Path) -> None:
    heads: list[str] = []
    body = b"".join(anthropic_shapes.STREAM) if stream else anthropic_shapes.whole()

    async def handler(visit: Visit) -> None:
        while (request := await visit.request()) is not None:
            heads.append(request.partition(b"\r\n\r\n")[0].decode())
            await visit.send(http(body))

    async def asked() -> Outcome:
        keys = {"AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1"}
        async with RawServer(handler) as server:
            environment = {"AWS_BEARER_TOKEN_BEDROCK": "token"} if by_bearer else keys
            settings = Settings(
                base_url=f"http://127.0.0.1:{server.port}", cache=tmp_path / "cache", environment=environment
            )
            async with Engine(settings=settings) as engine:
                return await engine.ask(Call(MODEL, "x", stream=stream))

    outcome = asyncio.run(asked())
    assert isinstance(outcome.reply, Reply) and outcome.reply.text == anthropic_shapes.READ
    assert isinstance(outcome.reply.usage, Usage) and outcome.reply.usage.output == 87
    (head,) = heads
    assert head.startswith("POST /anthropic/v1/messages HTTP/1.1\r\n")
    assert "anthropic-version: 2023-06-01" in head
    assert ("Authorization: Bearer token" in head) == by_bearer
    assert ("/us-east-1/bedrock/aws4_request, SignedHeaders=content-type;host;x-amz-date," in head) != by_bearer
