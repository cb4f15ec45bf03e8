"""A request to Anthropic Messages, read and written again for Anthropic: the same, but for what is left out on purpose.

Left out or written in another way: metadata and diagnostics; that a tool is the caller's own (`type: custom`); a text
in a list of its own; `null`, and a choice that says nothing. What shall be cached is said and is no part of a key.
"""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from anthropic import types
from pydantic import TypeAdapter

from millstream.engine.endpoint import Request
from millstream.engine.estimate import chars_of
from millstream.engine.key import key_of
from millstream.providers.llm.anthropic.messages import OLDER_VERSION, PROTOCOL
from millstream.providers.llm.anthropic.serve_messages import DIALECT
from millstream.providers.llm.protocol import Target, WireProtocol
from millstream.providers.llm.vertex import CLAUDE as VERTEX

MODEL = "claude-sonnet-5-5"
TARGET = Target("http://127.0.0.1:8000", "lab", MODEL, "anthropic", version=OLDER_VERSION)
SCHEMA = {"type": "object", "properties": {"place": {"type": "string"}, "day": {"type": "integer"}}}
EPHEMERAL = {"type": "ephemeral", "ttl": "1h"}
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBO"}}
ADDRESS = {"type": "image", "source": {"type": "url", "url": "https://one.example/a.png"}}
THOUGHT = {"type": "thinking", "thinking": "I think.", "signature": "EqQB"}
USE = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"place": "Bonn", "day": 1}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "rain"}, PICTURE]}


def text(said: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": said, **more}


def turn(role: str, *blocks: Any) -> dict[str, Any]:
    return {"role": role, "content": list(blocks)}


def request(**changes: Any) -> dict[str, Any]:
    return {"model": MODEL, "max_tokens": 9, "messages": [{"role": "user", "content": "x"}], **changes}


def again(body: Any) -> Any:
    return orjson.loads(PROTOCOL.encode(DIALECT.read(body, "anthropic/{}".format).call, TARGET).wire)


SAME = {
    "a question": request(),
    "sampling": request(temperature=0.5, top_p=0.9, top_k=5, stop_sequences=["\n\n", "END"], stream=True),
    "a system prompt": request(system="Be brief."),
    "a system prompt of several texts": request(system=[text("Be brief."), text("Be kind.")]),
    "a system prompt between turns": request(
        messages=[{"role": "user", "content": "x"}, {"role": "system", "content": "Stop."}]
    ),
    "an answer begun": request(messages=[{"role": "user", "content": "x"}, {"role": "assistant", "content": "A"}]),
    "images": request(messages=[turn("user", text("Look:"), PICTURE, ADDRESS, text("So?"))]),
    "thoughts, calls of tools and results": request(
        messages=[
            {"role": "user", "content": "x"},
            turn("assistant", THOUGHT, text("I'll look."), USE, {**USE, "id": "toolu_2", "input": {}}),
            turn(
                "user",
                RESULT,
                {"type": "tool_result", "tool_use_id": "toolu_2", "content": "No.", "is_error": True},
                text("Well?"),
            ),
        ],
        tools=[
            {"name": "weather", "description": "Tells.", "input_schema": SCHEMA, "strict": True},
            {"name": "late", "input_schema": SCHEMA, "defer_loading": True},
            {"type": "web_search_20260209", "name": "web_search", "max_uses": 3},
        ],
        tool_choice={"type": "any", "disable_parallel_tool_use": True},
    ),
    "one tool": request(tools=[{"name": "auto", "input_schema": SCHEMA}], tool_choice={"type": "tool", "name": "auto"}),
    "a call with more beside it": request(
        messages=[turn("assistant", {**USE, "caller": {"type": "code_execution_20260120", "tool_id": "s"}})]
    ),
    "what is Anthropic's own": request(
        messages=[
            turn(
                "user",
                {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "d"}},
                {"type": "search_result", "source": "s", "title": "t", "content": [text("c")]},
            ),
            turn("assistant", {"type": "redacted_thinking", "data": "EqQB"}, text("A", citations=[{"type": "x"}])),
        ]
    ),
    "an effort and a shape": request(
        output_config={"effort": "xhigh", "format": {"type": "json_schema", "schema": SCHEMA}},
        thinking={"type": "adaptive", "display": "omitted"},
    ),
    "a budget to think": request(max_tokens=4_096, thinking={"type": "enabled", "budget_tokens": 2_048}),
    "a budget to think unseen": request(
        max_tokens=4_096, thinking={"type": "enabled", "budget_tokens": 2_048, "display": "omitted"}
    ),
    "no thoughts": request(thinking={"type": "disabled"}),
    "an effort without thoughts": request(output_config={"effort": "low"}, thinking={"type": "disabled"}),
    "what no field covers": request(
        service_tier="auto", cache_control=EPHEMERAL, container="c", speed="fast", output_config={"task_budget": 5}
    ),
}


MARKED = request(
    cache_control=EPHEMERAL,
    system=[text("Be brief.", cache_control=EPHEMERAL)],
    messages=[
        turn("user", text("Look:"), {**PICTURE, "cache_control": EPHEMERAL}),
        turn("assistant", THOUGHT, text("I look."), {**USE, "cache_control": EPHEMERAL}),
        turn("user", {**RESULT, "cache_control": EPHEMERAL}),
        turn(
            "user",
            {
                "type": "document",
                "source": {"type": "text", "media_type": "text/plain", "data": "d"},
                "cache_control": EPHEMERAL,
            },
            text("So?", cache_control={"type": "ephemeral"}),
        ),
    ],
    tools=[
        {"name": "weather", "description": "Tells.", "input_schema": SCHEMA, "cache_control": EPHEMERAL},
        {"type": "web_search_20260209", "name": "web_search", "cache_control": EPHEMERAL},
    ],
)


def unmarked(value: Any) -> Any:
    if isinstance(value, list):
        return [unmarked(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {name: unmarked(one) for name, one in value.items() if name != "cache_control"}


def asked(body: Any, protocol: WireProtocol = PROTOCOL, target: Target = TARGET) -> Request:
    return protocol.encode(DIALECT.read(body, "anthropic/{}".format).call, target)


@pytest.mark.parametrize("is_streamed", [False, True])
def test_what_shall_be_cached_is_said_to_anthropic_and_changes_no_key(is_streamed: bool) -> None:
    given = {**MARKED, "stream": is_streamed}
    sent, plain = asked(given), asked(unmarked(given))
    expected = {**MARKED, **({"stream": True} if is_streamed else {})}
    # What a result is followed by is said in its turn.
    *turns, result, last = MARKED["messages"]
    expected["messages"] = [*turns, turn("user", *result["content"], *last["content"])]
    assert orjson.loads(sent.wire) == expected and b"cache_control" not in sent.body
    assert sent.body == plain.body and key_of(sent, 0) == key_of(plain, 0)
    assert (sent.prompt, sent.params) == (plain.prompt, plain.params)
    assert orjson.loads(plain.wire) == {**unmarked(expected), "system": "Be brief."}


def test_one_text_that_is_marked_has_the_key_of_that_text() -> None:
    marked = request(
        system=[text("s", cache_control=EPHEMERAL)], messages=[turn("user", text("x", cache_control=EPHEMERAL))]
    )
    sent = asked(marked)
    assert sent.body == asked(request(system="s")).body and orjson.loads(sent.wire) == marked


def test_claude_on_vertex_is_told_what_shall_be_cached() -> None:
    target = Target("http://h", "h", MODEL, "vertex", version="vertex-2023-10-16")
    sent = asked(MARKED, VERTEX, target)
    assert sent.wire.count(b'"cache_control"') == orjson.dumps(MARKED).count(b'"cache_control"') == 9
    assert b"cache_control" not in sent.body


def test_marks_weigh_nothing_and_what_they_stand_on_weighs_once() -> None:
    marked, plain = (DIALECT.read(body, "anthropic/{}".format).call for body in (MARKED, unmarked(MARKED)))
    assert chars_of(marked) == chars_of(plain)


@pytest.mark.parametrize("name", SAME)
def test_what_a_client_asks_is_asked_of_anthropic(name: str) -> None:
    assert again(SAME[name]) == SAME[name]


@pytest.mark.parametrize(
    ("given", "written"),
    [
        (request(metadata={"user_id": "u"}, diagnostics={"previous_message_id": "m"}), request()),
        (request(temperature=None, system=None, tools=[]), request()),
        (
            request(tools=[{"type": "custom", "name": "n", "input_schema": SCHEMA, "cache_control": EPHEMERAL}]),
            request(tools=[{"name": "n", "input_schema": SCHEMA, "cache_control": EPHEMERAL}]),
        ),
        (
            request(output_format={"type": "json_schema", "schema": SCHEMA}),
            request(output_config={"format": {"type": "json_schema", "schema": SCHEMA}}),
        ),
    ],
)
def test_what_is_left_out_is_left_out_on_purpose(given: Any, written: Any) -> None:
    assert again(given) == written


def test_what_is_said_here_is_what_anthropics_own_types_allow() -> None:
    """The pictures of requests above are no invention."""
    messages = TypeAdapter(list[types.MessageParam])
    for body in (SAME["images"], SAME["thoughts, calls of tools and results"]):
        messages.validate_python(body["messages"])


def test_a_properties_order_is_kept() -> None:
    body = request(tools=[{"name": "n", "input_schema": SCHEMA}])
    assert list(again(body)["tools"][0]["input_schema"]["properties"]) == ["place", "day"]
