"""Tools, images and parts of its own in OpenAI's chat completions: what is sent."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from millstream.engine.call import Call, Message
from millstream.engine.content import Content, Native, Tool, ToolCall, ToolResult
from millstream.engine.endpoint import EncodeError
from millstream.providers.llm.openai.chat import encode
from millstream.providers.llm.protocol import Target

URL = "http://127.0.0.1:8000/v1"
MODEL = "openai/gpt-4o-mini"
TARGET = Target(URL, URL, "gpt-4o-mini", "openai")


def body_of(call: Call) -> Any:
    return orjson.loads(encode(call, TARGET).body)


def turns_of(*messages: Message) -> Any:
    return body_of(Call(MODEL, messages))["messages"]


@pytest.mark.parametrize(
    ("chosen", "sent"),
    [
        ("none", "none"),
        ("required", "required"),
        ("now", {"type": "function", "function": {"name": "now"}}),
        ("grammar", {"type": "custom", "custom": {"name": "grammar"}}),
    ],
)
def test_a_tool_is_chosen_by_its_name(chosen: str, sent: Any) -> None:
    tools = (Tool("now"), Native("openai", {"type": "custom", "custom": {"name": "grammar"}}))
    assert body_of(Call(MODEL, "x", tools=tools, tool_choice=chosen))["tool_choice"] == sent


def test_results_are_sent_before_other_parts_of_their_turn() -> None:
    told = turns_of(Message("user", ("And now?", ToolResult("c1", "rain"), ToolResult("c2", "late"))))
    assert told == [
        {"content": "rain", "role": "tool", "tool_call_id": "c1"},
        {"content": "late", "role": "tool", "tool_call_id": "c2"},
        {"content": "And now?", "role": "user"},
    ]


def test_an_id_of_more_than_40_signs_is_shortened_wherever_it_stands() -> None:
    ids = ["a:" * 20, "b" * 41, "b" * 42]
    calls = Message("assistant", tuple(ToolCall(one, "f") for one in ids))
    asked, *answered = turns_of(calls, Message("tool", tuple(ToolResult(one, "x") for one in ids)))
    sent = [call["id"] for call in asked["tool_calls"]]
    assert sent == [turn["tool_call_id"] for turn in answered] and sent[0] == ids[0]
    assert len(set(sent)) == 3 and all(len(one) == 40 for one in sent)


def test_an_empty_turn_of_the_assistant_is_sent_as_an_empty_text() -> None:
    assert turns_of(Message("user", "x"), Message("assistant", ()))[1] == {"content": "", "role": "assistant"}


AUDIO = {"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}}
CUSTOM = {"id": "c1", "type": "custom", "custom": {"name": "grammar", "input": "x = 1"}}


@pytest.mark.parametrize(
    ("role", "content", "sent"),
    [
        ("user", ("x",), {"content": "x", "role": "user"}),
        ("user", (), {"content": "", "role": "user"}),
        ("system", ("a", "b"), {"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
                                "role": "system"}),
        ("user", (Native("openai", AUDIO), "x"), {"content": [AUDIO, {"type": "text", "text": "x"}], "role": "user"}),
        ("user", ("x", Native("openai", {"name": "Ann"})), {"content": "x", "role": "user", "name": "Ann"}),
        ("assistant", (Native("openai", CUSTOM),), {"content": None, "role": "assistant", "tool_calls": [CUSTOM]}),
        ("assistant", (ToolCall("c", "f", "no JSON", Native("openai", {"extra_content": {"g": 1}})),),
         {"content": None, "role": "assistant", "tool_calls": [{"id": "c", "type": "function",
          "extra_content": {"g": 1}, "function": {"name": "f", "arguments": "no JSON"}}]}),
        ("assistant", (ToolCall("c", "f", "{}", Native("gemini", {"thoughtSignature": "s"})),),
         {"content": None, "role": "assistant", "tool_calls": [{"id": "c", "type": "function",
          "function": {"name": "f", "arguments": "{}"}}]}),
    ],
)  # fmt: skip
def test_parts_are_sent_in_the_plainest_form(role: str, content: Content, sent: Any) -> None:
    assert turns_of(Message(role, content)) == [sent]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (Call(MODEL, (Message("user", (Native("openai-responses", {"type": "x"}),)),)), "openai-responses's own"),
        (Call(MODEL, (Message("user", (ToolCall("c", "f"),)),)), "called in a turn of `assistant`, not of `user`"),
        (Call(MODEL, (Message("assistant", (ToolResult("c", "x"),)),)), "stands in a turn of `tool` or `user`"),
        (Call(MODEL, (Message("tool", ("x",)),)), "holds results of tools alone"),
        (Call(MODEL, (Message("user", (Native("openai", {"role": "x", "content": 1}),)),)), "can't set role, content"),
    ],
)
def test_parts_that_the_protocol_can_not_express_are_refused(call: Call, said: str) -> None:
    with pytest.raises(EncodeError, match=said):
        encode(call, TARGET)
