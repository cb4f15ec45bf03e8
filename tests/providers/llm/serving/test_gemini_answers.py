"""What clients of Gemini are answered, whole and streamed, read by Google's own client and by our decoder."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pytest
from google import genai
from google.genai import errors, types
from msgspec import structs
from recorder import EVENTS, JSON, Recorder, recording
from told_replies import CITED, KEY, LOGPROBS, REPLIES, TEXT, USAGE, halved, meant, outcomes, streamed

from millstream.engine.call import Call, Reply, Usage
from millstream.engine.content import Image, Native, ToolCall
from millstream.engine.endpoint import Fault, Response
from millstream.providers.llm.google.generate import PROTOCOL
from millstream.providers.llm.google.serve_generate import DIALECT
from millstream.providers.llm.serve_dialect import Problem, ServedModel, ServedRequest

ASKED = ServedRequest(Call("openai/gpt-4o-mini", "x"), "models/my-model")
THOUGHT = Native("gemini", {"text": "I think of A.", "thought": True})
SIGNATURE = Native("gemini", {"text": "", "thoughtSignature": "Eu4B"})
CODE = Native("gemini", {"executableCode": {"language": "PYTHON", "code": "1"}})
WEATHER = ToolCall("w", "weather", '{"place":"Bonn"}', Native("gemini", {"thoughtSignature": "Eu4B"}))
ALL = {
    **REPLIES,
    "a call of a function": Reply("", USAGE, "tool_calls", parts=(WEATHER,)),
    "a text and calls of functions": Reply(
        TEXT, USAGE, "tool_calls", parts=(TEXT, WEATHER, ToolCall("t", "time", "{}"))
    ),
    "a text with a signature and code": Reply("So: A", USAGE, "stop", parts=("So: A", SIGNATURE, CODE)),
    "a text with its tokens and sources": Reply("A!", USAGE, "stop", logprobs=LOGPROBS, citations=CITED),
}
THOUGHTFUL = Reply(TEXT, USAGE, "stop", parts=(THOUGHT, TEXT))


def decoded(body: bytes, stream: bool = False) -> Reply | Fault:
    return meant(PROTOCOL.decode(Response(200, body, stream=stream)))


def whole(*replies: Reply) -> Any:
    return json.loads(DIALECT.whole(ASKED, outcomes(*replies)))


def parts(reply: Reply) -> Any:
    return whole(reply)["candidates"][0]["content"]["parts"]


def chunks_of(body: bytes) -> list[Any]:
    return [json.loads(block.removeprefix("data: ")) for block in body.decode().split("\r\n\r\n") if block]


class Theirs(NamedTuple):
    """Google's own client, and what it talks to."""

    server: Recorder
    client: genai.Client

    def told(self, body: bytes, status: int = 200) -> genai.Client:
        self.server.answer, self.server.status, self.server.content_type = body, status, JSON
        return self.client

    def chunks(self, body: bytes) -> list[types.GenerateContentResponse]:
        client = self.told(body)
        self.server.content_type = EVENTS
        return list(client.models.generate_content_stream(model="m", contents="x"))


@pytest.fixture(scope="module")
def theirs() -> Iterator[Theirs]:
    with recording() as server:
        options = types.HttpOptions(base_url=server.origin)
        with genai.Client(api_key="k", vertexai=False, http_options=options) as client:
            yield Theirs(server, client)


def visible(chunks: Sequence[types.GenerateContentResponse]) -> str:
    return "".join(
        part.text or ""
        for chunk in chunks
        for candidate in chunk.candidates or ()
        for part in (candidate.content and candidate.content.parts) or ()
        if not part.thought
    )


@pytest.mark.parametrize("name", ALL)
def test_a_whole_answer_is_a_response_to_googles_types_and_the_same_reply_to_us(name: str) -> None:
    body = DIALECT.whole(ASKED, outcomes(ALL[name]))
    response = types.GenerateContentResponse.model_validate_json(body)
    assert (response.model_version, response.response_id) == ("my-model", KEY[:23])
    assert b"\n" not in body
    assert decoded(body) == ALL[name]
    # As a client that streams without alt=sse gets it.
    assert decoded(b"[%b]" % body, stream=True) == ALL[name]


@pytest.mark.parametrize("in_pieces", [False, True], ids=["at once", "in pieces"])
@pytest.mark.parametrize("name", ALL)
def test_a_streamed_answer_says_the_same(theirs: Theirs, name: str, in_pieces: bool) -> None:
    reply = ALL[name]
    body = streamed(DIALECT, ASKED, [reply], halved(reply.text) if in_pieces else ())
    assert decoded(body, stream=True) == reply
    chunks = theirs.chunks(body)
    assert visible(chunks) == reply.text
    assert len({chunk.response_id for chunk in chunks}) == 1
    told = types.GenerateContentResponse.model_validate_json(DIALECT.whole(ASKED, outcomes(reply)))
    assert chunks[-1].usage_metadata == told.usage_metadata
    assert chunks[-1].candidates is not None
    assert told.candidates is not None
    assert chunks[-1].candidates[0].finish_reason == told.candidates[0].finish_reason
    assert [call for chunk in chunks for call in chunk.function_calls or ()] == (told.function_calls or [])


def test_thoughts_are_told_before_the_text_or_behind_what_was_said_early() -> None:
    assert decoded(streamed(DIALECT, ASKED, [THOUGHTFUL]), stream=True) == THOUGHTFUL
    late = decoded(streamed(DIALECT, ASKED, [THOUGHTFUL], halved(TEXT)), stream=True)
    assert isinstance(late, Reply)
    assert (late.text, late.parts) == (TEXT, (TEXT, THOUGHT))


def test_every_sample_is_a_candidate_and_their_tokens_are_added_up() -> None:
    samples = [Reply("A", Usage(3, 5), "stop"), Reply("B", Usage(3, 6), "length")]
    response = types.GenerateContentResponse.model_validate(whole(*samples))
    assert response.candidates is not None
    assert response.usage_metadata is not None
    told = [(each.index, each.finish_reason) for each in response.candidates]
    assert told == [(0, types.FinishReason.STOP), (1, types.FinishReason.MAX_TOKENS)]
    assert (response.usage_metadata.prompt_token_count, response.usage_metadata.total_token_count) == (6, 17)
    last = chunks_of(streamed(DIALECT, ASKED, samples, ("A",)))[-1]
    assert [each["content"]["parts"] for each in last["candidates"]] == [[{"text": ""}], [{"text": "B"}]]


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply("A"), "STOP"),
        (Reply("A", finish_reason="stop", refused=True), "SAFETY"),
        (Reply("", finish_reason="tool_calls", parts=(WEATHER,)), "STOP"),
        (Reply("A", finish_reason="TOO_NEW"), "TOO_NEW"),
        (Reply("A", finish_reason="pause_turn"), "STOP"),
    ],
)
def test_every_end_has_a_word_that_clients_know(reply: Reply, reason: str) -> None:
    assert whole(reply)["candidates"][0]["finishReason"] == reason


def test_tokens_nobody_counted_are_none_and_those_of_thoughts_stand_apart() -> None:
    assert whole(Reply("A"))["usageMetadata"] == {
        "promptTokenCount": 0,
        "candidatesTokenCount": 0,
        "totalTokenCount": 0,
    }
    assert whole(Reply("A", USAGE))["usageMetadata"] == {
        "promptTokenCount": 36,
        "candidatesTokenCount": 23,
        "totalTokenCount": 123,
        "thoughtsTokenCount": 64,
        "cachedContentTokenCount": 12,
    }


def test_what_google_has_no_words_for_is_left_out_and_images_are_told() -> None:
    foreign = Native("anthropic", {"type": "thinking", "thinking": "I think."})
    assert parts(Reply("A", parts=(foreign, "A"))) == [{"text": "A"}]
    assert parts(Reply("No.", refused=True, parts=(THOUGHT,)))[1] == {"text": "No."}
    drawn = (Image("data:image/png;base64,iVBO"), Image("https://one.example/a.png"))
    assert parts(Reply("", parts=drawn)) == [
        {"inlineData": {"mimeType": "image/png", "data": "iVBO"}},
        {"fileData": {"fileUri": "https://one.example/a.png"}},
    ]


@pytest.mark.parametrize(
    ("written", "read"),
    [("", {}), ("[1]", {"arguments": "[1]"}), ('{"a', {"arguments": '{"a'}), ('{\n"a": 1}', {"a": 1})],
)
def test_arguments_are_an_object_whatever_a_model_wrote(written: str, read: Any) -> None:
    reply = Reply("", finish_reason="tool_calls", parts=(ToolCall("", "n", written),))
    assert parts(reply) == [{"functionCall": {"name": "n", "args": read}}]


PROBLEMS = [
    (Problem(400, "invalid", "No.", "contents"), "INVALID_ARGUMENT"),
    (Problem(401, "unauthorized", "No."), "UNAUTHENTICATED"),
    (Problem(403, "forbidden", "No."), "PERMISSION_DENIED"),
    (Problem(404, "unknown_model", "No."), "NOT_FOUND"),
    (Problem(413, "too_large", "No."), "INVALID_ARGUMENT"),
    (Problem(429, "over_budget", "No."), "RESOURCE_EXHAUSTED"),
    (Problem(500, "local_fault", "No."), "INTERNAL"),
    (Problem(502, "server_error", "No."), "UNAVAILABLE"),
    (Problem(503, "interrupted", "No."), "UNAVAILABLE"),
    (Problem(504, "timeout", "No."), "DEADLINE_EXCEEDED"),
]


@pytest.mark.parametrize(("problem", "status"), PROBLEMS)
def test_an_error_is_the_one_that_googles_client_raises(theirs: Theirs, problem: Problem, status: str) -> None:
    client = theirs.told(DIALECT.problem(problem), problem.status)
    with pytest.raises(errors.ClientError if problem.status < 500 else errors.ServerError) as raised:
        client.models.generate_content(model="m", contents="x")
    assert (raised.value.code, raised.value.status, raised.value.message) == (problem.status, status, "No.")


def test_an_error_names_the_field_that_it_is_about() -> None:
    details = json.loads(DIALECT.problem(PROBLEMS[0][0]))["error"]["details"]
    assert details[0]["fieldViolations"] == [{"field": "contents", "description": "No."}]


def test_an_error_within_a_stream_ends_it_for_clients_and_for_us(theirs: Theirs) -> None:
    stream = DIALECT.stream(ASKED)
    body = stream.begin() + stream.text("A") + stream.fail(Problem(502, "server_error", "Gone."))
    with pytest.raises(errors.APIError, match="Gone"):
        theirs.chunks(body)
    assert isinstance(decoded(body, stream=True), Fault)


def test_models_are_listed_and_told_one_by_one(theirs: Theirs) -> None:
    models = [ServedModel("gemini-2.5-flash", "gemini"), ServedModel("openai/gpt-4o-mini", "openai")]
    listed = list(theirs.told(DIALECT.listing(models)).models.list())
    assert [each.name for each in listed] == ["models/gemini-2.5-flash", "models/openai/gpt-4o-mini"]
    assert listed[0].supported_actions == ["generateContent", "streamGenerateContent"]
    one = theirs.told(DIALECT.listed(models[0])).models.get(model="gemini-2.5-flash")
    assert one.display_name == "gemini-2.5-flash"


def test_an_answer_without_a_key_is_numbered_by_what_was_asked() -> None:
    outcome = structs.replace(outcomes(Reply("A"))[0], key="")
    chunk = chunks_of(DIALECT.stream(ASKED).text("A"))[0]
    assert json.loads(DIALECT.whole(ASKED, [outcome]))["responseId"] == chunk["responseId"]
