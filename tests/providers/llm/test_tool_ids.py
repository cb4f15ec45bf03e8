"""Ids of tool calls that a provider does not take, in what it is sent."""

from __future__ import annotations

import re
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.engine.call import Call, Message
from millstream.engine.content import Native, ToolCall, ToolResult
from millstream.providers.llm.anthropic import messages as anthropic
from millstream.providers.llm.bedrock import converse as bedrock
from millstream.providers.llm.protocol import Target
from millstream.providers.llm.tool_ids import sound, with_sound_ids

TAKEN = re.compile(r"[a-zA-Z0-9_-]{1,64}")
TARGET = Target("http://h", "h", "m")
ODD = "functions.look:0"


def ids_of(*messages: Message) -> list[str]:
    """Those of calls and of results, in their order."""
    told = with_sound_ids(Call("a/b", messages))
    return [
        part.id for message in told.messages() for part in message.content if isinstance(part, ToolCall | ToolResult)
    ]


def asked(*ids: str) -> Message:
    return Message("assistant", tuple(ToolCall(one, "look") for one in ids))


def answered(*ids: str) -> Message:
    return Message("tool", tuple(ToolResult(one, "x") for one in ids))


@given(st.text(max_size=90), st.text(max_size=90))
def test_every_id_becomes_one_that_is_taken_and_no_two_the_same(one: str, other: str) -> None:
    assert TAKEN.fullmatch(sound(one)) and sound(sound(one)) == sound(one)
    assert (sound(one) == sound(other)) == (one == other) or sound(one) == other or sound(other) == one


@pytest.mark.parametrize("call_id", ["toolu_01Aa-_", "a" * 64])
def test_an_id_that_is_taken_is_left_as_it_is(call_id: str) -> None:
    call = Call("a/b", (asked(call_id), answered(call_id)))
    assert with_sound_ids(call) is call


@pytest.mark.parametrize("call_id", [ODD, "", "a" * 65, "ä", "a b", "a\n"])
def test_a_call_and_its_result_have_the_same_id_in_this_request_and_the_next(call_id: str) -> None:
    first, second = ids_of(asked(call_id), answered(call_id))
    assert first == second == sound(call_id) != call_id
    assert ids_of(asked(call_id), answered(call_id), Message("user", "and?"), asked("b"))[:2] == [first, second]


def test_an_id_that_comes_again_is_another_calls_with_its_own_result() -> None:
    told = ids_of(asked("call_0", "call_1"), answered("call_1", "call_0"), asked("call_0"), answered("call_0"))
    assert told == ["call_0", "call_1", "call_1", "call_0", "call_0_2", "call_0_2"]
    assert ids_of(asked("t", "t"), answered("t", "t", "t")) == ["t", "t_2", "t", "t_2", "t_2"]
    long = "a" * 64
    assert ids_of(asked(long, long, "t_2", "t", "t"))[1:] == ["a" * 62 + "_2", "t_2", "t", "t_3"]


def test_parts_of_anthropics_own_and_marked_ones_keep_to_it() -> None:
    mark = Native("anthropic", {"cache_control": {"type": "ephemeral"}}, ToolResult(ODD, "x"))
    own = Native("anthropic", {"type": "tool_result", "tool_use_id": "a.b", "content": []})
    messages = (asked(ODD, "a.b"), Message("user", (mark, own)))
    sent: Any = orjson.loads(anthropic.encode(Call("anthropic/m", messages), TARGET).wire)["messages"]
    uses, results = (list(turn["content"]) for turn in sent)
    assert [use["id"] for use in uses] == [result["tool_use_id"] for result in results] == [sound(ODD), sound("a.b")]
    assert results[0]["cache_control"] == {"type": "ephemeral"}


def test_bedrock_is_told_the_same_ids() -> None:
    body: Any = orjson.loads(bedrock.encode(Call("bedrock/m", (asked(ODD), answered(ODD))), TARGET).body)
    use, result = (turn["content"][0] for turn in body["messages"])
    assert use["toolUse"]["toolUseId"] == result["toolResult"]["toolUseId"] == sound(ODD)
