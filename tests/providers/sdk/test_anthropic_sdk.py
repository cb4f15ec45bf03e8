"""Anthropic's own client against ours: what each sends to a recording server, field by field, and what each reads.

Where they differ on purpose: the order of the body's fields (ours is the alphabet's, since the body is the key), and
Accept, User-Agent and the X-Stainless headers, which say who asks. Its second version has no words for sampling and
no header for a key of its own; what an older model still takes is therefore given to it by hand.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import anthropic
import pytest
from anthropic_shapes import READ, START, STOP, STREAM, THOUGHT, USAGE, closed, delta, ended, opened, said, text, whole
from msgspec import structs
from recorder import EVENTS, JSON, Recorder, assert_the_same, recording

from millstream import Call, Engine, Lane, Message, Reply, Settings
from millstream.providers.llm.anthropic.messages import OLDER_VERSION, VERSION
from millstream.providers.table import PROVIDERS, Provider

KEY = "sk-ant-test-0123456789"
TOKEN = "gateway-token-0123456789"
MODEL = "claude-sonnet-5-5"
SCHEMA = {
    "type": "object",
    "properties": {"letter": {"type": "string"}},
    "required": ["letter"],
    "additionalProperties": False,
}
TALK = (Message("system", "Be brief."), Message("user", "Ä ✓"), Message("assistant", "A"), Message("user", "And now?"))
TALKED: list[Any] = [{"role": one.role, "content": one.content} for one in TALK[1:]]
PROMPTED: list[Any] = [{"role": "user", "content": "Say A or B."}]


@pytest.fixture
def server() -> Iterator[Recorder]:
    with recording(whole()) as recorder:
        yield recorder


@pytest.fixture
def client(server: Recorder) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(api_key=KEY, base_url=server.origin, max_retries=0) as opened:
        yield opened


def our_reply(
    server: Recorder,
    call: Call,
    folder: Any,
    environment: dict[str, str] | None = None,
    providers: dict[str, Provider] | None = None,
) -> Reply:
    """One call through a whole engine, with an empty cache."""
    variables = {"ANTHROPIC_BASE_URL": server.origin, **(environment or {"ANTHROPIC_API_KEY": KEY})}
    lanes = (Lane(call.model, timeout_s=10),)
    settings = Settings(lanes=lanes, cache=folder, environment=variables, providers=providers or {})

    async def once() -> Reply:
        async with Engine(settings=settings) as engine:
            outcome = await engine.ask(call)
        assert outcome.reply is not None, outcome.failure
        return outcome.reply

    return asyncio.run(once())


# --- what is sent ---

CALLS: dict[str, tuple[Call, dict[str, Any]]] = {
    # It wants max_tokens of its caller; ours is sent where none is set.
    "a prompt alone": (
        Call(f"anthropic/{MODEL}", "Say A or B."),
        {"messages": PROMPTED, "max_tokens": 16_384},
    ),
    "a conversation with everything set": (
        Call(
            f"anthropic/{MODEL}",
            TALK,
            max_tokens=100,
            stop=("\n\n", "END"),
            reasoning_effort="low",
            json_schema=SCHEMA,
            extra={"metadata": {"user_id": "u"}, "thinking": {"type": "adaptive"}},
        ),
        {
            "system": "Be brief.",
            "messages": TALKED,
            "max_tokens": 100,
            "stop_sequences": ["\n\n", "END"],
            "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": SCHEMA}},
            "metadata": {"user_id": "u"},
            "thinking": {"type": "adaptive"},
        },
    ),
    "several system prompts, and one between the turns": (
        Call(f"anthropic/{MODEL}", (Message("system", "One."), *TALK, Message("system", "Last.")), max_tokens=9),
        {
            "system": [{"type": "text", "text": "One."}, {"type": "text", "text": "Be brief."}],
            "messages": [*TALKED, {"role": "system", "content": "Last."}],
            "max_tokens": 9,
        },
    ),
    "a number of tokens to think": (
        Call(f"anthropic/{MODEL}", "Say A or B.", max_tokens=4000, reasoning_effort="2048"),
        {"messages": PROMPTED, "max_tokens": 4000, "thinking": {"type": "enabled", "budget_tokens": 2048}},
    ),
    "no thoughts": (
        Call(f"anthropic/{MODEL}", "Say A or B.", max_tokens=9, reasoning_effort="none"),
        {"messages": PROMPTED, "max_tokens": 9, "thinking": {"type": "disabled"}},
    ),
}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("name", CALLS)
def test_a_message_is_asked_for_as_the_sdk_asks(
    server: Recorder, client: anthropic.Anthropic, name: str, stream: bool, tmp_path: Any
) -> None:
    call, parameters = CALLS[name]
    if stream:
        server.answer, server.content_type, parameters = b"".join(STREAM), EVENTS, {**parameters, "stream": True}
    our_reply(server, structs.replace(call, stream=stream), tmp_path)
    answered = client.messages.create(model=MODEL, **parameters)
    if stream:
        list(answered)
    assert_the_same(*server.sent)
    assert server.last.headers["anthropic-version"] == VERSION
    assert server.last.headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_an_older_model_is_asked_in_its_version_with_sampling_and_the_key_in_its_own_header(
    server: Recorder, stream: bool, tmp_path: Any
) -> None:
    if stream:
        server.answer, server.content_type = b"".join(STREAM), EVENTS
    call = Call("anthropic/claude-sonnet-4-6", "Say A or B.", temperature=0.5, max_tokens=9, top_p=0.9, stream=stream)
    older = structs.replace(PROVIDERS["anthropic"], version=OLDER_VERSION)
    our_reply(server, call, tmp_path, providers={"anthropic": older})
    by_hand: Any = {"Authorization": anthropic.Omit(), "X-Api-Key": KEY, "anthropic-version": "2023-06-01"}
    sampling = {"temperature": 0.5, "top_p": 0.9}
    given: Any = {"messages": PROMPTED, "stream": True} if stream else {"messages": PROMPTED}
    with anthropic.Anthropic(api_key=KEY, base_url=server.origin, max_retries=0) as theirs:
        theirs.messages.create(
            model="claude-sonnet-4-6", max_tokens=9, extra_body=sampling, extra_headers=by_hand, **given
        )
    assert_the_same(*server.sent)
    assert server.last.headers["x-api-key"] == KEY and "authorization" not in server.last.headers


def test_the_token_of_a_gateway_is_sent_as_the_sdk_sends_it_where_there_is_no_key(
    server: Recorder, tmp_path: Any
) -> None:
    our_reply(
        server, Call(f"anthropic/{MODEL}", "Say A or B.", max_tokens=9), tmp_path, {"ANTHROPIC_AUTH_TOKEN": TOKEN}
    )
    with anthropic.Anthropic(auth_token=TOKEN, base_url=server.origin, max_retries=0) as theirs:
        theirs.messages.create(model=MODEL, max_tokens=9, messages=PROMPTED)
    assert_the_same(*server.sent)
    assert server.last.headers["authorization"] == f"Bearer {TOKEN}"


PLACE: dict[str, str] = {"project_id": "my-project", "region": "europe-west1"}
PLACED = {"GOOGLE_CLOUD_PROJECT": "my-project", "GOOGLE_CLOUD_LOCATION": "europe-west1", "THE_TOKEN": TOKEN}


@pytest.mark.parametrize("model", ["claude-sonnet-4-5@20250929", "anthropic/claude-opus-5-5"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("version", [None, "vertex-2023-10-16"])
def test_claude_on_vertex_is_asked_as_the_sdk_asks(
    server: Recorder, model: str, stream: bool, version: str | None, tmp_path: Any
) -> None:
    parameters: dict[str, Any] = {"messages": PROMPTED, "max_tokens": 9}
    if stream:
        server.answer, server.content_type = b"".join(STREAM), EVENTS
        parameters["stream"] = True
    if version is not None:
        parameters["extra_body"] = {"anthropic_version": version, "temperature": 0.5}
    temperature = None if version is None else 0.5
    row = structs.replace(PROVIDERS["vertex"], key_variable="THE_TOKEN", version=version)
    environment = {"GOOGLE_VERTEX_BASE_URL": server.origin, **PLACED}
    call = Call(f"vertex/{model}", "Say A or B.", temperature=temperature, max_tokens=9, stream=stream)
    our_reply(server, call, tmp_path, environment, {"vertex": row})
    known: Any = {**PLACE, "access_token": TOKEN, "base_url": f"{server.origin}/v1", "max_retries": 0}
    with anthropic.AnthropicVertex(**known) as theirs:
        # It wants the name alone; before it `anthropic/` is how other publishers' models are named here.
        answered = theirs.messages.create(model=model.removeprefix("anthropic/"), **parameters)
        if stream:
            list(answered)
    assert_the_same(*server.sent)


# --- what is read ---

PAGE = {
    "type": "web_search_result_location",
    "url": "https://a.example/1",
    "title": "One",
    "cited_text": "…",
    "encrypted_index": "e",
}
REFUSED = {"type": "refusal", "category": "bio", "explanation": "Not that."}
ANSWERS: dict[str, dict[str, Any]] = {
    "usual": {},
    "cut": {"stop_reason": "max_tokens"},
    "stopped": {"stop_reason": "stop_sequence", "stop_sequence": "END"},
    "refused": {"content": [said("Well")], "stop_reason": "refusal", "stop_details": REFUSED},
    "cited": {"content": [said("A", citations=[PAGE]), said("B", citations=None)]},
    "with few counts": {"usage": {"input_tokens": 3, "output_tokens": 4}},
}
FINISHES = {"end_turn": "stop", "max_tokens": "length", "stop_sequence": "stop", "refusal": "content_filter"}


def streamed(content: list[Any], stop: str, usage: Any) -> bytes:
    """The same answer in events, as Anthropic's servers send them."""
    pieces = [START]
    for index, block in enumerate(content):
        if block["type"] == "text":
            pieces += [opened(index, {**block, "text": "", "citations": None}), text(block["text"], index)]
            pieces += [delta("citations_delta", index, citation=one) for one in block.get("citations") or ()]
        else:
            pieces += [opened(index, {**block, "thinking": "", "signature": ""})]
            pieces += [delta("thinking_delta", index, thinking=block["thinking"])]
        pieces.append(closed(index))
    return b"".join([*pieces, ended(stop, usage), STOP])


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("name", ANSWERS)
def test_a_message_is_read_as_the_sdk_reads_it(
    server: Recorder, client: anthropic.Anthropic, name: str, stream: bool, tmp_path: Any
) -> None:
    changes = ANSWERS[name]
    if stream:
        content = changes.get("content", [THOUGHT, said(READ)])
        server.content_type = EVENTS
        server.answer = streamed(content, changes.get("stop_reason", "end_turn"), changes.get("usage", USAGE))
    else:
        server.answer, server.content_type = whole(**changes), JSON
    ours = our_reply(server, Call(f"anthropic/{MODEL}", "x", stream=stream), tmp_path)
    given: Any = {"model": MODEL, "max_tokens": 9, "messages": PROMPTED}
    theirs: anthropic.types.Message
    if stream:
        with client.messages.stream(**given) as events:
            theirs = events.get_final_message()
    else:
        theirs = client.messages.create(**given)
    blocks = [block for block in theirs.content if block.type == "text"]
    assert ours.text == "".join(block.text for block in blocks)
    assert theirs.stop_reason is not None
    assert ours.finish_reason == FINISHES[theirs.stop_reason]
    assert (ours.truncated, ours.refused) == (theirs.stop_reason == "max_tokens", theirs.stop_reason == "refusal")
    usage = theirs.usage
    cached, stored = usage.cache_read_input_tokens or 0, usage.cache_creation_input_tokens or 0
    assert ours.usage is not None
    # Anthropic tells the whole input in three parts.
    assert (ours.usage.input, ours.usage.output) == (usage.input_tokens + cached + stored, usage.output_tokens)
    assert ours.usage.cached_input == cached
    details = usage.output_tokens_details
    assert ours.usage.reasoning == min(0 if details is None else details.thinking_tokens, usage.output_tokens)
    notes: list[Any] = [one for block in blocks for one in block.citations or ()]
    assert [(one.url, one.title) for one in ours.citations] == [(note.url, note.title) for note in notes]
