"""One table of all wire protocols: how their servers write an answer, and what must be read of it.

A claim that holds for every protocol is one test over these rows; what is one vendor's own stands in its own modules.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any

import anthropic_shapes
import bedrock_shapes
import billed_counts
import chat_shapes
import completion_shapes
import gemini_shapes
import orjson
import response_shapes
from answer_parts import AnswerPart
from msgspec import Struct, field, structs
from origins import without_origin

from millstream.engine.call import Reply, Usage
from millstream.engine.content import Native
from millstream.engine.endpoint import Fault, Response
from millstream.providers.llm import vertex
from millstream.providers.llm.anthropic import messages as anthropic
from millstream.providers.llm.bedrock import converse as bedrock
from millstream.providers.llm.event_stream import messages_of
from millstream.providers.llm.google import generate as gemini
from millstream.providers.llm.openai import chat as openai_chat
from millstream.providers.llm.openai import completions as openai_completions
from millstream.providers.llm.openai import responses as openai_responses
from millstream.providers.llm.protocol import WireProtocol

TEXT = "position <<A>> – ✓ 😀"
DONE = b"data: [DONE]\n\n"


class Endings(Struct, frozen=True):
    """The provider's own words for the end of an answer."""

    stop: str
    length: str
    filtered: str
    finishes: Mapping[str, str]
    """Each word that makes a reply, with the finish reason that it is read as."""
    broken: tuple[str, ...] = ()
    """Words for an answer that the provider itself calls broken."""


class Counts(Struct, frozen=True):
    """How the provider counts tokens."""

    given: Mapping[str, Any]
    usage: Usage
    """What `given` is read as."""
    input: str
    """The name of the count of the prompt's tokens."""
    others: tuple[tuple[Any, Usage | None], ...]
    """Other usages, with what each is read as."""


def server_sent(payload: bytes, kind: str = "") -> bytes:
    return b"data: " + payload + b"\n\n"


def binary(payload: bytes, kind: str = "contentBlockDelta") -> bytes:
    return bedrock_shapes.message(payload, event_type=kind, message_type="event")


class AnswerShape(Struct, frozen=True):
    """How a protocol writes an answer: parts, the word for its end, its usage, and for a stream the size of pieces."""

    whole: Callable[[Sequence[AnswerPart], Any, Any], bytes]
    events: Callable[[Sequence[AnswerPart], Any, Any, int], list[bytes]]
    endings: Endings
    counts: Counts
    thoughts: tuple[Native, ...] = ()
    own: tuple[Native, ...] = ()
    """Parts of the provider's own tools."""
    events_after_end: int = 0
    """The number of a stream's events behind the one that says how it ended."""
    noise: bytes = b": keep-alive\n\nevent: x\nid: 1\nretry: 5\n\n"
    """What a server may send between any two events."""
    error: Mapping[str, Any] = field(default_factory=lambda: {"error": {"message": "No.", "code": 500}})
    """An error of the server's, as an answer."""
    failure: bytes = b""
    """The event of a stream that tells it, where that is not the same JSON."""
    frame: Callable[..., bytes] = server_sent
    """Returns an event of a stream that holds this payload, and for Bedrock is of this kind."""
    has_calls: bool = True
    is_whole_without_end: bool = False
    """Whether JSON that ends is a whole answer, though it has no word for its end."""
    says_nothing_without_text: bool = True
    """Whether an answer may lack its text."""


class ProtocolRow(Struct, frozen=True):
    """A wire protocol with the shape of its answers."""

    name: str
    wire: WireProtocol
    shape: AnswerShape

    def answer(
        self, *parts: AnswerPart, stream: bool = False, end: Any = ..., usage: Any = ..., size: int = 7
    ) -> Response:
        """Returns the response that holds these parts. By default it ended as answers do, with the usage of the row."""
        end = self.shape.endings.stop if end is ... else end
        usage = self.shape.counts.given if usage is ... else usage
        if stream:
            return Response(200, b"".join(self.shape.events(parts, end, usage, size)), stream=True)
        return Response(200, self.shape.whole(parts, end, usage))

    @property
    def sample(self) -> tuple[AnswerPart, ...]:
        """The parts of an ordinary answer: a thought where there are any, and a text."""
        return *self.shape.thoughts[:1], TEXT

    def events(self) -> list[bytes]:
        """Returns the events of a stream of the ordinary answer."""
        return self.shape.events(self.sample, self.shape.endings.stop, self.shape.counts.given, 7)

    def values(self, body: bytes, stream: bool) -> list[Any]:
        """Returns the JSON of a body, or of the events of a stream with their kinds."""
        if not stream:
            return [orjson.loads(body)]
        if self.shape is CONVERSE:
            return [[one.headers[":event-type"], orjson.loads(one.payload)] for one in messages_of(body)]
        parts = body.replace(b"\r\n", b"\n").removesuffix(DONE).split(b"data: ")[1:]
        return [["", orjson.loads(one.partition(b"\n")[0])] for one in parts]

    def expected(self, response: Response) -> Reply:
        """Returns the reply to the ordinary answer in a response."""
        raw_hash = sha256(response.body).hexdigest()
        parts: Any = self.sample if self.shape.thoughts else ()
        return Reply(TEXT, self.shape.counts.usage, "stop", raw_hash=raw_hash, parts=parts)

    def reply(self, response: Response) -> Reply:
        result = self.wire.decode(response)
        assert isinstance(result, Reply), (result, response)
        return without_origin(result)  # each shape has its own: test_answers tells them

    def fault(self, response: Response) -> Fault:
        result = self.wire.decode(response)
        assert isinstance(result, Fault), (result, response)
        return result


def _native(family: str, *values: Mapping[str, Any]) -> tuple[Native, ...]:
    return tuple(Native(family, value) for value in values)


USAGE = Usage(36, 87, 64, 12)
_OPENAI: dict[str, Any] = {
    "prompt_tokens": 36, "completion_tokens": 87, "total_tokens": 123,
    "prompt_tokens_details": {"cached_tokens": 12}, "completion_tokens_details": {"reasoning_tokens": 64},
}  # fmt: skip
_OPENAI_COUNTS = Counts(
    _OPENAI,
    USAGE,
    "prompt_tokens",
    (
        ({}, None),
        ({"prompt_tokens": 0, "completion_tokens": 0}, Usage(None, None)),
        ({"total_tokens": 2_010}, Usage(None, None, total=2_010)),
        ({"prompt_tokens": 10, "total_tokens": 2_010}, Usage(10, 2_000)),
        ({"prompt_tokens": 10}, Usage(10, None)),
        ({"completion_tokens": 10}, Usage(None, 10)),
        *billed_counts.OPENAI,
        ({"prompt_tokens": 12.0, "completion_tokens": 3}, Usage(12, 3)),
        ({"prompt_tokens": 12.5, "completion_tokens": 3}, Usage(None, 3)),
        ({"prompt_tokens": orjson.Fragment(b"1e300"), "completion_tokens": 3}, Usage(None, 3)),
        ({"prompt_tokens": orjson.Fragment(b"NaN"), "completion_tokens": 3}, Usage(None, 3)),
        ({"prompt_tokens": orjson.Fragment(b"9" * 60), "completion_tokens": 3}, Usage(None, 3)),
    ),
)
_OPENAI_FINISHES = {
    "stop": "stop", "eos": "stop", "length": "length", "model_length": "length", "content_filter": "content_filter",
    "tool_calls": "tool_calls", "function_call": "tool_calls", "something_new": "something_new",
}  # fmt: skip
_OPENAI_ENDINGS = Endings(
    "stop", "length", "content_filter", _OPENAI_FINISHES, ("error", "insufficient_system_resource")
)
CHAT = AnswerShape(
    chat_shapes.answered,
    chat_shapes.answered_in_events,
    _OPENAI_ENDINGS,
    _OPENAI_COUNTS,
    _native("openai", {"reasoning_content": "I think of A."}, {"reasoning_content": "And – ✓", "reasoning": "of B."}),
    events_after_end=2,
    is_whole_without_end=True,
)
COMPLETIONS = AnswerShape(
    completion_shapes.answered,
    completion_shapes.answered_in_events,
    _OPENAI_ENDINGS,
    _OPENAI_COUNTS,
    events_after_end=2,
    has_calls=False,
    is_whole_without_end=True,
    says_nothing_without_text=False,
)
_RESPONSE: dict[str, Any] = response_shapes.response()["usage"]
RESPONSES = AnswerShape(
    response_shapes.answered,
    response_shapes.answered_in_events,
    Endings(
        "completed",
        "max_output_tokens",
        "content_filter",
        {"completed": "stop", "max_output_tokens": "length", "content_filter": "content_filter"},
        ("steered",),
    ),
    Counts(
        _RESPONSE,
        USAGE,
        "input_tokens",
        (
            ({}, None),
            ({"input_tokens": 3, "output_tokens": 4}, Usage(3, 4)),
            ({"input_tokens": 3, "output_tokens": 4, "output_tokens_details": None}, Usage(3, 4)),
            *billed_counts.RESPONSES,
            ({"input_tokens": 3, "output_tokens": -4}, Usage(3, None)),
            (
                {"input_tokens": 3, "output_tokens": 4, "output_tokens_details": {"reasoning_tokens": 9}},
                Usage(3, 13, 9),
            ),
            ({"total_tokens": 7}, Usage(None, None, total=7)),
        ),
    ),
    _native(
        "openai-responses",
        response_shapes.REASONING,
        {"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "gAAA"},
    ),
    _native(
        "openai-responses",
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "x"}},
    ),
)
MESSAGES = AnswerShape(
    anthropic_shapes.answered,
    anthropic_shapes.answered_in_events,
    Endings(
        "end_turn",
        "max_tokens",
        "refusal",
        {
            "end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length",
            "model_context_window_exceeded": "length", "pause_turn": "length", "refusal": "content_filter",
            "content_filter": "content_filter", "tool_use": "tool_calls", "something_new": "something_new",
        },
    ),
    Counts(
        anthropic_shapes.USAGE,
        structs.replace(USAGE, cache_write_5m=4),
        "input_tokens",
        (
            ({}, None),
            ({"input_tokens": 3, "output_tokens": 4}, Usage(3, 4)),
            ({"input_tokens": 3, "output_tokens": 4, "cache_read_input_tokens": None}, Usage(3, 4)),
            ({"input_tokens": 3, "output_tokens": 4, "cache_creation_input_tokens": 5}, Usage(8, 4, 0, 0, 5, None)),
            *billed_counts.ANTHROPIC,
            ({"input_tokens": 3, "output_tokens": 4, "cache_read_input_tokens": 5}, Usage(8, 4, 0, 5)),
            ({"input_tokens": 3, "output_tokens": 4, "cache_read_input_tokens": -5}, Usage(None, 4)),
            ({"input_tokens": 3, "output_tokens": -4}, Usage(3, None)),
            ({"input_tokens": 3, "output_tokens": 4, "output_tokens_details": {"thinking_tokens": 9}}, Usage(3, 13, 9)),
        ),
    ),
    _native("anthropic", anthropic_shapes.THOUGHT, {"type": "redacted_thinking", "data": "EmwKAhgB"}),
    _native(
        "anthropic",
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "a"}},
        {
            "type": "web_search_tool_result",
            "tool_use_id": "srvtoolu_1",
            "content": [{"type": "web_search_result", "url": "https://one.example/", "encrypted_content": "e"}],
        },
    ),
    events_after_end=1,
    noise=anthropic_shapes.event("ping") + anthropic_shapes.event("something_new", delta={"text": "x"}),
    error={"type": "error", "error": {"type": "api_error", "message": "No."}},
)  # fmt: skip
_FILTERED = (
    "SAFETY RECITATION LANGUAGE BLOCKLIST PROHIBITED_CONTENT SPII IMAGE_SAFETY MODEL_ARMOR ESCALATION "
    "IMAGE_PROHIBITED_CONTENT IMAGE_RECITATION"
)
_GEMINI: dict[str, Any] = {
    "promptTokenCount": 36, "cachedContentTokenCount": 12, "candidatesTokenCount": 23, "thoughtsTokenCount": 64,
    "totalTokenCount": 123,
}  # fmt: skip
GENERATE = AnswerShape(
    gemini_shapes.answered,
    gemini_shapes.answered_in_events,
    Endings(
        "STOP",
        "MAX_TOKENS",
        "SAFETY",
        {
            "STOP": "stop", "MAX_TOKENS": "length", "CONTINUATION": "length", "FUNCTION_CALL": "tool_calls",
            "SOMETHING_NEW": "SOMETHING_NEW", **dict.fromkeys(_FILTERED.split(), "content_filter"),
        },
        ("FINISH_REASON_UNSPECIFIED", "OTHER", "MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL",
         "TOO_MANY_TOOL_CALLS", "MISSING_THOUGHT_SIGNATURE", "IMAGE_OTHER", "NO_IMAGE"),
    ),
    Counts(
        _GEMINI,
        USAGE,
        "promptTokenCount",
        (
            ({}, None),
            ({"promptTokenCount": 5, "candidatesTokenCount": 3, "totalTokenCount": 8}, Usage(5, 3)),
            ({"promptTokenCount": 5, "totalTokenCount": 5}, Usage(5, None)),
            ({"promptTokenCount": 5}, Usage(5, None)),
            ({"promptTokenCount": 5, "candidatesTokenCount": 3, "thoughtsTokenCount": "many"}, Usage(5, None)),
            ({"totalTokenCount": 2_010}, Usage(None, None, total=2_010)),
            ({**_GEMINI, "toolUsePromptTokenCount": 100, "totalTokenCount": 223}, Usage(136, 87, 64, 12)),
            # Where the total says so, thoughts were counted in the answer's tokens already.
            ({"promptTokenCount": 5, "candidatesTokenCount": 9, "thoughtsTokenCount": 4, "totalTokenCount": 14},
             Usage(5, 9, 4)),
            ({"promptTokenCount": 5, "thoughtsTokenCount": 4, "totalTokenCount": 9}, Usage(5, 4, 4)),
        ),
    ),
    _native("gemini", {"text": "I think of A.", "thought": True, "thoughtSignature": "Eu4B"}),
    _native(
        "gemini",
        {"executableCode": {"language": "PYTHON", "code": "print(1)"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1\n"}},
    ),
    error=orjson.loads(gemini_shapes.error(500, "INTERNAL")),
)  # fmt: skip
_BEDROCK: dict[str, Any] = {
    "inputTokens": 20, "cacheReadInputTokens": 12, "cacheWriteInputTokens": 4, "outputTokens": 87, "totalTokens": 123,
}  # fmt: skip
CONVERSE = AnswerShape(
    bedrock_shapes.answered,
    bedrock_shapes.answered_in_events,
    Endings(
        "end_turn",
        "max_tokens",
        "guardrail_intervened",
        {
            "end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length",
            "model_context_window_exceeded": "length", "tool_use": "tool_calls", "something_new": "something_new",
            "guardrail_intervened": "content_filter", "content_filtered": "content_filter", "refusal": "content_filter",
        },
        ("malformed_model_output", "malformed_tool_use"),
    ),
    Counts(
        _BEDROCK,
        Usage(36, 87, 0, 12, 4, None),
        "inputTokens",
        (
            ({"inputTokens": 0, "outputTokens": 0}, Usage(None, None)),
            ({"inputTokens": 5}, Usage(5, None)),
            ({"totalTokens": 41}, Usage(None, None, total=41)),
            ({"inputTokens": 19, "outputTokens": 22, "cacheReadInputTokens": None}, Usage(19, 22)),
            *billed_counts.BEDROCK,
            ({"inputTokens": 19, "outputTokens": 22, "cacheReadInputTokens": "x"}, Usage(None, 22)),
        ),
    ),
    _native("bedrock", bedrock_shapes.THOUGHT, {"reasoningContent": {"redactedContent": "c2VjcmV0"}}),
    _native(
        "bedrock",
        {"toolUse": {"toolUseId": "s1", "name": "nova_grounding", "input": {"q": "a"}, "type": "server_tool_use"}},
        {"toolResult": {"toolUseId": "s1", "type": "x", "content": [{"text": "a"}, {"json": {"b": 1}}]}},
    ),
    events_after_end=1,
    noise=bedrock_shapes.event("somethingNew", {"delta": {"text": "B"}}),
    error={"__type": "com.amazon.bedrock#InternalServerException", "message": "No."},
    failure=bedrock_shapes.exception("internalServerException"),
    frame=binary,
)  # fmt: skip

# Azure and Gemini on Vertex AI have the very decoders of two rows (test_vertex).
ROWS = {
    row.name: row
    for row in (
        ProtocolRow("chat", openai_chat.PROTOCOL, CHAT),
        ProtocolRow("llama on vertex", vertex.OPEN, CHAT),
        ProtocolRow("completions", openai_completions.PROTOCOL, COMPLETIONS),
        ProtocolRow("responses", openai_responses.PROTOCOL, RESPONSES),
        ProtocolRow("anthropic", anthropic.PROTOCOL, MESSAGES),
        ProtocolRow("claude on vertex", vertex.CLAUDE, MESSAGES),
        ProtocolRow("gemini", gemini.PROTOCOL, GENERATE),
        ProtocolRow("bedrock", bedrock.PROTOCOL, CONVERSE),
    )
}
