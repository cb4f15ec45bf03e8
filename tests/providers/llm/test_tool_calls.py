"""Tool calls, thoughts and the provider's own parts in answers of every wire protocol that has them: whole, streamed,
cut, and sent back when the conversation goes on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import anthropic_shapes
import bedrock_shapes
import chat_shapes
import gemini_shapes
import orjson
import pytest
import response_shapes
from answer_parts import AnswerPart
from hypothesis import given, settings
from hypothesis import strategies as st
from protocols import CHAT, CONVERSE, GENERATE, MESSAGES, RESPONSES, ROWS, AnswerShape, ProtocolRow
from torture import times

from millstream.engine.call import Call, Message
from millstream.engine.content import Part, ToolCall
from millstream.engine.endpoint import Response
from millstream.providers.llm.protocol import Target

WITH_CALLS = {name: row for name, row in ROWS.items() if row.shape.has_calls}
in_each_protocol = pytest.mark.parametrize("row", WITH_CALLS.values(), ids=WITH_CALLS)
in_each_form = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])

FIRST = ToolCall("toolu_01", "get_weather", '{"place":"Köln 😀","days":[1,2.5]}')
SECOND = ToolCall("toolu_02", "get_time", "{}")


def in_order(row: ProtocolRow, parts: Iterable[AnswerPart]) -> list[Any]:
    """Parts as an answer can hold them: neighbouring texts are one; a chat completion has one, behind its thought."""
    given = list(parts)
    if row.shape is CHAT:
        texts = [part for part in given if isinstance(part, str)]
        calls = [part for part in given if isinstance(part, ToolCall)]
        thoughts = [part for part in given if not isinstance(part, str | ToolCall)]
        given = [*thoughts[:1], "".join(texts), *calls] if texts else [*thoughts[:1], *calls]
    told: list[Any] = []
    for part in given:
        if isinstance(part, str) and told and isinstance(told[-1], str):
            told[-1] += part
        else:
            told.append(part)
    return told


def everything(row: ProtocolRow) -> list[Any]:
    return in_order(row, (*row.shape.thoughts, "I look. ", *row.shape.own, "So: ", FIRST, SECOND))


def parsed(parts: Sequence[Part]) -> list[Any]:
    """With arguments as values: how they are written is the model's in a stream, and ours in a whole answer."""
    return [(one.id, one.name, json.loads(one.arguments)) if isinstance(one, ToolCall) else one for one in parts]


@in_each_protocol
@pytest.mark.parametrize("size", [None, 1, 7, 1_000])
def test_the_parts_of_an_answer_keep_their_order(row: ProtocolRow, size: int | None) -> None:
    told, finishes = everything(row), row.shape.endings.finishes
    for end in (row.shape.endings.stop, *(word for word, finish in finishes.items() if finish == "tool_calls")):
        reply = row.reply(row.answer(*told, stream=size is not None, size=size or 7, end=end))
        assert parsed(reply.parts) == parsed(told)
        assert (reply.text, reply.finish_reason) == ("I look. So: ", "tool_calls")
        assert [call.id for call in reply.tool_calls] == ["toolu_01", "toolu_02"]
        assert (reply.refused, reply.truncated, reply.raw, reply.usage) == (False, False, None, row.shape.counts.usage)


@in_each_protocol
@in_each_form
def test_arguments_keep_the_order_of_their_properties(row: ProtocolRow, stream: bool) -> None:
    assert row.reply(row.answer(FIRST, stream=stream)).tool_calls == (FIRST,)


@in_each_protocol
@in_each_form
def test_a_text_alone_has_no_parts(row: ProtocolRow, stream: bool) -> None:
    reply = row.reply(row.answer("A", "B", stream=stream))
    assert (reply.text, reply.parts) == ("AB", ())


@in_each_protocol
@in_each_form
def test_an_answer_of_tool_calls_alone_is_not_empty(row: ProtocolRow, stream: bool) -> None:
    for before in ((), row.shape.thoughts[:1]):
        reply = row.reply(row.answer(*before, FIRST, stream=stream))
        assert (reply.text, reply.finish_reason, reply.tool_calls) == ("", "tool_calls", (FIRST,))


@in_each_protocol
@in_each_form
def test_the_limit_of_tokens_and_a_filter_take_no_tool_call_away(row: ProtocolRow, stream: bool) -> None:
    cut = row.reply(row.answer(FIRST, stream=stream, end=row.shape.endings.length))
    assert (cut.truncated, cut.refused, cut.is_cut_empty, cut.tool_calls) == (True, False, False, (FIRST,))
    filtered = row.reply(row.answer(FIRST, stream=stream, end=row.shape.endings.filtered))
    assert (filtered.finish_reason, filtered.refused, filtered.tool_calls) == ("content_filter", True, (FIRST,))


# Gemini's arguments come in pieces of another kind (test_gemini_calls).
@pytest.mark.parametrize("row", [row for row in WITH_CALLS.values() if row.shape is not GENERATE])
def test_an_answer_that_ended_within_a_tool_call_is_cut_short(row: ProtocolRow) -> None:
    cut = ToolCall("t", "f", '{"place": "K')
    reply = row.reply(row.answer(cut, stream=True, end=row.shape.endings.length))
    assert (reply.truncated, reply.tool_calls) == (True, (cut,))


@in_each_protocol
def test_a_whole_tool_call_cut_at_any_byte_is_never_a_reply(row: ProtocolRow) -> None:
    body = row.answer(*everything(row)).body
    for cut in range(len(body)):
        assert row.fault(Response(200, body[:cut])).kind == "bad_json"


@in_each_protocol
def test_a_streamed_tool_call_cut_at_any_byte_before_the_end_of_its_answer_is_never_a_reply(row: ProtocolRow) -> None:
    told = everything(row)
    events = row.shape.events(told, row.shape.endings.stop, row.shape.counts.given, 9)
    body, ended = b"".join(events), len(b"".join(events[: len(events) - row.shape.events_after_end]))
    ended -= row.shape is GENERATE  # its lines end in CR and LF, of which one is enough
    for cut in range(len(body) + 1):
        response = Response(200, body[:cut], stream=True, is_cut=True)
        if cut < ended:
            assert row.fault(response).kind == "incomplete", cut
        else:
            assert parsed(row.reply(response).parts) == parsed(told), cut


@in_each_protocol
def test_lone_surrogates_are_mended_in_calls_and_thoughts(row: ProtocolRow) -> None:
    thought = row.shape.thoughts[0]
    broken = ToolCall("t", "f\ud800", '{"a":"\\ud83d"}')
    body = row.answer(thought, broken).body.replace(b"I think of A.", b"\\ud83d")
    reply = row.reply(Response(200, body))
    mended, call = reply.parts
    assert reply.raw == body and isinstance(call, ToolCall)
    assert mended == type(thought)(
        thought.protocol, json.loads(json.dumps(thought.value).replace("I think of A.", "\ufffd"))
    )
    assert (call.id, call.name) == ("t", "f\ufffd")
    assert call.arguments.encode() in (b'{"a":"\\ud83d"}', '{"a":"\ufffd"}'.encode())


@in_each_protocol
@pytest.mark.parametrize("depth", [300, 1_000])
def test_arguments_and_thoughts_that_are_nested_too_deeply_cost_no_answer(row: ProtocolRow, depth: int) -> None:
    nested = '{"a":' * depth + "1" + "}" * depth
    for stream in (False, True):
        assert row.reply(row.answer("A", ToolCall("t", "f", nested), stream=stream)).text == "A"
    body = row.answer(row.shape.thoughts[0], "A").body.replace(b'"I think of A."', nested.encode())
    assert row.reply(Response(200, body)).text == "A"


@pytest.mark.parametrize("row", [WITH_CALLS["chat"], WITH_CALLS["responses"]], ids=["chat", "responses"])
def test_ids_that_a_server_leaves_out_are_made_of_the_answers_bytes(row: ProtocolRow) -> None:
    def ids(*parts: AnswerPart) -> list[str]:
        body = row.answer(*parts).body.replace(b'"toolu_01"', b"null")
        return [call.id for call in row.reply(Response(200, body)).tool_calls]

    first, other = ids(FIRST, FIRST), ids("A", FIRST, FIRST)
    assert first == ids(FIRST, FIRST)
    assert len({*first, *other}) == 4


# --- there and back ---


def _text_items(parts: Sequence[Any]) -> list[Any]:
    items = response_shapes.items(parts)
    return [
        {"content": part, "role": "assistant"} if isinstance(part, str) else item
        for part, item in zip(parts, items, strict=True)
    ]


# How a turn with these parts is sent, and where it stands in a request's body.
TURNS: list[tuple[AnswerShape, Callable[[Any], Any], Callable[[Any], Any]]] = [
    (CHAT, lambda parts: [chat_shapes.message_of(parts)], lambda body: body["messages"][1:]),
    (RESPONSES, _text_items, lambda body: body["input"][1:]),
    (MESSAGES, anthropic_shapes.blocks, lambda body: body["messages"][1]["content"]),
    (GENERATE, gemini_shapes.parts_of, lambda body: body["contents"][1]["parts"]),
    (CONVERSE, bedrock_shapes.blocks, lambda body: body["messages"][1]["content"]),
]

_WORD = st.text(max_size=8).filter(str.strip)
_VALUE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
_CALL = st.builds(
    lambda name, given: ToolCall("t", name, orjson.dumps(given).decode()),
    _WORD,
    st.dictionaries(st.text(max_size=4), _VALUE, max_size=3),
)


@in_each_protocol
@settings(max_examples=times(60, 300), deadline=None)
@given(st.data(), st.integers(1, 9))
def test_the_parts_of_an_answer_are_sent_back_unchanged(row: ProtocolRow, data: st.DataObject, size: int) -> None:
    natives = st.sampled_from([*row.shape.thoughts, *row.shape.own])
    drawn = data.draw(st.lists(_WORD | _CALL | natives, min_size=1, max_size=5))
    # No two calls of a conversation have one id.
    numbered = [
        ToolCall(f"t{number}", part.name, part.arguments) if isinstance(part, ToolCall) else part
        for number, part in enumerate(drawn)
    ]
    told = in_order(row, numbered)
    stated, sent = next((stated, sent) for shape, stated, sent in TURNS if shape is row.shape)
    for stream in (False, True):
        reply = row.reply(row.answer(*told, stream=stream, size=size, end=row.shape.endings.length))
        turns = (Message("user", "x"), Message("assistant", reply.parts or reply.text))
        request = row.wire.encode(Call("p/gemini-2.5-flash", turns), Target("http://h", "h", "gemini-2.5-flash", "p"))
        back = sent(orjson.loads(request.body))
        assert back == (told[0] if isinstance(back, str) else orjson.loads(orjson.dumps(stated(told))))
