"""What clients of Anthropic Messages are answered, whole and streamed, read by Anthropic's own client and ours."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import anthropic
import pytest
from anthropic.types import Message
from msgspec import structs
from recorder import EVENTS, JSON, Recorder, recording
from told_replies import KEY, REPLIES, TEXT, USAGE, halved, meant, outcomes, streamed

from millstream.engine.call import Call, Citation, Reply, Usage
from millstream.engine.content import Image, Native, ToolCall
from millstream.engine.endpoint import Fault, Response
from millstream.providers.llm.anthropic.messages import PROTOCOL
from millstream.providers.llm.anthropic.serve_messages import DIALECT
from millstream.providers.llm.serve_dialect import Problem, ServedModel, ServedRequest

ASKED = ServedRequest(Call("openai/gpt-4o-mini", "x", max_tokens=9), "my-model")
THINKING = structs.replace(ASKED, call=structs.replace(ASKED.call, reasoning_effort="2048"))
THOUGHT = Native("anthropic", {"type": "thinking", "thinking": "I think of A.", "signature": "EqQB"})
HIDDEN = Native("anthropic", {"type": "redacted_thinking", "data": "EqQB"})
SEARCH = Native("anthropic", {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "A"}})
WEATHER = ToolCall("toolu_1", "weather", '{"place":"Bonn"}')
ALL = {
    **REPLIES,
    "a call of a tool": Reply("", USAGE, "tool_calls", parts=(WEATHER,)),
    "a text and calls of tools": Reply(
        TEXT, USAGE, "tool_calls", parts=(TEXT, WEATHER, ToolCall("toolu_2", "time", "{}"))
    ),
    "thoughts before a text": Reply(TEXT, USAGE, "stop", parts=(HIDDEN, THOUGHT, TEXT)),
    "a search of Anthropic's own": Reply("So: A", USAGE, "stop", parts=("So: A", SEARCH)),
}
STREAMS = {
    "at once": (ASKED, False),
    "in pieces": (ASKED, True),
    "with thoughts asked for": (THINKING, True),
}


def decoded(body: bytes, stream: bool = False) -> Reply | Fault:
    return meant(PROTOCOL.decode(Response(200, body, stream=stream)))


def whole(reply: Reply) -> Any:
    return json.loads(DIALECT.whole(ASKED, outcomes(reply)))


class Theirs(NamedTuple):
    """Anthropic's own client, and what it talks to."""

    server: Recorder
    client: anthropic.Anthropic

    def told(self, body: bytes, status: int = 200) -> anthropic.Anthropic:
        self.server.answer, self.server.status, self.server.content_type = body, status, JSON
        return self.client

    def gathered(self, body: bytes) -> Message:
        client = self.told(body)
        self.server.content_type = EVENTS
        with client.messages.stream(model="m", max_tokens=9, messages=[{"role": "user", "content": "x"}]) as stream:
            return stream.get_final_message()


@pytest.fixture(scope="module")
def theirs() -> Iterator[Theirs]:
    with (
        recording() as server,
        anthropic.Anthropic(api_key="k", base_url=server.origin, max_retries=0) as client,
    ):
        yield Theirs(server, client)


def events_of(body: bytes) -> list[Any]:
    return [json.loads(block.partition("data: ")[2]) for block in body.decode().strip("\n").split("\n\n")]


@pytest.mark.parametrize("name", ALL)
def test_a_whole_answer_is_a_message_to_anthropics_types_and_the_same_reply_to_us(name: str) -> None:
    body = DIALECT.whole(ASKED, outcomes(ALL[name]))
    message = Message.model_validate_json(body, strict=False)
    assert (message.model, message.role, message.type) == ("my-model", "assistant", "message")
    assert b"\n" not in body
    assert decoded(body) == ALL[name]


@pytest.mark.parametrize("way", STREAMS)
@pytest.mark.parametrize("name", ALL)
def test_a_streamed_answer_says_the_same(theirs: Theirs, name: str, way: str) -> None:
    asked, in_pieces = STREAMS[way]
    reply = ALL[name]
    has_late_thoughts = in_pieces and asked is ASKED and THOUGHT in reply.parts
    body = streamed(DIALECT, asked, [reply], halved(reply.text) if in_pieces else ())
    said = structs.replace(reply, parts=()) if has_late_thoughts else reply
    assert decoded(body, stream=True) == said
    message = theirs.gathered(body)
    expected = Message.model_validate_json(DIALECT.whole(asked, outcomes(said)))
    assert message.to_dict() | {"id": ""} == expected.to_dict() | {"id": ""}


def test_an_answer_is_numbered_by_its_key_and_a_stream_by_what_was_asked() -> None:
    reply = REPLIES["a text"]
    assert whole(reply)["id"] == f"msg_{KEY[:24]}"
    again = structs.replace(ASKED, call=structs.replace(ASKED.call, trial=1))
    first, same, other = (DIALECT.stream(asked).begin() for asked in (ASKED, ASKED, again))
    assert first == same != other


def test_pieces_are_told_as_they_come_in_one_block() -> None:
    stream = DIALECT.stream(ASKED)
    told = events_of(stream.begin() + stream.text("po") + stream.text("si"))
    assert [each["type"] for each in told] == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
    ]
    assert [each["delta"]["text"] for each in told[2:]] == ["po", "si"]
    rest = events_of(stream.end(outcomes(Reply("position", USAGE, "stop"))))
    assert [each["type"] for each in rest] == [
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert rest[0]["delta"] == {"type": "text_delta", "text": "tion"}


def test_text_behind_a_tool_call_that_was_sent_early_is_not_sent_twice() -> None:
    reply = Reply("AB", USAGE, "stop", parts=("A", SEARCH, "B"))
    reply_read = decoded(streamed(DIALECT, ASKED, [reply], ("A", "B")), stream=True)
    assert isinstance(reply_read, Reply)
    assert (reply_read.text, reply_read.parts) == ("AB", ("AB", SEARCH))


def test_a_stream_that_waits_for_thoughts_says_nothing_early_but_that_it_lives() -> None:
    stream = DIALECT.stream(THINKING)
    assert stream.text("A") == stream.ping()


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply("A"), "end_turn"),
        (Reply("A", finish_reason="stop", refused=True), "refusal"),
        (Reply("", finish_reason="stop", parts=(WEATHER,)), "tool_use"),
        (Reply("A", finish_reason="pause_turn"), "pause_turn"),
        (Reply("A", finish_reason="eos"), "end_turn"),
    ],
)
def test_every_end_has_a_word_that_clients_know(reply: Reply, reason: str) -> None:
    assert whole(reply)["stop_reason"] == reason


def test_tokens_nobody_counted_are_none_and_cached_ones_stand_apart() -> None:
    assert whole(Reply("A"))["usage"]["input_tokens"] == 0
    usage = whole(Reply("A", Usage(36, 87, 64, 12)))["usage"]
    assert (usage["input_tokens"], usage["cache_read_input_tokens"], usage["output_tokens"]) == (24, 12, 87)
    assert usage["output_tokens_details"] == {"thinking_tokens": 64}


def test_what_anthropic_has_no_words_for_is_left_out_and_the_text_is_not() -> None:
    foreign = Native("gemini", {"text": "I think.", "thought": True})
    drawn = Image("data:image/png;base64,iVBO")
    assert whole(Reply("A", parts=(foreign, "A", drawn)))["content"] == [{"type": "text", "text": "A"}]
    assert whole(Reply("No.", refused=True, parts=(THOUGHT,)))["content"][1] == {"type": "text", "text": "No."}


@pytest.mark.parametrize(
    ("written", "read"),
    [("", {}), ("[1]", {"arguments": "[1]"}), ('{"a', {"arguments": '{"a'}), ('{\n"a": 1}', {"a": 1})],
)
def test_arguments_are_an_object_whatever_a_model_wrote(theirs: Theirs, written: str, read: Any) -> None:
    reply = Reply("", finish_reason="tool_calls", parts=(ToolCall("", "n", written),))
    block = whole(reply)["content"][0]
    assert (block["input"], block["id"]) == (read, f"toolu_{KEY[:24]}0")
    assert theirs.gathered(streamed(DIALECT, ASKED, [reply])).to_dict()["content"] == [block]


PROBLEMS = [
    (Problem(400, "invalid", "No."), "invalid_request_error", anthropic.BadRequestError),
    (Problem(400, "rejected", "No."), "invalid_request_error", anthropic.BadRequestError),
    (Problem(401, "unauthorized", "No."), "authentication_error", anthropic.AuthenticationError),
    (Problem(403, "forbidden", "No."), "permission_error", anthropic.PermissionDeniedError),
    (Problem(404, "unknown_model", "No."), "not_found_error", anthropic.NotFoundError),
    (Problem(413, "too_large", "No."), "request_too_large", anthropic.APIStatusError),
    (Problem(422, "conflict", "No."), "invalid_request_error", anthropic.UnprocessableEntityError),
    (Problem(429, "rate_limited", "No."), "rate_limit_error", anthropic.RateLimitError),
    (Problem(429, "over_budget", "No."), "billing_error", anthropic.RateLimitError),
    (Problem(502, "server_error", "No."), "api_error", anthropic.InternalServerError),
    (Problem(503, "interrupted", "No."), "overloaded_error", anthropic.InternalServerError),
    (Problem(504, "timeout", "No."), "timeout_error", anthropic.InternalServerError),
]


@pytest.mark.parametrize(("problem", "kind", "error"), PROBLEMS)
def test_an_error_is_the_one_that_anthropics_client_raises(
    theirs: Theirs, problem: Problem, kind: str, error: type[Exception]
) -> None:
    client = theirs.told(DIALECT.problem(problem), problem.status)
    with pytest.raises(error) as raised:
        client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "x"}])
    assert isinstance(raised.value, anthropic.APIStatusError)
    assert raised.value.type == kind
    assert raised.value.body == {"type": "error", "error": {"type": kind, "message": "No."}, "request_id": None}


def test_an_error_within_a_stream_ends_it_for_clients_and_for_us(theirs: Theirs) -> None:
    stream = DIALECT.stream(ASKED)
    body = stream.begin() + stream.text("A") + stream.fail(Problem(502, "server_error", "Gone."))
    with pytest.raises(anthropic.APIStatusError, match="Gone"):
        theirs.gathered(body)
    assert isinstance(decoded(body, stream=True), Fault)


def test_models_are_listed_on_one_page_and_one_by_one(theirs: Theirs) -> None:
    models = [ServedModel("claude-sonnet-5-5", "anthropic"), ServedModel("openai/gpt-4o-mini", "openai")]
    page = theirs.told(DIALECT.listing(models)).models.list()
    assert [each.id for each in page] == ["claude-sonnet-5-5", "openai/gpt-4o-mini"]
    assert (page.first_id, page.last_id, page.has_more) == ("claude-sonnet-5-5", "openai/gpt-4o-mini", False)
    one = theirs.told(DIALECT.listed(models[0])).models.retrieve("claude-sonnet-5-5")
    assert (one.id, one.created_at.year) == ("claude-sonnet-5-5", 1970)
    assert json.loads(DIALECT.listing([]))["first_id"] is None


def test_no_citation_is_made_up() -> None:
    """Anthropic's client is told the passage and an index of Anthropic's own: nobody else has these."""
    found = (Citation("https://one.example/a", "A"),)
    assert whole(Reply(TEXT, USAGE, "stop", citations=found))["content"] == [{"type": "text", "text": TEXT}]
