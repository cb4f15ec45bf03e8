"""Whatever comes to Anthropic Messages is a call or is refused: nothing else is raised, however odd or deep it is."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from mutations import mutated

from millstream.engine.call import Call
from millstream.providers.llm.anthropic.serve_messages import DIALECT
from millstream.providers.llm.serve_dialect import RequestRefusal


def request(**changes: Any) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}], **changes}


def call_of(body: Any) -> Call:
    return DIALECT.read(body, "anthropic/{}".format).call


DEEP: Any = orjson.loads(b'{"a":' * 900 + b"1" + b"}" * 900)
BLOCKS = [
    {"type": "document", "source": DEEP},
    {"type": "text", "text": DEEP},
    {"type": "text", "text": "x", "citations": [DEEP]},
    {"type": "tool_use", "id": "t", "name": "n", "input": DEEP},
    {"type": "tool_use", "id": "t", "name": "n", "input": {}, "caller": DEEP},
    {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "document", "source": DEEP}]},
]


@pytest.mark.parametrize(
    "changes",
    [
        *({"messages": [{"role": "user", "content": [block]}]} for block in BLOCKS),
        {"temperature": DEEP},
        {"container": DEEP},
        {"output_config": {"format": {"type": "json_schema", "schema": DEEP}}},
        {"tools": [{"name": "n", "input_schema": DEEP}]},
        {"tools": [{"type": "bash_20250124", "name": DEEP}]},
        {"tool_choice": {"type": "tool", "name": "auto", "more": DEEP}},
    ],
)
def test_what_is_too_deep_to_be_written_again_is_refused(changes: Any) -> None:
    with pytest.raises(RequestRefusal):
        call_of(request(**changes))


SOUND = [
    request(
        system=[{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        temperature=0.5,
        top_k=5,
        stop_sequences=["END"],
        stream=True,
        metadata={"user_id": "u"},
        thinking={"type": "enabled", "budget_tokens": 2_048},
        output_config={"effort": "low", "format": {"type": "json_schema", "schema": {"type": "object"}}},
        tool_choice={"type": "tool", "name": "weather", "disable_parallel_tool_use": True},
        tools=[
            {"name": "weather", "description": "Tells.", "input_schema": {"type": "object"}, "strict": True},
            {"type": "web_search_20260209", "name": "web_search"},
        ],
    ),
    request(
        messages=[
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "I think.", "signature": "EqQB"},
                    {"type": "text", "text": "A", "citations": []},
                    {"type": "tool_use", "id": "t", "name": "n", "input": {"a": 1}, "caller": {"type": "direct"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "t",
                        "content": [
                            {"type": "text", "text": "rain"},
                            {"type": "image", "source": {"type": "url", "url": "https://one.example/a.png"}},
                        ],
                        "is_error": True,
                    },
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBO"}},
                ],
            },
        ]
    ),
]


@given(mutated(SOUND))
def test_whatever_comes_is_a_call_or_refused_and_nothing_else(body: Any) -> None:
    try:
        assert isinstance(call_of(body), Call)
    except RequestRefusal as refused:
        assert refused.problem.message


@pytest.mark.parametrize("body", SOUND)
def test_what_oddities_are_put_into_is_sound(body: Any) -> None:
    assert call_of(body)
