"""Tools, images and parts of its own in what Anthropic Messages is sent."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from tool_talk import ASKED, CLOCK, PIXEL, RESULTS, SHOWN, TOOLS, WEATHER

from millstream.engine.call import Call, Message
from millstream.engine.content import Image, Native, Part, Tool, ToolCall, ToolResult
from millstream.engine.endpoint import EncodeError
from millstream.providers.llm.anthropic.messages import encode
from millstream.providers.llm.protocol import Target

MODEL = "anthropic/claude-sonnet-5-5"
TARGET = Target("http://127.0.0.1:8000", "lab", "claude-sonnet-5-5", "anthropic")
CACHED = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}


def body(given: Any, **parameters: Any) -> Any:
    return orjson.loads(encode(Call(MODEL, given, **parameters), TARGET).body)


def turns(*messages: Message) -> Any:
    return body(messages)["messages"]


def blocks(*parts: Part, role: str = "user") -> Any:
    return turns(Message(role, parts))[0]["content"]


def test_results_and_texts_of_the_user_around_them_are_one_turn() -> None:
    asked, result = Message("assistant", ASKED[:1]), Message("tool", RESULTS[:1])
    own_result = {"type": "tool_result", "tool_use_id": "call_b2", "content": "x", "extra": 1}
    told = turns(
        Message("user", "a"),
        Message("user", ("b",)),
        asked,
        result,
        Message("user", "  "),
        Message("user", (SHOWN, "d")),
        Message("assistant", ASKED[1:]),
        Message("user", (Native("anthropic", own_result),)),
        Message("user", "e"),
        Message("system", "f"),
        Message("user", "g"),
    )
    assert [turn["role"] for turn in told] == [
        "user", "user", "assistant", "user", "assistant", "user", "system", "user",
    ]  # fmt: skip
    assert [block["type"] for block in told[3]["content"]] == ["tool_result", "image", "text"]
    assert told[5]["content"] == [own_result, {"type": "text", "text": "e"}]
    assert told[7]["content"] == "g"


def test_a_result_may_be_an_error_and_hold_images() -> None:
    source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
    assert blocks(ToolResult("t", ("seen", SHOWN), is_error=True), ToolResult("u", ""), role="tool") == [
        {
            "type": "tool_result",
            "tool_use_id": "t",
            "is_error": True,
            "content": [{"type": "text", "text": "seen"}, {"type": "image", "source": source}],
        },
        {"type": "tool_result", "tool_use_id": "u", "content": ""},
    ]


def test_blank_texts_and_empty_turns_are_left_out() -> None:
    assert blocks("", ASKED[0], " \n", "x", role="assistant")[1:] == [{"type": "text", "text": "x"}]
    blank = Message("system", " "), Message("user", ("", " ")), Message("assistant", "")
    assert body((*blank, Message("user", "a"))) == body((Message("user", "a"),))
    assert turns(*blank[1:]) == [{"role": "user", "content": ""}, {"role": "assistant", "content": ""}]


def test_native_parts_are_sent_unchanged() -> None:
    assert blocks(Native("anthropic", THOUGHT), ASKED[0], role="assistant")[0] == THOUGHT
    assert turns(Message("user", (Native("anthropic", CACHED),)))[0]["content"] == [CACHED]
    assert body((Message("system", (Native("anthropic", CACHED),)), Message("user", "x")))["system"] == [CACHED]
    own = {"type": "web_search_20260209", "name": "web_search", "max_uses": 2}
    assert body("x", tools=(CLOCK, Native("anthropic", own)))["tools"][1] == own
    called = ToolCall("t", "f", "{}", Native("anthropic", {"caller": {"type": "code", "tool_id": "s"}}))
    assert blocks(called, role="assistant") == [
        {"type": "tool_use", "id": "t", "name": "f", "input": {}, "caller": {"type": "code", "tool_id": "s"}}
    ]


def test_fields_of_another_protocol_beside_a_tool_call_are_not_sent() -> None:
    called = ToolCall("t", "f", "", Native("gemini", {"thoughtSignature": "x"}))
    assert blocks(called, role="assistant") == [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]


@pytest.mark.parametrize(
    ("choice", "parallel", "told"),
    [
        ("auto", None, {"type": "auto"}),
        ("required", None, {"type": "any"}),
        ("none", None, {"type": "none"}),
        ("get_time", None, {"type": "tool", "name": "get_time"}),
        ("required", True, {"type": "any", "disable_parallel_tool_use": False}),
        ("get_time", False, {"type": "tool", "name": "get_time", "disable_parallel_tool_use": True}),
        (None, False, {"type": "auto", "disable_parallel_tool_use": True}),
        ("none", False, {"type": "none"}),
    ],
)
def test_tool_choice_is_sent_as_anthropic_spells_it(choice: str | None, parallel: bool | None, told: Any) -> None:
    assert body("x", tools=TOOLS, tool_choice=choice, parallel_tools=parallel)["tool_choice"] == told


def test_strict_is_sent_only_where_it_is_set() -> None:
    assert body("x", tools=(Tool("f", strict=True),))["tools"][0]["strict"] is True
    assert "strict" not in body("x", tools=(Tool("f"),))["tools"][0]
    assert "tools" not in body("x", tools=())


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (Call(MODEL, (Message("assistant", (ToolCall("t", "f", "[1]"),)),)), "arguments of f must be one JSON object"),
        (Call(MODEL, (Message("assistant", (ToolCall("t", "f", '{"a":'),)),)), "must be one JSON object; came"),
        (Call(MODEL, (Message("system", (SHOWN,)), Message("user", "x"))), "an image can't stand in a system prompt"),
        (
            Call(MODEL, (Message("system", (Native("anthropic", {}, SHOWN),)), Message("user", "x"))),
            "an image can't stand",
        ),
        (Call(MODEL, "x", tools=(WEATHER,), extra={"tools": []}), "can't set tools: the call itself says it"),
        (Call(MODEL, "x", parallel_tools=True, extra={"tool_choice": {}}), "can't set tool_choice"),
    ],
)
def test_parts_that_anthropic_can_not_express_are_refused(call: Call, said: str) -> None:
    with pytest.raises(EncodeError, match=said):
        encode(call, TARGET)


def test_an_image_that_is_neither_an_address_nor_base64_is_refused() -> None:
    for url in ("data:image/png,abc", "data:;base64,abc", "DATA:text"):
        with pytest.raises(EncodeError, match="must be data:image/…;base64,…"):
            blocks(Image(url))
    assert blocks(Image("data:image/JPG;name=a;base64,QQ=="))[0]["source"]["media_type"] == "image/jpeg"
