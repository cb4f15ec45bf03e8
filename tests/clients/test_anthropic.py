"""Anthropic's own client for Python, as it is, through the gateway to providers of three families."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anthropic
import pytest
from anthropic.types import Message
from served import (
    AGAIN,
    ASKED,
    HELLO,
    KOELN,
    RAIN,
    SKY,
    SYSTEM,
    TOKEN,
    TOWN,
    WEATHER_SCHEMA,
    Behind,
    Place,
    Served,
    both_ways,
    in_each,
)

TEXTS = (SYSTEM, HELLO, "Hello.", AGAIN)
TALK: list[Any] = [
    {"role": role, "content": text} for role, text in zip(("user", "assistant", "user"), TEXTS[1:], strict=True)
]
TOOLS: list[Any] = [{"name": "get_weather", "description": "The weather.", "input_schema": WEATHER_SCHEMA}]


@pytest.fixture(scope="module")
def client(gateway: Served) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(api_key=TOKEN, base_url=gateway.origin) as opened:
        yield opened


def asked(client: anthropic.Anthropic, streamed: bool, **given: Any) -> Message:
    if not streamed:
        whole: Message = client.messages.create(max_tokens=200, **given)
        return whole
    with client.messages.stream(max_tokens=200, **given) as events:
        return events.get_final_message()


def text_of(message: Any) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


@in_each
@both_ways
def test_a_conversation_reaches_the_provider_whole_and_its_answer_the_client(
    client: anthropic.Anthropic, behind: Behind, streamed: bool
) -> None:
    answer = asked(client, streamed, model=behind.chat, system=SYSTEM, messages=TALK)
    assert text_of(answer) == behind.says(*TEXTS)
    # Where the provider states which model answered, that is the name.
    assert answer.model in (behind.chat, behind.chat.partition("/")[2])
    assert (answer.stop_reason, answer.role) == ("end_turn", "assistant")
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == behind.counts(*TEXTS)


@in_each
def test_the_events_of_a_stream_come_in_their_order(client: anthropic.Anthropic, behind: Behind) -> None:
    given: Any = {"model": behind.chat, "max_tokens": 200, "messages": TALK[:1]}
    events = [event for event in client.messages.create(**given, stream=True) if event.type != "ping"]
    kinds = [event.type for event in events]
    deltas = kinds.count("content_block_delta")
    assert deltas > 0 and kinds == [
        *("message_start", "content_block_start", *["content_block_delta"] * deltas),
        *("content_block_stop", "message_delta", "message_stop"),
    ]
    pieces = [event.delta for event in events if event.type == "content_block_delta"]
    assert "".join(piece.text for piece in pieces if piece.type == "text_delta") == behind.says(HELLO)


@in_each
@both_ways
def test_a_tool_is_called_and_its_result_answered(client: anthropic.Anthropic, behind: Behind, streamed: bool) -> None:
    talk: list[Any] = [{"role": "user", "content": SKY}]
    given: dict[str, Any] = {"model": behind.tools, "tools": TOOLS, "messages": talk}
    first = asked(client, streamed, **given)
    (use,) = [block for block in first.content if block.type == "tool_use"]
    assert (first.stop_reason, use.name, use.input) == ("tool_use", "get_weather", ASKED)
    result = {"type": "tool_result", "tool_use_id": use.id, "content": RAIN}
    talk += [{"role": "assistant", "content": first.content}, {"role": "user", "content": [result]}]
    second = asked(client, streamed, **given)
    assert (text_of(second), second.stop_reason) == (behind.tells_weather, "end_turn")


@in_each
def test_the_clients_own_loop_runs_a_tool_to_its_end(client: anthropic.Anthropic, behind: Behind) -> None:
    seen: list[tuple[str, int]] = []

    @anthropic.beta_tool
    def get_weather(place: str, days: int) -> str:
        """The weather at a place."""
        seen.append((place, days))
        return RAIN

    talk: list[Any] = [{"role": "user", "content": SKY}]
    given: Any = {"model": behind.tools, "max_tokens": 200, "messages": talk, "tools": [get_weather]}
    last = client.beta.messages.tool_runner(**given).until_done()
    assert (text_of(last), seen) == (behind.tells_weather, [("Köln", 2)])


@in_each
@both_ways
def test_an_answer_of_a_given_shape_is_parsed(client: anthropic.Anthropic, behind: Behind, streamed: bool) -> None:
    talk: list[Any] = [{"role": "user", "content": TOWN}]
    given: Any = {"model": behind.json, "max_tokens": 200, "messages": talk, "output_format": Place}
    if streamed:
        with client.messages.stream(**given) as events:
            parsed = events.get_final_message().parsed_output
    else:
        parsed = client.messages.parse(**given).parsed_output
    assert parsed == KOELN


@in_each
def test_the_clients_beta_reads_the_same(client: anthropic.Anthropic, behind: Behind) -> None:
    given: Any = {"model": behind.chat, "max_tokens": 200, "messages": TALK[:1], "betas": ["some-beta-2026-01-01"]}
    whole = client.beta.messages.create(**given)
    with client.beta.messages.stream(**given) as events:
        streamed = events.get_final_message()
    assert [text_of(whole), text_of(streamed)] == [behind.says(HELLO)] * 2


def test_thoughts_and_parameters_of_its_own_protocol_go_both_ways(gateway: Served, client: anthropic.Anthropic) -> None:
    talk: list[Any] = [{"role": "user", "content": HELLO}]
    given: dict[str, Any] = {"model": "recorded-claude/model", "messages": talk, "extra_body": {"top_k": 7}}
    first = asked(client, False, **given)
    assert [block.type for block in first.content] == ["thinking", "text"]
    talk += [{"role": "assistant", "content": first.content}, {"role": "user", "content": AGAIN}]
    asked(client, False, **given)
    sent = gateway.recorder.last.json
    assert sent["top_k"] == 7
    assert sent["messages"][1]["content"][0] == first.content[0].model_dump(exclude_none=True)


def test_models_are_listed_and_one_of_them_is_found(client: anthropic.Anthropic) -> None:
    assert "claude-word" in [model.id for model in client.models.list()]
    found = client.models.retrieve("claude-word")
    assert (found.id, found.type) == ("claude-word", "model")
