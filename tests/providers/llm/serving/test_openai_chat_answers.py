"""What clients of OpenAI's chat completions hear: as their SDK reads it, and as our own decoder does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import httpx2
import pytest
from msgspec import structs
from openai import APIError, OpenAI, Stream
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletion, ChatCompletionChunk, ChatCompletionMessage
from told_replies import FIND, KEY, LOOK, OPENAI_REPLIES, USAGE, outcomes, replies

from millstream.engine.call import Reply, TokenLogprob
from millstream.engine.content import Native
from millstream.providers.llm.openai.serve_chat import dialect
from millstream.providers.llm.serve_dialect import Problem, ServedRequest
from millstream.providers.llm.sse import events_of

NOW = 1741569952.7
DIALECT = dialect(lambda: NOW)
REPLIES = {**replies(Native("openai", {"reasoning_content": "hm"})), **OPENAI_REPLIES}
each_reply = pytest.mark.parametrize("reply", REPLIES.values(), ids=list(REPLIES))


def asked(**changes: Any) -> ServedRequest:
    body = {"model": "gpt-x", "messages": [{"role": "user", "content": "x"}], **changes}
    return DIALECT.read(body, "openai/{}".format)


def whole(reply: Reply, **changes: Any) -> ChatCompletion:
    return ChatCompletion.model_validate_json(DIALECT.whole(asked(**changes), outcomes(reply)), strict=True)


def streamed(told: Sequence[Reply], *pieces: str, usage: bool = True, **changes: Any) -> bytes:
    options = {"stream": True, "stream_options": {"include_usage": usage}, **changes}
    stream = DIALECT.stream(asked(**options))
    said = b"".join((stream.begin(), *map(stream.text, pieces)))
    return said + stream.end(outcomes(*told))


def chunks(stream: bytes) -> Iterator[ChatCompletionChunk]:
    for data in events_of(stream):
        if data != b"[DONE]":
            yield ChatCompletionChunk.model_validate_json(data, strict=True)


def accumulated(stream: bytes) -> ChatCompletion:
    """As the SDK joins them; its final completion is an error for an answer that was cut short or filtered."""
    state = ChatCompletionStreamState()
    for chunk in chunks(stream):
        state.handle_chunk(chunk)
    return state.current_completion_snapshot


def called(message: ChatCompletionMessage) -> list[tuple[str, str, str]]:
    calls = [call for call in message.tool_calls or () if call.type == "function"]
    return [(call.id, call.function.name, call.function.arguments) for call in calls]


def test_a_whole_answer_repeats_the_clients_own_word_for_the_model() -> None:
    told = whole(REPLIES["a text"], model="my-model")
    assert (told.model, told.created, told.id) == ("my-model", int(NOW), "chatcmpl-" + KEY[:29])
    assert told.choices[0].message.content == REPLIES["a text"].text
    assert told.usage is not None
    assert told.usage.total_tokens == 123


def test_samples_of_one_question_are_choices_whose_tokens_are_summed() -> None:
    samples = [REPLIES["a text"], REPLIES["cut"], REPLIES["a tool"]]
    body = DIALECT.whole(asked(n=3), outcomes(*samples))
    told = ChatCompletion.model_validate_json(body, strict=True)
    for completion in (told, accumulated(streamed(samples, "position", n=3))):
        assert [choice.index for choice in completion.choices] == [0, 1, 2]
        assert [choice.finish_reason for choice in completion.choices] == ["stop", "length", "tool_calls"]
        assert [choice.message.content or "" for choice in completion.choices] == [reply.text for reply in samples]
        assert completion.usage is not None
        assert (completion.usage.prompt_tokens, completion.usage.completion_tokens) == (75, 179)


@each_reply
def test_the_sdk_joins_the_chunks_to_the_whole_answer(reply: Reply) -> None:
    joined, told = accumulated(streamed([reply])).choices[0], whole(reply).choices[0]
    assert joined.finish_reason == told.finish_reason
    assert (joined.message.content or "") == (told.message.content or "")
    assert (joined.message.refusal or "") == (told.message.refusal or "")
    assert called(joined.message) == called(told.message)
    assert len(called(told.message)) == len(reply.tool_calls)
    tokens = (None if choice.logprobs is None else choice.logprobs.content for choice in (joined, told))
    assert len({repr(one or []) for one in tokens}) == 1


@pytest.mark.parametrize(
    ("name", "content", "refusal", "finish"),
    [
        ("filtered", "I can", None, "content_filter"),
        ("refused", None, "I won't.", "stop"),
        ("a tool", None, None, "tool_calls"),
        ("nothing", "", None, "stop"),
    ],
)
def test_a_message_says_nothing_where_openai_does(
    name: str, content: str | None, refusal: str | None, finish: str
) -> None:
    told = whole(REPLIES[name]).choices[0]
    assert (told.message.content, told.message.refusal, told.finish_reason) == (content, refusal, finish)


def test_a_stream_ends_with_the_mark_that_clients_wait_for() -> None:
    assert streamed([REPLIES["a text"]]).endswith(b"\n\ndata: [DONE]\n\n")


def test_a_stream_is_cut_as_clients_know_it() -> None:
    reply = Reply("a", USAGE, "tool_calls", parts=("a", LOOK, FIND))
    deltas = [chunk.choices[0].delta for chunk in chunks(streamed([reply], "a", usage=False))]
    assert [delta.model_dump(exclude_unset=True) for delta in deltas] == [
        {"role": "assistant", "content": "", "refusal": None},
        {"content": "a"},
        {"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": {"name": "look", "arguments": ""}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"at":"x"}'}}]},
        {"tool_calls": [{"index": 1, "id": "c2", "type": "function", "function": {"name": "find", "arguments": ""}}]},
        {"tool_calls": [{"index": 1, "function": {"arguments": "{}"}}]},
        {},
    ]


@pytest.mark.parametrize("is_wanted", [True, False])
def test_the_usage_ends_a_stream_only_where_it_was_asked_for(is_wanted: bool) -> None:
    told = list(chunks(streamed([REPLIES["a text"]], usage=is_wanted)))
    assert [chunk.usage is not None for chunk in told] == [*[False] * 3, *[True] * is_wanted]
    assert all(("usage" in chunk.model_fields_set) == is_wanted for chunk in told)


def test_every_chunk_of_a_stream_bears_the_same_name_whenever_it_is_asked_again() -> None:
    first, again = (streamed([REPLIES["a text"]], "posi") for _ in range(2))
    assert first == again
    assert len({(chunk.id, chunk.created, chunk.model) for chunk in chunks(first)}) == 1
    assert streamed([REPLIES["a text"]], messages=[{"role": "user", "content": "y"}]) != streamed([REPLIES["a text"]])


def test_the_sdk_raises_what_fails_on_its_way() -> None:
    stream = DIALECT.stream(asked(stream=True))
    said = stream.begin() + stream.text("posi") + stream.ping() + stream.fail(Problem(504, "timeout", "too late"))
    answer = httpx2.Response(200, content=said, request=httpx2.Request("POST", "http://127.0.0.1:1/v1"))
    heard = []
    with OpenAI(api_key="none", base_url="http://127.0.0.1:1/v1") as client, pytest.raises(APIError) as told:
        for chunk in Stream(cast_to=ChatCompletionChunk, response=answer, client=client):
            heard.append(chunk.choices[0].delta.content)
    assert heard == ["", "posi"]
    assert (told.value.message, told.value.code, told.value.type) == ("too late", "timeout", "server_error")


def test_a_client_of_the_older_functions_hears_of_one() -> None:
    reply = REPLIES["a tool"]
    older: Any = {"functions": [{"name": "look", "parameters": {}}]}
    for told in (whole(reply, **older), accumulated(streamed([reply], **older))):
        call = told.choices[0].message.function_call
        assert call is not None
        assert (call.name, call.arguments) == ("look", '{"at":"x"}')
        assert told.choices[0].finish_reason == "function_call"
        assert not told.choices[0].message.tool_calls


def test_what_another_family_said_beside_a_tool_call_comes_back_through_the_client() -> None:
    call = structs.replace(LOOK, native=Native("gemini", {"thoughtSignature": "s"}))
    told = whole(Reply("", None, "tool_calls", parts=(call,))).choices[0].message
    again = asked(messages=[told.model_dump(exclude_none=True)]).call.input[0]
    assert not isinstance(again, str)
    assert again.content == (call,)


def test_a_probability_that_no_number_holds_is_the_least_one() -> None:
    reply = Reply("a", None, "stop", logprobs=(TokenLogprob("a", float("-inf"), (("b", float("nan")),)),))
    told = whole(reply).choices[0].logprobs
    assert told is not None
    assert told.content is not None
    assert (told.content[0].logprob, told.content[0].top_logprobs[0].logprob) == (-9999.0, -9999.0)
