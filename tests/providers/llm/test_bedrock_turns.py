"""Tools, images and parts of its own in what Bedrock's Converse is sent."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from tool_talk import ASKED, CLOCK, FAR, PIXEL, SHOWN, TALK, TOOLS

from millstream.engine.call import Call, Message
from millstream.engine.content import Image, Native, Part, Tool, ToolCall, ToolResult
from millstream.engine.endpoint import EncodeError
from millstream.providers.llm.bedrock.converse import encode
from millstream.providers.llm.protocol import Target

MODEL = "bedrock/eu.amazon.nova-2-lite-v1:0"
TARGET = Target("http://a", "http://a", "eu.amazon.nova-2-lite-v1:0", "bedrock")
THOUGHT = {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "c2ln"}}}
IMAGE = {"image": {"format": "png", "source": {"bytes": PIXEL}}}


def body(given: Any, **parameters: Any) -> Any:
    return orjson.loads(encode(Call(MODEL, given, **parameters), TARGET).body)


def turns(*messages: Message) -> Any:
    return body(messages)["messages"]


def blocks(*parts: Part, role: str = "user") -> Any:
    return turns(Message(role, parts))[0]["content"]


def test_a_result_may_be_an_error_hold_images_or_be_empty() -> None:
    assert blocks(ToolResult("t", ("seen", SHOWN), is_error=True), ToolResult("u", ""), role="tool") == [
        {"toolResult": {"toolUseId": "t", "content": [{"text": "seen"}, IMAGE], "status": "error"}},
        {"toolResult": {"toolUseId": "u", "content": []}},
    ]


def test_an_image_goes_along_as_its_bytes() -> None:
    assert blocks("see", SHOWN) == [{"text": "see"}, IMAGE]
    assert blocks(Image("data:image/jpg;base64,QQ=="))[0]["image"]["format"] == "jpeg"


def test_native_parts_are_sent_unchanged() -> None:
    point = {"cachePoint": {"type": "default"}}
    assert blocks(Native("bedrock", THOUGHT), ASKED[0], role="assistant")[0] == THOUGHT
    assert body((Message("system", ("a", Native("bedrock", point))), Message("user", "x")))["system"] == [
        {"text": "a"},
        point,
    ]
    assert body("x", tools=(CLOCK, Native("bedrock", point)))["toolConfig"]["tools"][1] == point
    own_result = Native("bedrock", {"toolResult": {"toolUseId": "call_a1", "content": [{"json": {"a": 1}}]}})
    told = turns(Message("assistant", ASKED[:1]), Message("user", (own_result,)), Message("user", "b"))
    assert told[1]["content"] == [own_result.value, {"text": "b"}]
    called = ToolCall("t", "f", "{}", Native("bedrock", {"type": "x"}))
    assert blocks(called, role="assistant") == [{"toolUse": {"toolUseId": "t", "name": "f", "input": {}, "type": "x"}}]


@pytest.mark.parametrize(
    ("choice", "told"),
    [("auto", {"auto": {}}), ("required", {"any": {}}), ("get_time", {"tool": {"name": "get_time"}})],
)
def test_tool_choice_is_sent_as_bedrock_spells_it(choice: str, told: Any) -> None:
    assert body("x", tools=TOOLS, tool_choice=choice)["toolConfig"]["toolChoice"] == told


def test_without_tool_calls_no_tools_are_sent_unless_the_conversation_has_calls() -> None:
    assert body("x", tools=TOOLS, tool_choice="none") == body("x")
    with pytest.raises(EncodeError, match="can't be told to call no tool where the conversation holds calls of some"):
        body(TALK, tools=TOOLS, tool_choice="none")


def test_strict_is_sent_and_parallel_tools_are_the_default() -> None:
    assert body("x", tools=(Tool("f", strict=False),))["toolConfig"]["tools"][0]["toolSpec"]["strict"] is False
    assert body("x", tools=TOOLS, parallel_tools=True) == body("x", tools=TOOLS)
    assert "toolConfig" not in body("x", tools=())


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            Call(MODEL, "x", tools=TOOLS, parallel_tools=False),
            r"Bedrock has no way to be asked for one tool call at a time, .*: leave parallel_tool_calls \(",
        ),
        (Call(MODEL, (Message("assistant", (ToolCall("t", "f", "null"),)),)), "arguments of f must be one JSON object"),
        (
            Call(MODEL, (Message("system", (ASKED[0],)), Message("user", "x"))),
            "a tool call can't stand in a sys",
        ),
        (Call(MODEL, (Message("user", (FAR,)),)), "fetches no image from an address: send it as data:image"),
        (Call(MODEL, (Message("user", (Image("data:image/bmp;base64,QQ=="),)),)), "came image/bmp: convert it"),
        (Call(MODEL, (Message("tool", (ToolResult("t", (FAR,)),)),)), "fetches no image"),
        (Call(MODEL, "x", tools=(CLOCK,), extra={"toolConfig": 1}), "toolConfig in extra must be an object"),
    ],
)
def test_parts_that_converse_can_not_express_are_refused(call: Call, said: str) -> None:
    with pytest.raises(EncodeError, match=said):
        encode(call, TARGET)


ONE_AT_A_TIME = {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}


def test_claude_on_bedrock_is_asked_for_one_tool_call_at_a_time_in_its_own_field() -> None:
    claude = Target("http://a", "http://a", "eu.anthropic.claude-sonnet-5-5-v1:0", "bedrock")

    def sent(**parameters: Any) -> Any:
        return orjson.loads(encode(Call(MODEL, "x", tools=TOOLS, parallel_tools=False, **parameters), claude).body)

    for parameters in ({}, {"tool_choice": "auto"}):
        told = sent(**parameters)
        assert told["additionalModelRequestFields"] == ONE_AT_A_TIME
        assert "toolChoice" not in told["toolConfig"] and len(told["toolConfig"]["tools"]) == 2
    assert sent(extra={"top_k": 3})["additionalModelRequestFields"] == {"top_k": 3, **ONE_AT_A_TIME}
    with pytest.raises(EncodeError, match="one tool call at a time"):
        sent(tool_choice="required")


def test_parallel_tools_is_ignored_where_no_tool_can_be_called() -> None:
    assert body("x", parallel_tools=False) == body("x")
    assert body("x", tools=TOOLS, tool_choice="none", parallel_tools=False) == body("x")


def test_turns_of_one_role_are_one_since_roles_must_alternate() -> None:
    told = turns(
        Message("user", "a"), Message("system", "s"), Message("user", ("b", SHOWN)), Message("assistant", ""),
        Message("assistant", "c"), Message("assistant", ("d", "")), Message("user", " "),
    )  # fmt: skip
    assert told == [
        {"role": "user", "content": [{"text": "a"}, {"text": "b"}, IMAGE]},
        {"role": "assistant", "content": [{"text": "c"}, {"text": "d"}]},
    ]
    assert turns(Message("user", "")) == [{"role": "user", "content": [{"text": ""}]}]


def test_a_choice_without_tools_stands_beside_the_callers_own() -> None:
    own = {"toolConfig": {"tools": [{"systemTool": {"name": "nova_grounding"}}]}}
    assert body("x", tool_choice="auto", extra=own)["toolConfig"] == {**own["toolConfig"], "toolChoice": {"auto": {}}}
