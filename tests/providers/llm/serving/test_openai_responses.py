"""What clients of OpenAI's Responses ask, read as calls: items as turns, every parameter, what is refused; and that a
provider who speaks the same protocol gets what the client said."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from millstream.engine.call import Call, Message
from millstream.engine.content import Image, Native, Tool, ToolCall, ToolResult
from millstream.providers.llm.openai import chat as openai_chat
from millstream.providers.llm.openai.responses import PROTOCOL
from millstream.providers.llm.openai.serve_responses import DIALECT
from millstream.providers.llm.protocol import Target
from millstream.providers.llm.serve_dialect import RequestRefusal, ServedRequest

TARGET = Target("http://127.0.0.1:1/v1", "there", "m", "openai-responses")
FAMILY = "openai-responses"
SCHEMA = {"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "string"}}, "required": ["b", "a"]}
FUNCTION = {"type": "function", "name": "look", "description": "Looks.", "parameters": SCHEMA, "strict": True}
CALLED = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"b": 1}'}
FOUND = {"type": "function_call_output", "call_id": "c1", "output": "found"}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e"}
LOGPROBS = "message.output_text.logprobs"


def request(**changes: Any) -> dict[str, Any]:
    return {"model": "m", "input": "x", **changes}


def read(body: Any) -> ServedRequest:
    return DIALECT.read(body, "openai-responses/{}".format)


def call_of(**changes: Any) -> Call:
    return read(request(**changes)).call


def turns(*items: dict[str, Any], **changes: Any) -> Any:
    return call_of(input=list(items), **changes).input


def sent(body: Any) -> Any:
    """The body that a provider of the same protocol gets of it."""
    return orjson.loads(PROTOCOL.encode(read(body).call, TARGET).wire)


def test_a_question_is_a_call_under_the_name_that_is_known_here() -> None:
    assert read(request()) == ServedRequest(Call("openai-responses/m", (Message("user", "x"),)), "m")


def test_every_parameter_finds_its_field() -> None:
    asked = read(
        request(
            instructions="Be brief.", temperature=0, top_p=1, max_output_tokens=9, reasoning={"effort": "low"},
            include=[LOGPROBS], top_logprobs=3, stream=True, tools=[FUNCTION], parallel_tool_calls=False,
            tool_choice={"type": "function", "name": "look"}, text={"format": {"type": "text"}}, max_tool_calls=2,
        )
    )  # fmt: skip
    assert asked.call == Call(
        "openai-responses/m",
        (Message("system", "Be brief."), Message("user", "x")),
        temperature=0.0,
        top_p=1.0,
        max_tokens=9,
        reasoning_effort="low",
        logprobs=3,
        stream=True,
        tools=(Tool("look", "Looks.", SCHEMA, True),),
        tool_choice="look",
        parallel_tools=False,
        extra={"max_tool_calls": 2},
    )
    assert (asked.is_streamed, asked.count) == (True, 1)


# --- items ---


def test_what_a_model_thought_said_and_asked_for_between_others_is_one_turn() -> None:
    said = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": "a", "annotations": [], "logprobs": []}]}  # fmt: skip
    other = {**CALLED, "call_id": "c2", "id": "fc_2", "status": "completed"}
    image = {"type": "input_image", "image_url": "http://x/y", "detail": "low"}
    output = {**FOUND, "call_id": "c2", "output": [{"type": "input_text", "text": "it"}, image]}
    assert turns({"role": "user", "content": "x"}, THOUGHT, said, CALLED, other, FOUND, output) == (
        Message("user", "x"),
        Message(
            "assistant",
            (Native(FAMILY, THOUGHT), "a", ToolCall("c1", "look", '{"b": 1}'), ToolCall("c2", "look", '{"b": 1}')),
        ),
        Message(
            "tool", (ToolResult("c1", "found", "look"), ToolResult("c2", ("it", Image("http://x/y", "low")), "look"))
        ),
    )  # fmt: skip


def test_a_thought_that_was_told_behind_its_text_goes_before_it() -> None:
    said = {"role": "assistant", "content": "a"}
    expected = (Message("assistant", (Native(FAMILY, THOUGHT), "a")), Message("user", "x"))
    assert turns(said, THOUGHT, {"role": "user", "content": "x"}) == expected
    assert turns(said, THOUGHT) == expected[:1]
    assert turns(said, THOUGHT, CALLED) == (
        Message("assistant", "a"),
        Message("assistant", (Native(FAMILY, THOUGHT), ToolCall("c1", "look", '{"b": 1}'))),
    )


def test_the_server_of_another_family_is_told_a_plain_conversation_in_its_own_words() -> None:
    call = call_of(instructions="s", input=[{"role": "user", "content": "x"}, CALLED, FOUND], tools=[FUNCTION])
    wire = orjson.loads(openai_chat.PROTOCOL.encode(call, TARGET).wire)
    assert [message["role"] for message in wire["messages"]] == ["system", "user", "assistant", "tool"]
    assert wire["messages"][2]["tool_calls"][0]["id"] == wire["messages"][3]["tool_call_id"] == "c1"
    assert wire["tools"][0]["function"]["name"] == "look"


# --- what a call can't say in full ---


def form(**changes: Any) -> dict[str, Any]:
    titled = {"title": "Answer_Of", **SCHEMA}
    return {"format": {"type": "json_schema", "name": "Answer_Of", "schema": titled, "strict": True, **changes}}


@pytest.mark.parametrize(
    ("given", "extra", "spare"),
    [
        ({"text": form()}, set(), set()),
        ({"text": form(name="other")}, {"text"}, {"text"}),
        ({"text": {**form(), "verbosity": "medium"}}, {"text"}, {"text"}),
        ({"text": {**form(), "verbosity": "low"}}, {"text"}, set()),
        ({"text": {"format": {"type": "json_object"}}}, {"text"}, set()),
        ({"text": {"verbosity": None}}, set(), set()),
        ({"reasoning": {"effort": "low", "summary": None}}, set(), set()),
        ({"reasoning": {"effort": "low", "summary": "auto"}}, {"reasoning"}, {"reasoning"}),
        ({"reasoning": {"effort": "low", "context": "all_turns"}}, {"reasoning"}, set()),
        ({"include": ["reasoning.encrypted_content"]}, {"include"}, {"include"}),
        ({"include": [LOGPROBS, "reasoning.encrypted_content"]}, {"include"}, {"include"}),
        ({"top_logprobs": 0}, set(), set()),
        ({"top_logprobs": 2}, {"top_logprobs"}, set()),
        ({"truncation": "disabled"}, {"truncation"}, {"truncation"}),
        ({"truncation": "auto"}, {"truncation"}, set()),
        ({"store": False}, {"store"}, {"store"}),
        ({"store": True}, set(), set()),
        ({"service_tier": "flex"}, {"service_tier"}, {"service_tier"}),
        ({"metadata": {"a": "b"}, "user": "u", "prompt_cache_key": "k", "safety_identifier": "s"}, set(), set()),
        ({"background": False, "stream_options": {"include_obfuscation": False}}, set(), set()),
    ],
)
def test_what_a_call_has_no_field_for_and_who_can_do_without(
    given: dict[str, Any], extra: set[str], spare: set[str]
) -> None:
    asked = read(request(**given))
    assert set(asked.call.extra or ()) == extra
    assert asked.spare == spare


@pytest.mark.parametrize(
    "changes",
    [
        {"input": [{"role": "user", "content": "x"}]},
        {"input": [{"role": "user", "content": "x"}, THOUGHT, CALLED, {**CALLED, "call_id": "c2"}, FOUND],
         "include": ["reasoning.encrypted_content"], "store": False},
        {"input": [{"role": "user", "content": [{"type": "input_text", "text": "a"},
                                                {"type": "input_text", "text": "b"},
                                                {"type": "input_file", "file_id": "f"}]},
                   {"type": "web_search_call", "id": "ws", "status": "completed", "action": {"type": "search"}},
                   {"role": "assistant", "content": "a"},
                   {"type": "message", "role": "assistant", "content": "b", "phase": "final_answer"}]},
        {"input": [{"type": "custom_tool_call", "call_id": "c", "name": "run", "input": "ls"},
                   {"type": "custom_tool_call_output", "call_id": "c", "output": "x"}]},
        {"input": [{**CALLED, "namespace": "n"}, {**FOUND, "output": [{"type": "input_file", "file_id": "f"}]}]},
        {"input": [CALLED, {**FOUND, "caller": {"type": "direct"}}]},
        {"temperature": 0.5, "top_p": 0.25, "max_output_tokens": 30},
        {"tools": [FUNCTION, {"type": "web_search"}, {"type": "custom", "name": "run"}], "tool_choice": "required",
         "parallel_tool_calls": True},
        {"tools": [FUNCTION], "tool_choice": {"type": "function", "name": "look"}},
        {"tools": [{"type": "web_search"}], "tool_choice": {"type": "web_search"}},
        {"text": form()},
        {"text": {**form(name="other", strict=False), "verbosity": "low"}},
        {"text": {"format": {"type": "json_object"}}},
        {"reasoning": {"effort": "low"}},
        {"reasoning": {"effort": "low", "summary": "auto"}},
        {"include": [LOGPROBS], "top_logprobs": 2},
        {"include": [LOGPROBS, "web_search_call.results"], "top_logprobs": 2},
        {"truncation": "auto", "max_tool_calls": 3, "service_tier": "flex"},
    ],
)  # fmt: skip
def test_a_provider_of_the_same_protocol_gets_what_the_client_said(changes: dict[str, Any]) -> None:
    body = request(**{"input": [{"role": "user", "content": "x"}], **changes})
    assert sent(body) == body


def test_instructions_reach_it_as_the_first_turn() -> None:
    first = {"role": "system", "content": "Be brief."}
    assert sent(request(instructions="Be brief."))["input"] == [first, {"role": "user", "content": "x"}]


# --- what is refused ---


@pytest.mark.parametrize(
    ("changes", "said", "param"),
    [
        ({"model": None}, "you must provide a model parameter", "model"),
        ({"input": None}, "Missing required parameter: 'input'.", "input"),
        ({"input": 5}, "Invalid type for 'input': expected one of a string or array of objects, but got", "input"),
        ({"input": []}, "Invalid 'input': empty array.", "input"),
        ({"input": [5]}, "Invalid type for 'input[0]': expected an object, but got an integer", "input[0]"),
        ({"input": [{"x": 1}]}, "Missing required parameter: 'input[0].type'.", "input[0].type"),
        ({"input": [{"role": "bot", "content": "x"}]}, "Invalid value: 'bot'. Supported values are: 'user', ",
         "input[0].role"),
        ({"input": [{"role": "user", "content": []}]}, "Invalid 'input[0].content': empty array.", "input[0].content"),
        ({"input": [{"role": "user", "content": [{"type": "input_text"}]}]},
         "Missing required parameter: 'input[0].content[0].text'.", "input[0].content[0].text"),
        ({"input": [{"type": "item_reference", "id": "msg_1"}]}, "Unsupported item: 'input[0]' refers to", "input[0]"),
        ({"input": [{"id": "msg_1"}]}, "Unsupported item: 'input[0]' refers to", "input[0]"),
        ({"input": [{"type": "function_call", "name": "f"}]}, "Missing required parameter: 'input[0].call_id'.",
         "input[0].call_id"),
        ({"input": [{**FOUND, "output": 5}]}, "Invalid type for 'input[0].output': expected an array, but got an",
         "input[0].output"),
        ({"instructions": ["x"]}, "Invalid type for 'instructions': expected a string, but got an array",
         "instructions"),
        ({"previous_response_id": "resp_1"}, "Unsupported parameter: 'previous_response_id': nothing is stored here",
         "previous_response_id"),
        ({"conversation": {"id": "c"}}, "Unsupported parameter: 'conversation': nothing is stored", "conversation"),
        ({"prompt": {"id": "p"}}, "Unsupported parameter: 'prompt': no prompts are stored here", "prompt"),
        ({"background": True}, "Unsupported parameter: 'background': answers are given at once.", "background"),
        ({"max_output_tokens": 0}, "Invalid 'max_output_tokens': integer below minimum value.", "max_output_tokens"),
        ({"reasoning": "low"}, "Invalid type for 'reasoning': expected an object, but got a string", "reasoning"),
        ({"reasoning": {"effort": 1}}, "Invalid type for 'reasoning.effort': expected a string", "reasoning.effort"),
        ({"text": {"format": {"type": "json_schema"}}}, "Missing required parameter: 'text.format.name'.",
         "text.format.name"),
        ({"include": "x"}, "Invalid type for 'include': expected an array, but got a string", "include"),
        ({"include": [5]}, "Invalid type for 'include[0]': expected a string, but got an integer", "include[0]"),
        ({"top_logprobs": 21}, "Invalid 'top_logprobs': integer above maximum value.", "top_logprobs"),
        ({"tools": [{"type": "function"}]}, "Missing required parameter: 'tools[0].name'.", "tools[0].name"),
        ({"tool_choice": "any"}, "Invalid value: 'any'. Supported values are: ", "tool_choice"),
        ({"tool_choice": {"type": "function", "name": "f"}}, "Invalid value for 'tool_choice': no function named 'f'",
         "tool_choice"),
        ({"store": "yes"}, "Invalid type for 'store': expected a boolean, but got a string", "store"),
        ({"stream": 1}, "Invalid type for 'stream': expected a boolean, but got an integer", "stream"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_in_openais_words(changes: dict[str, Any], said: str, param: str) -> None:
    with pytest.raises(RequestRefusal) as told:
        read(request(**changes))
    problem = told.value.problem
    assert problem.message.startswith(said)
    assert (problem.param, problem.kind, problem.status) == (param, "invalid", 400)
