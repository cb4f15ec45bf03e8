"""Calls of tools and thoughts in answers of OpenAI's chat completions, whole and streamed, as servers give them."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from chat_shapes import DONE, ROLE, USAGE, choice, chunk, message, ok, reply_of, streamed, whole
from hypothesis import given, settings
from hypothesis import strategies as st
from torture import times

from millstream.engine.call import Reply
from millstream.engine.content import Native, Part, ToolCall
from millstream.engine.endpoint import Fault, Response
from millstream.providers.llm.openai.chat import decode

# --- what is read, whole ---


def called(name: str = "weather", arguments: Any = '{"where":"Ä"}', **more: Any) -> dict[str, Any]:
    return {"id": "c1", "type": "function", "function": {"name": name, "arguments": arguments}, **more}


CUSTOM = {"id": "c1", "type": "custom", "custom": {"name": "grammar", "input": "x = 1"}}
ONE, TWO = ToolCall("c1", "weather", '{"where":"Ä"}'), ToolCall("c2", "now", "{}")
BOTH = [called(), called("now", "{}", id="c2")]
THOUGHT = Native("openai", {"reasoning_content": "hm"})
THINKING = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
TEXTS = [{"type": "text", "text": "A"}, {"type": "text", "text": "B"}]
IN_TWO_FORMS: dict[str, Any] = {"reasoning": "hm", "reasoning_details": [{"type": "t", "text": "hm"}]}
WHOLE: dict[str, tuple[list[dict[str, Any]], tuple[Part, ...]]] = {
    "one": (message(None, tool_calls=[called()]), (ONE,)),
    "two, and a text before them": (message("I look.", tool_calls=BOTH), ("I look.", ONE, TWO)),
    "thoughts before it": (message(None, reasoning_content="hm", tool_calls=[called()]), (THOUGHT, ONE)),
    "arguments as an object": (message(None, tool_calls=[called(arguments={"where": "Ä"})]), (ONE,)),
    "arguments that are no JSON": (message(None, tool_calls=[called(arguments="{oops")]),
                                   (ToolCall("c1", "weather", "{oops"),)),
    "no arguments": (message(None, tool_calls=[called("now", None), called("now", "", id="c2")]),
                     (ToolCall("c1", "now", "{}"), TWO)),
    "one that is no list": (message(None, tool_calls=called()), (ONE,)),
    "no function around it": (message(None, tool_calls=[{"id": "c2", "name": "now", "arguments": {}}]), (TWO,)),
    "the same id twice": (message(None, tool_calls=[called(), called()]), (ONE, ONE)),
    "what is none among them": (message(None, tool_calls=[7, None, {}, called()]), (ONE,)),
    "what is said beside it": (message(None, tool_calls=[called(extra={"g": 1}, index=0)]),
                               (ToolCall("c1", "weather", '{"where":"Ä"}', Native("openai", {"extra": {"g": 1}})),)),
    "a custom tool's": (message(None, tool_calls=[CUSTOM]), (Native("openai", CUSTOM),)),
    "thoughts alone beside the text": (message("A", reasoning_content="hm"), (THOUGHT, "A")),
    "thoughts in two forms": (message("A", **IN_TWO_FORMS), (Native("openai", IN_TWO_FORMS), "A")),
    "thoughts among the content": (message([THINKING, *TEXTS]), (Native("openai", THINKING), "AB")),
    "texts alone": (message(TEXTS), ()),
    "null for all of it": (message("A", tool_calls=None, reasoning_content=None, reasoning=None), ()),
    "nothing in any of it": (message("A", tool_calls=[], reasoning_content="", reasoning_details=[]), ()),
}  # fmt: skip


@pytest.mark.parametrize("name", WHOLE)
def test_parts_beside_the_text_are_read_in_their_order(name: str) -> None:
    choices, parts = WHOLE[name]
    reply = reply_of(ok(whole(choices=choices)))
    assert reply.parts == parts
    assert reply.text == "".join(part for part in parts if isinstance(part, str)) or not parts
    calls = [part for part in parts if isinstance(part, ToolCall)]
    assert reply.tool_calls == tuple(calls)
    assert reply.finish_reason == ("tool_calls" if calls or name == "a custom tool's" else "stop")


def test_a_tool_call_ends_an_answer_that_has_no_word_for_its_end() -> None:
    body = whole(choices=choice(message={"content": None, "tool_calls": [called()]}, finish_reason=None))
    assert reply_of(ok(body)).finish_reason == "tool_calls"


def test_a_function_call_of_old_is_one_too() -> None:
    told = {"name": "weather", "arguments": '{"where":"Ä"}'}
    plain = reply_of(
        ok(whole(choices=choice(message={"content": None, "function_call": told}, finish_reason="function_call")))
    )
    parts = (chunk({"function_call": {"name": "weather", "arguments": ""}}),
             chunk({"function_call": {"arguments": '{"where"'}}),
             chunk({"function_call": {"arguments": ':"Ä"}'}}), chunk({}, "function_call"))  # fmt: skip
    for reply in (plain, reply_of(streamed(ROLE, *parts, DONE))):
        assert [(one.name, one.arguments) for one in reply.tool_calls] == [("weather", '{"where":"Ä"}')]
        assert reply.tool_calls[0].id and reply.finish_reason == "tool_calls"


# --- what is read, streamed ---


def piece(*calls: dict[str, Any], **more: Any) -> bytes:
    return chunk({"tool_calls": list(calls), **more})


def bit(index: int | None, arguments: Any, name: str | None = None, call_id: str | None = None) -> dict[str, Any]:
    function = {"arguments": arguments} if name is None else {"name": name, "arguments": arguments}
    given = {"index": index, "id": call_id, "function": function}
    return {key: value for key, value in given.items() if value is not None}


END = chunk({}, "tool_calls")
STREAMS: dict[str, tuple[bytes, ...]] = {
    "OpenAI": (
        chunk({"role": "assistant", "content": None}),
        piece({**bit(0, "", "weather", "c1"), "type": "function"}), piece(bit(0, '{"whe')), piece(bit(0, 're":"Ä"}')),
        piece({**bit(1, "", "now", "c2"), "type": "function"}), piece(bit(1, "{}")),
    ),
    "pieces that take turns": (
        piece(bit(0, "", "weather", "c1"), bit(1, "", "now", "c2")),
        piece(bit(1, "{")), piece(bit(0, '{"where":"'), bit(1, "}")), piece(bit(0, 'Ä"}')),
    ),
    "the later one first": (piece(bit(1, "{}", "now", "c2")), piece(bit(0, '{"where":"Ä"}', "weather", "c1"))),
    "whole calls in one chunk without numbers": (
        piece(bit(None, '{"where":"Ä"}', "weather", "c1"), bit(None, "{}", "now", "c2")),
    ),
    "whole calls in chunks of their own without numbers": (
        piece(bit(None, '{"where":"Ä"}', "weather", "c1")), piece(bit(None, "{}", "now", "c2")),
    ),
    "arguments as objects": (
        piece(bit(0, {"where": "Ä"}, "weather", "c1")), piece(bit(1, {}, "now", "c2")),
    ),
    "whole calls under one number": (
        piece(bit(0, '{"where":"Ä"}', "weather", "c1")), piece(bit(0, "{}", "now", "c2")),
    ),
    "id and name in every piece": (
        piece(bit(0, "", "weather", "c1")), piece(bit(0, '{"where":', "weather", "c1")),
        piece(bit(0, '"Ä"}', "weather", "c1")), piece(bit(0, "", "weather", "c1")), piece(bit(1, "{}", "now", "c2")),
    ),
    "ids in the place of numbers": (
        piece(bit(None, '{"where":', "weather", "c1")), piece(bit(None, "{", "now", "c2")),
        piece(bit(None, '"Ä"}', None, "c1")), piece(bit(None, "}", None, "c2")),
    ),
    "another id in every piece": (
        piece(bit(0, "", "weather", "c1")), piece(bit(0, '{"where":"Ä"}', None, "x")),
        piece(bit(1, "{", "now", "c2")), piece(bit(1, "}", None, "y")),
    ),
    "the whole once more at the end": (
        piece(bit(0, '{"where":', "weather", "c1")), piece(bit(0, '"Ä"}')),
        piece(bit(0, '{"where":"Ä"}', "weather", "c1")), piece(bit(1, "{}", "now", "c2")),
    ),
    "a name in pieces": (
        piece(bit(0, "", "wea", "c1")), piece(bit(0, '{"where":"Ä"}', "ther")), piece(bit(1, "{}", "now", "c2")),
    ),
    "null where nothing is new": (
        piece({**bit(0, "", "weather", "c1"), "type": None}),
        piece({"index": 0, "id": None, "type": None, "function": {"name": None, "arguments": '{"where":"Ä"}'}}),
        piece(bit(1, "{}", "now", "c2")), chunk({"tool_calls": None}), chunk({"tool_calls": []}),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", STREAMS)
def test_pieces_of_calls_are_joined_however_a_server_cuts_and_numbers_them(name: str) -> None:
    reply = reply_of(streamed(*STREAMS[name], END, USAGE, DONE))
    assert reply.parts == (ONE, TWO)
    assert (reply.text, reply.finish_reason) == ("", "tool_calls")


def test_calls_without_ids_under_one_number_are_two_calls() -> None:
    reply = reply_of(streamed(piece(bit(0, '{"a":1}', "f", "")), piece(bit(0, '{"a":1}', "f", "")), END))
    assert [(one.name, one.arguments) for one in reply.tool_calls] == [("f", '{"a":1}')] * 2


def test_details_of_thoughts_are_joined_by_their_number() -> None:
    def detail(index: int, **more: Any) -> bytes:
        return chunk({"content": "", "reasoning_details": [{"type": "reasoning.text", "index": index, **more}]})

    parts = detail(0, text="h", signature=None), detail(0, text="m"), detail(0, signature="s"), detail(1, text="!")
    reply = reply_of(streamed(ROLE, *parts, chunk({"content": "A"}, "stop"), DONE))
    told = [
        {"type": "reasoning.text", "index": 0, "text": "hm", "signature": "s"},
        {"type": "reasoning.text", "index": 1, "text": "!"},
    ]
    assert reply.parts == (Native("openai", {"reasoning_details": told}), "A")


def test_thoughts_among_the_content_of_a_stream_are_one_part() -> None:
    def thinking(text: str) -> dict[str, Any]:
        return {"type": "thinking", "thinking": [{"type": "text", "text": text}]}

    parts = chunk({"content": [thinking("h")]}), chunk({"content": [thinking("m")]}), chunk({"content": "A"})
    reply = reply_of(streamed(ROLE, *parts, chunk({"content": "B"}, "stop"), DONE))
    assert (reply.text, reply.parts) == ("AB", (Native("openai", thinking("hm")), "AB"))


# --- there and back ---

_ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(
        ["id", "index", "type", "function", "custom", "name", "arguments", "input", "text", "thinking"]), inner,
        max_size=5),
    max_leaves=12,
)  # fmt: skip


@settings(max_examples=times(140, 700), deadline=None)
@given(st.lists(_ANY, max_size=3), _ANY, _ANY, _ANY, st.booleans())
def test_odd_parts_cost_no_answer_and_can_be_written(
    calls: Any, function: Any, details: Any, content: Any, is_streamed: bool
) -> None:
    told = {"tool_calls": calls, "function_call": function, "reasoning_details": details, "reasoning": details}
    finish = {"index": 0, "finish_reason": "stop"}
    if is_streamed:
        odd = json.dumps({"choices": [{"index": 0, "delta": {"content": [content], **told}}]}).encode()
        odd = b"data: " + odd + b"\n\n"
        result = decode(streamed(odd, odd, chunk({"content": "A"}, "stop"), DONE))
    else:
        body = json.dumps({"choices": [{**finish, "message": {"content": "A", **told}}]}).encode()
        result = decode(Response(200, body))
    assert isinstance(result, Reply), result
    for part in result.parts:
        match part:
            case Native():
                orjson.dumps(part.value)
            case ToolCall():
                orjson.dumps([part.id, part.name, part.arguments])
    assert not isinstance(result, Fault)
