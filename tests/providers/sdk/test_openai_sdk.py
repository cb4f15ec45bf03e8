"""OpenAI's own client against ours: what each sends to a recording server, field by field, and what each reads from it.

Where they differ on purpose: the order of the body's fields (ours is the alphabet's, since the body is the key), and
Accept, User-Agent and the X-Stainless headers, which say who asks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import chat_shapes
import openai
import pytest
import response_shapes
from msgspec import structs
from recorder import EVENTS, JSON, Recorder, assert_the_same, recording

from millstream import Call, Engine, Lane, Message, Reply, Settings
from millstream.providers.table import PROVIDERS

KEY = "sk-test-0123456789"
SCHEMA = {
    "title": "Stance",
    "type": "object",
    "properties": {"letter": {"type": "string"}},
    "required": ["letter"],
    "additionalProperties": False,
}
NAMED = {"name": "Stance", "schema": SCHEMA, "strict": True}
TALK = (Message("system", "Be brief."), Message("user", "Ä ✓"), Message("assistant", "A"), Message("user", "And now?"))
TALKED: list[Any] = [{"role": one.role, "content": one.content} for one in TALK]
PROMPTED: list[Any] = [{"role": "user", "content": "Say A or B."}]


@pytest.fixture
def server() -> Iterator[Recorder]:
    with recording() as recorder:
        yield recorder


def our_reply(server: Recorder, call: Call, folder: Any, **environment: str) -> Reply:
    """One call through a whole engine, with an empty cache."""
    variables = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.base_url, **environment}
    # As at its own address: elsewhere `openai/` has the older name, which more servers know.
    names = {"openai": structs.replace(PROVIDERS["openai"], names={"max_tokens": "max_completion_tokens"})}
    settings = Settings(lanes=(Lane(call.model, timeout_s=10),), cache=folder, environment=variables, providers=names)

    async def once() -> Reply:
        async with Engine(settings=settings) as engine:
            outcome = await engine.ask(call)
        assert outcome.reply is not None, outcome.failure
        return outcome.reply

    return asyncio.run(once())


@pytest.fixture
def client(server: Recorder) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(api_key=KEY, base_url=server.base_url, max_retries=0) as opened:
        yield opened


CHAT: dict[str, tuple[Call, dict[str, Any]]] = {
    "a prompt alone": (Call("openai/gpt-4o-mini", "Say A or B."), {"messages": PROMPTED}),
    "a conversation with everything set": (
        Call(
            "openai/gpt-4o-mini",
            TALK,
            temperature=0.5,
            max_tokens=100,
            top_p=0.9,
            stop=("\n", "END"),
            seed=7,
            logprobs=3,
            extra={"frequency_penalty": 0.5},
        ),
        {
            "messages": TALKED,
            "temperature": 0.5,
            "max_completion_tokens": 100,  # `max_tokens` is the older name, which newer models refuse
            "top_p": 0.9,
            "stop": ["\n", "END"],
            "seed": 7,
            "logprobs": True,
            "top_logprobs": 3,
            "frequency_penalty": 0.5,
        },
    ),
    "a schema and an effort": (
        Call("openai/gpt-5.4", "Say A or B.", json_schema=SCHEMA, reasoning_effort="low"),
        {
            "messages": PROMPTED,
            "response_format": {"type": "json_schema", "json_schema": NAMED},
            "reasoning_effort": "low",
        },
    ),
    "the chosen tokens' log-probabilities": (
        Call("openai/gpt-4o-mini", "Say A or B.", logprobs=0),
        {"messages": PROMPTED, "logprobs": True},
    ),
}


@pytest.mark.parametrize("name", CHAT)
def test_chat_completions_are_asked_as_the_sdk_asks(
    server: Recorder, client: openai.OpenAI, name: str, tmp_path: Any
) -> None:
    call, parameters = CHAT[name]
    server.answer = chat_shapes.whole()
    our_reply(server, call, tmp_path)
    client.chat.completions.create(model=call.model.partition("/")[2], **parameters)
    assert_the_same(*server.sent)


def test_streamed_chat_completions_are_asked_as_the_sdk_asks(
    server: Recorder, client: openai.OpenAI, tmp_path: Any
) -> None:
    server.answer, server.content_type = b"".join(chat_shapes.STREAM), EVENTS
    our_reply(server, Call("openai/gpt-4o-mini", "Say A or B.", stream=True), tmp_path)
    given: Any = {"messages": PROMPTED, "stream_options": {"include_usage": True}}
    list(client.chat.completions.create(model="gpt-4o-mini", stream=True, **given))
    assert_the_same(*server.sent)


RESPONSES: dict[str, tuple[Call, dict[str, Any]]] = {
    "a prompt alone": (Call("openai-responses/gpt-5.4", "Say A or B."), {"input": PROMPTED}),
    "a conversation with everything set": (
        Call(
            "openai-responses/gpt-5.4",
            TALK,
            temperature=0.5,
            max_tokens=100,
            top_p=0.9,
            logprobs=2,
            json_schema=SCHEMA,
            reasoning_effort="none",
            extra={"store": False},
        ),
        {
            "input": TALKED,
            "temperature": 0.5,
            "max_output_tokens": 100,
            "top_p": 0.9,
            "include": ["message.output_text.logprobs"],
            "top_logprobs": 2,
            "text": {"format": {"type": "json_schema", **NAMED}},
            "reasoning": {"effort": "none"},
            "store": False,
        },
    ),
}


@pytest.mark.parametrize("name", RESPONSES)
def test_responses_are_asked_for_as_the_sdk_asks(
    server: Recorder, client: openai.OpenAI, name: str, tmp_path: Any
) -> None:
    call, parameters = RESPONSES[name]
    server.answer = response_shapes.whole()
    our_reply(server, call, tmp_path)
    client.responses.create(model="gpt-5.4", **parameters)
    assert_the_same(*server.sent)


def test_streamed_responses_are_asked_for_as_the_sdk_asks(
    server: Recorder, client: openai.OpenAI, tmp_path: Any
) -> None:
    server.answer, server.content_type = b"".join(response_shapes.STREAM), EVENTS
    our_reply(server, Call("openai-responses/gpt-5.4", "Say A or B.", stream=True), tmp_path)
    list(client.responses.create(model="gpt-5.4", input=PROMPTED, stream=True))
    assert_the_same(*server.sent)


AZURE = "2024-10-21"


def test_azures_older_address_is_asked_as_the_sdk_asks(server: Recorder, tmp_path: Any) -> None:
    server.answer = chat_shapes.whole()
    environment = {"AZURE_OPENAI_API_KEY": KEY, "AZURE_OPENAI_ENDPOINT": server.origin, "OPENAI_API_VERSION": AZURE}
    our_reply(server, Call("azure/my deployment", "Say A or B.", max_tokens=5), tmp_path, **environment)
    with openai.AzureOpenAI(api_key=KEY, azure_endpoint=server.origin, api_version=AZURE, max_retries=0) as theirs:
        theirs.chat.completions.create(model="my deployment", messages=PROMPTED, max_completion_tokens=5)
    assert server.last.path == f"/openai/deployments/my%20deployment/chat/completions?api-version={AZURE}"
    assert_the_same(*server.sent)


def test_azures_newer_address_is_asked_as_the_sdk_asks_but_for_the_header_of_the_key(
    server: Recorder, tmp_path: Any
) -> None:
    server.answer = chat_shapes.whole()
    environment = {"AZURE_OPENAI_API_KEY": KEY, "AZURE_OPENAI_ENDPOINT": server.origin}
    our_reply(server, Call("azure/mine", "Say A or B."), tmp_path, **environment)
    with openai.OpenAI(api_key=KEY, base_url=f"{server.origin}/openai/v1", max_retries=0) as theirs:
        theirs.chat.completions.create(model="mine", messages=PROMPTED)
    ours, sent = server.sent
    # OpenAI's client has one way to send a key; Azure documents `api-key` and takes both.
    assert (ours.headers.pop("api-key"), sent.headers.pop("authorization")) == (KEY, f"Bearer {KEY}")
    assert_the_same(ours, sent)


def test_azure_takes_a_token_of_entra_where_no_key_is_set(server: Recorder, tmp_path: Any) -> None:
    server.answer = chat_shapes.whole()
    environment = {"AZURE_OPENAI_AD_TOKEN": "entra-token-1", "AZURE_OPENAI_ENDPOINT": server.origin}
    our_reply(server, Call("azure/mine", "Say A or B."), tmp_path, OPENAI_API_VERSION=AZURE, **environment)
    known: Any = {"azure_endpoint": server.origin, "api_version": AZURE}
    with openai.AzureOpenAI(azure_ad_token="entra-token-1", max_retries=0, **known) as theirs:
        theirs.chat.completions.create(model="mine", messages=PROMPTED)
    assert_the_same(*server.sent)


# --- what is read ---

TOKENS = [
    {"token": "A", "logprob": -0.1, "bytes": [65], "top_logprobs": [{"token": "A", "logprob": -0.1, "bytes": [65]}]},
    {"token": "!", "logprob": -2.5, "bytes": [33], "top_logprobs": []},
]
CITED = {"url": "https://a.example/1", "title": "One", "start_index": 0, "end_index": 1}
NOTES = [{"type": "url_citation", "url_citation": CITED}]
COUNTED = {
    "prompt_tokens": 36,
    "completion_tokens": 87,
    "total_tokens": 123,
    "prompt_tokens_details": {"cached_tokens": 12},
    "completion_tokens_details": {"reasoning_tokens": 64},
}
CHAT_ANSWERS = {
    "usual": chat_shapes.whole(),
    "refusal": chat_shapes.whole(choices=chat_shapes.message(None, refusal="I can't.")),
    "cut": chat_shapes.whole(choices=chat_shapes.choice(finish_reason="length")),
    "detailed": chat_shapes.whole(
        choices=chat_shapes.choice(
            message={"role": "assistant", "content": "A!", "refusal": None, "annotations": NOTES},
            logprobs={"content": TOKENS, "refusal": None},
        ),
        usage=COUNTED,
    ),
}


@pytest.mark.parametrize("name", CHAT_ANSWERS)
def test_a_chat_completion_is_read_as_the_sdk_reads_it(
    server: Recorder, client: openai.OpenAI, name: str, tmp_path: Any
) -> None:
    server.answer = CHAT_ANSWERS[name]
    ours = our_reply(server, Call("openai/gpt-4o-mini", "x"), tmp_path)
    theirs = client.chat.completions.create(model="gpt-4o-mini", messages=PROMPTED)
    choice, usage = theirs.choices[0], theirs.usage
    assert ours.text == (choice.message.content or choice.message.refusal)
    assert (ours.finish_reason, ours.refused) == (choice.finish_reason, choice.message.refusal is not None)
    assert ours.usage is not None and usage is not None
    assert (ours.usage.input, ours.usage.output) == (usage.prompt_tokens, usage.completion_tokens)
    assert usage.completion_tokens_details is not None and usage.prompt_tokens_details is not None
    assert ours.usage.reasoning == usage.completion_tokens_details.reasoning_tokens
    assert ours.usage.cached_input == usage.prompt_tokens_details.cached_tokens
    tokens = choice.logprobs.content or [] if choice.logprobs is not None else []
    assert [(one.token, one.logprob) for one in ours.logprobs or ()] == [(one.token, one.logprob) for one in tokens]
    tops = [[(top.token, top.logprob) for top in one.top_logprobs] for one in tokens]
    assert [list(one.top) for one in ours.logprobs or ()] == tops
    notes = [note.url_citation for note in choice.message.annotations or ()]
    assert [(one.url, one.title) for one in ours.citations] == [(note.url, note.title) for note in notes]


def test_a_streamed_chat_completion_is_read_as_the_sdk_reads_it(
    server: Recorder, client: openai.OpenAI, tmp_path: Any
) -> None:
    server.answer, server.content_type = b"".join(chat_shapes.STREAM), EVENTS
    ours = our_reply(server, Call("openai/gpt-4o-mini", "x", stream=True), tmp_path)
    given: Any = {"messages": PROMPTED, "stream_options": {"include_usage": True}}
    theirs = list(client.chat.completions.create(model="gpt-4o-mini", stream=True, **given))
    assert_streams_read_alike(ours, theirs)


def assert_streams_read_alike(ours: Reply, theirs: list[Any]) -> None:
    choices = [choice for chunk in theirs for choice in chunk.choices]
    assert ours.text == "".join(choice.delta.content or "" for choice in choices)
    assert ours.finish_reason == next(choice.finish_reason for choice in choices if choice.finish_reason)
    (usage,) = [chunk.usage for chunk in theirs if chunk.usage is not None]
    assert ours.usage is not None
    assert (ours.usage.input, ours.usage.output) == (usage.prompt_tokens, usage.completion_tokens)


ANSWERS = {
    "usual": response_shapes.whole(),
    "cut": response_shapes.whole(status="incomplete", incomplete_details={"reason": "max_output_tokens"}),
    "detailed": response_shapes.whole(
        output=[response_shapes.said("A!", annotations=[{"type": "url_citation", **CITED}], logprobs=TOKENS)]
    ),
}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("name", ANSWERS)
def test_a_response_is_read_as_the_sdk_reads_it(
    server: Recorder, client: openai.OpenAI, name: str, stream: bool, tmp_path: Any
) -> None:
    if stream:
        kind = b"incomplete" if name == "cut" else b"completed"
        end = b'event: response.%b\ndata: {"type":"response.%b","sequence_number":9,"response":%b}\n\n'
        last = end % (kind, kind, ANSWERS[name])
        server.answer, server.content_type = response_shapes.CREATED + response_shapes.delta("A") + last, EVENTS
    else:
        server.answer, server.content_type = ANSWERS[name], JSON
    ours = our_reply(server, Call("openai-responses/gpt-5.4", "x", stream=stream), tmp_path)
    theirs: Any
    if stream:
        theirs = list(client.responses.create(model="gpt-5.4", input=PROMPTED, stream=True))[-1].response  # type: ignore[union-attr]
    else:
        theirs = client.responses.create(model="gpt-5.4", input=PROMPTED)
    assert ours.text == theirs.output_text
    assert ours.truncated == (theirs.status == "incomplete")
    assert ours.usage is not None
    assert (ours.usage.input, ours.usage.output) == (theirs.usage.input_tokens, theirs.usage.output_tokens)
    assert ours.usage.reasoning == theirs.usage.output_tokens_details.reasoning_tokens
    assert ours.usage.cached_input == theirs.usage.input_tokens_details.cached_tokens
    part = theirs.output[-1].content[0]
    told = [(one.token, one.logprob) for one in part.logprobs or ()]
    assert [(one.token, one.logprob) for one in ours.logprobs or ()] == told
    notes = [(note.url, note.title) for note in part.annotations]
    assert [(one.url, one.title) for one in ours.citations] == notes
