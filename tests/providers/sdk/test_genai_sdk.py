"""Google's own client against ours: what each sends to a recording server, field by field, and what each reads from it.

Where they differ on purpose: the order of the body's fields (ours is the alphabet's, since the body is the key),
Accept, User-Agent and X-Goog-Api-Client, which say who asks, the role `user` that theirs gives the system prompt
(Google reads none there), and the fields inside thinkingConfig, which theirs writes in Python's way: Google reads both.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gemini_shapes
import pytest
from google import genai
from google.genai import errors, types
from google.oauth2 import service_account
from google_server import SCOPE, TokenServer, written
from google_server import service_account as info_of
from msgspec import structs
from recorder import EVENTS, JSON, Recorder, Sent, assert_the_same, recording

from millstream import Call, Engine, Lane, Message, Outcome, Reply, Settings, Stopped
from millstream.engine.attempts.retry import RetryPolicy
from millstream.engine.endpoint import Response
from millstream.providers.llm.google.generate import PROTOCOL

KEY = "AIza-test-0123456789"
MODEL = "gemini-2.5-flash"
SCHEMA = {"type": "object", "properties": {"why": {"type": "string"}, "letter": {"type": "string"}}}
TALK = (Message("system", "Be brief."), Message("user", "Ä ✓"), Message("assistant", "A"), Message("user", "And now?"))
TALKED = [
    types.Content(role="user", parts=[types.Part(text="Ä ✓")]),
    types.Content(role="model", parts=[types.Part(text="A")]),
    types.Content(role="user", parts=[types.Part(text="And now?")]),
]
Config = types.GenerateContentConfig
SAFETY = types.SafetySetting(
    category=types.HarmCategory.HARM_CATEGORY_HARASSMENT, threshold=types.HarmBlockThreshold.OFF
)

ASKED: dict[str, tuple[Call, Any, Config | None]] = {
    "a prompt alone": (Call(f"gemini/{MODEL}", "Say A or B."), "Say A or B.", None),
    "a conversation with everything set": (
        Call(
            f"gemini/{MODEL}",
            TALK,
            temperature=0.5,
            max_tokens=100,
            top_p=0.9,
            stop=("\n", "END"),
            seed=7,
            logprobs=3,
            extra={
                "safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "OFF"}],
                "generationConfig": {"topK": 40.0},
            },
        ),
        TALKED,
        Config(
            system_instruction="Be brief.",
            temperature=0.5,
            max_output_tokens=100,
            top_p=0.9,
            stop_sequences=["\n", "END"],
            seed=7,
            response_logprobs=True,
            logprobs=3,
            safety_settings=[SAFETY],
            top_k=40,
        ),
    ),
    "a schema and a level": (
        Call("gemini/gemini-3.1-pro", "Say A or B.", json_schema=SCHEMA, reasoning_effort="low"),
        "Say A or B.",
        Config(
            response_mime_type="application/json",
            response_json_schema=SCHEMA,
            thinking_config=types.ThinkingConfig(thinking_level=types.ThinkingLevel.LOW),
        ),
    ),
    "a number of tokens to think with": (
        Call(f"gemini/{MODEL}", "Say A or B.", reasoning_effort="512", temperature=0),
        "Say A or B.",
        Config(temperature=0, thinking_config=types.ThinkingConfig(thinking_budget=512)),
    ),
    "the chosen tokens' log-probabilities": (
        Call(f"gemini/{MODEL}", "Say A or B.", logprobs=0),
        "Say A or B.",
        Config(response_logprobs=True),
    ),
}


@pytest.fixture
def server() -> Iterator[Recorder]:
    with recording(gemini_shapes.whole()) as recorder:
        yield recorder


@pytest.fixture
def client(server: Recorder) -> Iterator[genai.Client]:
    with genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=server.origin)) as opened:
        yield opened


async def our_outcome(server: Recorder, call: Call, folder: Path, **environment: str) -> Outcome:
    """One call through a whole engine, with an empty cache."""
    variables = {
        "GEMINI_API_KEY": KEY,
        "GOOGLE_GEMINI_BASE_URL": server.origin,
        "GOOGLE_VERTEX_BASE_URL": server.origin,
        **environment,
    }
    policy = RetryPolicy(attempts_max=1)
    settings = Settings(lanes=(Lane(call.model, timeout_s=10),), cache=folder, environment=variables, policy=policy)
    async with Engine(settings=settings) as engine:
        return await engine.ask(call)


def our_reply(server: Recorder, call: Call, folder: Path) -> Reply:
    outcome = asyncio.run(our_outcome(server, call, folder))
    assert outcome.reply is not None, outcome.failure
    return outcome.reply


def assert_asked_alike(ours: Sent, theirs: Sent) -> None:
    assert_the_same(ours, theirs._replace(body=json.dumps(in_our_way(theirs.json)).encode()))


def in_our_way(body: dict[str, Any]) -> dict[str, Any]:
    if "systemInstruction" in body:
        assert body["systemInstruction"].pop("role") == "user"
    thinking = body.get("generationConfig", {}).get("thinkingConfig", {})
    for name, ours in {"thinking_level": "thinkingLevel", "thinking_budget": "thinkingBudget"}.items():
        if name in thinking:
            thinking[ours] = thinking.pop(name)
    return body


# --- what is sent ---


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("name", ASKED)
def test_gemini_is_asked_as_the_sdk_asks(
    server: Recorder, client: genai.Client, name: str, stream: bool, tmp_path: Path
) -> None:
    call, contents, config = ASKED[name]
    if stream:
        server.answer, server.content_type = b"".join(gemini_shapes.STREAM), EVENTS
    our_reply(server, structs.replace(call, stream=stream), tmp_path)
    ask = client.models.generate_content_stream if stream else client.models.generate_content
    list(ask(model=call.model.partition("/")[2], contents=contents, config=config))
    assert_asked_alike(*server.sent)


@pytest.mark.parametrize("location", ["global", "us-central1"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_vertex_is_asked_as_the_sdk_asks_and_each_exchanges_one_token(
    server: Recorder, tmp_path: Path, stream: bool, location: str
) -> None:
    if stream:
        server.answer, server.content_type = b"".join(gemini_shapes.STREAM), EVENTS

    def theirs(info: dict[str, Any]) -> None:
        made: Any = service_account.Credentials
        credentials = made.from_service_account_info(info, scopes=[SCOPE])
        known: Any = {"project": "some-project", "location": location, "credentials": credentials}
        options = types.HttpOptions(base_url=server.origin)
        with genai.Client(vertexai=True, http_options=options, **known) as opened:
            asked: Any = {"model": MODEL, "contents": TALKED, "config": Config(system_instruction="Be brief.", seed=7)}
            if stream:
                list(opened.models.generate_content_stream(**asked))
            else:
                opened.models.generate_content(**asked)

    async def scenario() -> tuple[list[str], list[dict[str, str]]]:
        async with TokenServer() as tokens:
            info = info_of(tokens.url)
            environment = {
                "GOOGLE_APPLICATION_CREDENTIALS": str(written(tmp_path, info)),
                "GOOGLE_CLOUD_LOCATION": location,
            }
            call = Call(f"vertex/{MODEL}", TALK, seed=7, stream=stream)
            outcome = await our_outcome(server, call, tmp_path, **environment)
            assert outcome.reply is not None, outcome.failure
            await asyncio.to_thread(theirs, info)
            return tokens.tokens, tokens.bodies

    tokens, bodies = asyncio.run(scenario())
    assert [body["grant_type"] for body in bodies] == ["urn:ietf:params:oauth:grant-type:jwt-bearer"] * 2
    ours, sent = server.sent
    assert [ours.headers.pop("authorization"), sent.headers.pop("authorization")] == [
        f"Bearer {token}" for token in tokens
    ]
    assert_asked_alike(ours, sent)


# --- what is read ---

READ: dict[str, dict[str, Any]] = {
    "a whole answer": gemini_shapes.answer(),
    "thoughts beside it": gemini_shapes.said(
        {"text": "Perhaps B.", "thought": True}, {"text": "A"}, finish="STOP", usageMetadata=gemini_shapes.USAGE
    ),
    "several parts": gemini_shapes.said({"text": "A"}, {"text": " or B"}, finish="MAX_TOKENS"),
    "tokens and pages": gemini_shapes.answer(
        gemini_shapes.candidate("A!", logprobsResult=gemini_shapes.LOGPROBS, groundingMetadata=gemini_shapes.GROUNDED)
    ),
    "a filtered answer": gemini_shapes.answer(gemini_shapes.candidate(None, "SAFETY")),
    "a blocked prompt": {"promptFeedback": {"blockReason": "SAFETY", "blockReasonMessage": "Too rude."}},
}


@pytest.mark.parametrize("name", READ)
def test_what_the_sdk_reads_is_what_we_read(server: Recorder, client: genai.Client, name: str, tmp_path: Path) -> None:
    server.answer = json.dumps(READ[name]).encode()
    ours = our_reply(server, Call(f"gemini/{MODEL}", "x"), tmp_path)
    theirs = client.models.generate_content(model=MODEL, contents="x")
    assert_read_alike(ours, [theirs])


def assert_read_alike(ours: Reply, theirs: list[types.GenerateContentResponse]) -> None:
    last = theirs[-1]
    if last.prompt_feedback is not None and last.prompt_feedback.block_reason is not None:
        assert (ours.text, ours.refused) == (last.prompt_feedback.block_reason_message, True)
        return
    assert last.candidates is not None
    one = last.candidates[0]
    assert ours.text == "".join(answer.text or "" for answer in theirs)
    ends = {"STOP": "stop", "MAX_TOKENS": "length", "SAFETY": "content_filter"}
    assert one.finish_reason is not None and ours.finish_reason == ends[one.finish_reason.value]
    usage = last.usage_metadata
    assert (usage is None) == (ours.usage is None)
    if usage is not None and ours.usage is not None:
        thought = usage.thoughts_token_count or 0
        # Theirs counts thoughts beside the answer; ours in it, since they are paid so.
        assert ours.usage.output == (usage.candidates_token_count or 0) + thought
        assert (ours.usage.input, ours.usage.reasoning) == (usage.prompt_token_count, thought)
        assert ours.usage.tokens == usage.total_token_count
    if one.logprobs_result is not None:
        chosen, tops = one.logprobs_result.chosen_candidates, one.logprobs_result.top_candidates
        assert chosen is not None and tops is not None and ours.logprobs is not None
        assert [(each.token, each.logprob) for each in ours.logprobs] == pairs(chosen)
        assert [list(each.top) for each in ours.logprobs] == [pairs(top.candidates or []) for top in tops]
    if one.grounding_metadata is not None:
        chunks = one.grounding_metadata.grounding_chunks or []
        found = {each.web.uri for each in chunks if each.web} | {
            each.retrieved_context.uri for each in chunks if each.retrieved_context
        }
        assert {each.url for each in ours.citations} == found


def pairs(given: list[types.LogprobsResultCandidate]) -> list[tuple[str | None, float]]:
    """A zero is left out on the wire, and is None in theirs."""
    return [(each.token, each.log_probability or 0.0) for each in given]


def test_a_stream_is_read_as_the_sdk_reads_it(server: Recorder, client: genai.Client, tmp_path: Path) -> None:
    server.answer, server.content_type = b"".join(gemini_shapes.STREAM), EVENTS
    ours = our_reply(server, Call(f"gemini/{MODEL}", "x", stream=True), tmp_path)
    assert_read_alike(ours, list(client.models.generate_content_stream(model=MODEL, contents="x")))


FAULTS = {
    "a wrong argument": (400, "INVALID_ARGUMENT"),
    "no permission": (403, "PERMISSION_DENIED"),
    "no such model": (404, "NOT_FOUND"),
    "a quota": (429, "RESOURCE_EXHAUSTED"),
    "overload": (503, "UNAVAILABLE"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_an_error_has_the_status_and_the_message_that_the_sdk_reads(
    server: Recorder, client: genai.Client, name: str
) -> None:
    status, word = FAULTS[name]
    server.status, server.content_type = status, JSON
    server.answer = gemini_shapes.error(status, word, "Why it is so.")
    with pytest.raises(errors.APIError) as raised:
        client.models.generate_content(model=MODEL, contents="x")
    ours = PROTOCOL.decode(Response(status, server.answer))
    assert not isinstance(ours, Reply)
    assert (ours.status, ours.detail) == (raised.value.code, f"{status}: {raised.value.message}")


def test_a_dead_key_stops_the_lane_after_one_probe(server: Recorder, tmp_path: Path) -> None:
    server.status = 400
    server.answer = gemini_shapes.error(
        400,
        "INVALID_ARGUMENT",
        "API key not valid. Please pass a valid API key.",
        gemini_shapes.reason("API_KEY_INVALID"),
    )
    with pytest.raises(Stopped, match="API key not valid"):
        our_reply(server, Call(f"gemini/{MODEL}", "x"), tmp_path)
    assert len(server.sent) == 2 and all(sent.headers["x-goog-api-key"] == KEY for sent in server.sent)
