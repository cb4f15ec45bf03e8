"""Four official clients and ours at one mock that nobody here wrote: what each reads of the same answers and errors."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import anthropic
import openai
import pytest
from endpoints import transport
from google import genai
from google.genai import errors, types
from mocks import aimock, why_no_aimock

from millstream.engine.call import Call, Reply
from millstream.engine.endpoint import Fault, send
from millstream.providers.credentials.authorizer import Authorizer, bearer, key_in
from millstream.providers.llm.anthropic import messages
from millstream.providers.llm.google import generate as gemini
from millstream.providers.llm.openai import chat as openai_chat
from millstream.providers.llm.openai import responses as openai_responses
from millstream.providers.llm.protocol import Target, WireProtocol
from millstream.providers.transport.endpoint import ModelEndpoint

KEY = "sk-test-0123456789"
TEXTS = {
    "a letter": "position <<A>> – ✓ 😀",
    "many lines": 'one\n\ntwo\r\n"three"\\\tdata: four\n\n',
    "a long text": "word " * 2_000,
    "thought aloud": "A",
    "cut by length": "hal",
    "filtered": "no",
}
# Every protocol's names of the same counts.
USAGE = {
    "prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16, "input_tokens": 11, "output_tokens": 5,
    "promptTokenCount": 11, "candidatesTokenCount": 5, "totalTokenCount": 16,
}  # fmt: skip
MORE: dict[str, dict[str, Any]] = {
    "thought aloud": {"reasoning": "Perhaps B. " * 20},
    "cut by length": {"finishReason": "length"},
    "filtered": {"finishReason": "content_filter"},
}
FAILING = {"too fast": 429, "broken": 500, "no key": 401, "no such model": 404, "wrong": 400}
FIXTURES: list[dict[str, Any]] = [
    *(
        {"match": {"userMessage": prompt}, "response": {"content": text, "usage": USAGE, **MORE.get(prompt, {})}}
        for prompt, text in TEXTS.items()
    ),
    *(
        {
            "match": {"userMessage": prompt},
            "response": {"status": status, "error": {"message": f"Why {prompt}.", "type": "a_type", "code": None}},
        }
        for prompt, status in FAILING.items()
    ),
]


class Read(NamedTuple):
    """What a client reads of an answer; `end` in the provider's own word."""

    text: str
    end: str | None
    read: int | None
    written: int | None


class Failed(NamedTuple):
    status: int | None
    said: str


def by_chat(origin: str, prompt: str, stream: bool) -> Read:
    with openai.OpenAI(api_key=KEY, base_url=f"{origin}/v1", max_retries=0) as client:
        given: Any = {"model": "m", "messages": [{"role": "user", "content": prompt}]}
        if not stream:
            whole = client.chat.completions.create(**given)
            choice, usage = whole.choices[0], whole.usage
            assert usage is not None
            text = choice.message.content or ""
            return Read(text, choice.finish_reason, usage.prompt_tokens, usage.completion_tokens)
        given["stream_options"] = {"include_usage": True}
        chunks: list[Any] = list(client.chat.completions.create(stream=True, **given))
        choices = [choice for chunk in chunks for choice in chunk.choices]
        (usage,) = [chunk.usage for chunk in chunks if chunk.usage is not None] or [None]
        end = next(choice.finish_reason for choice in choices if choice.finish_reason)
        text = "".join(choice.delta.content or "" for choice in choices)
        counts = (None, None) if usage is None else (usage.prompt_tokens, usage.completion_tokens)
        return Read(text, end, *counts)


def by_responses(origin: str, prompt: str, stream: bool) -> Read:
    with openai.OpenAI(api_key=KEY, base_url=f"{origin}/v1", max_retries=0) as client:
        given: Any = {"model": "m", "input": prompt}
        answer: Any
        if stream:
            events = [event for event in client.responses.create(stream=True, **given) if hasattr(event, "response")]
            answer = events[-1].response
        else:
            answer = client.responses.create(**given)
        reason = None if answer.incomplete_details is None else answer.incomplete_details.reason
        return Read(answer.output_text, reason or answer.status, answer.usage.input_tokens, answer.usage.output_tokens)


def by_anthropic(origin: str, prompt: str, stream: bool) -> Read:
    with anthropic.Anthropic(api_key=KEY, base_url=origin, max_retries=0) as client:
        given: Any = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": prompt}]}
        if stream:
            with client.messages.stream(**given) as events:
                answer = events.get_final_message()
        else:
            answer = client.messages.create(**given)
        text = "".join(block.text for block in answer.content if block.type == "text")
        return Read(text, answer.stop_reason, answer.usage.input_tokens, answer.usage.output_tokens)


def by_genai(origin: str, prompt: str, stream: bool) -> Read:
    with genai.Client(api_key=KEY, http_options=types.HttpOptions(base_url=origin, api_version="v1beta")) as client:
        if stream:
            answers = list(client.models.generate_content_stream(model="m", contents=prompt))
        else:
            answers = [client.models.generate_content(model="m", contents=prompt)]
        last, usage = answers[-1], answers[-1].usage_metadata
        assert last.candidates and last.candidates[0].finish_reason is not None and usage is not None
        text = "".join(answer.text or "" for answer in answers)
        end = last.candidates[0].finish_reason.value
        return Read(text, end, usage.prompt_token_count, usage.candidates_token_count)


class Pair(NamedTuple):
    """An official client, and ours for the same protocol. `ends`: its words, and ours for them."""

    theirs: Callable[[str, str, bool], Read]
    protocol: WireProtocol
    authorizer: Authorizer
    path: str
    ends: dict[str, str]


PAIRS = {
    "chat": Pair(by_chat, openai_chat.PROTOCOL, bearer(KEY), "/v1", {}),
    "responses": Pair(
        by_responses, openai_responses.PROTOCOL, bearer(KEY), "/v1", {"completed": "stop", "incomplete": "length"}
    ),
    "anthropic": Pair(by_anthropic, messages.PROTOCOL, bearer(KEY), "", {"end_turn": "stop", "max_tokens": "length"}),
    "gemini": Pair(
        by_genai,
        gemini.PROTOCOL,
        key_in("x-goog-api-key", KEY),
        "/v1beta",
        {"STOP": "stop", "MAX_TOKENS": "length", "SAFETY": "content_filter"},
    ),
}
pytestmark = pytest.mark.skipif(bool(why_no_aimock()), reason=why_no_aimock() or "it can be used")
in_each = pytest.mark.parametrize("name", PAIRS)
whole_and_streamed = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with aimock(tmp_path_factory.mktemp("aimock"), FIXTURES) as base_url:
        yield base_url.removesuffix("/v1")


def ours(origin: str, pair: Pair, prompt: str, stream: bool) -> Reply | Fault:
    async def once() -> Reply | Fault:
        async with transport() as over:
            target = Target(origin + pair.path, "mock", "m", "mock")
            at = ModelEndpoint(pair.protocol, target, pair.authorizer, over, 10.0)
            return at.decode(await send(at, at.encode(Call("mock/m", prompt, stream=stream))))

    return asyncio.run(once())


@in_each
@whole_and_streamed
@pytest.mark.parametrize("prompt", TEXTS)
def test_an_answer_is_read_as_the_official_client_reads_it(origin: str, name: str, prompt: str, stream: bool) -> None:
    pair = PAIRS[name]
    theirs, reply = pair.theirs(origin, prompt, stream), ours(origin, pair, prompt, stream)
    if (name, prompt) == ("responses", "filtered"):
        # The mock has `failed` and no word of why, where OpenAI has `incomplete` and the filter as its reason.
        assert theirs.end == "failed" and isinstance(reply, Fault) and "`failed`" in reply.detail
        return
    assert isinstance(reply, Reply), reply
    usage = reply.usage
    # The mock cuts a stream between the halves of a pair; theirs leaves them apart, ours puts them together.
    theirs = theirs._replace(text=theirs.text.encode("utf-16", "surrogatepass").decode("utf-16"))
    assert theirs.text == TEXTS[prompt] and theirs.end is not None
    counts = (None, None) if usage is None else (usage.input, usage.output)
    assert Read(reply.text, reply.finish_reason, *counts) == theirs._replace(end=pair.ends.get(theirs.end, theirs.end))
    assert (reply.truncated, reply.refused) == (prompt == "cut by length", prompt == "filtered")


def failed_of_theirs(origin: str, pair: Pair, prompt: str, stream: bool) -> Failed:
    with pytest.raises((openai.APIStatusError, anthropic.APIStatusError, errors.APIError)) as raised:
        pair.theirs(origin, prompt, stream)
    error: Any = raised.value
    if isinstance(error, errors.APIError):
        return Failed(error.code, str(error.message))
    body = error.body.get("error", error.body)
    return Failed(error.status_code, body["message"])


@in_each
@whole_and_streamed
@pytest.mark.parametrize("prompt", FAILING)
def test_an_error_has_the_status_and_the_message_that_the_official_client_reads(
    origin: str, name: str, prompt: str, stream: bool
) -> None:
    fault = ours(origin, PAIRS[name], prompt, stream)
    assert isinstance(fault, Fault), fault
    theirs = failed_of_theirs(origin, PAIRS[name], prompt, stream)
    assert theirs == Failed(FAILING[prompt], f"Why {prompt}.")
    assert (fault.status, fault.detail) == (theirs.status, f"{theirs.status}: {theirs.said}")
