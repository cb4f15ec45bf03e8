"""Calls that differ in their prompt alone are written from one, to the bytes that their protocol's encoder writes."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from protocols import ROWS
from torture import times

from millstream.engine.call import Call, Message
from millstream.engine.content import Tool
from millstream.engine.endpoint import EncodeError, Request
from millstream.engine.key import key_of
from millstream.providers.credentials.authorizer import NO_CREDENTIALS
from millstream.providers.llm import bedrock_claude, vertex
from millstream.providers.llm.openai import azure
from millstream.providers.llm.openai import chat as openai_chat
from millstream.providers.llm.protocol import Target, WireProtocol
from millstream.providers.search.table import ENGINES
from millstream.providers.transport.endpoint import ModelEndpoint

PROTOCOLS: dict[str, WireProtocol] = {
    **{name: row.wire for name, row in ROWS.items()},
    "azure": azure.PROTOCOL,
    "gemini on vertex": vertex.GEMINI,
    "claude on bedrock": bedrock_claude.PROTOCOL,
    **{name: engine.protocol for name, engine in ENGINES.items()},
}
FAST: dict[str, Any] = {"service_tier": "flex"}
TARGETS = [
    Target("http://h/v1", "lab", "m", "p", version="2023-06-01"),
    Target("http://h", "lab", "user", "p", project="pr", region="eu", store=False, tiers=(FAST, {})),
    Target("http://h", "lab", "m", "p", extra={"top_k": 3, "note": "x"}, refuses=frozenset({"seed", "stream_options"})),
]
# Texts that other values of a body have too, or that look like the JSON between two of them.
ODD = ["", "user", "role", "m", "x", ":", ",", '","', '":"', '"', "\\", '\\"', "\x00", "\ud800", "\U0001f600", " x "]
PROMPTS = st.lists(st.text() | st.sampled_from(ODD), min_size=2, max_size=5)
SCHEMA = {"type": "object", "properties": {"b": {"type": "string"}, "a": {"const": "x"}}}
PARAMETERS = st.fixed_dictionaries(
    {},
    optional={
        "temperature": st.sampled_from([0, 0.0, -0.0, 1, 1.0, 0.7, float("nan")]),
        "max_tokens": st.sampled_from([1, 100]),
        "top_p": st.sampled_from([1, 1.0, 0.5]),
        "stop": st.lists(st.sampled_from(ODD), max_size=3),
        "seed": st.sampled_from([0, 1, 2**70]),
        "extra": st.sampled_from([{"note": "x"}, {"a": ["user", {"b": "m"}]}, {"n": 1}, {"n": 1.0}, {"n": True}]),
        "stream": st.booleans(),
        "reasoning_effort": st.sampled_from(["low", "x", "100", "none"]),
        "json_schema": st.just(SCHEMA),
        "logprobs": st.sampled_from([0, 3]),
        "tools": st.just((Tool("f", "x", {"type": "object"}),)),
        "tool_choice": st.sampled_from(["auto", "none"]),
        "parallel_tools": st.booleans(),
        "trial": st.sampled_from([0, 7]),
        "tag": st.just("x"),
    },
)


def endpoint(protocol: WireProtocol, target: Target = TARGETS[0]) -> ModelEndpoint:
    return ModelEndpoint(protocol, target, NO_CREDENTIALS)


def written(at: ModelEndpoint, call: Call) -> tuple[Request, bytes] | str:
    """Returns the request with its key, or the error."""
    try:
        request = at.encode(call)
    except EncodeError as error:
        return str(error)
    return request, key_of(request, call.trial)


@pytest.mark.parametrize("name", PROTOCOLS)
@given(target=st.sampled_from(TARGETS), every=st.lists(PARAMETERS, min_size=1, max_size=3), prompts=PROMPTS)
@settings(max_examples=times(30, 600), deadline=None)
def test_any_call_is_written_as_if_it_were_the_first(
    name: str, target: Target, every: list[dict[str, Any]], prompts: list[str]
) -> None:
    used = endpoint(PROTOCOLS[name], target)
    for prompt in [*prompts, "a prompt that nothing else is", *prompts]:
        for parameters in every:
            for content in (prompt, (Message("user", prompt),)):
                call = Call("p/m", content, **parameters)
                assert written(used, call) == written(endpoint(PROTOCOLS[name], target), call)


class Counted:
    """An encoder that counts its calls."""

    def __init__(self, protocol: WireProtocol) -> None:
        self.calls = 0
        self._encode = protocol.encode
        self.protocol = structs.replace(protocol, encode=self.encode)

    def encode(self, call: Call, target: Target) -> Request:
        self.calls += 1
        return self._encode(call, target)


@pytest.mark.parametrize("name", [name for name, protocol in PROTOCOLS.items() if name not in ENGINES])
def test_a_protocol_writes_the_first_call_of_a_form(name: str) -> None:
    counted = Counted(PROTOCOLS[name])
    at = endpoint(counted.protocol)
    for number in range(20):
        text = f"prompt {number}"
        prompt = text if number % 3 else (Message("user", text),)
        at.encode(Call("p/m", prompt, max_tokens=9, stream=number % 2 == 0, trial=number))
    assert counted.calls == 2


def test_a_protocol_that_may_write_a_prompt_otherwise_writes_every_call() -> None:
    counted = Counted(structs.replace(openai_chat.PROTOCOL, is_verbatim=False))
    at = endpoint(counted.protocol)
    for number in range(20):
        at.encode(Call("p/m", f"prompt {number}"))
    assert counted.calls == 20


def test_any_number_of_forms_needs_no_more_memory() -> None:
    counted = Counted(openai_chat.PROTOCOL)
    at = endpoint(counted.protocol)
    for seed in (0, 0, *range(1, 300), 0):
        at.encode(Call("p/m", "any prompt", seed=seed))
    assert counted.calls == 301


def test_a_form_does_not_keep_the_prompt_it_was_made_from() -> None:
    at = endpoint(openai_chat.PROTOCOL, TARGETS[1])
    tracemalloc.start()
    try:
        for seed in range(8):
            at.encode(Call("p/m", "long " * 100_000, seed=seed, stream=True))
        assert tracemalloc.get_traced_memory()[0] < 500_000
    finally:
        tracemalloc.stop()
