"""What makes the size of a call unknown: by the names of each protocol, and not by a list of what is forbidden."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from millstream.engine.attempts.money import why_unbounded, worst_cost
from millstream.engine.call import Call, Message
from millstream.engine.content import Image, Native, Tool, ToolCall, ToolResult
from millstream.engine.estimate import TokenEstimate
from millstream.engine.prices import Price
from millstream.providers.models import Facts
from millstream.providers.unsized import unsized_in
from millstream.wiring.settings import Settings

MINI = "openai/gpt-4o-mini"
UNSIZED_PARTS: dict[str, Mapping[str, Any]] = {
    "Anthropic's document by address": {
        "type": "document",
        "source": {"type": "url", "url": "https://a.example/b.pdf"},
    },
    "Anthropic's document by id": {"type": "document", "source": {"type": "file", "file_id": "file_1"}},
    "Anthropic's image by id": {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
    "a PDF, whose pages are images too": {
        "type": "document",
        "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="},
    },
    "a document in a tool's result": {
        "type": "tool_result",
        "tool_use_id": "t",
        "content": [{"type": "document", "source": {"type": "url", "url": "https://a.example/b.pdf"}}],
    },
    "OpenAI's file by id": {"type": "file", "file": {"file_id": "file-1"}},
    "OpenAI's file inline": {
        "type": "file",
        "file": {"file_data": "data:application/pdf;base64,JV"},
    },
    "OpenAI's sound": {"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}},
    "OpenAI's sound by id": {"audio": {"id": "audio_1"}},
    "Responses' file by address": {"type": "input_file", "file_url": "https://a.example/b.pdf"},
    "Responses' file by id": {"type": "input_file", "file_id": "file-1"},
    "Responses' item by id": {"type": "item_reference", "id": "rs_1"},
    "Gemini's file": {"fileData": {"mimeType": "application/pdf", "fileUri": "https://a.example/b.pdf"}},
    "Gemini's video inline": {"inlineData": {"mimeType": "video/mp4", "data": "AAAA"}},
    "Bedrock's document in S3": {
        "document": {"format": "pdf", "name": "a", "source": {"s3Location": {"uri": "s3://a/b.pdf"}}}
    },
    "Bedrock's document inline": {"document": {"format": "pdf", "name": "a", "source": {"bytes": "JVBERi0="}}},
    "a part that nobody knows": {"type": "hologram", "hologram": {"ref": "h-1"}},
}
SIZED_PARTS: dict[str, Mapping[str, Any]] = {
    "a text document": {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "A"}},
    "a document of blocks": {
        "type": "document",
        "source": {"type": "content", "content": [{"type": "text", "text": "A"}]},
    },
    "a thought": {"type": "thinking", "thinking": "A.", "signature": "EmwK"},
    "a hidden thought": {"type": "redacted_thinking", "data": "EmwK"},
    "a thought of Responses": {"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "gAAA"},
    "a thought of Gemini": {"text": "A.", "thought": True, "thoughtSignature": "Eu4B"},
    "a thought of Bedrock": {"reasoningContent": {"reasoningText": {"text": "A", "signature": "B"}}},
    "a custom tool's call": {
        "type": "custom_tool_call",
        "id": "c_1",
        "call_id": "c",
        "name": "f",
        "input": "url of it",
    },
    "a name": {"name": "Ann"},
    "where a cache may end": {"cachePoint": {"type": "default"}},
}
UNSIZED_FIELDS: dict[str, Mapping[str, Any]] = {
    "a stored prompt": {"prompt": {"id": "pmpt_1", "version": "2"}},
    "an earlier response": {"previous_response_id": "resp_1"},
    "a conversation": {"conversation": "conv_1"},
    "a conversation as an object": {"conversation": {"id": "conv_1"}},
    "cached content": {"cachedContent": "cachedContents/1"},
    "a container": {"container": "container_1"},
    "a field that nobody knows": {"background_reading": "https://a.example"},
}
SIZED_FIELDS: dict[str, Mapping[str, Any]] = {
    "numbers": {"seed": 3, "top_k": 40, "logit_bias": {"50256": -100}, "min_p": 0.1, "use_beam_search": True},
    "thinking": {"thinking": {"type": "enabled", "budget_tokens": 1024}},
    "reasoning": {"reasoning": {"effort": "low", "summary": "auto"}, "text": {"verbosity": "low"}},
    "a schema": {"response_format": {"type": "json_schema", "json_schema": {"schema": {"web": {"url": "x"}}}}},
    "words": {"service_tier": "auto", "user": "a", "stop": ["\n"], "metadata": {"anything": "at all"}},
    "Gemini's": {"generationConfig": {"topK": 3, "responseMimeType": "application/json"}, "labels": {"a": "b"}},
}
TOOLS_OF_PROVIDERS: tuple[Mapping[str, Any], ...] = (
    {"type": "web_search_20250305", "name": "web_search"},
    {"type": "web_fetch_20250910", "name": "web_fetch", "max_uses": 3},
    {"type": "code_execution_20250825", "name": "code_execution"},
    {"type": "web_search"},
    {"type": "file_search", "vector_store_ids": ["vs_1"]},
    {"type": "code_interpreter", "container": {"type": "auto"}},
    {"type": "image_generation"},
    {"type": "mcp", "server_url": "https://a.example"},
    {"googleSearch": {}},
    {"urlContext": {}},
    {"codeExecution": {}},
    {"systemTool": {"name": "nova_grounding"}},
)
FIELDS_THAT_RUN_TOOLS: tuple[Mapping[str, Any], ...] = (
    {"web_search_options": {}},
    {"search_parameters": {"mode": "auto"}},
    {"plugins": [{"id": "web"}]},
    {"mcp_servers": [{"type": "url"}]},
    {"enable_search": True},
    {"tools": [{"type": "web_search"}]},
    {"additionalModelRequestFields": {"tools": [{"type": "web_search_20250305"}]}},
)


def call_of(*parts: Any, model: str = MINI, **fields: Any) -> Call:
    return Call(model, [Message("user", ("Read.", *parts))], max_tokens=10, **fields)


def cost(call: Call, settings: Settings | None = None) -> float | None:
    price = (settings or Settings()).price_table().get(call.model)
    assert price is not None
    return worst_cost(call, price, TokenEstimate())


def least(call: Call) -> float:
    found = cost(call)
    assert found is not None
    return found


WINDOW = 128_000 * 0.15 / 1e6


@pytest.mark.parametrize("name", UNSIZED_PARTS)
def test_a_part_of_unknown_size_counts_as_the_models_whole_window(name: str) -> None:
    part = Native("openai", UNSIZED_PARTS[name])
    assert least(call_of(part)) >= WINDOW > 10 * least(call_of())
    assert least(call_of(Native("openai", {"cache_control": {"type": "ephemeral"}}, on=part))) >= WINDOW


def test_a_file_given_as_an_image_is_no_image_and_one_by_address_is_bounded() -> None:
    assert least(call_of(Image("data:application/pdf;base64,JVBERi0="))) >= WINDOW
    assert least(call_of(ToolResult("t", (Image("data:application/pdf;base64,JVBERi0="),)))) >= WINDOW
    for image in (Image("https://a.example/b.png"), Image("data:image/png;base64,iVBO")):
        assert unsized_in(call_of(image)) is None


@pytest.mark.parametrize("name", SIZED_PARTS)
def test_a_part_whose_text_is_all_of_it_counts_by_its_bytes(name: str) -> None:
    assert least(call_of(Native("openai", SIZED_PARTS[name]))) < WINDOW / 10


@pytest.mark.parametrize("name", UNSIZED_FIELDS)
def test_a_field_that_refers_to_more_counts_as_the_models_whole_window(name: str) -> None:
    assert least(Call(MINI, "Go on.", max_tokens=10, extra=UNSIZED_FIELDS[name])) >= WINDOW


@pytest.mark.parametrize("name", SIZED_FIELDS)
def test_a_plain_parameter_stays_harmless(name: str) -> None:
    assert least(Call(MINI, "Go on.", max_tokens=10, extra=SIZED_FIELDS[name])) < WINDOW / 10


@pytest.mark.parametrize("tool", TOOLS_OF_PROVIDERS, ids=str)
def test_a_tool_that_the_provider_runs_has_no_bound(tool: Mapping[str, Any]) -> None:
    call = Call(MINI, "Look.", max_tokens=10, tools=[Native("openai", tool)])
    price = Settings().price_table().get(MINI)
    assert cost(call) is None and "the provider runs the tool" in why_unbounded(call, price)


@pytest.mark.parametrize("fields", FIELDS_THAT_RUN_TOOLS, ids=str)
def test_a_parameter_that_makes_the_provider_run_a_tool_has_no_bound(fields: Mapping[str, Any]) -> None:
    assert cost(Call(MINI, "Look.", max_tokens=10, extra=fields)) is None


def test_tools_that_the_caller_runs_are_as_before() -> None:
    tools: list[Tool | Native] = [
        Tool("look", "Looks.", {"type": "object", "properties": {"url": {"type": "string"}}}),
        Native("openai", {"type": "custom", "name": "f", "format": {"type": "text"}}),
        Native("anthropic", {"type": "bash_20250124", "name": "bash"}),
        Native("gemini", {"functionDeclarations": [{"name": "f"}]}),
        Native("anthropic", {"cache_control": {"type": "ephemeral", "ttl": "1h"}}, on=Tool("f")),
    ]
    said = (ToolCall("c", "look", '{"url": "https://a.example"}', Native("gemini", {"thoughtSignature": "Eu"})),)
    call = Call(
        MINI, [Message("assistant", said), Message("tool", (ToolResult("c", "A"),))], max_tokens=10, tools=tools
    )
    assert unsized_in(call) is None


def test_a_model_that_always_searches_has_no_bound() -> None:
    assert unsized_in(Call("openrouter/openai/gpt-4o-mini:online", "A")) is not None
    assert unsized_in(Call(MINI, "A web search :online")) is None


def test_without_a_known_window_a_reference_has_no_bound_and_the_message_says_what_to_do() -> None:

    call = call_of(Native("openai", UNSIZED_PARTS["OpenAI's file by id"]), model="mylab/large")
    settings = Settings(prices={"mylab/large": Price(1.0, 2.0)})
    price = settings.price_table().get("mylab/large")
    assert cost(call, settings) is None
    assert "file_id stands for is not known" in why_unbounded(call, price)
    assert 'window under [models."mylab/large"]' in why_unbounded(call, price)
    known = Settings(prices={"mylab/large": Price(1.0, 2.0)}, models={"mylab/large": Facts(window=50_000)})
    assert (cost(call, known) or 0) >= 0.05


@pytest.mark.parametrize(
    "address", ["https://www.youtube.com/watch?v=a", "https://a.example/b.pdf", "https://a.example/c.png"]
)
def test_what_gemini_is_given_by_an_address_may_be_any_file(address: str) -> None:
    settings, picture = Settings(), Image("data:image/png;base64,AAAA")
    for image, is_known in ((Image(address), False), (picture, True)):
        result = (ToolCall("1", "f"), ToolResult("1", (image,), "f"))
        for parts in ((image,), result):
            call = Call("gemini/gemini-3.8-flash", (Message("user", parts),), max_tokens=50)
            price = settings.price_table().get(call.model)
            assert price is not None and (price.unsized(call) is None) == is_known
            most = worst_cost(call, price, TokenEstimate())
            assert most is not None and price.window is not None
            assert (most >= price.window * price.input / 1e6) != is_known
            elsewhere = Call(MINI, (Message("user", parts),))
            assert unsized_in(elsewhere) is None
