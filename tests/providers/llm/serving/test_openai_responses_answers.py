"""What clients of OpenAI's Responses hear: as their SDK reads it, and as our own decoder does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import httpx2
import orjson
import pytest
from msgspec import structs
from openai import APIError, OpenAI, Stream
from openai._types import omit
from openai.lib.streaming.responses._responses import ResponseStreamState
from openai.types.responses import Response as Answer
from openai.types.responses import ResponseStreamEvent
from origins import without_origin
from pydantic import TypeAdapter
from told_replies import KEY, LOGPROBS, LOOK, OPENAI_REPLIES, TEXT, USAGE, outcomes, replies

from millstream.engine.call import Message, Reply
from millstream.engine.content import Native, Part, ToolCall
from millstream.engine.endpoint import Fault, Response
from millstream.providers.llm.openai.responses import PROTOCOL
from millstream.providers.llm.openai.serve_responses import dialect
from millstream.providers.llm.serve_dialect import Problem, ServedRequest
from millstream.providers.llm.sse import events_of

NOW = 1741569952.7
DIALECT = dialect(lambda: NOW)
EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
FAMILY = "openai-responses"
THOUGHT = Native(FAMILY, {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e"})
REPLIES = {
    **replies(THOUGHT),
    **OPENAI_REPLIES,
    "cut short in thought": Reply("", USAGE, "length", parts=(THOUGHT,)),
    "a text behind a tool": Reply("ab", USAGE, "tool_calls", parts=(LOOK, "ab")),
    "texts around a tool": Reply("A!", USAGE, "tool_calls", parts=("A", LOOK, "!"), logprobs=LOGPROBS),
    "a thought and nothing": Reply("", USAGE, "stop", parts=(THOUGHT,)),
}
each_reply = pytest.mark.parametrize("reply", REPLIES.values(), ids=list(REPLIES))


def asked(**changes: Any) -> ServedRequest:
    return DIALECT.read({"model": "gpt-x", "input": "x", **changes}, "openai/{}".format)


def whole(reply: Reply, **changes: Any) -> Answer:
    return Answer.model_validate_json(DIALECT.whole(asked(**changes), outcomes(reply)), strict=True)


def streamed(reply: Reply, *pieces: str, **changes: Any) -> bytes:
    stream = DIALECT.stream(asked(stream=True, **changes))
    said = b"".join((stream.begin(), *map(stream.text, pieces)))
    return said + stream.end(outcomes(reply))


def events(stream: bytes) -> list[Any]:
    return [EVENT.validate_json(data, strict=True) for data in events_of(stream)]


def plainly(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Without what a server says of a call that was its own: its name there, and how far it came."""
    return tuple(structs.replace(part, native=None) if isinstance(part, ToolCall) else part for part in parts)


def decoded(body: bytes, *, stream: bool = False, is_cut: bool = False) -> Reply | Fault:
    result = PROTOCOL.decode(Response(200, body, stream=stream, is_cut=is_cut))
    if isinstance(result, Fault):
        return result
    return structs.replace(without_origin(result), raw_hash="", parts=plainly(result.parts))


def test_a_whole_answer_repeats_what_was_asked() -> None:
    tool = {"type": "function", "name": "look", "parameters": None, "strict": True}
    told = whole(
        REPLIES["a text"], model="my-model", instructions="i", temperature=0.5, metadata={"a": "b"}, tools=[tool],
        tool_choice={"type": "function", "name": "look"}, reasoning={"effort": "low"}, parallel_tool_calls=False,
    )  # fmt: skip
    assert (told.model, told.created_at, told.id) == ("my-model", int(NOW), "resp_" + KEY[:48])
    assert (told.instructions, told.temperature, told.metadata) == ("i", 0.5, {"a": "b"})
    assert (told.tools[0].type, told.parallel_tool_calls, told.output_text) == (
        "function",
        False,
        REPLIES["a text"].text,
    )
    assert told.reasoning is not None
    assert told.reasoning.effort == "low"
    assert told.usage is not None
    assert told.usage.total_tokens == 123


def test_a_tool_of_which_little_is_said_is_repeated_as_the_sdk_wants_it() -> None:
    assert whole(REPLIES["a text"], tools=[{"type": "function", "name": "look"}]).tools[0].type == "function"


def test_a_thought_behind_its_text_is_before_it_again_when_the_client_sends_it_back() -> None:
    reply = REPLIES["a thought"]
    output = orjson.loads(list(events_of(streamed(reply, reply.text[:1])))[-1])["response"]["output"]
    assert [item["type"] for item in output] == ["message", "reasoning"]
    assert asked(input=[*output, {"role": "user", "content": "y"}]).call.input == (
        Message("assistant", reply.parts),
        Message("user", "y"),
    )


@each_reply
def test_the_sdk_joins_the_events_to_the_whole_answer(reply: Reply) -> None:
    for pieces in ((), (reply.text[:1],) if not reply.refused else ()):
        state: Any = ResponseStreamState(input_tools=omit, text_format=omit)
        texts, arguments = [], []
        for event in events(streamed(reply, *pieces)):
            state.handle_event(event)
            if event.type in ("response.output_text.delta", "response.refusal.delta"):
                texts.append(event.delta)
            if event.type == "response.function_call_arguments.delta":
                arguments.append(event.delta)
        assert "".join(texts) == reply.text
        assert arguments == [call.arguments for call in reply.tool_calls]
        joined = event.response
        told = whole(reply)
        assert (joined.status, joined.incomplete_details) == (told.status, told.incomplete_details)
        assert joined.output_text == told.output_text
        assert {item.type for item in joined.output} == {item.type for item in told.output}


def test_a_stream_is_told_in_the_order_that_clients_know() -> None:
    told = streamed(REPLIES["a text and two tools"], TEXT[:1])
    kinds = [event.type.removeprefix("response.") for event in events(told)]
    call = [
        "output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done",
    ]  # fmt: skip
    assert kinds == [
        "created", "in_progress", "output_item.added", "content_part.added", "output_text.delta", "output_text.delta",
        "output_text.done", "content_part.done", "output_item.done", *call, *call, "completed",
    ]  # fmt: skip


def test_every_event_bears_its_name_before_its_data() -> None:
    for block in streamed(REPLIES["a tool"]).strip().split(b"\n\n"):
        name, _, data = block.partition(b"\n")
        assert name == b"event: " + orjson.loads(data.removeprefix(b"data: "))["type"].encode()


def test_items_of_a_stream_keep_their_places_and_names() -> None:
    for reply in REPLIES.values():
        told = events(streamed(reply))
        assert [event.sequence_number for event in told] == list(range(len(told)))
        output = told[-1].response.output
        done = [event for event in told if event.type == "response.output_item.done"]
        assert [event.output_index for event in done] == list(range(len(output)))
        assert [event.item for event in done] == output
        ids = [item.id for item in output]
        assert len(set(ids)) == len(ids)


@pytest.mark.parametrize(
    ("status", "code"), [(504, "server_error"), (429, "rate_limit_exceeded"), (400, "invalid_prompt")]
)
def test_an_answer_that_fails_on_its_way_is_never_finished(status: int, code: str) -> None:
    stream = DIALECT.stream(asked(stream=True))
    said = stream.begin() + stream.text("posi") + stream.ping() + stream.fail(Problem(status, "timeout", "too late"))
    assert isinstance(decoded(said, stream=True), Fault)
    error, failed = events(said)[-2:]
    assert (error.type, error.message, failed.type) == ("error", "too late", "response.failed")
    assert (failed.response.status, failed.response.error.code) == ("failed", code)
    # Python's SDK raises only where it finds an error in the event.
    assert orjson.loads(list(events_of(said))[-2])["error"]["message"] == "too late"


def test_the_sdk_raises_what_fails_on_its_way() -> None:
    stream = DIALECT.stream(asked(stream=True))
    said = stream.begin() + stream.text("posi") + stream.fail(Problem(504, "timeout", "too late"))
    answer = httpx2.Response(200, content=said, request=httpx2.Request("POST", "http://127.0.0.1:1/v1"))
    heard: list[str] = []
    cast_to: Any = ResponseStreamEvent
    with OpenAI(api_key="none", base_url="http://127.0.0.1:1/v1") as client, pytest.raises(APIError) as told:
        for event in Stream(cast_to=cast_to, response=answer, client=client):
            heard.append(event.type)
    assert heard[-1] == "response.output_text.delta"
    assert (told.value.message, told.value.code) == ("too late", "timeout")


def test_what_another_family_said_beside_a_tool_call_comes_back_through_the_client() -> None:
    call = structs.replace(LOOK, native=Native("gemini", {"thoughtSignature": "s"}))
    told = whole(Reply("", None, "tool_calls", parts=(call,))).output
    again = asked(input=[item.model_dump(exclude_none=True) for item in told]).call.input[0]
    assert not isinstance(again, str)
    assert again.content == (call,)


def test_a_call_keeps_the_name_that_its_own_server_gave_it() -> None:
    call = structs.replace(LOOK, native=Native(FAMILY, {"id": "fc_theirs", "status": "completed", "namespace": "n"}))
    item = whole(Reply("", None, "tool_calls", parts=(call,))).output[0].model_dump()
    assert (item["id"], item["call_id"], item["namespace"]) == ("fc_theirs", "c1", "n")
