"""Requests of every wire protocol: their bytes and addresses, what a cache key is made of, and what is refused."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from msgspec import Struct, field
from tool_talk import CLOCK, HERE, SCHEMA, TALK, THERE, TOOLS

from millstream.engine.call import Call, Message
from millstream.engine.content import Native, Tool
from millstream.engine.endpoint import EncodeError, Request
from millstream.engine.key import key_of
from millstream.providers.llm import vertex
from millstream.providers.llm.anthropic import messages as anthropic
from millstream.providers.llm.bedrock import converse as bedrock
from millstream.providers.llm.google import generate as gemini
from millstream.providers.llm.openai import azure
from millstream.providers.llm.openai import chat as openai_chat
from millstream.providers.llm.openai import completions as openai_completions
from millstream.providers.llm.openai import responses as openai_responses
from millstream.providers.llm.protocol import Target, WireProtocol


class RequestRow(Struct, frozen=True):
    """What a protocol sends for the prompt `x` to the model `m` at `http://h`, which a key knows as `lab`."""

    wire: WireProtocol
    body: bytes
    path: str
    """The path, which holds the project `pr` on Vertex AI."""
    stream_path: str | None = None
    """The path of a streamed call; None: the same, and the body says it."""
    identity: str | None = None
    """What stands for the path in a key; None: the path without the project."""
    streamed: dict[str, Any] = field(default_factory=lambda: {"stream": True})
    family: str = "openai"
    """The protocol of its own native parts."""
    prompt: str = "messages"
    sampling: str | None = None
    """The version that takes a temperature; None: any."""
    is_talk: bool = True
    """Whether it takes turns, tools and schemas."""

    def encoded(self, given: Any = "x", **parameters: Any) -> Request:
        return self.to(Target("http://h", "lab", "m", "p", project="pr", region="eu"), given, **parameters)

    def sampled(self, **parameters: Any) -> Request:
        """Returns the request of a version that takes a temperature."""
        target = Target("http://h", "lab", "m", "p", version=self.sampling)
        return self.to(target, **parameters)

    def to(self, target: Target, given: Any = "x", **parameters: Any) -> Request:
        return self.wire.encode(Call("p/m", given, **parameters), target)


CHAT_BODY = b'{"messages":[{"content":"x","role":"user"}],"model":"m"}'
CHAT_STREAM: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
GEMINI_BODY = b'{"contents":[{"parts":[{"text":"x"}],"role":"user"}]}'
MESSAGE = b'"max_tokens":16384,"messages":[{"content":"x","role":"user"}]'
PLACE = "/v1/projects/pr/locations/eu/"
GOOGLES = "/v1beta1/projects/pr/locations/eu/publishers/google/models/m:"
CLAUDES = f"{PLACE}publishers/anthropic/models/m:"
ROWS = {
    "chat": RequestRow(openai_chat.PROTOCOL, CHAT_BODY, "/chat/completions", streamed=CHAT_STREAM),
    "azure": RequestRow(azure.PROTOCOL, CHAT_BODY, "/openai/v1/chat/completions", streamed=CHAT_STREAM),
    "llama on vertex": RequestRow(
        vertex.OPEN, CHAT_BODY, f"{PLACE}endpoints/openapi/chat/completions", streamed=CHAT_STREAM
    ),
    "completions": RequestRow(
        openai_completions.PROTOCOL, b'{"model":"m","prompt":"x"}', "/completions", streamed=CHAT_STREAM,
        prompt="prompt", is_talk=False,
    ),
    "responses": RequestRow(
        openai_responses.PROTOCOL, b'{"input":[{"content":"x","role":"user"}],"model":"m"}', "/responses",
        family="openai-responses", prompt="input",
    ),
    "anthropic": RequestRow(
        anthropic.PROTOCOL, b'{%b,"model":"m"}' % MESSAGE, "/v1/messages",
        identity="/v1/messages (2026-10-21)", family="anthropic", sampling="2023-06-01",
    ),
    "claude on vertex": RequestRow(
        vertex.CLAUDE, b'{"anthropic_version":"2026-10-21",%b}' % MESSAGE, f"{CLAUDES}rawPredict",
        f"{CLAUDES}streamRawPredict", family="anthropic", sampling="vertex-2023-10-16",
    ),
    "gemini": RequestRow(
        gemini.PROTOCOL, GEMINI_BODY, "/v1/models/m:generateContent", "/v1/models/m:streamGenerateContent?alt=sse",
        streamed={}, family="gemini", prompt="contents",
    ),
    "gemini on vertex": RequestRow(
        vertex.GEMINI, GEMINI_BODY, f"{GOOGLES}generateContent", f"{GOOGLES}streamGenerateContent?alt=sse",
        streamed={}, family="gemini", prompt="contents",
    ),
    "bedrock": RequestRow(
        bedrock.PROTOCOL, b'{"messages":[{"content":[{"text":"x"}],"role":"user"}]}', "/model/m/converse",
        "/model/m/converse-stream", streamed={}, family="bedrock",
    ),
}  # fmt: skip
TALKS = {name: row for name, row in ROWS.items() if row.is_talk}
in_each_protocol = pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
in_each_of_turns = pytest.mark.parametrize("row", TALKS.values(), ids=TALKS)


@in_each_protocol
def test_only_what_was_set_is_sent(row: RequestRow) -> None:
    for given in ("x", (Message("user", "x"),)):
        request = row.encoded(given)
        assert request.body == request.wire == row.body
        assert request.url == f"http://h{row.path}"
        identity = row.path.replace("/projects/pr", "") if row.identity is None else row.identity
        assert request.identity == f"lab{identity}"
        assert (request.stream, request.method) == (False, "POST")


@in_each_protocol
def test_a_streamed_call_has_the_key_of_the_whole_one(row: RequestRow) -> None:
    plain, stream = row.encoded(), row.encoded(stream=True)
    assert key_of(plain, 0) == key_of(stream, 0) == key_of(row.encoded(tag=("a", 1)), 0)
    assert orjson.loads(stream.wire) == {**orjson.loads(row.body), **row.streamed}
    assert stream.url == f"http://h{row.stream_path or row.path}"
    assert (stream.body, stream.identity, stream.stream) == (plain.body, plain.identity, True)


@in_each_protocol
def test_a_key_depends_on_the_model_and_on_the_name_of_the_address(row: RequestRow) -> None:
    def key(base_url: str = "http://a", identity: str = "http://a", model: str = "m") -> bytes:
        return key_of(row.to(Target(base_url, identity, model, "p")), 0)

    assert len({key(), key("http://b", "http://b"), key(model="n"), key(model="n/o")}) == 4
    assert key("http://a", "mylab") == key("http://b", "mylab")


@in_each_protocol
def test_every_zero_is_one_temperature(row: RequestRow) -> None:
    assert len({row.sampled(temperature=zero, top_p=zero).body for zero in (0, 0.0, -0.0)}) == 1
    body = row.sampled(temperature=0, top_p=1).body
    assert b'"temperature":0.0' in body and (b'"top_p":1.0' in body or b'"topP":1.0' in body)


@in_each_protocol
def test_a_parameter_that_the_target_is_known_to_refuse_is_not_sent(row: RequestRow) -> None:
    target = Target("http://h", "lab", "m", "p", version=row.sampling, refuses=frozenset({"top_p"}))
    with pytest.raises(EncodeError, match="p/m is known to take no top_p"):
        row.to(target, top_p=0.5)
    assert row.to(target, temperature=0.5).body == row.sampled(temperature=0.5).body


@in_each_protocol
@pytest.mark.parametrize("name", ["temperature", "top_p"])
@pytest.mark.parametrize("value", ["nan", "inf"])
def test_sampling_that_is_no_finite_number_is_refused(row: RequestRow, name: str, value: str) -> None:
    with pytest.raises(EncodeError, match=rf"{name} \({value}\) .* must be a finite number"):
        row.sampled(**{name: float(value)})


CIRCLE: dict[str, Any] = {}
CIRCLE["self"] = CIRCLE


@in_each_protocol
@pytest.mark.parametrize(
    ("given", "parameters", "said"),
    [
        ("lone \ud800", {}, "can't be written as JSON"),
        ("x", {"extra": {"a": object()}}, "can't be written as JSON"),
        ("x", {"extra": {3: "x"}}, "can't be written as JSON"),
        ("x", {"extra": CIRCLE}, "can't be written as JSON"),
        ("x", {"extra": {"a": {"b": [2**70]}}}, "can't be written as JSON"),
        ("x", {"extra": {"a": {"b": [float("nan")]}}}, "extra .* finite numbers"),
    ],
)
def test_values_that_json_can_not_hold_are_refused(row: RequestRow, given: str, parameters: Any, said: str) -> None:
    with pytest.raises(EncodeError, match=said):
        row.encoded(given, **parameters)


@in_each_protocol
def test_extra_can_set_neither_the_prompt_nor_the_model(row: RequestRow) -> None:
    for name in (row.prompt, "model"):
        with pytest.raises(EncodeError, match=f"can't set {name}"):
            row.encoded(extra={name: "y"})


# --- turns, tools and schemas ---


# Anthropic is sent a block where a turn has parts, as always: the keys of older caches are made of it.
@pytest.mark.parametrize("row", [row for row in TALKS.values() if row.family != "anthropic"])
@pytest.mark.parametrize("role", ["user", "system", "assistant"])
def test_a_single_text_among_parts_is_the_same_call_as_the_text(row: RequestRow, role: str) -> None:
    bodies = {row.encoded((Message("user", "x"), Message(role, content))).body for content in ("y", ("y",))}
    assert len(bodies) == 1


@in_each_of_turns
def test_arguments_and_schemas_keep_the_order_of_their_properties(row: RequestRow) -> None:
    sent = row.encoded(TALK, tools=TOOLS, json_schema={**SCHEMA, "title": "Stance"}).body
    # Some are sent as an object, some as its text.
    for written in (HERE, THERE, orjson.dumps(SCHEMA).decode(), orjson.dumps({**SCHEMA, "title": "Stance"}).decode()):
        assert written.encode() in sent or orjson.dumps(written)[1:-1] in sent


@in_each_of_turns
def test_a_native_part_is_sent_unchanged(row: RequestRow) -> None:
    own = {"zeta": {"b": 1, "a": [None, True]}, "type": "input_new"}
    assert orjson.dumps(own["zeta"]) in row.encoded((Message("user", (Native(row.family, own),)),)).body
    assert orjson.dumps(own["zeta"]) in row.encoded(tools=(CLOCK, Native(row.family, own))).body


@in_each_of_turns
def test_a_part_of_another_protocols_own_or_one_that_json_can_not_hold_is_refused(row: RequestRow) -> None:
    other = "gemini" if row.family == "anthropic" else "anthropic"
    foreign, endless = Native(other, {"type": "new"}), Native(row.family, {"type": "input_new", "x": float("inf")})
    endless_tool, odd_tool = Tool("f", parameters={"a": float("nan")}), Tool("f", parameters={"a": {1, 2}})
    for parameters, said in (
        ({"given": (Message("user", (foreign,)),)}, f"{other}'s own can't be said in"),
        ({"tools": (foreign,)}, f"{other}'s own can't be said in"),
        ({"given": (Message("user", (endless,)),)}, "finite"),
        ({"tools": (endless_tool,)}, "the parameters of tool f .* nan"),
        ({"tools": (odd_tool,)}, "the parameters of tool f .* as JSON"),
        ({"json_schema": {"title": "\ud800"}}, "json_schema of the call"),
    ):
        with pytest.raises(EncodeError, match=said):
            row.encoded(**parameters)


PLAIN: dict[str, tuple[str, Any, dict[str, Any], bytes]] = {
    "anthropic, turns of one role after each other": (
        "anthropic",
        (Message("user", "a"), Message("user", "b"), Message("assistant", ""), Message("assistant", "c")),
        {},
        b'{"max_tokens":16384,"messages":[{"content":"a","role":"user"},{"content":"b","role":"user"},'
        b'{"content":"c","role":"assistant"}],"model":"m"}',
    ),
    "anthropic, system prompts everywhere": (
        "anthropic",
        (Message("developer", "a"), Message("system", "b"), Message("user", "c"), Message("developer", "d")),
        {"max_tokens": 9},
        b'{"max_tokens":9,"messages":[{"content":"c","role":"user"},{"content":"d","role":"system"}],'
        b'"model":"m","system":[{"text":"a","type":"text"},{"text":"b","type":"text"}]}',
    ),
    "anthropic, tools in extra": (
        "anthropic",
        "x",
        {"extra": {"tools": [{"type": "web_search_20260209", "name": "s"}], "tool_choice": {"type": "any"}}},
        b'{"max_tokens":16384,"messages":[{"content":"x","role":"user"}],"model":"m",'
        b'"tool_choice":{"type":"any"},"tools":[{"name":"s","type":"web_search_20260209"}]}',
    ),
    "bedrock, turns": (
        "bedrock",
        (Message("user", "a"), Message("assistant", "b"), Message("user", "c")),
        {},
        b'{"messages":[{"content":[{"text":"a"}],"role":"user"},{"content":[{"text":"b"}],"role":"assistant"},'
        b'{"content":[{"text":"c"}],"role":"user"}]}',
    ),
    "bedrock, system prompts everywhere": (
        "bedrock",
        (Message("developer", "a"), Message("user", "b"), Message("system", "c")),
        {"max_tokens": 9},
        b'{"inferenceConfig":{"maxTokens":9},"messages":[{"content":[{"text":"b"}],"role":"user"}],'
        b'"system":[{"text":"a"},{"text":"c"}]}',
    ),
    "bedrock, tools in extra": (
        "bedrock",
        "x",
        {"extra": {"toolConfig": {"tools": [{"cachePoint": {"type": "default"}}]}}},
        b'{"messages":[{"content":[{"text":"x"}],"role":"user"}],'
        b'"toolConfig":{"tools":[{"cachePoint":{"type":"default"}}]}}',
    ),
    "gemini, turns of one role after each other": (
        "gemini",
        (Message("user", "a"), Message("user", " "), Message("model", "b"), Message("assistant", "c")),
        {},
        b'{"contents":[{"parts":[{"text":"a"}],"role":"user"},{"parts":[{"text":" "}],"role":"user"},'
        b'{"parts":[{"text":"b"}],"role":"model"},{"parts":[{"text":"c"}],"role":"model"}]}',
    ),
    "gemini, system prompts everywhere": (
        "gemini",
        (Message("developer", "a"), Message("user", " "), Message("system", "b")),
        {"max_tokens": 9},
        b'{"contents":[{"parts":[{"text":" "}],"role":"user"}],"generationConfig":{"maxOutputTokens":9},'
        b'"systemInstruction":{"parts":[{"text":"a"},{"text":"b"}]}}',
    ),
    "gemini, tools in extra": (
        "gemini",
        "x",
        {"extra": {"tools": [{"googleSearch": {}}], "toolConfig": {}}},
        b'{"contents":[{"parts":[{"text":"x"}],"role":"user"}],"toolConfig":{},"tools":[{"googleSearch":{}}]}',
    ),
}


@pytest.mark.parametrize("name", PLAIN)
def test_a_call_without_tools_has_the_bytes_that_keys_of_older_caches_are_made_of(name: str) -> None:
    protocol, given, parameters, expected = PLAIN[name]
    assert ROWS[protocol].encoded(given, **parameters).body == expected


@pytest.mark.parametrize(
    ("name", "other"), [("azure", "chat"), ("llama on vertex", "chat"), ("gemini on vertex", "gemini")]
)
def test_the_same_body_is_sent_to_a_model_at_another_address(name: str, other: str) -> None:
    parameters: dict[str, Any] = {"tools": TOOLS, "tool_choice": "required", "temperature": 0, "json_schema": SCHEMA}
    assert ROWS[name].encoded(TALK, **parameters).body == ROWS[other].encoded(TALK, **parameters).body


def test_claude_on_vertex_is_sent_the_same_but_for_model_and_version() -> None:
    here, there = (
        orjson.loads(ROWS[name].encoded(TALK, tools=TOOLS).body) for name in ("anthropic", "claude on vertex")
    )
    del here["model"], there["anthropic_version"]
    assert here == there


def test_an_older_version_of_anthropics_is_sent_the_same() -> None:
    row = ROWS["anthropic"]
    assert row.sampled(given=TALK, tools=TOOLS).body == row.encoded(TALK, tools=TOOLS).body
