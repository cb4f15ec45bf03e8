"""OpenAI's own client for Python, as it is: the Responses API, through the gateway to providers of three families."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai.types.responses import Response
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
TOOLS: list[Any] = [{"type": "function", "name": "get_weather", "strict": True, "parameters": WEATHER_SCHEMA}]


@pytest.fixture(scope="module")
def client(gateway: Served) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(api_key=TOKEN, base_url=gateway.base_url) as opened:
        yield opened


def asked(client: openai.OpenAI, streamed: bool, **given: Any) -> Response:
    if not streamed:
        whole: Response = client.responses.create(**given)
        return whole
    with client.responses.stream(**given) as events:
        return events.get_final_response()


@in_each
@both_ways
def test_a_conversation_reaches_the_provider_whole_and_its_answer_the_client(
    client: openai.OpenAI, behind: Behind, streamed: bool
) -> None:
    answer = asked(client, streamed, model=behind.chat, instructions=SYSTEM, input=TALK, max_output_tokens=200)
    assert answer.output_text == behind.says(*TEXTS)
    # Where the provider states which model answered, that is the name.
    assert answer.model in (behind.chat, behind.chat.partition("/")[2])
    assert (answer.status, answer.error) == ("completed", None)
    assert answer.usage is not None
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == behind.counts(*TEXTS)


@in_each
def test_the_events_of_a_stream_come_in_their_order_and_hold_the_whole_text(
    client: openai.OpenAI, behind: Behind
) -> None:
    events = list(client.responses.create(model=behind.chat, input=HELLO, stream=True))
    kinds = [event.type.removeprefix("response.") for event in events]
    assert [kind for at, kind in enumerate(kinds) if kind != "output_text.delta" or kinds[at - 1] != kind] == [
        *("created", "in_progress", "output_item.added", "content_part.added"),
        *("output_text.delta", "output_text.done", "content_part.done", "output_item.done", "completed"),
    ]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    pieces = [event.delta for event in events if event.type == "response.output_text.delta"]
    last = events[-1]
    assert last.type == "response.completed"
    assert "".join(pieces) == last.response.output_text == behind.says(HELLO)


@in_each
@both_ways
def test_a_tool_is_called_and_its_result_answered(client: openai.OpenAI, behind: Behind, streamed: bool) -> None:
    talk: list[Any] = [{"role": "user", "content": SKY}]
    given: dict[str, Any] = {"model": behind.tools, "tools": TOOLS, "input": talk}
    first = asked(client, streamed, **given)
    (call,) = [item for item in first.output if item.type == "function_call"]
    assert (call.name, json.loads(call.arguments)) == ("get_weather", ASKED)
    talk += [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in first.output]
    talk.append({"type": "function_call_output", "call_id": call.call_id, "output": RAIN})
    assert asked(client, streamed, **given).output_text == behind.tells_weather


@in_each
@both_ways
def test_an_answer_of_a_given_shape_is_parsed(client: openai.OpenAI, behind: Behind, streamed: bool) -> None:
    given: Any = {"model": behind.json, "input": TOWN, "text_format": Place}
    if streamed:
        with client.responses.stream(**given) as events:
            parsed = events.get_final_response().output_parsed
    else:
        parsed = client.responses.parse(**given).output_parsed
    assert parsed == KOELN


def test_what_a_server_would_have_to_remember_is_refused_by_its_name(gateway: Served, client: openai.OpenAI) -> None:
    before = gateway.requests()
    with pytest.raises(openai.BadRequestError) as raised:
        client.responses.create(model="lab/steady", input=HELLO, previous_response_id="resp_1")
    assert raised.value.param == "previous_response_id"
    assert gateway.requests() == before + 1
