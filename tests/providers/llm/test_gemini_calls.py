"""Tool calls, thoughts and Google's own tools in Gemini's answers: whole, in pieces, cut, odd and at random."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from gemini_shapes import STREAM, TEXT, USAGE, event, said, whole
from hypothesis import given, settings
from hypothesis import strategies as st
from torture import times

from millstream.engine.call import Reply
from millstream.engine.content import Native, Part, ToolCall
from millstream.engine.endpoint import Fault, Response
from millstream.providers.llm.google.generate import decode

PLACE: dict[str, Any] = {"place": "Köln 😀", "days": [1, 2.5]}
CALLED: dict[str, Any] = {"functionCall": {"name": "get_weather", "args": PLACE}, "thoughtSignature": "Eu4B"}
AGAIN: dict[str, Any] = {"functionCall": {"name": "get_time"}}
NAMED: dict[str, Any] = {"functionCall": {"name": "get_time", "id": "own-1", "args": {}}}
THOUGHT: dict[str, Any] = {"text": "I think of A.", "thought": True}
CODE: dict[str, Any] = {"executableCode": {"language": "PYTHON", "code": "print(1)"}}
RESULT: dict[str, Any] = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1\n"}}
SIGNED = Native("gemini", {"thoughtSignature": "Eu4B"})
FIRST = ToolCall("call_0", "get_weather", '{"place":"Köln 😀","days":[1,2.5]}', SIGNED)
PARTS = (
    Native("gemini", THOUGHT),
    "So: ",
    Native("gemini", CODE),
    Native("gemini", RESULT),
    FIRST,
    ToolCall("call_1", "get_time", "{}"),
    ToolCall("own-1", "get_time", "{}"),
)


def reply_of(body: bytes, *, stream: bool = False) -> Reply:
    result = decode(Response(200, body, stream=stream))
    assert isinstance(result, Reply), result
    return result


def answered(*parts: Any, finish: str | None = "STOP") -> bytes:
    return whole({"content": {"parts": list(parts), "role": "model"}, "finishReason": finish, "index": 0})


def streamed(*chunks: list[Any], finish: str = "STOP") -> bytes:
    return b"".join([*(event(said(*parts)) for parts in chunks), event(said(finish=finish, usageMetadata=USAGE))])


EVERYTHING = [THOUGHT, {"text": "So: "}, CODE, RESULT, CALLED, AGAIN, NAMED]


def test_calls_without_an_id_of_googles_are_numbered() -> None:
    for reply in (
        reply_of(answered(*EVERYTHING)),
        reply_of(streamed(*([part] for part in EVERYTHING)), stream=True),
        reply_of(streamed(EVERYTHING[:5], EVERYTHING[5:]), stream=True),
    ):
        assert (reply.text, reply.finish_reason, reply.parts) == ("So: ", "tool_calls", PARTS)
        assert not reply.refused and not reply.truncated and reply.raw is None


def test_a_text_that_says_that_it_is_no_thought_is_a_text() -> None:
    assert reply_of(answered({"text": "A"}, {"text": "B", "thought": False})).parts == ()


def test_pieces_of_a_thought_are_one_until_it_is_signed() -> None:
    told = streamed(
        [{"text": "I think", "thought": True}],
        [{"text": " of A.", "thought": True, "thoughtSignature": "c2ln"}],
        [{"text": "And B.", "thought": True}, {"text": "A"}, {"text": "!"}],
        [{"text": "Done.", "thought": True}],
    )
    assert reply_of(told, stream=True).parts == (
        Native("gemini", {**THOUGHT, "thoughtSignature": "c2ln"}),
        Native("gemini", {"text": "And B.", "thought": True}),
        "A!",
        Native("gemini", {"text": "Done.", "thought": True}),
    )


def test_the_signature_of_a_text_stands_behind_it_as_in_a_stream() -> None:
    behind = Native("gemini", {"text": "", "thoughtSignature": "Eu4B"})
    assert reply_of(answered({"text": TEXT, "thoughtSignature": "Eu4B"})).parts == (TEXT, behind)
    assert reply_of(b"".join(STREAM), stream=True).parts == (Native("gemini", THOUGHT), TEXT, behind)


def test_each_of_several_calls_has_an_id_of_its_own() -> None:
    reply = reply_of(answered(AGAIN, AGAIN, {"functionCall": {"name": "f", "id": "call_3"}}, AGAIN))
    assert (reply.text, reply.finish_reason) == ("", "tool_calls")
    assert [call.id for call in reply.tool_calls] == ["call_0", "call_1", "call_3", "call_4"]


@pytest.mark.parametrize(
    "piece",
    [
        {"name": "f", "willContinue": True},
        {"name": "f", "partialArgs": [{"jsonPath": "$.a", "stringValue": "x"}]},
        {"name": "f", "args": {"a": 1}, "willContinue": True},
    ],
)
def test_a_call_whose_arguments_come_in_pieces_is_no_answer(piece: dict[str, Any]) -> None:
    odd = [{"functionCall": piece}, {"functionCall": {"partialArgs": [7]}}, {"functionCall": {}}]
    result = decode(Response(200, streamed(odd), stream=True))
    assert isinstance(result, Fault)
    assert (result.kind, result.action, result.is_billed_maybe) == ("rejected", "never", True)
    assert "ask without streamFunctionCallArguments" in result.detail
    # Out of tokens, it is known not to be whole.
    assert reply_of(streamed(odd, finish="MAX_TOKENS"), stream=True).truncated


def test_a_tool_call_in_a_stream_cut_at_any_byte_before_its_finish_reason_is_never_a_reply() -> None:
    body = streamed([{"functionCall": {"name": "f", "args": {"a": "x"}}}])
    for at in range(len(body) - 1):
        result = decode(Response(200, body[:at], stream=True, is_cut=True))
        assert isinstance(result, Fault) and (result.kind, result.action) == ("incomplete", "retry"), at
    # One character of the last line's end stands for both.
    assert reply_of(body[:-1], stream=True).tool_calls == (ToolCall("call_0", "f", '{"a":"x"}'),)


@pytest.mark.parametrize(
    "odd", [{"functionCall": {}}, {"functionCall": {"name": 7}}, {"functionCall": 7}, {"text": None}, {"text": 7}]
)
def test_an_odd_part_costs_no_answer(odd: dict[str, Any]) -> None:
    reply = reply_of(answered({"text": "A"}, odd))
    assert (reply.text, reply.tool_calls, reply.finish_reason) == ("A", (), "stop")


def test_arguments_that_are_none_are_an_empty_object() -> None:
    for arguments in (None, [1], "x"):
        assert reply_of(answered({"functionCall": {"name": "f", "args": arguments}})).tool_calls[0].arguments == "{}"


_ANY = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["$.a", "$.a[0]", "x", "\ud800"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "args", "id", "partialArgs", "jsonPath", "stringValue", "willContinue", "a"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)
_ODD = st.dictionaries(st.sampled_from(["functionCall", "text", "thought", "thoughtSignature", "x"]), _ANY, max_size=3)


@settings(max_examples=times(100, 500), deadline=None)
@given(st.lists(_ODD, max_size=4), st.booleans())
def test_any_parts_are_a_reply_or_a_fault_that_can_be_written(parts: list[Any], stream: bool) -> None:
    given = {"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]}
    body = json.dumps(given).encode()
    result = decode(Response(200, b"data: " + body + b"\n\n" if stream else body, stream=stream))
    if isinstance(result, Reply):
        assert_written(result.parts)


def assert_written(parts: tuple[Part, ...]) -> None:
    for part in parts:
        if isinstance(part, ToolCall):
            orjson.dumps([part.id, part.name, orjson.loads(part.arguments), part.native and part.native.value])
        else:
            assert isinstance(part, str | Native)
            orjson.dumps(part.value if isinstance(part, Native) else part)
