"""Conversations with tools as the official clients of Anthropic, Google and Amazon hold them, against ours.

Each client asks a recording server, reads an answer with thoughts and tool calls, sends it back with the results, and
asks again: ours must send the same JSON and read the same calls. Addresses and headers are other tests' matter.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import anthropic
import anthropic_shapes
import bedrock_shapes
import gemini_shapes
import orjson
import pydantic
import pytest
from google import genai
from google.genai import types
from recorder import EVENTS, JSON, Recorder, recording
from tool_talk import FAR, PIXEL, SCHEMA, SHOWN, TOOLS

from millstream.engine.call import Call, Message, Reply
from millstream.engine.content import Native, ToolCall, ToolResult
from millstream.engine.endpoint import Response
from millstream.providers.llm.anthropic import messages
from millstream.providers.llm.bedrock import converse as bedrock
from millstream.providers.llm.google import generate as gemini
from millstream.providers.llm.protocol import Target, WireProtocol

MODEL = "claude-sonnet-5-5"
PLACE: dict[str, Any] = {"place": "Köln", "days": 2}
both_ways = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


@pytest.fixture
def server() -> Iterator[Recorder]:
    with recording() as recorder:
        yield recorder


def ours(protocol: WireProtocol, call: Call) -> Any:
    model = call.model.partition("/")[2]
    return orjson.loads(protocol.encode(call, Target("http://h", "h", model)).wire)


def read(protocol: WireProtocol, server: Recorder, stream: bool) -> Reply:
    result = protocol.decode(Response(200, server.answer, stream=stream))
    assert isinstance(result, Reply), result
    return result


def answers_to(reply: Reply) -> tuple[Message, ...]:
    """What goes on with it, as OpenAI's clients would: a turn for each result."""
    results = [
        ToolResult(called.id, "sunny" if place == 0 else '{"rain":true}')
        for place, called in enumerate(reply.tool_calls)
    ]
    return Message("assistant", reply.parts), *(Message("tool", (result,)) for result in results)


def values_of(calls: tuple[ToolCall, ...]) -> list[Any]:
    return [(call.name, json.loads(call.arguments)) for call in calls]


# --- Anthropic ---

USED = [
    {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": PLACE},
    {"type": "tool_use", "id": "toolu_2", "name": "get_time", "input": {}},
]
CONTENT: list[dict[str, Any]] = [anthropic_shapes.THOUGHT, anthropic_shapes.said("I look."), *USED]
ANTHROPIC_TOOLS: list[Any] = [
    {"name": "get_weather", "description": "The weather at a place.", "input_schema": SCHEMA},
    {"name": "get_time", "input_schema": {"type": "object", "properties": {}}},
]


def anthropic_answer(stream: bool) -> bytes:
    if not stream:
        return anthropic_shapes.whole(content=CONTENT, stop_reason="tool_use")
    shape = anthropic_shapes
    pieces = [shape.START, shape.opened(0, {"type": "thinking", "thinking": "", "signature": ""})]
    pieces += [shape.delta("thinking_delta", 0, thinking=one) for one in ("I think", " of A.")]
    pieces += [shape.delta("signature_delta", 0, signature=shape.THOUGHT["signature"]), shape.closed(0)]
    pieces += [shape.opened(1, shape.said("")), shape.text("I look.", 1), shape.closed(1)]
    for index, block in enumerate(USED, 2):
        written = json.dumps(block["input"], ensure_ascii=False)
        pieces += [shape.opened(index, {**block, "input": {}})]
        pieces += [shape.delta("input_json_delta", index, partial_json=one) for one in ("", written[:9], written[9:])]
        pieces.append(shape.closed(index))
    return b"".join([*pieces, shape.ended("tool_use"), shape.STOP])


@both_ways
def test_a_conversation_with_claude_goes_as_the_sdk_has_it(server: Recorder, stream: bool) -> None:
    server.answer, server.content_type = anthropic_answer(stream), EVENTS if stream else JSON
    asked: Any = {
        "model": MODEL,
        "max_tokens": 100,
        "system": "Be brief.",
        "tools": ANTHROPIC_TOOLS,
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": False},
    }
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
    talk: list[Any] = [{"role": "user", "content": [image, {"type": "text", "text": "Where?"}]}]
    known: dict[str, Any] = {"max_tokens": 100, "tools": TOOLS, "tool_choice": "auto", "parallel_tools": True}
    our_talk: tuple[Message, ...] = (Message("system", "Be brief."), Message("user", (SHOWN, "Where?")))

    def compared() -> anthropic.types.Message:
        call = Call(f"anthropic/{MODEL}", our_talk, stream=stream, **known)
        if stream:
            with client.messages.stream(**asked, messages=talk) as events:
                answer: anthropic.types.Message = events.get_final_message()
        else:
            answer = client.messages.create(**asked, messages=talk)
        assert ours(messages.PROTOCOL, call) == server.last.json
        return answer

    with anthropic.Anthropic(api_key="sk-ant-test", base_url=server.origin, max_retries=0) as client:
        theirs = compared()
        reply = read(messages.PROTOCOL, server, stream)
        uses = [block for block in theirs.content if block.type == "tool_use"]
        assert values_of(reply.tool_calls) == [(use.name, use.input) for use in uses]
        assert [call.id for call in reply.tool_calls] == [use.id for use in uses]
        assert (theirs.stop_reason, reply.finish_reason) == ("tool_use", "tool_calls")
        thought = theirs.content[0]
        assert reply.parts[0] == Native("anthropic", thought.model_dump(exclude_none=True))
        results: list[Any] = [
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": "sunny"},
            {"type": "tool_result", "tool_use_id": "toolu_2", "content": '{"rain":true}'},
            {"type": "text", "text": "And now?"},
        ]
        back = [block.model_dump(exclude_none=True, exclude={"parsed_output"}) for block in theirs.content]
        talk += [{"role": "assistant", "content": back}, {"role": "user", "content": results}]
        our_talk = (*our_talk, *answers_to(reply), Message("user", "And now?"))
        compared()


def test_what_claude_is_sent_has_the_types_that_the_sdk_declares() -> None:
    blocks = (FAR, SHOWN, ToolResult("t", ("a", SHOWN), is_error=True), Native("anthropic", anthropic_shapes.THOUGHT))
    sent = ours(messages.PROTOCOL, Call("anthropic/m", (Message("user", blocks),), tools=TOOLS, tool_choice="get_time"))
    declared: list[tuple[Any, Any]] = [
        (list[anthropic.types.MessageParam], sent["messages"]),
        (list[anthropic.types.ToolParam], sent["tools"]),
        (anthropic.types.ToolChoiceParam, sent["tool_choice"]),
    ]
    for kind, value in declared:
        pydantic.TypeAdapter(kind).validate_python(value, strict=True)


# --- Google ---

GEMINI_PARTS: list[dict[str, Any]] = [
    {"text": "I think of A.", "thought": True},
    {"text": "I look."},
    {"functionCall": {"name": "get_weather", "args": PLACE, "id": "own-1"}, "thoughtSignature": "Eu4BAA=="},
    {"functionCall": {"name": "get_time", "args": {}, "id": "own-2"}},
]
FUNCTIONS = types.Tool(
    function_declarations=[
        types.FunctionDeclaration(
            name="get_weather", description="The weather at a place.", parameters_json_schema=SCHEMA
        ),
        types.FunctionDeclaration(name="get_time"),
    ]
)
Mode = types.FunctionCallingConfigMode


def in_our_way(body: dict[str, Any]) -> dict[str, Any]:
    """Theirs gives the system prompt a role that Google reads nowhere, says what it leaves open, writes fields in
    Python's way, and bytes in base64's other alphabet: Google reads both."""
    assert body.pop("generationConfig") == {}
    body["systemInstruction"].pop("role", None)
    body["toolConfig"] = {"functionCallingConfig": camel(next(iter(body["toolConfig"].values())))}
    told: dict[str, Any] = camel(body)
    return told


def camel(value: Any) -> Any:
    if isinstance(value, list):
        return [camel(one) for one in value]
    if not isinstance(value, dict):
        return value
    told: dict[str, Any] = {}
    for name, one in value.items():
        first, *rest = name.split("_")
        name = first + "".join(word.title() for word in rest)
        is_bytes = name in ("data", "thoughtSignature")
        told[name] = one.translate(str.maketrans("-_", "+/")) if is_bytes else camel(one)
    return told


@both_ways
@pytest.mark.parametrize("has_ids", [True, False])
def test_a_conversation_with_gemini_goes_as_the_sdk_has_it(server: Recorder, stream: bool, has_ids: bool) -> None:
    parts = json.loads(json.dumps(GEMINI_PARTS))
    for part in parts:
        if not has_ids and "functionCall" in part:
            del part["functionCall"]["id"]
    chunks = [gemini_shapes.said(part) for part in parts]
    if stream:
        last = gemini_shapes.said(finish="STOP", usageMetadata=gemini_shapes.USAGE)
        server.answer, server.content_type = b"".join(map(gemini_shapes.event, [*chunks, last])), EVENTS
    else:
        server.answer = gemini_shapes.whole({"content": {"parts": parts, "role": "model"}, "finishReason": "STOP"})
    config = types.GenerateContentConfig(
        system_instruction="Be brief.",
        tools=[FUNCTIONS],
        tool_config=types.ToolConfig(
            function_calling_config=types.FunctionCallingConfig(mode=Mode.ANY, allowed_function_names=["get_time"])
        ),
    )
    blob = types.Blob.model_validate({"mime_type": "image/png", "data": PIXEL})
    talk = [types.Content(role="user", parts=[types.Part(inline_data=blob), types.Part(text="Where?")])]
    our_talk: tuple[Message, ...] = (Message("system", "Be brief."), Message("user", (SHOWN, "Where?")))

    def compared() -> list[types.Part]:
        call = Call("gemini/gemini-2.5-flash", our_talk, stream=stream, tools=TOOLS, tool_choice="get_time")
        asked: Any = {"model": "gemini-2.5-flash", "contents": talk, "config": config}
        if stream:
            answered = list(client.models.generate_content_stream(**asked))
        else:
            answered = [client.models.generate_content(**asked)]
        assert ours(gemini.PROTOCOL, call) == in_our_way(server.last.json)
        found = [one.candidates[0].content for one in answered if one.candidates]
        return [part for content in found if content is not None for part in content.parts or ()]

    with genai.Client(api_key="AIza-test", http_options=types.HttpOptions(base_url=server.origin)) as client:
        told = compared()
        reply = read(gemini.PROTOCOL, server, stream)
        calls = [part.function_call for part in told if part.function_call is not None]
        assert values_of(reply.tool_calls) == [(one.name, one.args) for one in calls]
        assert reply.text == "".join(part.text for part in told if part.text and not part.thought) == "I look."
        assert reply.finish_reason == "tool_calls"
        responses: list[dict[str, Any]] = [{"output": "sunny"}, {"rain": True}]
        results = [
            types.Part(function_response=types.FunctionResponse(name=one.name, response=response, id=one.id))
            for one, response in zip(calls, responses, strict=True)
        ]
        talk += [
            types.Content(role="model", parts=told),
            types.Content(role="user", parts=results),
            types.Content(role="user", parts=[types.Part(text="And now?")]),
        ]
        our_talk = (*our_talk, *answers_to(reply), Message("user", "And now?"))
        compared()


# --- Amazon ---

session: Any = pytest.importorskip("botocore.session")
NAME = "eu.amazon.nova-2-lite-v1:0"
BLOCKS: list[dict[str, Any]] = [
    bedrock_shapes.THOUGHT,
    {"text": "I look."},
    {"toolUse": {"toolUseId": "tooluse_1", "name": "get_weather", "input": PLACE}},
    {"toolUse": {"toolUseId": "tooluse_2", "name": "get_time", "input": {}}},
]


@pytest.fixture(scope="module")
def aws() -> Any:
    """Told the service's model once: it is read for a second."""
    return session.Session()


def client_of(aws: Any, server: Recorder) -> Any:
    keys = {"aws_access_key_id": "AKIATESTKEY123456789", "aws_secret_access_key": "a-secret-of-nobodys"}
    return aws.create_client("bedrock-runtime", region_name="eu-central-1", endpoint_url=server.origin, **keys)


def bedrock_events() -> bytes:
    shape = bedrock_shapes
    pieces = [shape.START, shape.thought("I think of A.")]
    pieces += [
        shape.event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"reasoningContent": {"signature": "c2ln"}}})
    ]
    pieces.append(shape.delta("I look.", 1))
    for index, block in enumerate(BLOCKS[2:], 2):
        used = block["toolUse"]
        written = json.dumps(used["input"], ensure_ascii=False)
        start = {"toolUse": {name: used[name] for name in ("toolUseId", "name")}}
        pieces.append(shape.event("contentBlockStart", {"contentBlockIndex": index, "start": start}))
        for piece in (written[:9], written[9:]):
            told = {"contentBlockIndex": index, "delta": {"toolUse": {"input": piece}}}
            pieces.append(shape.event("contentBlockDelta", told))
    return b"".join([*pieces, shape.event("messageStop", {"stopReason": "tool_use"}), shape.METADATA])


def joined(events: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    """The tool calls in the client's own events."""
    names: dict[int, str] = {}
    pieces: dict[int, str] = {}
    for one in events:
        if "contentBlockStart" in one and "toolUse" in one["contentBlockStart"]["start"]:
            names[one["contentBlockStart"]["contentBlockIndex"]] = one["contentBlockStart"]["start"]["toolUse"]["name"]
        piece = one.get("contentBlockDelta", {}).get("delta", {}).get("toolUse", {}).get("input")
        if piece is not None:
            index = one["contentBlockDelta"]["contentBlockIndex"]
            pieces[index] = pieces.get(index, "") + piece
    return [(name, json.loads(pieces[index])) for index, name in names.items()]


@both_ways
def test_a_conversation_over_bedrock_goes_as_the_sdk_has_it(server: Recorder, aws: Any, stream: bool) -> None:
    server.answer = bedrock_events() if stream else bedrock_shapes.whole(*BLOCKS, stop="tool_use")
    server.content_type = "application/vnd.amazon.eventstream" if stream else JSON
    tools = [
        {
            "toolSpec": {
                "name": "get_weather",
                "description": "The weather at a place.",
                "inputSchema": {"json": SCHEMA},
            }
        },
        {"toolSpec": {"name": "get_time", "inputSchema": {"json": {"type": "object", "properties": {}}}}},
    ]
    image = {"image": {"format": "png", "source": {"bytes": base64.b64decode(PIXEL)}}}
    talk: list[Any] = [{"role": "user", "content": [image, {"text": "Where?"}]}]
    asked: Any = {
        "modelId": NAME,
        "system": [{"text": "Be brief."}],
        "toolConfig": {"tools": tools, "toolChoice": {"tool": {"name": "get_time"}}},
    }
    our_talk: tuple[Message, ...] = (Message("system", "Be brief."), Message("user", (SHOWN, "Where?")))
    client = client_of(aws, server)

    def compared() -> list[tuple[str, Any]]:
        if stream:
            calls = joined(list(client.converse_stream(**asked, messages=talk)["stream"]))
        else:
            blocks = client.converse(**asked, messages=talk)["output"]["message"]["content"]
            calls = [(block["toolUse"]["name"], block["toolUse"]["input"]) for block in blocks if "toolUse" in block]
        call = Call(f"bedrock/{NAME}", our_talk, stream=stream, tools=TOOLS, tool_choice="get_time")
        assert ours(bedrock.PROTOCOL, call) == server.last.json
        return calls

    calls = compared()
    reply = read(bedrock.PROTOCOL, server, stream)
    assert values_of(reply.tool_calls) == calls
    assert (reply.text, reply.finish_reason) == ("I look.", "tool_calls")
    results = [
        {"toolResult": {"toolUseId": "tooluse_1", "content": [{"text": "sunny"}]}},
        {"toolResult": {"toolUseId": "tooluse_2", "content": [{"text": '{"rain":true}'}]}},
        {"text": "And now?"},
    ]
    talk += [{"role": "assistant", "content": BLOCKS}, {"role": "user", "content": results}]
    our_talk = (*our_talk, *answers_to(reply), Message("user", "And now?"))
    compared()
    client.close()
