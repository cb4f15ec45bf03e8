"""OpenAI's own client against ours where tools are called and texts gone on with: what is sent and what is read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import chat_shapes
import openai
import orjson
import pytest
import response_shapes
from recorder import EVENTS, JSON, Recorder, recording

from millstream import Call, Message, Reply
from millstream.engine.content import Image, Native, Tool, ToolCall, ToolResult
from millstream.engine.endpoint import Response
from millstream.providers.llm.openai import chat as openai_chat
from millstream.providers.llm.openai import completions as openai_completions
from millstream.providers.llm.openai import responses as openai_responses
from millstream.providers.llm.protocol import Target, WireProtocol

PNG = "data:image/png;base64,iVBORw0KGgo="
WEATHER = {"type": "object", "properties": {"where": {"type": "string"}}, "required": ["where"]}
TOOLS = (Tool("weather", "Tells it.", WEATHER, True), Tool("now", parameters={"type": "object", "properties": {}}))
ASKED, TOLD = ToolCall("call_1", "weather", '{"where":"Ä"}'), ToolResult("call_1", "rain")
BOTH = [
    {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"where":"Ä"}'}},
    {"id": "call_2", "type": "function", "function": {"name": "now", "arguments": "{}"}},
]
TURNS = (
    Message("system", "Be brief."),
    Message("user", ("What is this?", Image(PNG, "low"))),
    Message("assistant", ("I look.", ASKED, ToolCall("call_2", "now"))),
    Message("tool", (TOLD, ToolResult("call_2", "12:00"))),
)


@pytest.fixture
def server() -> Iterator[Recorder]:
    with recording() as recorder:
        yield recorder


@pytest.fixture
def client(server: Recorder) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(api_key="sk-test-0123456789", base_url=server.base_url, max_retries=0) as opened:
        yield opened


def sent(protocol: WireProtocol, call: Call) -> Any:
    return orjson.loads(protocol.encode(call, Target("http://127.0.0.1:1/v1", "lab", "m", "openai")).wire)


def read(protocol: WireProtocol, server: Recorder) -> Reply:
    result = protocol.decode(Response(200, server.answer, stream=server.content_type == EVENTS))
    assert isinstance(result, Reply), result
    return result


def test_a_conversation_with_tools_is_sent_as_the_sdk_sends_it(server: Recorder, client: openai.OpenAI) -> None:
    server.answer = chat_shapes.whole()
    messages: Any = [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is this?"},
                {"type": "image_url", "image_url": {"url": PNG, "detail": "low"}},
            ],
        },
        {"role": "assistant", "content": "I look.", "tool_calls": BOTH},
        {"role": "tool", "tool_call_id": "call_1", "content": "rain"},
        {"role": "tool", "tool_call_id": "call_2", "content": "12:00"},
    ]
    tools: Any = [
        {
            "type": "function",
            "function": {"name": "weather", "description": "Tells it.", "parameters": WEATHER, "strict": True},
        },
        {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}},
    ]
    choice: Any = {"type": "function", "function": {"name": "now"}}
    client.chat.completions.create(
        model="m", messages=messages, tools=tools, tool_choice=choice, parallel_tool_calls=False
    )
    call = Call("openai/m", TURNS, tools=TOOLS, tool_choice="now", parallel_tools=False)
    assert sent(openai_chat.PROTOCOL, call) == server.last.json


def test_items_with_tools_are_sent_as_the_sdk_sends_them(server: Recorder, client: openai.OpenAI) -> None:
    server.answer = response_shapes.whole()
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
    items: Any = [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "What is this?"},
                {"type": "input_image", "image_url": PNG, "detail": "low"},
            ],
        },
        thought,
        {"role": "assistant", "content": "I look."},
        {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": '{"where":"Ä"}'},
        {"type": "function_call_output", "call_id": "call_1", "output": "rain"},
    ]
    tools: Any = [
        {"type": "function", "name": "weather", "description": "Tells it.", "parameters": WEATHER, "strict": True},
        {"type": "web_search"},
    ]
    choice: Any = {"type": "function", "name": "weather"}
    client.responses.create(model="m", input=items, tools=tools, tool_choice=choice, parallel_tool_calls=True)
    turns = (
        *TURNS[:2],
        Message("assistant", (Native("openai-responses", thought), "I look.", ASKED)),
        Message("tool", (TOLD,)),
    )
    offered = (TOOLS[0], Native("openai-responses", {"type": "web_search"}))
    call = Call("openai-responses/m", turns, tools=offered, tool_choice="weather", parallel_tools=True)
    assert sent(openai_responses.PROTOCOL, call) == server.last.json


def test_calls_of_tools_are_read_as_the_sdk_reads_them(server: Recorder, client: openai.OpenAI) -> None:
    choices = chat_shapes.choice(
        message={"role": "assistant", "content": "I look.", "tool_calls": BOTH}, finish_reason="tool_calls"
    )
    server.answer = chat_shapes.whole(choices=choices)
    theirs = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}])
    assert_alike(read(openai_chat.PROTOCOL, server), theirs.choices[0])


def pieces_of(calls: list[dict[str, Any]]) -> Iterator[bytes]:
    for index, call in enumerate(calls):
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        begun = {"index": index, "id": call["id"], "type": "function", "function": {"name": name, "arguments": ""}}
        yield chat_shapes.chunk({"tool_calls": [begun]})
        for at in range(0, len(arguments), 3):
            piece = {"index": index, "function": {"arguments": arguments[at : at + 3]}}
            yield chat_shapes.chunk({"tool_calls": [piece]})


def test_streamed_calls_of_tools_are_read_as_the_sdk_reads_them(server: Recorder, client: openai.OpenAI) -> None:
    end = (chat_shapes.chunk({}, "tool_calls"), chat_shapes.USAGE, chat_shapes.DONE)
    text = chat_shapes.chunk({"content": "I look."})
    server.answer = b"".join((chat_shapes.ROLE, text, *pieces_of(BOTH), *end))
    server.content_type = EVENTS
    with client.chat.completions.stream(model="m", messages=[{"role": "user", "content": "x"}]) as stream:
        theirs = stream.get_final_completion()
    assert_alike(read(openai_chat.PROTOCOL, server), theirs.choices[0])


def assert_alike(ours: Reply, choice: Any) -> None:
    assert (ours.text, ours.finish_reason) == (choice.message.content, choice.finish_reason)
    called = [(call.id, call.function.name, call.function.arguments) for call in choice.message.tool_calls]
    assert [(call.id, call.name, call.arguments) for call in ours.tool_calls] == called
    assert ours.parts == ("I look.", *ours.tool_calls)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_items_of_a_response_are_read_as_the_sdk_reads_them(
    server: Recorder, client: openai.OpenAI, stream: bool
) -> None:
    call = {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "call_1",
        "name": "weather",
        "arguments": '{"where":"Ä"}',
        "status": "completed",
    }
    output = [response_shapes.REASONING, response_shapes.said("I look."), call]
    theirs: Any
    if stream:
        last = response_shapes.event(
            "response.completed", response=response_shapes.response(output=output), sequence_number=9
        )
        server.answer, server.content_type = response_shapes.CREATED + last, EVENTS
        theirs = list(client.responses.create(model="m", input="x", stream=True))[-1].response  # type: ignore[union-attr]
    else:
        server.answer, server.content_type = response_shapes.whole(output=output), JSON
        theirs = client.responses.create(model="m", input="x")
    ours = read(openai_responses.PROTOCOL, server)
    thought, text, called = theirs.output
    assert ours.text == theirs.output_text == text.content[0].text
    assert (ours.tool_calls[0].id, ours.tool_calls[0].name) == (called.call_id, called.name)
    assert ours.tool_calls[0].arguments == called.arguments
    assert ours.parts[0] == Native("openai-responses", thought.to_dict())
    assert (len(ours.parts), ours.finish_reason) == (3, "tool_calls")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_older_completions_are_asked_and_read_as_the_sdk_does_it(
    server: Recorder, client: openai.OpenAI, stream: bool
) -> None:
    lists = {
        "tokens": ["Q", " A"],
        "token_logprobs": [None, -1],
        "top_logprobs": [None, {" A": -1}],
        "text_offset": [0, 1],
    }
    one = {"index": 0, "text": "Q A", "logprobs": {**lists, "text_offset": [0, 1]}, "finish_reason": "length"}
    body = {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": "m", "choices": [one]}
    counted = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    asked: Any = {"model": "m", "prompt": "Q", "max_tokens": 1, "logprobs": 1, "echo": True, "temperature": 0.0}
    theirs: Any
    if stream:
        server.answer, server.content_type = chat_shapes.event(body) + chat_shapes.DONE, EVENTS
        given: Any = {"stream": True, "stream_options": {"include_usage": True}}
        theirs = next(iter(client.completions.create(**asked, **given)))
    else:
        server.answer, server.content_type = orjson.dumps({**body, "usage": counted}), JSON
        theirs = client.completions.create(**asked)
    call = Call("x/m", "Q", temperature=0, max_tokens=1, logprobs=1, extra={"echo": True}, stream=stream)
    assert sent(openai_completions.PROTOCOL, call) == server.last.json
    assert server.last.path == "/v1/completions"
    ours, choice = read(openai_completions.PROTOCOL, server), theirs.choices[0]
    assert (ours.text, ours.finish_reason) == (choice.text, choice.finish_reason)
    assert [one.token for one in ours.logprobs or ()] == choice.logprobs.tokens
    assert [one.logprob for one in (ours.logprobs or ())[1:]] == choice.logprobs.token_logprobs[1:]
    assert [dict(one.top) or None for one in ours.logprobs or ()] == choice.logprobs.top_logprobs
