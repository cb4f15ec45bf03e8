"""Tool calls, thoughts and Anthropic's own tools in its answers: whole, streamed, cut, odd and at random."""

from __future__ import annotations

import json
from typing import Any

import pytest
from anthropic_shapes import (
    START,
    STOP,
    answered_in_events,
    delta,
    ended,
    opened,
    said,
    whole,
)

from millstream.engine.call import Reply
from millstream.engine.content import Native, ToolCall
from millstream.engine.endpoint import Response
from millstream.providers.llm.anthropic.messages import decode

ARGUMENTS = '{"place": "Köln 😀", "days": [1, 2.5]}'
USED: dict[str, Any] = {"type": "tool_use", "id": "toolu_01", "name": "get_weather", "input": json.loads(ARGUMENTS)}


def reply_of(body: bytes, *, stream: bool = False) -> Reply:
    result = decode(Response(200, body, stream=stream))
    assert isinstance(result, Reply), result
    return result


def json_delta(piece: str, index: int = 0) -> bytes:
    return delta("input_json_delta", index, partial_json=piece)


def test_streamed_arguments_are_the_models_own_text() -> None:
    body = (
        START + opened(0, {**USED, "input": {}}) + json_delta('{"b" : 1,') + json_delta(' "a": 2}') + ended("tool_use")
    )
    assert reply_of(body, stream=True).tool_calls[0].arguments == '{"b" : 1, "a": 2}'


def test_the_fields_beside_a_tool_call_are_kept_with_it() -> None:
    by_code = {"type": "code_execution_20260521", "tool_id": "srvtoolu_1"}
    for more, native in (
        ({"caller": {"type": "direct"}}, None),
        ({"caller": None, "toolset_name": None}, None),
        ({"caller": by_code}, Native("anthropic", {"caller": by_code})),
        ({"toolset_name": "browser"}, Native("anthropic", {"toolset_name": "browser"})),
    ):
        for reply in (
            reply_of(whole(content=[{**USED, **more}], stop_reason="tool_use")),
            reply_of(b"".join(answered_in_events([Native("anthropic", {**USED, **more})])), stream=True),
        ):
            assert reply.tool_calls[0].native == native


@pytest.mark.parametrize(
    "odd", [{"id": None}, {"name": 7}, {"id": 1}, {"input": [1]}, {"input": None}, {"input": "x"}, {"type": "new"}]
)
def test_an_odd_field_of_a_tool_call_costs_no_answer(odd: dict[str, Any]) -> None:
    reply = reply_of(whole(content=[said("A"), {**USED, **odd}], stop_reason="tool_use"))
    assert (reply.text, reply.finish_reason) == ("A", "tool_calls")
    if "input" in odd:
        assert reply.tool_calls[0].arguments == "{}"
    else:
        assert reply.tool_calls == ()


def test_deltas_of_blocks_that_never_began_are_ignored() -> None:
    odd = (json_delta("{", 5), delta("thinking_delta", 5, thinking="x"), delta("something_new", 0, text="x"))
    body = START + opened(0, {**USED, "input": {}}) + b"".join(odd) + json_delta("{}") + ended("tool_use") + STOP
    assert reply_of(body, stream=True).parts == (ToolCall("toolu_01", "get_weather", "{}"),)
