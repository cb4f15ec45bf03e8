"""What clients of OpenAI's chat completions ask, read as calls: every parameter, what is left out, what is refused; and
that a provider who speaks the same protocol gets what the client said."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from millstream.engine.call import Call, Message
from millstream.engine.content import Native, Tool, ToolCall
from millstream.providers.llm.openai.chat import PROTOCOL
from millstream.providers.llm.openai.serve_chat import DIALECT
from millstream.providers.llm.protocol import Target
from millstream.providers.llm.serve_dialect import ServedRequest

TARGET = Target("http://127.0.0.1:1/v1", "there", "m", "openai")
SCHEMA = {"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "string"}}, "required": ["b", "a"]}
FUNCTION = {"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": SCHEMA}}
CALLED = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"b": 1}'}}


def request(**changes: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": "x"}], **changes}


def read(body: Any) -> ServedRequest:
    return DIALECT.read(body, "openai/{}".format)


def call_of(**changes: Any) -> Call:
    return read(request(**changes)).call


def turn(**message: Any) -> Any:
    return call_of(messages=[message]).input[0]


def sent(body: Any) -> Any:
    """The body that a provider of the same protocol gets of it."""
    return orjson.loads(PROTOCOL.encode(read(body).call, TARGET).wire)


def test_a_question_is_a_call_under_the_name_that_is_known_here() -> None:
    assert read(request()) == ServedRequest(Call("openai/m", (Message("user", "x"),)), "m")


def test_every_parameter_finds_its_field() -> None:
    asked = read(
        request(
            temperature=0, top_p=1, max_completion_tokens=9, stop="END", seed=7, logprobs=True, top_logprobs=3,
            reasoning_effort="low", n=3, stream=True, stream_options={"include_usage": True},
            tools=[FUNCTION], tool_choice={"type": "function", "function": {"name": "look"}},
            parallel_tool_calls=False, top_k=5,
        )
    )  # fmt: skip
    expected = Call(
        "openai/m",
        (Message("user", "x"),),
        temperature=0.0,
        top_p=1.0,
        max_tokens=9,
        stop=("END",),
        seed=7,
        logprobs=3,
        reasoning_effort="low",
        stream=True,
        tools=(Tool("look", "Looks.", SCHEMA),),
        tool_choice="look",
        parallel_tools=False,
        extra={"top_k": 5},
    )
    assert asked == ServedRequest(expected, "m", True, 3, {"usage": True})


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"stop": ["a", "b"]}, {"stop": ("a", "b")}),
        ({"stop": []}, {}),
        ({"logprobs": True}, {"logprobs": 0}),
        ({"logprobs": False}, {}),
        ({"max_tokens": 5}, {"max_tokens": 5}),
        ({"max_tokens": 5, "max_completion_tokens": 5}, {"max_tokens": 5}),
        ({"tools": []}, {}),
        ({"tool_choice": "required"}, {"tool_choice": "required"}),
        ({"response_format": {"type": "text"}}, {}),
        ({"modalities": ["text"]}, {}),
        (dict.fromkeys(("temperature", "max_tokens", "stop", "n", "stream", "tools", "top_k", "seed")), {}),
    ],
)
def test_what_can_be_said_in_several_ways_is_one_call(given: dict[str, Any], field: dict[str, Any]) -> None:
    assert call_of(**given) == Call("openai/m", (Message("user", "x"),), **field)


@pytest.mark.parametrize(
    "name",
    [
        "user", "safety_identifier", "metadata", "store", "prompt_cache_key", "prompt_cache_retention",
        "prompt_cache_options",
    ],
)  # fmt: skip
def test_who_asks_and_what_it_costs_makes_no_other_call(name: str) -> None:
    assert call_of(**{name: {"a": "b"}}) == call_of()


# --- turns ---


def test_a_list_of_one_text_is_that_text() -> None:
    assert turn(role="user", content=[{"type": "text", "text": "a"}]) == Message("user", "a")


def test_marks_of_what_to_keep_of_a_prompt_say_nothing() -> None:
    part = {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}
    assert turn(role="system", content=[part]) == Message("system", "a")


@pytest.mark.parametrize("content", [None, "", "missing"])
def test_a_turn_that_only_calls_tools_says_nothing(content: str | None) -> None:
    message = {"role": "assistant", "content": content, "tool_calls": [CALLED]}
    if content == "missing":
        del message["content"]
    assert turn(**message).content == (ToolCall("c1", "look", '{"b": 1}'),)


def test_an_answer_of_ours_is_a_turn_again_whatever_its_client_adds() -> None:
    message = {
        "role": "assistant", "type": "message", "content": "a", "refusal": None, "audio": None,
        "annotations": [{"type": "url_citation"}],
        "function_call": None, "tool_calls": None, "parsed": {"x": 1},
    }  # fmt: skip
    assert turn(**message) == Message("assistant", "a")


def test_what_another_family_said_beside_a_call_comes_back_to_it() -> None:
    called = {**CALLED, "extra_content": {"gemini": {"thoughtSignature": "s"}}}
    content = turn(role="assistant", tool_calls=[called]).content
    assert content == (ToolCall("c1", "look", '{"b": 1}', Native("gemini", {"thoughtSignature": "s"})),)


# --- schemas, tools and the rest of what a call may not be able to say ---


def form(**changes: Any) -> dict[str, Any]:
    given = {"name": "Answer_Of", "schema": {"title": "Answer_Of", **SCHEMA}, "strict": True}
    return {"type": "json_schema", "json_schema": {**given, **changes}}


@pytest.mark.parametrize("changes", [{"name": "other"}, {"strict": False}, {"strict": None}, {"description": "d"}])
def test_a_schema_with_a_name_of_its_own_is_said_twice_and_spare_for_others(changes: dict[str, Any]) -> None:
    given = form(**changes)
    asked = read(request(response_format=given))
    assert asked.call.json_schema == {"title": "Answer_Of", **SCHEMA}
    assert asked.call.extra == {"response_format": given}
    assert asked.spare == {"response_format"}


def test_what_says_nothing_new_is_spare_for_others() -> None:
    asked = read(request(frequency_penalty=0, presence_penalty=0.5, logit_bias={}, service_tier="flex"))
    assert asked.spare == {"frequency_penalty", "logit_bias", "service_tier"}
    assert asked.call.extra is not None
    assert set(asked.call.extra) == {*asked.spare, "presence_penalty"}


def test_a_tool_that_is_no_plain_function_stays_as_it_is() -> None:
    custom = {"type": "custom", "custom": {"name": "run", "format": {"type": "text"}}}
    choice = {"type": "custom", "custom": {"name": "run"}}
    call = call_of(tools=[custom, FUNCTION], tool_choice=choice)
    assert call.tools == (Native("openai", custom), Tool("look", "Looks.", SCHEMA))
    assert call.extra == {"tool_choice": choice}


def test_a_function_that_is_called_like_a_choice_is_not_taken_for_it() -> None:
    function = {"type": "function", "function": {"name": "auto"}}
    assert call_of(tools=[function], tool_choice=function).extra == {"tool_choice": function}


# --- what a provider of the same protocol gets ---

_TALK = [
    {"role": "developer", "content": "d"},
    {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "name": "ann"},
    {"role": "assistant", "content": "t", "reasoning_content": "r", "tool_calls": [CALLED, {**CALLED, "id": "c2"}]},
    {"role": "tool", "tool_call_id": "c1", "content": "1"},
    {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "2"}, {"type": "text", "text": ""}]},
    {"role": "assistant", "content": None, "refusal": "no"},
    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x/y.png"}}]},
]
_CUSTOM_CALL = {"id": "c3", "type": "custom", "custom": {"name": "run", "input": "ls"}}
_OLDER = [
    {"role": "user", "content": "x"},
    {"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": "{}"}},
    {"role": "function", "name": "look", "content": "found"},
]
_FILE = {"type": "file", "file": {"file_id": "f", "filename": "n"}}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"temperature": 0.5, "top_p": 0.25, "max_tokens": 3, "seed": -1, "stop": ["a", "b"]},
        {"messages": _TALK},
        {"messages": _OLDER, "functions": [FUNCTION["function"]], "function_call": "auto"},
        {"messages": [{"role": "assistant", "content": None, "tool_calls": [_CUSTOM_CALL, CALLED]}]},
        {"messages": [{"role": "assistant", "tool_calls": [{**CALLED, "extra_content": {"google": {"s": 1}}}],
                       "content": None}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "read"}, _FILE]}]},
        {"tools": [FUNCTION, {"type": "function", "function": {"name": "f", "strict": False}}], "tool_choice": "auto"},
        {"tools": [FUNCTION], "tool_choice": {"type": "function", "function": {"name": "look"}},
         "parallel_tool_calls": True},
        {"tools": [FUNCTION], "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}}},
        {"response_format": form()},
        {"response_format": form(name="other", strict=False)},
        {"response_format": form(name="answer", schema=SCHEMA)},
        {"response_format": form(name="An_odd_one_", schema={"title": "An odd one!", **SCHEMA})},
        {"response_format": {"type": "json_object"}},
        {"response_format": {"type": "grammar", "grammar": "root ::= x"}},
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "u", "fps": 2}}]}]},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "n"}}},
        {"logprobs": True, "top_logprobs": 2, "logit_bias": {"50256": -100}},
        {"logprobs": True},
        {"reasoning_effort": "minimal", "verbosity": "low"},
        {"frequency_penalty": 0.1, "presence_penalty": 0, "service_tier": "flex", "top_k": 40, "min_p": 0.1},
        {"web_search_options": {"search_context_size": "low"}, "prediction": {"type": "content", "content": "x"}},
    ],
)  # fmt: skip
def test_a_provider_of_the_same_protocol_gets_what_the_client_said(changes: dict[str, Any]) -> None:
    body = request(**changes)
    assert sent(body) == body


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"stop": "a"}, {"stop": ["a"]}),
        ({"max_completion_tokens": 5}, {"max_tokens": 5}),
        ({"user": "u", "metadata": {"a": "b"}, "store": True, "tools": [], "logprobs": False, "n": 2}, {}),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}]}, {}),
        ({"stream": True}, {"stream": True, "stream_options": {"include_usage": True}}),
    ],
)
def test_what_it_gets_otherwise_says_the_same(given: dict[str, Any], told: dict[str, Any]) -> None:
    assert sent(request(**given)) == request(**told)


def test_properties_of_a_schema_keep_their_order_on_the_way() -> None:
    forms: list[dict[str, Any]] = [{"response_format": form()}, {"response_format": form(name="other")}]
    for changes in ({"tools": [FUNCTION]}, *forms):
        wire = PROTOCOL.encode(call_of(**changes), TARGET).wire
        assert wire.index(b'"b":{') < wire.index(b'"a":{')
