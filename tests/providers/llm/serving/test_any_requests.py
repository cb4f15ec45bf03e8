"""Any request to any served dialect, however odd or deep, is a call that can be sent and answered, or is refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct
from mutations import JSON, mutated, paths_in
from torture import times

from millstream.engine.call import Outcome, Reply
from millstream.engine.content import texts_in
from millstream.engine.endpoint import EncodeError
from millstream.providers.llm.anthropic import messages as anthropic
from millstream.providers.llm.anthropic import serve_messages
from millstream.providers.llm.google import generate as gemini
from millstream.providers.llm.google import serve_generate
from millstream.providers.llm.openai import chat as openai_chat
from millstream.providers.llm.openai import responses as openai_responses
from millstream.providers.llm.openai import serve_chat, serve_responses
from millstream.providers.llm.protocol import Target, WireProtocol
from millstream.providers.llm.serve_dialect import Dialect, RequestRefusal

TARGET = Target("http://127.0.0.1:1", "there", "m", "p", version="2023-06-01")
DEEP: Any = orjson.loads(b'{"items":' * 900 + b"1" + b"}" * 900)


def in_messages(**changes: Any) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}], **changes}


def in_gemini(**changes: Any) -> dict[str, Any]:
    return {"model": "m", "contents": [{"role": "user", "parts": [{"text": "x"}]}], **changes}


DEEP_BLOCKS = [
    {"type": "document", "source": DEEP},
    {"type": "text", "text": DEEP},
    {"type": "text", "text": "x", "citations": [DEEP]},
    {"type": "tool_use", "id": "t", "name": "n", "input": DEEP},
    {"type": "tool_use", "id": "t", "name": "n", "input": {}, "caller": DEEP},
    {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "document", "source": DEEP}]},
]
DEEP_MESSAGES: list[dict[str, Any]] = [
    *({"messages": [{"role": "user", "content": [block]}]} for block in DEEP_BLOCKS),
    {"temperature": DEEP},
    {"container": DEEP},
    {"output_config": {"format": {"type": "json_schema", "schema": DEEP}}},
    {"tools": [{"name": "n", "input_schema": DEEP}]},
    {"tools": [{"type": "bash_20250124", "name": DEEP}]},
    {"tool_choice": {"type": "tool", "name": "auto", "more": DEEP}},
]
MESSAGES = [
    in_messages(
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
    in_messages(
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
DEEP_PARTS = [
    {"executableCode": DEEP},
    {"text": DEEP},
    {"functionCall": {"name": "n", "args": DEEP}},
    {"functionCall": {"name": "n"}, "thoughtSignature": DEEP},
    {"functionResponse": {"name": "n", "response": DEEP}},
    {"functionResponse": {"name": "n", "response": {}, "scheduling": DEEP}},
    {"inlineData": {"mimeType": "a/b", "data": "", "more": DEEP}},
]
DEEP_GEMINI: list[dict[str, Any]] = [
    *({"contents": [{"parts": [part]}]} for part in DEEP_PARTS),
    {"cachedContent": DEEP},
    {"tools": [{"functionDeclarations": [{"name": "n", "parameters": DEEP}]}]},
    {"tools": [{"functionDeclarations": [{"name": "n", "behavior": DEEP}]}]},
    {"tools": [{"googleSearch": DEEP}]},
    {"generationConfig": {"responseMimeType": "application/json", "responseSchema": DEEP}},
    {"generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": DEEP}},
    {"generationConfig": {"temperature": DEEP}},
    {"toolConfig": {"retrievalConfig": DEEP}},
]
FUNCTION = {"name": "weather", "parameters": {"type": "OBJECT", "nullable": True, "required": ["a"]}}
GEMINI = [
    in_gemini(
        systemInstruction={"parts": [{"text": "Be brief."}]},
        safetySettings=[{"category": "c"}],
        tools=[{"functionDeclarations": [FUNCTION, {"name": "n", "parametersJsonSchema": {}}], "googleSearch": {}}],
        toolConfig={"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["weather"]}},
        generationConfig={
            "temperature": 0.5,
            "topK": 40,
            "maxOutputTokens": 9,
            "stopSequences": ["END"],
            "candidateCount": 2,
            "responseLogprobs": True,
            "logprobs": 2,
            "responseMimeType": "application/json",
            "responseSchema": {
                "type": "OBJECT",
                "properties": {"a": {"anyOf": [{"type": "STRING", "enum": ["A"]}]}, "b": {"items": {"minItems": "1"}}},
                "propertyOrdering": ["b", "a"],
            },
            "thinkingConfig": {"thinkingBudget": 512, "includeThoughts": True},
        },
    ),
    in_gemini(
        contents=[
            {
                "role": "model",
                "parts": [
                    {"text": "I think.", "thought": True},
                    {"functionCall": {"id": "w", "name": "weather", "args": {"a": 1}}, "thoughtSignature": "Eu4B"},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {
                        "functionResponse": {
                            "name": "weather",
                            "response": {"output": "rain"},
                            "parts": [{"inlineData": {"mimeType": "image/png", "data": "iVBO"}}],
                        }
                    },
                    {"fileData": {"fileUri": "https://one.example/a.png", "mimeType": "image/png"}},
                ],
            },
        ]
    ),
]
OPENAI: dict[str, Any] = {
    "model": "m",
    "messages": [
        {"role": "system", "content": [{"type": "text", "text": "s"}]},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "u", "detail": "low"}}], "name": "ann"},
        {"role": "assistant", "content": "a", "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"},
             "extra_content": {"gemini": {}}},
        ]},
        {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "t"}]},
    ],
    "input": [
        {"role": "user", "content": [{"type": "input_text", "text": "s"}, {"type": "input_image", "image_url": "u"}]},
        {"type": "reasoning", "id": "r", "summary": []},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "t"}]},
    ],
    "temperature": 0.5, "top_p": 1, "stop": ["a"], "seed": 1, "n": 2, "stream": True, "max_tokens": 5,
    "max_output_tokens": 5, "stream_options": {"include_usage": True}, "logprobs": True, "top_logprobs": 2,
    "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"title": "n"}, "strict": True}},
    "text": {"format": {"type": "json_schema", "name": "n", "schema": {"title": "n"}, "strict": True}},
    "reasoning": {"effort": "low", "summary": "auto"}, "include": ["x"], "instructions": "i", "store": False,
    "tools": [{"type": "function", "name": "f", "function": {"name": "f", "parameters": {"type": "object"}}}],
    "tool_choice": {"type": "function", "name": "f", "function": {"name": "f"}}, "parallel_tool_calls": True,
    "logit_bias": {"1": 2}, "metadata": {"a": "b"}, "reasoning_effort": "low", "modalities": ["text"],
}  # fmt: skip
# A deep turn, tool, schema and parameter of OpenAI's.
DEEP_OPENAI: list[dict[str, Any]] = [
    {
        "messages": [{"role": "user", "content": [{"type": "file", "file": DEEP}]}],
        "input": [{"type": "x", "more": DEEP}],
    },
    {"tools": [{"type": "function", "name": "n", "parameters": DEEP, "function": {"name": "n", "parameters": DEEP}}]},
    {"tools": [{"type": "new", "more": DEEP}]},
    {
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": DEEP}},
        "text": {"format": {"type": "json_schema", "name": "n", "schema": DEEP}},
    },
    {"temperature": DEEP},
    {"new": DEEP},
]


class ServedRow(Struct, frozen=True):
    """A dialect, the protocol of its own provider, and requests to it."""

    dialect: Dialect
    wire: WireProtocol
    sound: Sequence[dict[str, Any]]
    deep: Sequence[dict[str, Any]]
    """Fields that make a request too deep to be written."""
    plain: dict[str, Any]
    refusal: bytes = b"invalid_request_error"
    """The dialect's word for a wrong request."""

    def judge(self, body: Any) -> None:
        """Checks that a request is refused, or is a call that can be weighed, sent or refused, and answered."""
        try:
            asked = self.dialect.read(body, "p/{}".format)
        except RequestRefusal as refused:
            assert refused.problem.message
            problem = self.dialect.problem(refused.problem)
            assert orjson.loads(problem)["error"]["message"]
            assert self.refusal in problem
            return
        for message in asked.call.messages():
            list(texts_in(message.content))
        try:
            orjson.loads(self.wire.encode(asked.call, TARGET).wire)
        except EncodeError as error:
            assert str(error)
        outcome = Outcome(asked.call, Reply("a", None, "stop"))
        assert orjson.loads(self.dialect.whole(asked, [outcome] * asked.count))
        stream = self.dialect.stream(asked)
        assert b'"a"' in stream.begin() + stream.end([outcome] * asked.count)


PLAIN = {"model": "m", "messages": [{"role": "user", "content": "x"}], "input": "x"}
ROWS = {
    "chat": ServedRow(serve_chat.DIALECT, openai_chat.PROTOCOL, [OPENAI], DEEP_OPENAI, PLAIN),
    "responses": ServedRow(serve_responses.DIALECT, openai_responses.PROTOCOL, [OPENAI], DEEP_OPENAI, PLAIN),
    "anthropic": ServedRow(serve_messages.DIALECT, anthropic.PROTOCOL, MESSAGES, DEEP_MESSAGES, in_messages()),
    "gemini": ServedRow(serve_generate.DIALECT, gemini.PROTOCOL, GEMINI, DEEP_GEMINI, in_gemini(), b"INVALID_ARGUMENT"),
}
each_dialect = pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
DEEP_REQUESTS = [(row, changes) for row in ROWS.values() for changes in row.deep]


@each_dialect
def test_the_requests_that_are_changed_here_are_sound(row: ServedRow) -> None:
    for body in row.sound:
        assert row.dialect.read(body, "p/{}".format).call.input


@pytest.mark.parametrize(("row", "changes"), DEEP_REQUESTS)
def test_a_request_that_is_too_deep_to_be_written_again_is_refused(row: ServedRow, changes: dict[str, Any]) -> None:
    assert row.dialect.read(row.plain, "p/{}".format).call.input
    with pytest.raises(RequestRefusal):
        row.dialect.read({**row.plain, **changes}, "p/{}".format)


@each_dialect
@given(st.data())
@settings(max_examples=times(50, 250), deadline=None)
def test_a_request_with_something_odd_in_it_is_a_call_or_refused(row: ServedRow, data: st.DataObject) -> None:
    row.judge(data.draw(mutated(row.sound)))


@each_dialect
@given(
    model=st.text(max_size=6), prompt=JSON, rest=st.dictionaries(st.text(max_size=3), JSON, max_size=4), data=st.data()
)
@settings(max_examples=times(50, 250), deadline=None)
def test_any_json_is_a_call_or_refused(
    row: ServedRow, model: str, prompt: Any, rest: dict[str, Any], data: st.DataObject
) -> None:
    names = st.sampled_from(sorted({name for body in row.sound for name in body}))
    known = data.draw(st.dictionaries(names, JSON, max_size=4))
    row.judge({**rest, "model": model, "messages": prompt, "input": prompt, "contents": prompt, **known})


@each_dialect
@pytest.mark.parametrize("value", [None, True, 5, -0.5, "x", [], [5], {}, {"type": 5}, {"type": "x"}], ids=repr)
def test_every_place_of_a_request_takes_every_kind_of_value_or_refuses_it(row: ServedRow, value: Any) -> None:
    for body in row.sound:
        for path in paths_in(body):
            row.judge(changed(body, path, value))


def changed(value: Any, path: tuple[Any, ...], to: Any) -> Any:
    if not path:
        return to
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed(value[path[0]], path[1:], to)
    return copy
