"""A key that an answer spells out in a tool call or a thought, piece by piece: none of the answer is kept."""

from __future__ import annotations

import json
from typing import Any

import chat_shapes
import orjson
import pytest
import response_shapes
from endpoints import CANARY

from millstream.engine.call import Reply
from millstream.engine.endpoint import Fault, Response
from millstream.providers.credentials.authorizer import bearer
from millstream.providers.llm.openai import chat as openai_chat
from millstream.providers.llm.openai import responses as openai_responses
from millstream.providers.llm.protocol import Target, WireProtocol
from millstream.providers.transport.endpoint import ModelEndpoint
from millstream.providers.transport.transport import Transport

HALVES = (CANARY[:15], CANARY[15:])
CLEAN = ("sk-canary/7f+", "another thing altogether, long enough")


def decoded(protocol: WireProtocol, *parts: bytes) -> Reply | Fault:
    endpoint = ModelEndpoint(protocol, Target("http://127.0.0.1:1", "lab", "m"), bearer(CANARY), Transport(), 1.0)
    return endpoint.decode(Response(200, b"".join(parts), stream=True))


def call_delta(**function: Any) -> dict[str, Any]:
    return {"tool_calls": [{"index": 0, "function": function}]}


def in_json(text: str) -> str:
    """As it stands in arguments that are JSON: with every slash escaped."""
    return json.dumps(text)[1:-1].replace("/", "\\/")


DELTAS: dict[str, Any] = {
    "arguments": lambda piece: call_delta(arguments=piece),
    "arguments, escaped": lambda piece: call_delta(arguments=in_json(piece)),
    "a name": lambda piece: call_delta(name=piece),
    "a thought": lambda piece: {"reasoning_content": piece},
    "a thought's details": lambda piece: {"reasoning_details": [{"type": "x", "index": 0, "text": piece}]},
    "a thought among the content": lambda piece: {
        "content": [{"type": "thinking", "thinking": [{"type": "text", "text": piece}]}]
    },
}


@pytest.mark.parametrize("place", DELTAS)
@pytest.mark.parametrize("pieces", [HALVES, CLEAN], ids=["key", "clean"])
def test_a_chat_completion_that_spells_the_key_beside_its_text_is_none(place: str, pieces: tuple[str, str]) -> None:
    begun = chat_shapes.chunk({"content": "A", "tool_calls": [{"index": 0, "id": "c", "function": {"name": ""}}]})
    parts = [chat_shapes.chunk(DELTAS[place](piece)) for piece in pieces]
    result = decoded(openai_chat.PROTOCOL, begun, *parts, chat_shapes.chunk({}, "tool_calls"))
    if pieces is CLEAN:
        assert isinstance(result, Reply) and any(pieces[1] in repr(part) for part in result.parts)
    else:
        assert isinstance(result, Fault) and result.action == "never" and "spells out the key" in result.detail
        assert CANARY not in repr(result)


# Escapes that the search through bytes undoes in one go, and a parser in two.
NUMBERED = "".join(f"\\u{ord(sign):04x}" for sign in CANARY)
ITEMS: dict[str, dict[str, Any]] = {
    "arguments": {"type": "function_call", "call_id": "c", "name": "f", "arguments": CANARY},
    "arguments, by number": {"type": "function_call", "call_id": "c", "name": "f", "arguments": f'"{NUMBERED}"'},
    "an id": {"type": "function_call", "call_id": CANARY, "name": "f", "arguments": "{}"},
    "what is said beside": {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}", "id": CANARY},
    "a thought": {"type": "reasoning", "summary": [{"type": "summary_text", "text": CANARY}]},
    "a tool of the provider's own": {"type": "web_search_call", "action": {"query": CANARY}},
}


@pytest.mark.parametrize("place", ITEMS)
def test_a_response_that_holds_the_key_in_any_item_is_none(place: str) -> None:
    def last(item: dict[str, Any]) -> bytes:
        output = [item, response_shapes.said("A")]
        return response_shapes.event("response.completed", response=response_shapes.response(output=output))

    result = decoded(openai_responses.PROTOCOL, last(ITEMS[place]))
    assert isinstance(result, Fault) and "spells out the key" in result.detail
    clean = orjson.loads(orjson.dumps(ITEMS[place]).replace(CANARY.encode(), b"clean"))
    if "by number" not in place:
        assert isinstance(decoded(openai_responses.PROTOCOL, last(clean)), Reply)
