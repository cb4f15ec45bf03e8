"""A request to Anthropic Messages, read and written again for Anthropic: the same, but for what is left out on purpose.

Left out or written in another way: metadata and diagnostics; cache_control inside blocks and tools; that a tool is the
caller's own (`type: custom`); a text in a list of its own; `null`, and a choice that says nothing.
"""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from anthropic import types
from pydantic import TypeAdapter

from millstream.interfaces.dialects.anthropic_messages import DIALECT
from millstream.providers.llm.anthropic import OLDER_VERSION, PROTOCOL
from millstream.providers.llm.protocol import Target

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


@pytest.mark.parametrize("name", SAME)
def test_what_a_client_asks_is_asked_of_anthropic(name: str) -> None:
    assert again(SAME[name]) == SAME[name]


@pytest.mark.parametrize(
    ("given", "written"),
    [
        (request(metadata={"user_id": "u"}, diagnostics={"previous_message_id": "m"}), request()),
        (request(temperature=None, system=None, tools=[]), request()),
        (
            request(system=[text("a", cache_control=EPHEMERAL)], messages=[turn("user", text("x"))]),
            request(system="a"),
        ),
        (
            request(messages=[turn("user", text("x"), {**PICTURE, "cache_control": EPHEMERAL})]),
            request(messages=[turn("user", text("x"), PICTURE)]),
        ),
        (
            request(tools=[{"type": "custom", "name": "n", "input_schema": SCHEMA, "cache_control": EPHEMERAL}]),
            request(tools=[{"name": "n", "input_schema": SCHEMA}]),
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
