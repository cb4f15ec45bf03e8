"""Tool calls, thoughts and Anthropic's own tools in its answers: whole, streamed, cut, odd and at random."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from anthropic_shapes import (
    READ,
    SAID,
    START,
    STOP,
    STREAM,
    THOUGHT,
    closed,
    delta,
    ended,
    message,
    opened,
    said,
    text,
    whole,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.engine.call import Call, Message, Reply
from millstream.engine.content import Native, Part, ToolCall
from millstream.engine.endpoint import Fault, Response
from millstream.providers.llm.anthropic.messages import decode, encode
from millstream.providers.llm.protocol import Target

ARGUMENTS = '{"place": "Köln 😀", "days": [1, 2.5]}'
USED: dict[str, Any] = {"type": "tool_use", "id": "toolu_01", "name": "get_weather", "input": json.loads(ARGUMENTS)}
SEARCHED: dict[str, Any] = {
    "type": "server_tool_use",
    "id": "srvtoolu_1",
    "name": "web_search",
    "input": {"query": "a"},
}
FOUND: dict[str, Any] = {
    "type": "web_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": [{"type": "web_search_result", "url": "https://one.example/", "title": "One", "encrypted_content": "e"}],
}
HIDDEN: dict[str, Any] = {"type": "redacted_thinking", "data": "EmwKAhgB"}
CALLED = ToolCall("toolu_01", "get_weather", '{"place":"Köln 😀","days":[1,2.5]}')


def reply_of(body: bytes, *, stream: bool = False) -> Reply:
    result = decode(Response(200, body, stream=stream))
    assert isinstance(result, Reply), result
    return result


def json_delta(piece: str, index: int = 0) -> bytes:
    return delta("input_json_delta", index, partial_json=piece)


def streamed(content: list[dict[str, Any]], stop: str = "tool_use", *, size: int = 7) -> bytes:
    """The same blocks in events, what grows in pieces of so many characters."""
    pieces = [START]
    for index, block in enumerate(content):
        kind = block["type"]
        if kind == "text":
            pieces += [opened(index, {**block, "text": ""}), *(text(one, index) for one in cut(block["text"], size))]
        elif kind == "thinking":
            pieces.append(opened(index, {**block, "thinking": "", "signature": ""}))
            pieces += [delta("thinking_delta", index, thinking=one) for one in cut(block["thinking"], size)]
            pieces.append(delta("signature_delta", index, signature=block["signature"]))
        elif "input" in block:
            written = json.dumps(block["input"], ensure_ascii=False)
            pieces += [opened(index, {**block, "input": {}}), json_delta("", index)]
            pieces += [json_delta(one, index) for one in cut(written, size)]
        else:
            pieces.append(opened(index, block))
        pieces.append(closed(index))
    return b"".join([*pieces, ended(stop), STOP])


def cut(given: str, size: int) -> list[str]:
    return [given[at : at + size] for at in range(0, len(given), size)]


def parsed(parts: tuple[Part, ...]) -> list[Any]:
    """With arguments as values: how they are written is the model's in a stream, and ours in a whole answer."""
    return [(one.id, one.name, json.loads(one.arguments)) if isinstance(one, ToolCall) else one for one in parts]


EVERYTHING = [
    THOUGHT,
    HIDDEN,
    said("I look. "),
    SEARCHED,
    FOUND,
    said("So: "),
    USED,
    {**USED, "id": "toolu_02", "input": {}},
]
PARTS = [
    Native("anthropic", THOUGHT),
    Native("anthropic", HIDDEN),
    "I look. ",
    Native("anthropic", SEARCHED),
    Native("anthropic", FOUND),
    "So: ",
    ("toolu_01", "get_weather", USED["input"]),
    ("toolu_02", "get_weather", {}),
]


def test_all_that_was_said_stands_in_its_order() -> None:
    for reply in (
        reply_of(whole(content=EVERYTHING, stop_reason="tool_use")),
        *(reply_of(streamed(EVERYTHING, size=size), stream=True) for size in (1, 7, 1000)),
    ):
        assert (reply.text, reply.finish_reason) == ("I look. So: ", "tool_calls")
        assert parsed(reply.parts) == PARTS
        assert [call.id for call in reply.tool_calls] == ["toolu_01", "toolu_02"]
        assert not reply.refused and not reply.truncated and reply.raw is None


def test_arguments_are_the_models_own_text_in_a_stream_and_keep_their_order_in_a_whole_answer() -> None:
    assert reply_of(whole(content=[USED], stop_reason="tool_use")).parts == (CALLED,)
    body = (
        START + opened(0, {**USED, "input": {}}) + json_delta('{"b" : 1,') + json_delta(' "a": 2}') + ended("tool_use")
    )
    assert reply_of(body, stream=True).tool_calls[0].arguments == '{"b" : 1, "a": 2}'


def test_a_text_alone_has_no_parts() -> None:
    assert reply_of(whole(content=[said("A"), said("B")])).parts == ()
    assert reply_of(START + opened(0, said("")) + text("A") + text("B") + ended(), stream=True).parts == ()
    assert reply_of(b"".join(STREAM), stream=True).parts == (Native("anthropic", THOUGHT), READ)
    assert reply_of(whole(content=[THOUGHT, SAID])).parts == (Native("anthropic", THOUGHT), READ)


@pytest.mark.parametrize("stop", ["tool_use", "end_turn"])
def test_an_answer_of_tool_calls_alone_is_not_empty(stop: str) -> None:
    for reply in (
        reply_of(whole(content=[THOUGHT, USED], stop_reason=stop)),
        reply_of(streamed([THOUGHT, USED], stop), stream=True),
    ):
        assert (reply.text, reply.finish_reason, len(reply.tool_calls)) == ("", "tool_calls", 1)


def test_an_answer_that_ended_within_a_tool_call_is_cut_short() -> None:
    body = START + opened(0, {**USED, "input": {}}) + json_delta('{"place": "K') + ended("max_tokens") + STOP
    reply = reply_of(body, stream=True)
    assert reply.truncated and reply.tool_calls == (ToolCall("toolu_01", "get_weather", '{"place": "K'),)


def test_a_streamed_tool_call_cut_at_any_byte_before_its_stop_reason_is_never_a_reply() -> None:
    body = streamed([THOUGHT, said("So: "), USED])
    told = len(body) - len(STOP) - 1
    for at in range(len(body) + 1):
        result = decode(Response(200, body[:at], stream=True, is_cut=True))
        if at <= told:
            assert isinstance(result, Fault) and (result.kind, result.action) == ("incomplete", "retry"), at
        else:
            assert isinstance(result, Reply) and parsed(result.parts)[-1] == PARTS[6], at


def test_a_whole_tool_call_cut_at_any_byte_is_never_a_reply() -> None:
    body = whole(content=[USED], stop_reason="tool_use")
    for at in range(len(body)):
        result = decode(Response(200, body[:at]))
        assert isinstance(result, Fault) and result.kind == "bad_json"


def test_what_is_said_beside_a_tool_call_goes_back_with_it() -> None:
    by_code = {"type": "code_execution_20260521", "tool_id": "srvtoolu_1"}
    for more, native in (
        ({"caller": {"type": "direct"}}, None),
        ({"caller": None, "toolset_name": None}, None),
        ({"caller": by_code}, Native("anthropic", {"caller": by_code})),
        ({"toolset_name": "browser"}, Native("anthropic", {"toolset_name": "browser"})),
    ):
        for reply in (
            reply_of(whole(content=[{**USED, **more}], stop_reason="tool_use")),
            reply_of(streamed([{**USED, **more}]), stream=True),
        ):
            assert reply.tool_calls[0].native == native


@pytest.mark.parametrize(
    "odd", [{"id": None}, {"name": 7}, {"id": 1}, {"input": [1]}, {"input": None}, {"input": "x"}, {"type": "new"}]
)
def test_what_is_odd_in_a_tool_call_costs_no_answer(odd: dict[str, Any]) -> None:
    reply = reply_of(whole(content=[said("A"), {**USED, **odd}], stop_reason="tool_use"))
    assert (reply.text, reply.finish_reason) == ("A", "tool_calls")
    if "input" in odd:
        assert reply.tool_calls[0].arguments == "{}"
    else:
        assert reply.tool_calls == ()


def test_deltas_of_blocks_that_never_began_say_nothing() -> None:
    odd = (json_delta("{", 5), delta("thinking_delta", 5, thinking="x"), delta("something_new", 0, text="x"))
    body = START + opened(0, {**USED, "input": {}}) + b"".join(odd) + json_delta("{}") + ended("tool_use") + STOP
    assert reply_of(body, stream=True).parts == (ToolCall("toolu_01", "get_weather", "{}"),)


def test_signs_that_no_text_can_hold_are_mended_everywhere() -> None:
    broken = {**USED, "name": "f\ud800", "input": {"a": "\ud83d"}}
    body = json.dumps(message(content=[{**THOUGHT, "thinking": "\ud83d"}, broken], stop_reason="tool_use")).encode()
    reply = reply_of(body)
    assert reply.raw == body
    assert reply.parts == (
        Native("anthropic", {**THOUGHT, "thinking": "\ufffd"}),
        ToolCall("toolu_01", "f\ufffd", '{"a":"\ufffd"}'),
    )


def test_arguments_that_are_nested_too_deeply_cost_no_answer() -> None:
    for depth in (300, 1_000):
        nested = b'{"a":' * depth + b"1" + b"}" * depth
        body = whole(content=[said("A"), {**USED, "input": "#"}, {**SEARCHED, "input": "#"}], stop_reason="tool_use")
        assert reply_of(body.replace(b'"#"', nested)).text == "A"


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
    _WORD.map(said)
    | st.builds(lambda thought: {**THOUGHT, "thinking": thought}, _WORD)
    | st.builds(
        lambda name, given: {**USED, "name": name, "input": given},
        _WORD,
        st.dictionaries(st.text(max_size=4), _VALUE, max_size=3),
    )
    | st.sampled_from([HIDDEN, SEARCHED, FOUND])
)


@settings(max_examples=300, deadline=None)
@given(st.lists(_BLOCK, min_size=1, max_size=5), st.integers(1, 9))
def test_what_was_said_goes_back_as_it_came_whole_or_streamed(content: list[dict[str, Any]], size: int) -> None:
    numbered = [{**block, "id": f"t{place}"} if "input" in block else block for place, block in enumerate(content)]
    expected: list[dict[str, Any]] = []
    for block in numbered:
        if block["type"] == "text" and expected and expected[-1]["type"] == "text":
            expected[-1] = said(expected[-1]["text"] + block["text"])
        else:
            expected.append(block)
    for reply in (
        reply_of(whole(content=numbered, stop_reason="tool_use")),
        reply_of(streamed(numbered, size=size), stream=True),
    ):
        back = Message("assistant", reply.parts or reply.text)
        request = encode(Call("anthropic/m", (Message("user", "x"), back)), Target("http://h", "h", "m"))
        sent = orjson.loads(request.body)["messages"][1]["content"]
        assert (sent if isinstance(sent, list) else [said(sent)]) == expected
