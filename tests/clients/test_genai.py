"""Google's own client for Python, as it is, also as it speaks to Vertex AI, through the gateway to three families."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from google import genai
from google.genai import types
from google.oauth2.credentials import Credentials
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
TALK = [
    types.Content(role=role, parts=[types.Part(text=text)])
    for role, text in zip(("user", "model", "user"), TEXTS[1:], strict=True)
]
BY_HAND = types.AutomaticFunctionCallingConfig(disable=True)
DECLARED = types.FunctionDeclaration(name="get_weather", parameters_json_schema=WEATHER_SCHEMA)


def of_gemini(origin: str) -> genai.Client:
    return genai.Client(api_key=TOKEN, vertexai=False, http_options=types.HttpOptions(base_url=origin))


def of_vertex(origin: str) -> genai.Client:
    made: Any = Credentials
    known: Any = {"project": "some-project", "location": "europe-west4", "credentials": made(token=TOKEN)}
    return genai.Client(vertexai=True, http_options=types.HttpOptions(base_url=origin), **known)


@pytest.fixture(scope="module", params=[of_gemini, of_vertex], ids=["gemini", "vertex"])
def client(gateway: Served, request: pytest.FixtureRequest) -> Iterator[genai.Client]:
    opened: Callable[[str], genai.Client] = request.param
    with closing(opened(gateway.origin)) as client:
        yield client


def asked(client: genai.Client, streamed: bool, **given: Any) -> list[types.GenerateContentResponse]:
    if not streamed:
        return [client.models.generate_content(**given)]
    return list(client.models.generate_content_stream(**given))


def parts_of(answers: list[types.GenerateContentResponse]) -> list[types.Part]:
    found = []
    for answer in answers:
        assert answer.candidates
        content = answer.candidates[0].content
        found += (content.parts or []) if content is not None else []
    return found


def text_of(answers: list[types.GenerateContentResponse]) -> str:
    return "".join(part.text or "" for part in parts_of(answers))


@in_each
@both_ways
def test_a_conversation_reaches_the_provider_whole_and_its_answer_the_client(
    client: genai.Client, behind: Behind, streamed: bool
) -> None:
    config = types.GenerateContentConfig(system_instruction=SYSTEM, max_output_tokens=200)
    answers = asked(client, streamed, model=behind.chat, contents=TALK, config=config)
    assert text_of(answers) == behind.says(*TEXTS)
    last = answers[-1]
    assert last.candidates and last.candidates[0].finish_reason is types.FinishReason.STOP
    assert last.usage_metadata is not None
    counted = last.usage_metadata.prompt_token_count, last.usage_metadata.candidates_token_count
    # Where the provider states which model answered, that is the name.
    assert last.model_version in (behind.chat, behind.chat.partition("/")[2])
    assert counted == behind.counts(*TEXTS)


@in_each
@both_ways
def test_a_function_is_called_and_its_result_answered(client: genai.Client, behind: Behind, streamed: bool) -> None:
    talk = [types.Content(role="user", parts=[types.Part(text=SKY)])]
    config = types.GenerateContentConfig(
        tools=[types.Tool(function_declarations=[DECLARED])], automatic_function_calling=BY_HAND
    )
    given: dict[str, Any] = {"model": behind.tools, "contents": talk, "config": config}
    parts = parts_of(asked(client, streamed, **given))
    (call,) = [part.function_call for part in parts if part.function_call is not None]
    assert (call.name, call.args) == ("get_weather", ASKED)
    result = types.FunctionResponse(id=call.id, name=call.name, response={"output": RAIN})
    talk += [
        types.Content(role="model", parts=parts),
        types.Content(role="user", parts=[types.Part(function_response=result)]),
    ]
    assert text_of(asked(client, streamed, **given)) == behind.tells_weather


@in_each
def test_the_clients_own_loop_runs_a_function_to_its_end(client: genai.Client, behind: Behind) -> None:
    seen: list[tuple[str, int]] = []

    def get_weather(place: str, days: int) -> str:
        """The weather at a place."""
        seen.append((place, days))
        return RAIN

    config = types.GenerateContentConfig(tools=[get_weather])
    answer = client.chats.create(model=behind.tools, config=config).send_message(SKY)
    # Its own loop puts what came of it under this name.
    told = behind.tells_weather if behind.is_mock else behind.tells_weather.replace(RAIN, f'{{"result":"{RAIN}"}}')
    assert (answer.text, seen) == (told, [("Köln", 2)])


@in_each
def test_an_answer_of_a_given_shape_is_parsed(client: genai.Client, behind: Behind) -> None:
    config = types.GenerateContentConfig(response_mime_type="application/json", response_schema=Place)
    answer = client.models.generate_content(model=behind.json, contents=TOWN, config=config)
    assert answer.parsed == KOELN


def test_models_are_listed_and_one_of_them_is_found(gateway: Served) -> None:
    with of_gemini(gateway.origin) as client:
        names = [model.name or "" for model in client.models.list()]
        assert "models/claude-word" in names
        assert client.models.get(model="claude-word").name == "models/claude-word"
