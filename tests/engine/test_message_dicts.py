"""Messages given as dicts are the messages that `ms.Message` makes, and anything else is refused."""

from __future__ import annotations

from typing import Any

import pytest

from millstream.engine.call import Call, Message
from millstream.engine.content import Image, ToolCall, ToolResult
from millstream.engine.key import key_of
from millstream.providers.llm.openai.chat import encode
from millstream.providers.llm.protocol import Target

MODEL = "openai/gpt-4o-mini"


def test_dicts_make_the_same_call_as_messages() -> None:
    dicts = Call(MODEL, [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Say A or B."}])
    assert dicts == Call(MODEL, (Message("system", "Be brief."), Message("user", "Say A or B.")))


def test_a_call_of_dicts_has_the_cache_key_of_its_messages() -> None:
    dicts = Call(MODEL, [{"role": "user", "content": [{"type": "text", "text": "Say A."}]}])
    messages = Call(MODEL, (Message("user", ("Say A.",)),))
    target = Target("https://api.example/v1", "openai", "gpt-4o-mini")
    assert key_of(encode(dicts, target), 0) == key_of(encode(messages, target), 0)


def test_dicts_and_messages_may_stand_in_one_list() -> None:
    call = Call(MODEL, [Message("system", "Be brief."), {"role": "user", "content": "Say A."}])
    assert call.input == (Message("system", "Be brief."), Message("user", "Say A."))


def test_texts_images_tool_calls_and_results_become_parts() -> None:
    function = {"name": "weather", "arguments": '{"city": "Oslo"}'}
    tool_call = {"id": "1", "type": "function", "function": function}
    call = Call(
        MODEL,
        [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Where is this?"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA==", "detail": "low"}},
                ],
            },
            {"role": "assistant", "content": None, "tool_calls": [tool_call]},
            {"role": "tool", "tool_call_id": "1", "content": "rain"},
        ],
    )
    assert call.input == (
        Message("user", ("Where is this?", Image("data:image/png;base64,AA==", "low"))),
        Message("assistant", (ToolCall("1", "weather", '{"city": "Oslo"}'),)),
        Message("tool", (ToolResult("1", "rain"),)),
    )


def test_fields_of_sdks_that_hold_none_are_left_out() -> None:
    call = Call(MODEL, [{"role": "assistant", "content": "A", "refusal": None, "tool_calls": None}])
    assert call.input == (Message("assistant", "A"),)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"role": "bot", "content": "A"}, "role must be one of system, developer, user, assistant, tool; came 'bot'"),
        ({"content": "A"}, "role must be one of system, developer, user, assistant, tool; came None"),
        ({"role": "user"}, "a message of the role user must have content; came ['role']"),
        ({"role": "user", "content": "A", "name": "Ann"}, "role user may have role, content; came 'name' too"),
        ({"role": "user", "content": "A", "tool_calls": []}, "role user may have role, content; came 'tool_calls' too"),
        ({"role": "user", "content": 3}, "a message's content must be a list; came 3, a int"),
        ({"role": "user", "content": [{"type": "audio"}]}, "type must be text or image_url; came 'audio'"),
        ({"role": "user", "content": [{"type": "text"}]}, "a text part's text must be text; came None"),
        ({"role": "tool", "content": "rain"}, "role tool's tool_call_id must be text; came None"),
        ({"role": "assistant", "tool_calls": ["x"]}, "a tool call must be a mapping; came 'x'"),
    ],
)
def test_another_role_key_or_part_is_refused_with_what_is_allowed(given: dict[str, Any], expected: str) -> None:
    with pytest.raises((TypeError, ValueError)) as refused:
        Call(MODEL, [given])
    assert expected in str(refused.value)
