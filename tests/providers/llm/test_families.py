"""What one family's own parts are to every other: left out, plain text, or refused; and marks, seen by none of them."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from tool_talk import CLOCK, SHOWN

from millstream.engine.call import Call, Message
from millstream.engine.content import Native, Part, ToolResult
from millstream.engine.endpoint import EncodeError
from millstream.engine.estimate import chars_of
from millstream.providers.llm.anthropic import messages as anthropic
from millstream.providers.llm.bedrock import converse as bedrock
from millstream.providers.llm.families import written_for
from millstream.providers.llm.google import generate as gemini
from millstream.providers.llm.openai import chat as openai_chat
from millstream.providers.llm.openai import responses as openai_responses
from millstream.providers.llm.protocol import Target, WireProtocol

FAMILIES: dict[str, WireProtocol] = {
    "openai": openai_chat.PROTOCOL,
    "openai-responses": openai_responses.PROTOCOL,
    "anthropic": anthropic.PROTOCOL,
    "gemini": gemini.PROTOCOL,
    "bedrock": bedrock.PROTOCOL,
}
THOUGHTS: dict[str, list[dict[str, Any]]] = {
    "openai": [
        {"reasoning_content": "Hm."},
        {"reasoning_details": [{"a": 1}], "reasoning": "Hm."},
        {"type": "thinking"},
    ],
    "openai-responses": [{"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "x"}],
    "anthropic": [
        {"type": "thinking", "thinking": "Hm.", "signature": "x"},
        {"type": "redacted_thinking", "data": "x"},
    ],
    "gemini": [{"text": "Hm.", "thought": True}, {"text": "Hm.", "thought": True, "thoughtSignature": "x"}],
    "bedrock": [{"reasoningContent": {"reasoningText": {"text": "Hm."}}}],
}
TEXTS: dict[str, list[dict[str, Any]]] = {
    "openai": [{"type": "refusal", "refusal": "Told."}, {"refusal": "Told."}],
    "openai-responses": [{"type": "output_text", "text": "Told.", "x": 1}, {"type": "refusal", "refusal": "Told."}],
    "anthropic": [{"type": "text", "text": "Told.", "citations": [{"type": "x"}]}],
    "gemini": [{"text": "Told.", "thoughtSignature": "x"}, {"text": "Told.", "thought_signature": "x"}],
    "bedrock": [{"citationsContent": {"content": [{"text": "To"}, {"text": "ld."}], "citations": []}}],
}
OTHERS: dict[str, list[dict[str, Any]]] = {
    "openai": [{"type": "input_audio", "input_audio": {}}, {"name": "Ann"}, {"reasoning": "Hm.", "audio": {"id": "x"}}],
    "openai-responses": [{"type": "computer_call"}],
    "anthropic": [{"type": "document", "source": {}}, {"type": "text"}],
    "gemini": [{"executableCode": {}}, {"inlineData": {}, "thoughtSignature": "x"}],
    "bedrock": [{"document": {}}, {"citationsContent": {"content": [{"x": 1}]}}],
}
PAIRS = [(family, other) for family in FAMILIES for other in FAMILIES if family != other]


def sent(family: str, *messages: Message, **parameters: Any) -> Any:
    call = Call("a/m", (Message("user", "x"), *messages, Message("user", "y")), **parameters)
    return orjson.loads(FAMILIES[family].encode(call, Target("http://h", "h", "m", "p")).wire)


def turn(*parts: Part) -> Message:
    return Message("assistant", parts)


@pytest.mark.parametrize(("family", "other"), PAIRS)
def test_thoughts_of_another_family_are_left_out(family: str, other: str) -> None:
    thoughts = [Native(family, value) for value in THOUGHTS[family]]
    assert sent(other, turn(*thoughts, "Told.")) == sent(other, Message("assistant", "Told."))
    assert sent(other, turn(*thoughts)) == sent(other)


@pytest.mark.parametrize(("family", "other"), PAIRS)
def test_texts_of_another_family_are_plain_texts(family: str, other: str) -> None:
    for value in TEXTS[family]:
        assert sent(other, turn(Native(family, value))) == sent(other, Message("assistant", "Told."))


@pytest.mark.parametrize(("family", "other"), PAIRS)
def test_what_else_is_another_familys_own_is_refused(family: str, other: str) -> None:
    for value in OTHERS[family]:
        with pytest.raises(EncodeError, match=f"a part of {family}'s own can't be said in"):
            sent(other, turn(Native(family, value)))
        with pytest.raises(EncodeError, match=f"a part of {family}'s own can't be said in"):
            sent(other, tools=(Native(family, value),))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("marks", [("anthropic",), ("gemini", "openai")])
def test_nobody_but_anthropic_sees_a_mark_and_no_key_does(family: str, marks: tuple[str, ...]) -> None:
    def marked(part: Any) -> Any:
        for mark in marks:
            part = Native(mark, {"cache_control": {"type": "ephemeral"}}, part)
        return part

    parts = ToolResult("t", "r", "f"), SHOWN, "z"
    plain = Call("a/m", (Message("system", "s"), Message("user", parts)), tools=(CLOCK,))
    told = Message("system", (marked("s"),)), Message("user", tuple(map(marked, parts)))
    call = Call("a/m", told, tools=(marked(CLOCK),))
    target = Target("http://h", "h", "m", "p")
    one, other = (FAMILIES[family].encode(each, target) for each in (call, plain))
    assert one.body == other.body and chars_of(call) == chars_of(plain)
    is_told = family == "anthropic" == marks[0]
    assert one.wire.count(b"cache_control") == (5 if is_told else 0)


def test_a_call_in_which_nothing_is_anothers_stays_what_it_is() -> None:
    own = Native("gemini", {"text": "x", "thought": True})
    call = Call("a/m", (Message("user", "x"), Message("assistant", (own, "y"))), tools=(Native("gemini", {"a": {}}),))
    assert written_for(call, "gemini") is call
