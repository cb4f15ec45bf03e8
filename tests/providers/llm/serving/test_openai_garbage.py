"""Whatever a body holds, it is read as a call or refused in a client's own words, and nothing else happens."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.engine.call import Outcome, Reply
from millstream.engine.content import texts_in
from millstream.engine.endpoint import EncodeError
from millstream.providers.llm.openai import chat as chat_wire
from millstream.providers.llm.openai import responses as responses_wire
from millstream.providers.llm.openai import serve_chat as openai_chat
from millstream.providers.llm.openai import serve_responses as openai_responses
from millstream.providers.llm.protocol import Target, WireProtocol
from millstream.providers.llm.serve_dialect import Dialect, RequestRefusal

TARGET = Target("http://127.0.0.1:1/v1", "there", "m", "openai")
WORDS = (
    "model", "messages", "input", "role", "content", "type", "text", "image_url", "url", "user", "assistant", "tool",
    "tool_calls", "function", "function_call", "function_call_output", "name", "arguments", "id", "call_id", "output",
    "tool_call_id", "tools", "tool_choice", "response_format", "json_schema", "schema", "strict", "title", "format",
    "temperature", "stop", "n", "seed", "logprobs", "top_logprobs", "stream", "stream_options", "include_usage",
    "message", "reasoning", "effort", "include", "input_text", "output_text", "input_image", "refusal", "parameters",
    "max_tokens", "max_output_tokens", "instructions", "auto", "extra_content", "gemini", "modalities", "store",
)  # fmt: skip
names = st.sampled_from(WORDS)
texts = names | st.text(max_size=6) | st.text(st.characters(codec=None, categories=None), max_size=3)
plain = st.none() | st.booleans() | st.integers() | st.floats() | texts
values = st.recursive(
    plain, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names | texts, inner, max_size=5), max_leaves=12
)
SOUND: dict[str, Any] = {
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
each_dialect = pytest.mark.parametrize(
    ("dialect", "wire"),
    [(openai_chat.DIALECT, chat_wire.PROTOCOL), (openai_responses.DIALECT, responses_wire.PROTOCOL)],
    ids=["chat", "responses"],
)


def judge(dialect: Dialect, wire: WireProtocol, body: Any) -> None:
    try:
        asked = dialect.read(body, "openai/{}".format)
    except RequestRefusal as refused:
        told = orjson.loads(dialect.problem(refused.problem))["error"]
        assert told["message"]
        assert told["type"] == "invalid_request_error"
        return
    # What was read can be weighed, written or refused in one line, and answered.
    for message in asked.call.messages():
        list(texts_in(message.content))
    try:
        orjson.loads(wire.encode(asked.call, TARGET).wire)
    except EncodeError as error:
        assert str(error)
    outcome = Outcome(asked.call, Reply("a", None, "stop"))
    assert orjson.loads(dialect.whole(asked, [outcome] * asked.count))["model"] is not None
    stream = dialect.stream(asked)
    assert b'"a"' in stream.begin() + stream.end([outcome] * asked.count)


@each_dialect
@given(model=texts, asked=values, rest=st.dictionaries(names, values, max_size=4))
@settings(max_examples=150, deadline=None)
def test_garbage_is_refused_or_read_and_nothing_else(
    dialect: Dialect, wire: WireProtocol, model: str, asked: Any, rest: dict[str, Any]
) -> None:
    judge(dialect, wire, {"model": model, "messages": asked, "input": asked, **rest})


def places_in(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for name, one in inner for place in places_in(one, (*path, name)))]


PLACES = places_in(SOUND)[1:]


def changed(value: Any, path: tuple[Any, ...], to: Any) -> Any:
    if not path:
        return to
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed(value[path[0]], path[1:], to)
    return copy


@each_dialect
def test_the_body_that_is_spoilt_here_is_sound(dialect: Dialect, wire: WireProtocol) -> None:
    assert dialect.read(SOUND, "openai/{}".format).model == "m"


@each_dialect
@given(place=st.sampled_from(PLACES), value=values)
@settings(max_examples=250, deadline=None)
def test_a_request_with_one_wrong_place_is_refused_or_read_and_nothing_else(
    dialect: Dialect, wire: WireProtocol, place: tuple[Any, ...], value: Any
) -> None:
    judge(dialect, wire, changed(SOUND, place, value))


@each_dialect
@pytest.mark.parametrize("value", [None, True, 5, -0.5, "x", [], [5], {}, {"type": 5}, {"type": "x"}], ids=repr)
def test_every_place_of_a_request_takes_every_kind_of_value_or_refuses_it(
    dialect: Dialect, wire: WireProtocol, value: Any
) -> None:
    for place in PLACES:
        judge(dialect, wire, changed(SOUND, place, value))
