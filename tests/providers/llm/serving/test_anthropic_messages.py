"""What clients of Anthropic Messages ask, read as calls: every parameter, what is left out, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from millstream.engine.call import Call, Message
from millstream.engine.content import Native, ToolResult
from millstream.providers.llm.anthropic.serve_messages import DIALECT
from millstream.providers.llm.serve_dialect import RequestRefusal, ServedRequest

MODEL = "claude-sonnet-5-5"
SCHEMA = {"type": "object", "properties": {"place": {"type": "string"}}}


def request(**changes: Any) -> dict[str, Any]:
    return {"model": MODEL, "max_tokens": 9, "messages": [{"role": "user", "content": "x"}], **changes}


def read(body: Any) -> ServedRequest:
    return DIALECT.read(body, "anthropic/{}".format)


def call_of(**changes: Any) -> Call:
    return read(request(**changes)).call


def said(*blocks: Any, role: str = "user") -> Any:
    return call_of(messages=[{"role": role, "content": list(blocks)}, {"role": "user", "content": "y"}]).input[0]


def refusal(body: Any) -> str:
    with pytest.raises(RequestRefusal) as told:
        read(body)
    assert told.value.problem.status == 400
    return told.value.problem.message


def test_a_question_is_a_call_under_the_name_that_the_gateway_knows() -> None:
    asked = read(request())
    assert asked == ServedRequest(Call(f"anthropic/{MODEL}", (Message("user", "x"),), max_tokens=9), MODEL)


def test_every_parameter_finds_its_field() -> None:
    body = request(
        system="Be brief.",
        temperature=0.5,
        top_p=1,
        top_k=40,
        stop_sequences=["END"],
        stream=True,
        output_config={"effort": "high", "format": {"type": "json_schema", "schema": SCHEMA}},
    )
    asked = read(body)
    assert asked.is_streamed
    assert asked.call == Call(
        f"anthropic/{MODEL}",
        (Message("system", "Be brief."), Message("user", "x")),
        temperature=0.5,
        max_tokens=9,
        top_p=1,
        stop=("END",),
        extra={"top_k": 40},
        stream=True,
        reasoning_effort="high",
        json_schema=SCHEMA,
    )


def test_what_means_nothing_for_the_answer_is_left_out_and_so_is_null() -> None:
    idle = {"metadata": {"user_id": "u"}, "diagnostics": {"previous_message_id": "m"}}
    assert call_of(**idle, temperature=None, tools=None, stop_sequences=[], system=[], foo=None) == call_of()


def test_others_can_do_without_what_only_makes_an_answer_cheaper_or_faster_or_shows_thoughts() -> None:
    cheaper = {"service_tier": "auto", "cache_control": {"type": "ephemeral"}, "thinking": {"type": "adaptive"}}
    asked = read(request(**cheaper, container="c"))
    assert asked.call.extra == {**cheaper, "container": "c"}
    assert asked.spare == cheaper.keys()
    assert not read(request(output_config={"effort": "low"}, thinking={"type": "disabled"})).spare


@pytest.mark.parametrize(
    ("given", "effort", "extra"),
    [
        ({"thinking": {"type": "enabled", "budget_tokens": 2_048}}, "2048", None),
        ({"thinking": {"type": "disabled"}}, "none", None),
        ({"thinking": {"type": "adaptive"}}, None, {"thinking": {"type": "adaptive"}}),
        (
            {"thinking": {"type": "enabled", "budget_tokens": 2_048, "display": "omitted"}},
            "2048",
            {"thinking": {"type": "enabled", "budget_tokens": 2_048, "display": "omitted"}},
        ),
        (
            {"thinking": {"type": "adaptive"}, "output_config": {"effort": "max"}},
            "max",
            {"thinking": {"type": "adaptive"}},
        ),
        ({"output_config": {"effort": "none"}}, None, {"output_config": {"effort": "none"}}),
        ({"output_config": {"effort": "low", "task_budget": 5}}, "low", {"output_config": {"task_budget": 5}}),
    ],
)
def test_how_hard_to_think_is_said_without_loss(given: Any, effort: str | None, extra: Any) -> None:
    call = call_of(**given)
    assert (call.reasoning_effort, call.extra) == (effort, extra)


def test_a_shape_under_its_older_name_is_read_and_one_of_another_kind_goes_on() -> None:
    assert call_of(output_format={"type": "json_schema", "schema": SCHEMA}).json_schema == SCHEMA
    other = {"format": {"type": "grammar", "text": "g"}}
    assert call_of(output_config=other).extra == {"output_config": other}


def test_a_mark_within_a_result_stands_on_the_result() -> None:
    first, last = {"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}
    inner = [
        {"type": "text", "text": "a", "cache_control": first},
        {"type": "text", "text": "b", "cache_control": last},
        {"type": "text", "text": "c"},
    ]
    result = {"type": "tool_result", "tool_use_id": "t", "content": inner}
    expected = ToolResult("t", ("a", "b", "c"))
    assert said(result) == Message("user", (Native("anthropic", {"cache_control": last}, expected),))
    outer = {**result, "cache_control": first}
    assert said(outer) == Message("user", (Native("anthropic", {"cache_control": first}, expected),))


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"system": [{"type": "text", "text": "a", "cache_control": "x"}]}, "system.0.cache_control"),
        ({"tools": [{"name": "f", "input_schema": {}, "cache_control": 1}]}, "tools.0.cache_control"),
        (
            {"messages": [{"role": "user", "content": [{"type": "text", "text": "a", "cache_control": []}]}]},
            "messages.0.content.0.cache_control",
        ),
    ],
)
def test_a_mark_that_is_none_is_refused(changes: Any, path: str) -> None:
    with pytest.raises(RequestRefusal, match=f"{path}: Input should be a valid dictionary; came"):
        call_of(**changes)


@pytest.mark.parametrize(
    ("choice", "name", "is_parallel"),
    [
        ({"type": "auto"}, "auto", None),
        ({"type": "any", "disable_parallel_tool_use": True}, "required", False),
        ({"type": "none"}, "none", None),
        ({"type": "tool", "name": "weather", "disable_parallel_tool_use": False}, "weather", True),
    ],
)
def test_the_choice_of_a_tool_is_read(choice: Any, name: str, is_parallel: bool | None) -> None:
    call = call_of(tool_choice=choice)
    assert (call.tool_choice, call.parallel_tools, call.extra) == (name, is_parallel, None)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({}, "model: Field required"),
        (request(max_tokens=None), "max_tokens: Field required"),
        (request(max_tokens=0), "max_tokens: Input should be greater than or equal to 1; came 0"),
        (request(max_tokens="9"), "max_tokens: Input should be a valid integer; came '9'"),
        (request(messages=None), "messages: Field required"),
        (request(messages=[]), "messages: at least one message is required"),
        (request(messages="x"), "messages: Input should be a valid list; came 'x'"),
        (request(messages=[{"content": "x"}]), "messages.0.role: Field required"),
        (
            request(messages=[{"role": "tool", "content": "x"}]),
            "messages.0.role: Input should be 'user', 'assistant' or 'system'; came 'tool'",
        ),
        (
            request(messages=[{"role": "user", "content": ""}]),
            "messages.0: all messages must have non-empty content except for the optional final assistant message",
        ),
        (
            request(messages=[{"role": "user", "content": [{"type": "text"}]}]),
            "messages.0.content.0.text.text: Field required",
        ),
        (
            request(messages=[{"role": "user", "content": [{"type": "image"}]}]),
            "messages.0.content.0.image.source: Field required",
        ),
        (
            request(thread={"type": "create"}),
            "thread: no conversation is held here: send all of it as messages, without a thread",
        ),
        (request(temperature="hot"), "temperature: Input should be a valid number; came 'hot'"),
        (request(temperature=-1), "temperature: Input should be greater than or equal to 0; came -1"),
        (request(stop_sequences=["a", 1]), "stop_sequences.1: Input should be a valid string; came 1"),
        (request(tools=[{"name": "a"}]), "tools.0.custom.input_schema: Field required"),
        (
            request(tool_choice={"type": "some"}),
            "tool_choice.type: Input should be 'auto', 'any', 'tool' or 'none'; came 'some'",
        ),
        (
            request(thinking={"type": "enabled", "budget_tokens": 5}),
            "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024; came 5",
        ),
        (request(stream="yes"), "stream: Input should be a valid boolean; came 'yes'"),
        (request(system=[{"type": "image"}]), "system.0.type: Input should be 'text'; came 'image'"),
    ],
)
def test_what_is_wrong_or_missing_is_refused_as_anthropic_words_it(body: Any, told: str) -> None:
    assert refusal(body) == told


def test_a_refusal_names_the_parameter() -> None:
    with pytest.raises(RequestRefusal) as told:
        read(request(messages=[{"role": "user"}]))
    assert (told.value.problem.kind, told.value.problem.param) == ("invalid", "messages")


def test_results_within_results_are_anthropics_own_however_many() -> None:
    block: Any = {"type": "tool_result", "tool_use_id": "t", "content": "x"}
    for _ in range(50):
        block = {"type": "tool_result", "tool_use_id": "t", "content": [block]}
    assert said(block) == Message("user", (Native("anthropic", block),))
