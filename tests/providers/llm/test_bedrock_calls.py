"""Tool calls, thoughts and Bedrock's own tools in Converse's answers: whole, streamed, cut, odd and at random."""

from __future__ import annotations

from typing import Any

import pytest
from bedrock_shapes import begun, delta, event, grown, whole

from millstream.engine.call import Reply
from millstream.engine.content import Native, ToolCall
from millstream.engine.endpoint import Response
from millstream.providers.llm.bedrock.converse import decode

PLACE: dict[str, Any] = {"place": "Köln 😀", "days": [1, 2.5]}
USED: dict[str, Any] = {"toolUse": {"toolUseId": "tooluse_1", "name": "get_weather", "input": PLACE}}
HIDDEN: dict[str, Any] = {"reasoningContent": {"redactedContent": "c2VjcmV0"}}


def reply_of(body: bytes, *, stream: bool = False) -> Reply:
    result = decode(Response(200, body, stream=stream))
    assert isinstance(result, Reply), result
    return result


def ended(reason: str) -> bytes:
    return event("messageStop", {"stopReason": reason})


def test_streamed_arguments_are_the_models_own_text() -> None:
    pieces = (grown(0, {"toolUse": {"input": one}}) for one in ('{"b" : 1,', ' "a": 2}'))
    body = b"".join([begun(0, {"toolUse": {"toolUseId": "t", "name": "f"}}), *pieces, ended("tool_use")])
    assert reply_of(body, stream=True).parts == (ToolCall("t", "f", '{"b" : 1, "a": 2}'),)


def test_a_cited_text_is_a_text() -> None:
    cited = {"citationsContent": {"content": [{"text": "B"}], "citations": []}}
    assert reply_of(whole({"text": "A"}, cited)).parts == ()


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


@pytest.mark.parametrize("odd", [{"toolUseId": None}, {"name": 7}, {"input": [1]}, {"input": None}, {"type": "new"}])
def test_an_odd_field_of_a_tool_call_costs_no_answer(odd: dict[str, Any]) -> None:
    reply = reply_of(whole({"text": "A"}, {"toolUse": {**USED["toolUse"], **odd}}, stop="tool_use"))
    assert (reply.text, reply.finish_reason) == ("A", "tool_calls")
    if "input" in odd:
        assert reply.tool_calls[0].arguments == "{}"
    elif "type" in odd:
        assert reply.tool_calls[0].native == Native("bedrock", {"type": "new"})
    else:
        assert reply.tool_calls == ()


def test_deltas_of_blocks_that_never_began_are_ignored() -> None:
    odd = grown(5, {"toolUse": {"input": "{"}}) + grown(0, {"new": {"input": "{"}}) + grown(0, {"toolUse": 7})
    body = begun(0, {"toolUse": {"toolUseId": "t", "name": "f"}}) + odd + ended("tool_use")
    assert reply_of(body, stream=True).parts == (ToolCall("t", "f", "{}"),)
