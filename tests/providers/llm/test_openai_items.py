"""Tools, images and items of its own in OpenAI Responses: what is sent, and what is read, whole and streamed."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from response_shapes import CREATED, MESSAGE, REASONING, delta, event, response, said, whole
from torture import times

from millstream.engine.call import Call, Message, Reply
from millstream.engine.content import Content, Native, Part, Tool, ToolCall, ToolResult
from millstream.engine.endpoint import EncodeError, Fault, Response
from millstream.providers.llm.openai.responses import decode, encode
from millstream.providers.llm.protocol import Target

MODEL = "openai-responses/gpt-5.4"
TARGET = Target("http://127.0.0.1:8000/v1", "lab", "gpt-5.4", "openai-responses")


def native(value: dict[str, Any]) -> Native:
    return Native("openai-responses", value)


def body_of(call: Call) -> Any:
    return orjson.loads(encode(call, TARGET).body)


def items_of(*messages: Message) -> Any:
    return body_of(Call(MODEL, messages))["input"]


def reply_of(body: bytes, *, stream: bool = False) -> Reply:
    result = decode(Response(200, body, stream=stream))
    assert isinstance(result, Reply), result
    return result


# --- what is sent ---

SEARCH = {"type": "web_search", "search_context_size": "low"}


@pytest.mark.parametrize(
    ("chosen", "sent"),
    [
        ("auto", "auto"),
        ("now", {"type": "function", "name": "now"}),
        ("web_search", {"type": "web_search"}),
        ("grammar", {"type": "custom", "name": "grammar"}),
    ],
)
def test_a_tool_is_chosen_by_its_name_or_its_type(chosen: str, sent: Any) -> None:
    tools = (Tool("now"), native(SEARCH), native({"type": "custom", "name": "grammar"}))
    assert body_of(Call(MODEL, "x", tools=tools, tool_choice=chosen))["tool_choice"] == sent


THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}


REFUSED = {"type": "refusal", "refusal": "I can't."}


@pytest.mark.parametrize(
    ("role", "content", "sent"),
    [
        ("user", ("x",), [{"content": "x", "role": "user"}]),
        ("user", (), [{"content": "", "role": "user"}]),
        ("assistant", ("A", native(REFUSED)), [{"content": [{"type": "output_text", "text": "A"}, REFUSED],
                                                "role": "assistant"}]),
        ("assistant", (ToolCall("c", "f", "{}", Native("anthropic", {"x": 1})),),
         [{"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}]),
    ],
)  # fmt: skip
def test_parts_are_sent_in_the_plainest_form(role: str, content: Content, sent: Any) -> None:
    assert items_of(Message(role, content)) == sent


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (
            Call(MODEL, (Message("user", (Native("openai", {"type": "x"}),)),)),
            "openai's own can't be said in OpenAI Resp",
        ),
        (Call(MODEL, "x", tools=(Native("openai", {"type": "custom"}),)), "openai's own can't be said"),
        (Call(MODEL, (Message("user", (ToolCall("c", "f"),)),)), "called in a turn of `assistant`, not of `user`"),
        (Call(MODEL, (Message("assistant", (ToolResult("c", "x"),)),)), "stands in a turn of `tool` or `user`"),
    ],
)
def test_parts_that_the_protocol_can_not_express_are_refused(call: Call, told: str) -> None:
    with pytest.raises(EncodeError, match=told):
        encode(call, TARGET)


# --- what is read ---


def called(name: str = "weather", arguments: Any = '{"where":"Ä"}', **more: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": "c1", "name": name, "arguments": arguments, **more}


ONE = ToolCall("c1", "weather", '{"where":"Ä"}')
SEARCHED = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "x"}}
CUSTOM = {"type": "custom_tool_call", "call_id": "c9", "name": "grammar", "input": "x = 1"}
OUTPUTS: dict[str, tuple[list[Any], tuple[Part, ...], str]] = {
    "one": ([called()], (ONE,), "tool_calls"),
    "thoughts, a text and two": (
        [THOUGHT, said("I look."), called(), called("now", "", call_id="c2")],
        (native(THOUGHT), "I look.", ONE, ToolCall("c2", "now", "{}")), "tool_calls",
    ),
    "with what it wants back": (
        [called(id="fc_1", status="completed")],
        (ToolCall("c1", "weather", '{"where":"Ä"}', native({"id": "fc_1", "status": "completed"})),), "tool_calls",
    ),
    "arguments as an object": ([called(arguments={"where": "Ä"})], (ONE,), "tool_calls"),
    "arguments that are no JSON": ([called(arguments="{oops")], (ToolCall("c1", "weather", "{oops"),), "tool_calls"),
    "a tool of the provider's own": ([SEARCHED, said("A")], (native(SEARCHED), "A"), "stop"),
    "a custom tool's": ([CUSTOM], (native(CUSTOM),), "tool_calls"),
    "thoughts beside the text": ([REASONING, said("A"), said("B")], (native(REASONING), "A", "B"), "stop"),
    "a refusal behind thoughts": (
        [REASONING, {**MESSAGE, "content": [REFUSED]}], (native(REASONING), "I can't."), "stop",
    ),
    "a refusal beside a text": (
        [REASONING, said("A"), {**MESSAGE, "content": [REFUSED]}], (native(REASONING), "A", native(REFUSED)), "stop",
    ),
    "texts alone": ([said("A"), said("B")], (), "stop"),
    "what is none among them": ([7, None, {}, {"type": 7}, called()], (ONE,), "tool_calls"),
}  # fmt: skip


@pytest.mark.parametrize("name", OUTPUTS)
@pytest.mark.parametrize("form", ["whole", "streamed", "streamed, with an empty end"])
def test_parts_beside_the_text_are_read_in_their_order(name: str, form: str) -> None:
    output, parts, finish = OUTPUTS[name]
    if form == "whole":
        reply = reply_of(whole(output=output))
    else:
        told = [one for one in output if isinstance(one, dict)]
        items = [event("response.output_item.done", output_index=at, item=one) for at, one in enumerate(told)]
        last = event("response.completed", response=response(output=output if form == "streamed" else []))
        reply = reply_of(CREATED + b"".join(items) + last, stream=True)
    assert (reply.parts, reply.finish_reason) == (parts, finish)
    texts = [part for part in parts if isinstance(part, str)]
    assert reply.text == ("".join(texts) if parts else "AB")
    assert reply.tool_calls == tuple(part for part in parts if isinstance(part, ToolCall))


def test_a_text_of_deltas_alone_is_among_the_parts() -> None:
    last = event("response.completed", response=response(output=[REASONING]))
    reply = reply_of(CREATED + delta("position ") + delta("A") + last, stream=True)
    assert (reply.text, reply.parts) == ("position A", (native(REASONING), "position A"))


def test_empty_deltas_are_no_answer() -> None:
    last = event("response.completed", response=response(output=[]))
    result = decode(Response(200, CREATED + delta("") + delta("") + last, stream=True))
    assert isinstance(result, Fault) and result.kind == "empty"


# --- there and back ---


_ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
_KINDS = st.sampled_from(["function_call", "reasoning", "custom_tool_call", "web_search_call", "message", "new"])
_ODD = st.fixed_dictionaries(
    {"type": _KINDS | _ANY},
    optional=dict.fromkeys(("call_id", "id", "name", "arguments", "content", "input"), _ANY),
)


@settings(max_examples=times(100, 500), deadline=None)
@given(st.lists(_ODD, max_size=3))
def test_odd_items_cost_no_answer_and_can_be_written(items: list[Any]) -> None:
    result = decode(Response(200, json.dumps(response(output=[*items, said("A")])).encode()))
    assert isinstance(result, Reply), result
    for part in result.parts:
        match part:
            case Native():
                orjson.dumps(part.value)
            case ToolCall():
                orjson.dumps([part.id, part.name, part.arguments])
