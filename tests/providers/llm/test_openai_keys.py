"""Keys of calls as they were before there were tools: what was paid for stays found."""

from __future__ import annotations

import pytest

from millstream.engine.call import Call, Message
from millstream.engine.key import key_of
from millstream.providers.llm.openai import azure
from millstream.providers.llm.openai import chat as openai_chat
from millstream.providers.llm.openai import responses as openai_responses
from millstream.providers.llm.protocol import Target, WireProtocol

URL = "http://127.0.0.1:8000/v1"
TARGET = Target(URL, URL, "m", "openai")
SCHEMA = {"title": "Stance", "type": "object", "properties": {"z": {"type": "string"}, "a": {"type": "string"}}}
TURNS = (Message("system", "Be brief."), Message("user", "Ä ✓"), Message("assistant", "A"), Message("tool", "x"))
CALLS = (
    Call("openai/m", "Say A or B."),
    Call("openai/m", TURNS, temperature=0, max_tokens=9, trial=3),
    Call(
        "openai/m",
        "x",
        json_schema=SCHEMA,
        logprobs=2,
        reasoning_effort="low",
        top_p=1,
        extra={"tools": [{"type": "function", "b": 1, "a": 2}], "user": "u"},
    ),
)
KEYS = (
    (
        openai_chat.PROTOCOL,
        "f7676ce07d75fa949e53a8fba4d6a5aa1a72c4f37ba97ad4fde0a414ec016770",
        "5072e34a15d39f3ed575836bf9368e9882f7192f1684715714f2c6ed703eede5",
        "86b5c4e16de70b1299aaa84ae645f033adf57c8fb4f70f814a57c504fa80956d",
    ),
    (
        openai_responses.PROTOCOL,
        "584c10d376d91511b10c655220534b589fdd77c15753324e8404d2b8e70b78da",
        "8f76e2c0150cd98d28c8c05046daaa2cf1d257cb3990b0094615f7011ec412b3",
        "412ac3c3aa20d0264e6604fdbced4cb8b9ddf7159648e7ce557d763907215b5f",
    ),
    (
        azure.PROTOCOL,
        "abe74e5de055b3f3920172f07d914f1c6ccfdeb4bc30912a060d53e7bfadf63d",
        "690d6ae42f72dd2ae3614977ddf7dba78629944d2e4839c9b3c935b2fccc947b",
        "067ba16290d2088f05589e031237dbde726e18eae513eea0ccf4067411f17de2",
    ),
)


@pytest.mark.parametrize(("protocol", "keys"), [(protocol, keys) for protocol, *keys in KEYS])
def test_keys_of_calls_without_tools_and_parts_never_change(protocol: WireProtocol, keys: list[str]) -> None:
    assert [key_of(protocol.encode(call, TARGET), call.trial).hex() for call in CALLS] == keys
