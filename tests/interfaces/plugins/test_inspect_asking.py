"""What Inspect asks, as a call."""

from __future__ import annotations

from typing import Any

import pytest
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    ContentAudio,
    ContentImage,
    ContentReasoning,
    ContentText,
    GenerateConfig,
    ResponseSchema,
)
from inspect_ai.tool import ToolCall as Called
from inspect_ai.tool import ToolCallError, ToolChoice, ToolFunction, ToolInfo, ToolParams
from inspect_ai.util import JSONSchema
from pydantic import JsonValue

from millstream.configuration.errors import UsageError
from millstream.engine.call import Call, Message
from millstream.engine.content import Image, Native, Tool, ToolCall, ToolResult
from millstream.interfaces.plugins.inspect_asking import call_of
from millstream.wiring import Settings, access_to, family_of, keyless_endpoint_to

PICTURE = "data:image/png;base64,AAAA"
ADD = ToolInfo(
    name="add",
    description="Add two numbers.",
    parameters=ToolParams(properties={"x": JSONSchema(type="integer")}, required=["x"]),
)


def asked(
    *messages: ChatMessage,
    family: str = "openai",
    tools: tuple[ToolInfo, ...] = (),
    choice: ToolChoice = "auto",
    **config: Any,
) -> Call:
    said = messages or (ChatMessageUser(content="A or B?"),)
    return call_of("lab/model", family, said, tools, choice, GenerateConfig(**config))


def turn_of(message: ChatMessage, family: str = "openai") -> Message:
    [turn] = asked(message, family=family).messages()
    return turn


def test_what_was_not_set_is_not_sent() -> None:
    assert asked() == Call("lab/model", (Message("user", "A or B?"),))


def test_what_was_set_is_sent() -> None:
    call = asked(
        temperature=0.5,
        max_tokens=64,
        top_p=0.9,
        stop_seqs=["\n", "END"],
        seed=7,
        reasoning_effort="low",
        logprobs=True,
        top_logprobs=3,
        extra_body={"min_p": 0.1},
    )
    assert call == Call(
        "lab/model",
        (Message("user", "A or B?"),),
        temperature=0.5,
        max_tokens=64,
        top_p=0.9,
        stop=("\n", "END"),
        seed=7,
        reasoning_effort="low",
        logprobs=3,
        extra={"min_p": 0.1},
    )
    assert asked(logprobs=True).logprobs == 0
    assert asked(top_logprobs=3).logprobs is None


def test_what_is_inspects_own_business_makes_no_other_call() -> None:
    own: dict[str, Any] = {
        "max_retries": 3,
        "timeout": 60,
        "attempt_timeout": 30,
        "max_connections": 4,
        "cache_prompt": True,
        "max_tool_output": 100,
        "reasoning_history": "all",
        "fail_on_refusal": True,
        "cache": True,
    }
    assert asked(**own) == asked()


@pytest.mark.parametrize(
    ("family", "name", "value", "said"),
    [
        ("openai", "frequency_penalty", 0.0, 0.0),
        ("openai", "presence_penalty", -1.5, -1.5),
        ("openai", "logit_bias", {42: 10.0}, {"42": 10.0}),
        ("openai", "verbosity", "low", "low"),
        ("anthropic", "top_k", 5, 5),
    ],
)
def test_a_setting_is_said_in_the_providers_own_word(family: str, name: str, value: object, said: object) -> None:
    given: dict[str, Any] = {name: value}
    assert asked(family=family, **given).extra == {name: said}


@pytest.mark.parametrize(
    ("family", "name", "value"),
    [
        ("anthropic", "frequency_penalty", 0.5),
        ("gemini", "top_k", 5),
        ("openai-responses", "logit_bias", {1: 1.0}),
        ("openai", "prompt_logprobs", 1),
        ("anthropic", "reasoning_tokens", 1024),
        ("openai", "extra_headers", {"X-Team": "a"}),
        ("openai", "modalities", ["image"]),
    ],
)
def test_a_setting_that_would_be_lost_is_refused_in_one_line(family: str, name: str, value: object) -> None:
    given: dict[str, Any] = {name: value}
    with pytest.raises(UsageError, match=f"lab/model can't be told {name} ") as refused:
        asked(family=family, **given)
    assert "\n" not in str(refused.value)


def test_a_schema_is_kept_to_strictly_only_where_that_is_wanted() -> None:
    fields = JSONSchema(type="object", properties={"letter": JSONSchema(type="string")})
    plain = {"type": "object", "properties": {"letter": {"type": "string"}}}
    strict = asked(response_schema=ResponseSchema(name="choice", json_schema=fields, strict=True))
    assert strict.json_schema == {"title": "choice", **plain}
    loose = ResponseSchema(name="choice", json_schema=fields)
    told = {"name": "choice", "schema": plain}
    chat, responses = (asked(family=family, response_schema=loose) for family in ("openai", "openai-responses"))
    assert (chat.json_schema, responses.json_schema) == (None, None)
    assert chat.extra == {"response_format": {"type": "json_schema", "json_schema": told}}
    assert responses.extra == {"text": {"format": {"type": "json_schema", **told}}}
    assert asked(family="gemini", response_schema=loose).json_schema == {"title": "choice", **plain}


def test_tools_are_told_with_the_schema_of_their_arguments() -> None:
    call = asked(tools=(ADD,), choice="any", parallel_tool_calls=False)
    parameters = {
        "type": "object",
        "properties": {"x": {"type": "integer"}},
        "required": ["x"],
        "additionalProperties": False,
    }
    assert call.tools == (Tool("add", "Add two numbers.", parameters),)
    assert (call.tool_choice, call.parallel_tools) == ("required", False)


@pytest.mark.parametrize(("choice", "said"), [("auto", None), ("none", "none"), (ToolFunction("add"), "add")])
def test_a_choice_of_tools_is_told_where_there_are_any(choice: ToolChoice, said: str | None) -> None:
    assert asked(tools=(ADD,), choice=choice).tool_choice == said
    assert asked(choice=choice, parallel_tool_calls=True) == asked()


def test_texts_and_pictures_stand_in_their_order() -> None:
    message = ChatMessageUser(
        content=[ContentText(text="What is"), ContentImage(image=PICTURE, detail="low"), ContentText(text="?")]
    )
    assert turn_of(message) == Message("user", ("What is", Image(PICTURE, "low"), "?"))
    assert turn_of(ChatMessageUser(content=[ContentImage(image=PICTURE)])) == Message("user", (Image(PICTURE),))


def test_a_text_is_one_text_however_inspect_holds_it() -> None:
    assert turn_of(ChatMessageSystem(content=[ContentText(text="Be brief.")])) == Message("system", "Be brief.")
    assert turn_of(ChatMessageAssistant(content=[])) == Message("assistant", "")


def test_calls_of_tools_follow_what_was_said_with_them() -> None:
    called = Called(id="call_1", function="add", arguments={"x": 1})
    both = ChatMessageAssistant(content="Adding.", tool_calls=[called])
    assert turn_of(both) == Message("assistant", ("Adding.", ToolCall("call_1", "add", '{"x": 1}')))
    silent = ChatMessageAssistant(content="", tool_calls=[called])
    assert turn_of(silent) == Message("assistant", (ToolCall("call_1", "add", '{"x": 1}'),))


def test_what_a_tool_gave_is_told_and_what_went_wrong_in_it() -> None:
    gave = ChatMessageTool(content="3", tool_call_id="call_1", function="add")
    assert turn_of(gave) == Message("tool", (ToolResult("call_1", "3", "add"),))
    wrong = ChatMessageTool(
        content="", tool_call_id="call_1", function="add", error=ToolCallError("parsing", "x is no number")
    )
    assert turn_of(wrong) == Message("tool", (ToolResult("call_1", "Error: x is no number", "add", is_error=True),))
    shown = ChatMessageTool(
        content=[ContentText(text="see"), ContentImage(image=PICTURE)], tool_call_id="call_1", function="add"
    )
    assert turn_of(shown) == Message("tool", (ToolResult("call_1", ("see", Image(PICTURE)), "add"),))


def test_a_thought_goes_back_as_it_came_to_who_said_it_and_in_words_to_others() -> None:
    value: dict[str, JsonValue] = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
    thought = ContentReasoning(reasoning="Hm.", internal={"millstream": {"protocol": "anthropic", "value": value}})
    message = ChatMessageAssistant(content=[thought, ContentText(text="A")])
    assert turn_of(message, "anthropic") == Message("assistant", (Native("anthropic", value), "A"))
    assert turn_of(message, "openai") == Message("assistant", ("<think>Hm.</think>", "A"))
    strange = ChatMessageAssistant(
        content=[ContentReasoning(reasoning="Hm.", internal="reasoning"), ContentText(text="A")]
    )
    assert turn_of(strange, "anthropic") == Message("assistant", ("<think>Hm.</think>", "A"))


THOUGHTS: dict[str, dict[str, JsonValue]] = {
    "openai/gpt-4o": {"reasoning_content": "Hm."},
    "openai-responses/gpt-4o": {"type": "reasoning", "id": "rs_1", "summary": []},
    "anthropic/claude-sonnet-4-5": {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
    "gemini/gemini-2.5-flash": {"text": "Hm.", "thought": True},
    "bedrock/anthropic.claude-3-haiku": {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "c2ln"}}},
}


@pytest.mark.parametrize("model", THOUGHTS)
def test_a_whole_conversation_can_be_written_in_every_providers_words(model: str) -> None:
    settings = Settings(needs_keys=False, environment={"AWS_REGION": "eu-west-1"})
    family = family_of(model, settings)
    thought: dict[str, JsonValue] = {"protocol": family, "value": THOUGHTS[model]}
    messages: list[ChatMessage] = [
        ChatMessageSystem(content="Be brief."),
        ChatMessageUser(content=[ContentText(text="What is this?"), ContentImage(image=PICTURE)]),
        ChatMessageAssistant(
            content=[ContentReasoning(reasoning="Hm.", internal={"millstream": thought}), ContentText(text="Adding.")],
            tool_calls=[Called(id="call_1", function="add", arguments={"x": 1})],
        ),
        ChatMessageTool(content="3", tool_call_id="call_1", function="add"),
        ChatMessageUser(content="So?"),
    ]
    call = call_of(model, family, messages, [ADD], "any", GenerateConfig(max_tokens=64))
    body = keyless_endpoint_to(access_to(model, settings)).encode(call).body
    assert all(text in body for text in (b"Be brief.", b"What is this?", b"AAAA", b"Adding.", b"add", b'"x"', b"So?"))


def test_what_can_not_be_sent_is_refused_and_not_left_out() -> None:
    with pytest.raises(UsageError, match="lab/model can't be sent audio"):
        asked(ChatMessageUser(content=[ContentAudio(audio="data:audio/wav;base64,AA", format="wav")]))
