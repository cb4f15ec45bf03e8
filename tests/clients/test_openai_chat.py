"""OpenAI's own client for Python, as it is, in conversation through the gateway with providers of three families."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletion
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
    {"role": role, "content": text} for role, text in zip(("system", "user", "assistant", "user"), TEXTS, strict=True)
]
TOOLS: list[Any] = [
    {"type": "function", "function": {"name": "get_weather", "strict": True, "parameters": WEATHER_SCHEMA}}
]


@pytest.fixture(scope="module")
def client(gateway: Served) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(api_key=TOKEN, base_url=gateway.base_url) as opened:
        yield opened


def asked(client: openai.OpenAI, streamed: bool, **given: Any) -> ChatCompletion:
    """The whole answer; of a stream, as the client itself puts it together."""
    if not streamed:
        whole: ChatCompletion = client.chat.completions.create(**given)
        return whole
    with client.chat.completions.stream(**given, stream_options={"include_usage": True}) as events:
        return events.get_final_completion()


def said(answer: ChatCompletion) -> str | None:
    return answer.choices[0].message.content


@in_each
@both_ways
def test_a_conversation_reaches_the_provider_whole_and_its_answer_the_client(
    client: openai.OpenAI, behind: Behind, streamed: bool
) -> None:
    answer = asked(client, streamed, model=behind.chat, messages=TALK, max_tokens=200)
    assert said(answer) == behind.says(*TEXTS)
    # Where the provider states which model answered, that is the name.
    assert answer.model in (behind.chat, behind.chat.partition("/")[2])
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    read, written = behind.counts(*TEXTS)
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (read, written)
    assert answer.usage.total_tokens == read + written


@in_each
@both_ways
def test_a_tool_is_called_and_its_result_answered(client: openai.OpenAI, behind: Behind, streamed: bool) -> None:
    talk: list[Any] = [{"role": "user", "content": SKY}]
    given: dict[str, Any] = {"model": behind.tools, "tools": TOOLS, "tool_choice": "auto", "messages": talk}
    first = asked(client, streamed, **given).choices[0]
    assert first.finish_reason == "tool_calls" and first.message.tool_calls is not None
    (call,) = first.message.tool_calls
    assert call.type == "function"
    assert (call.function.name, json.loads(call.function.arguments)) == ("get_weather", ASKED)
    talk += [
        first.message.model_dump(exclude_none=True, exclude={"parsed"}),
        {"role": "tool", "tool_call_id": call.id, "content": RAIN},
    ]
    second = asked(client, streamed, **given)
    assert (said(second), second.choices[0].finish_reason) == (behind.tells_weather, "stop")


@in_each
@both_ways
def test_an_answer_of_a_given_shape_is_parsed(client: openai.OpenAI, behind: Behind, streamed: bool) -> None:
    given: Any = {"model": behind.json, "messages": [{"role": "user", "content": TOWN}], "response_format": Place}
    if streamed:
        with client.chat.completions.stream(**given) as events:
            parsed = events.get_final_completion().choices[0].message.parsed
    else:
        parsed = client.chat.completions.parse(**given).choices[0].message.parsed
    assert parsed == KOELN


@in_each
@both_ways
def test_three_choices_are_three_samples(gateway: Served, behind: Behind, streamed: bool) -> None:
    given: Any = {"model": behind.chat, "messages": [{"role": "user", "content": HELLO}], "n": 3}
    with openai.OpenAI(api_key=TOKEN, base_url=gateway.base_url) as client:
        if streamed:
            texts = ["", "", ""]
            for chunk in client.chat.completions.create(**given, stream=True):
                for choice in chunk.choices:
                    texts[choice.index] += choice.delta.content or ""
        else:
            raw = client.chat.completions.with_raw_response.create(**given)
            texts = [choice.message.content or "" for choice in raw.parse().choices]
            assert len(set(raw.headers["x-millstream-trial"].split(","))) == 3
    assert texts == [behind.says(HELLO)] * 3


def test_parameters_of_its_own_protocol_go_through_and_caller_and_notes_do_not(
    gateway: Served, client: openai.OpenAI
) -> None:
    client.chat.completions.create(
        model="recorded/model",
        messages=[{"role": "user", "content": "more"}],
        frequency_penalty=0.5,
        logit_bias={"11": -5},
        extra_body={"top_k": 7},
        user="somebody",
        metadata={"note": "mine"},
    )
    sent = gateway.recorder.last.json
    assert (sent["frequency_penalty"], sent["logit_bias"], sent["top_k"]) == (0.5, {"11": -5}, 7)
    assert not {"user", "metadata"} & sent.keys()


@both_ways
def test_azures_client_asks_by_its_deployment(gateway: Served, streamed: bool) -> None:
    with openai.AzureOpenAI(api_key=TOKEN, azure_endpoint=gateway.origin, api_version="2024-10-21") as client:
        answer = asked(client, streamed, model="claude-word", messages=[{"role": "user", "content": HELLO}])
    assert (said(answer) or "").startswith("This is a simulated answer")
