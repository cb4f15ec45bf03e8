"""Tool calls, thoughts and Bedrock's own tools in Converse's answers: whole, streamed, cut, odd and at random."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from bedrock_shapes import METADATA, START, THOUGHT, answer, delta, event, whole
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.engine.call import Call, Message, Reply
from millstream.engine.content import Native, Part, ToolCall
from millstream.engine.endpoint import Fault, Response
from millstream.providers.llm.bedrock.converse import decode, encode
from millstream.providers.llm.protocol import Target

PLACE: dict[str, Any] = {"place": "Köln 😀", "days": [1, 2.5]}
USED: dict[str, Any] = {"toolUse": {"toolUseId": "tooluse_1", "name": "get_weather", "input": PLACE}}
AGAIN: dict[str, Any] = {"toolUse": {"toolUseId": "tooluse_2", "name": "get_time", "input": {}}}
HIDDEN: dict[str, Any] = {"reasoningContent": {"redactedContent": "c2VjcmV0"}}
OWN: dict[str, Any] = {
    "toolUse": {"toolUseId": "s1", "name": "nova_grounding", "input": {"q": "a"}, "type": "server_tool_use"}
}
FOUND: dict[str, Any] = {"toolResult": {"toolUseId": "s1", "type": "x", "content": [{"text": "a"}, {"json": {"b": 1}}]}}
CALLED = ToolCall("tooluse_1", "get_weather", '{"place":"Köln 😀","days":[1,2.5]}')
EVERYTHING = [THOUGHT, HIDDEN, {"text": "I look. "}, OWN, FOUND, {"text": "So: "}, USED, AGAIN]
PARTS = [
    Native("bedrock", THOUGHT),
    Native("bedrock", HIDDEN),
    "I look. ",
    Native("bedrock", OWN),
    Native("bedrock", FOUND),
    "So: ",
    ("tooluse_1", "get_weather", PLACE),
    ("tooluse_2", "get_time", {}),
]


def reply_of(body: bytes, *, stream: bool = False) -> Reply:
    result = decode(Response(200, body, stream=stream))
    assert isinstance(result, Reply), result
    return result


def begun(index: int, start: dict[str, Any]) -> bytes:
    return event("contentBlockStart", {"contentBlockIndex": index, "start": start})


def grown(index: int, given: dict[str, Any]) -> bytes:
    return event("contentBlockDelta", {"contentBlockIndex": index, "delta": given})


def ended(reason: str) -> bytes:
    return event("messageStop", {"stopReason": reason})


def cut(given: str, size: int) -> list[str]:
    return [given[at : at + size] for at in range(0, len(given), size)]


def events_of(index: int, block: dict[str, Any], size: int) -> list[bytes]:
    kind, value = next(iter(block.items()))
    if kind == "text":
        return [delta(one, index) for one in cut(value, size)]
    if kind == "toolUse":
        told = {name: one for name, one in value.items() if name != "input"}
        written = json.dumps(value["input"], ensure_ascii=False)
        return [begun(index, {kind: told}), *(grown(index, {kind: {"input": one}}) for one in cut(written, size))]
    if kind == "toolResult":
        told = {name: one for name, one in value.items() if name != "content"}
        return [begun(index, {kind: told}), *(grown(index, {kind: [one]}) for one in value["content"])]
    thought = value.get("reasoningText")
    if thought is None:
        return [grown(index, {kind: value})]
    pieces = [grown(index, {kind: {"text": one}}) for one in cut(thought["text"], size)]
    return [*pieces, grown(index, {kind: {"signature": thought["signature"]}})]


def streamed(blocks: list[dict[str, Any]], reason: str = "tool_use", *, size: int = 7) -> bytes:
    """The same blocks in events, what grows in pieces of so many characters."""
    pieces = [START]
    for index, block in enumerate(blocks):
        pieces += [*events_of(index, block, size), event("contentBlockStop", {"contentBlockIndex": index})]
    return b"".join([*pieces, ended(reason), METADATA])


def parsed(parts: tuple[Part, ...]) -> list[Any]:
    """With arguments as values: how they are written is the model's in a stream, and ours in a whole answer."""
    return [(one.id, one.name, json.loads(one.arguments)) if isinstance(one, ToolCall) else one for one in parts]


def test_all_that_was_said_stands_in_its_order() -> None:
    for reply in (
        reply_of(whole(*EVERYTHING, stop="tool_use")),
        *(reply_of(streamed(EVERYTHING, size=size), stream=True) for size in (1, 7, 1000)),
    ):
        assert (reply.text, reply.finish_reason) == ("I look. So: ", "tool_calls")
        assert parsed(reply.parts) == PARTS
        assert [call.id for call in reply.tool_calls] == ["tooluse_1", "tooluse_2"]
        assert not reply.refused and not reply.truncated and reply.raw is None


def test_arguments_are_the_models_own_text_in_a_stream_and_keep_their_order_in_a_whole_answer() -> None:
    assert reply_of(whole(USED, stop="tool_use")).parts == (CALLED,)
    pieces = (grown(0, {"toolUse": {"input": one}}) for one in ('{"b" : 1,', ' "a": 2}'))
    body = b"".join([begun(0, {"toolUse": {"toolUseId": "t", "name": "f"}}), *pieces, ended("tool_use")])
    assert reply_of(body, stream=True).parts == (ToolCall("t", "f", '{"b" : 1, "a": 2}'),)


def test_a_text_alone_has_no_parts() -> None:
    cited = {"citationsContent": {"content": [{"text": "B"}], "citations": []}}
    assert reply_of(whole({"text": "A"}, cited)).parts == ()
    assert reply_of(b"".join([delta("A"), delta("B", 1), ended("end_turn")]), stream=True).parts == ()


def test_pieces_of_a_hidden_thought_are_one() -> None:
    pieces = [grown(0, {"reasoningContent": {"redactedContent": one}}) for one in ("c2Vj", "cmU=", "dA==")]
    reply = reply_of(b"".join([*pieces, delta("A", 1), ended("end_turn")]), stream=True)
    assert reply.parts == (Native("bedrock", HIDDEN), "A")


def test_an_image_is_one_of_its_own() -> None:
    source = {"source": {"bytes": "QQ=="}}
    body = [begun(0, {"image": {"format": "png"}}), grown(0, {"image": source}), delta("A", 1), ended("end_turn")]
    expected = (Native("bedrock", {"image": {"format": "png", **source}}), "A")
    assert reply_of(b"".join(body), stream=True).parts == expected
    assert reply_of(whole({"image": {"format": "png", **source}}, {"text": "A"})).parts == expected


@pytest.mark.parametrize("reason", ["tool_use", "end_turn"])
def test_an_answer_of_tool_calls_alone_is_not_empty(reason: str) -> None:
    for reply in (
        reply_of(whole(THOUGHT, USED, stop=reason)),
        reply_of(streamed([THOUGHT, USED], reason), stream=True),
    ):
        assert (reply.text, reply.finish_reason, len(reply.tool_calls)) == ("", "tool_calls", 1)


def test_an_answer_that_ended_within_a_tool_call_is_cut_short() -> None:
    start, piece = begun(0, {"toolUse": {"toolUseId": "t", "name": "f"}}), grown(0, {"toolUse": {"input": '{"a'}})
    reply = reply_of(start + piece + ended("max_tokens"), stream=True)
    assert reply.truncated and reply.tool_calls == (ToolCall("t", "f", '{"a'),)
    malformed = decode(Response(200, start + piece + ended("malformed_tool_use"), stream=True))
    assert isinstance(malformed, Fault) and malformed.kind == "server_error"


def test_a_streamed_tool_call_cut_at_any_byte_before_its_stop_reason_is_never_a_reply() -> None:
    body = streamed([THOUGHT, {"text": "So: "}, USED])
    told = len(body) - len(METADATA)
    for at in range(len(body) + 1):
        result = decode(Response(200, body[:at], stream=True, is_cut=True))
        if at < told:
            assert isinstance(result, Fault) and (result.kind, result.action) == ("incomplete", "retry"), at
        else:
            assert isinstance(result, Reply) and parsed(result.parts)[-1] == PARTS[6], at


def test_a_whole_tool_call_cut_at_any_byte_is_never_a_reply() -> None:
    body = whole(USED, stop="tool_use")
    for at in range(len(body)):
        result = decode(Response(200, body[:at]))
        assert isinstance(result, Fault) and result.kind == "bad_json"


@pytest.mark.parametrize("odd", [{"toolUseId": None}, {"name": 7}, {"input": [1]}, {"input": None}, {"type": "new"}])
def test_what_is_odd_in_a_tool_call_costs_no_answer(odd: dict[str, Any]) -> None:
    reply = reply_of(whole({"text": "A"}, {"toolUse": {**USED["toolUse"], **odd}}, stop="tool_use"))
    assert (reply.text, reply.finish_reason) == ("A", "tool_calls")
    if "input" in odd:
        assert reply.tool_calls[0].arguments == "{}"
    elif "type" in odd:
        assert reply.tool_calls[0].native == Native("bedrock", {"type": "new"})
    else:
        assert reply.tool_calls == ()


def test_deltas_of_blocks_that_never_began_say_nothing() -> None:
    odd = grown(5, {"toolUse": {"input": "{"}}) + grown(0, {"new": {"input": "{"}}) + grown(0, {"toolUse": 7})
    body = begun(0, {"toolUse": {"toolUseId": "t", "name": "f"}}) + odd + ended("tool_use")
    assert reply_of(body, stream=True).parts == (ToolCall("t", "f", "{}"),)


def test_signs_that_no_text_can_hold_are_mended_everywhere() -> None:
    broken = {"toolUse": {"toolUseId": "t", "name": "f\ud800", "input": {"a": "\ud83d"}}}
    thought = {"reasoningContent": {"reasoningText": {"text": "\ud83d"}}}
    body = json.dumps(answer(thought, broken, stop="tool_use")).encode()
    reply = reply_of(body)
    assert reply.raw == body
    assert reply.parts == (
        Native("bedrock", {"reasoningContent": {"reasoningText": {"text": "\ufffd"}}}),
        ToolCall("t", "f\ufffd", '{"a":"\ufffd"}'),
    )


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
_BLOCK = (
    _WORD.map(lambda text: {"text": text})
    | st.builds(
        lambda name, given: {"toolUse": {"toolUseId": "t", "name": name, "input": given}},
        _WORD,
        st.dictionaries(st.text(max_size=4), _VALUE, max_size=3),
    )
    | st.sampled_from([THOUGHT, HIDDEN, OWN, FOUND])
)


@settings(max_examples=300, deadline=None)
@given(st.lists(_BLOCK, min_size=1, max_size=5), st.integers(1, 9))
def test_what_was_said_goes_back_as_it_came_whole_or_streamed(blocks: list[dict[str, Any]], size: int) -> None:
    expected: list[dict[str, Any]] = []
    for place, block in enumerate(blocks):
        if "toolUse" in block:
            # No two calls have one id: Bedrock refuses them.
            blocks[place] = block = {"toolUse": {**block["toolUse"], "toolUseId": f"t{place}"}}
        if "text" in block and expected and "text" in expected[-1]:
            expected[-1] = {"text": expected[-1]["text"] + block["text"]}
        else:
            expected.append(block)
    for reply in (reply_of(whole(*blocks, stop="tool_use")), reply_of(streamed(blocks, size=size), stream=True)):
        turns = (Message("user", "x"), Message("assistant", reply.parts or reply.text))
        sent = orjson.loads(encode(Call("bedrock/m", turns), Target("http://h", "h", "m")).body)
        assert sent["messages"][1]["content"] == expected


_ANY = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["{}", "x", "server_tool_use"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["toolUse", "reasoningContent", "toolResult", "image", "toolUseId", "name", "input", "type"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)
_EVENT = st.builds(lambda start, index, given: (start, index, given), st.booleans(), st.integers(0, 1), _ANY)


@settings(max_examples=500, deadline=None)
@given(st.lists(_EVENT, max_size=5))
def test_any_blocks_are_a_reply_or_a_fault_that_can_be_written(events: list[tuple[bool, int, Any]]) -> None:
    stream = [begun(index, one) if start else grown(index, one) for start, index, one in events]
    blocks = [one for _, _, one in events if isinstance(one, dict)]
    for body, is_stream in (
        (b"".join([*stream, ended("tool_use")]), True),
        (orjson.dumps(answer(*blocks, stop="tool_use")), False),
    ):
        for part in reply_of(body, stream=is_stream).parts:
            if isinstance(part, ToolCall):
                assert orjson.dumps([part.id, part.name, part.arguments, part.native and part.native.value])
            elif isinstance(part, Native):
                assert orjson.dumps(part.value)
