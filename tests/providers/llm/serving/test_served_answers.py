"""What clients of every served dialect are answered, whole and streamed, as our own decoder reads it; clients' own
libraries read it in the modules of each dialect."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import Struct, field, structs
from told_replies import FIND, LOGPROBS, LOOK, OPENAI_REPLIES, USAGE, meant, outcomes, replies, streamed

from millstream.engine.call import Citation, Reply
from millstream.engine.content import Native, ToolCall
from millstream.engine.endpoint import Fault, Response
from millstream.providers.llm.anthropic import messages as anthropic
from millstream.providers.llm.anthropic import serve_messages
from millstream.providers.llm.google import generate as gemini
from millstream.providers.llm.google import serve_generate
from millstream.providers.llm.openai import chat as openai_chat
from millstream.providers.llm.openai import responses as openai_responses
from millstream.providers.llm.openai import serve_chat, serve_responses
from millstream.providers.llm.protocol import WireProtocol
from millstream.providers.llm.serve_dialect import Dialect, Problem, ServedRequest

NOW = 1741569952.7


class AnsweredRow(Struct, frozen=True):
    """A dialect, the decoder of its answers, and what it has words for."""

    dialect: Dialect
    wire: WireProtocol
    body: dict[str, Any]
    """A streamed request."""
    thought: Native
    has_sources: bool = True
    """Whether an answer may hold log-probabilities and citations."""
    own: dict[str, Reply] = field(default_factory=dict)
    """Replies that other dialects tell otherwise."""

    def asked(self, **changes: Any) -> ServedRequest:
        return self.dialect.read({"model": "m", **self.body, **changes}, "p/{}".format)

    def whole(self, reply: Reply) -> bytes:
        return self.dialect.whole(self.asked(), outcomes(reply))

    def streamed(self, reply: Reply, *pieces: str) -> bytes:
        return streamed(self.dialect, self.asked(), [reply], pieces)

    def read(self, body: bytes, *, stream: bool = False) -> Reply | Fault:
        """Returns what a body is read as, without what a server adds to its own tool calls."""
        result = meant(self.wire.decode(Response(200, body, stream=stream, is_cut=stream)))
        if isinstance(result, Fault):
            return result
        parts = (structs.replace(part, native=None) if isinstance(part, ToolCall) else part for part in result.parts)
        return structs.replace(result, parts=tuple(parts))

    def replies(self) -> dict[str, Reply]:
        return {**replies(self.thought, has_sources=self.has_sources), **self.own}


CHAT_THOUGHT = Native("openai", {"reasoning_content": "hm"})
REASONING = Native("openai-responses", {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e"})
CUSTOM = {"id": "c3", "type": "custom", "custom": {"name": "run", "input": "ls"}}
MESSAGES: list[Any] = [{"role": "user", "content": "x"}]
THINKING: dict[str, Any] = {"max_tokens": 9_000, "thinking": {"type": "enabled", "budget_tokens": 2_048}}
ROWS = {
    "chat": AnsweredRow(
        serve_chat.dialect(lambda: NOW), openai_chat.PROTOCOL,
        {"messages": MESSAGES, "stream": True, "stream_options": {"include_usage": True}},
        CHAT_THOUGHT,
        own={
            **OPENAI_REPLIES,
            "no log-probabilities at all": Reply("a", USAGE, "stop", logprobs=()),
            "a thought, a text and a tool": Reply("a", USAGE, "tool_calls", parts=(CHAT_THOUGHT, "a", LOOK)),
            "a custom tool": Reply("", USAGE, "tool_calls", parts=(Native("openai", CUSTOM), FIND)),
        },
    ),
    "responses": AnsweredRow(
        serve_responses.dialect(lambda: NOW), openai_responses.PROTOCOL, {"input": "x", "stream": True},
        REASONING,
        own={
            **OPENAI_REPLIES,
            "cut in a thought": Reply("", USAGE, "length", parts=(REASONING,)),
            "a thought and nothing": Reply("", USAGE, "stop", parts=(REASONING,)),
            "a text behind a tool": Reply("ab", USAGE, "tool_calls", parts=(LOOK, "ab")),
            "texts around a tool": Reply("A!", USAGE, "tool_calls", parts=("A", LOOK, "!"), logprobs=LOGPROBS),
        },
    ),
    "anthropic": AnsweredRow(
        serve_messages.DIALECT, anthropic.PROTOCOL, {"messages": MESSAGES, "max_tokens": 9, "stream": True},
        Native("anthropic", {"type": "thinking", "thinking": "hm", "signature": "EqQB"}), has_sources=False,
    ),
    "anthropic, thinking": AnsweredRow(
        serve_messages.DIALECT, anthropic.PROTOCOL, {"messages": MESSAGES, **THINKING, "stream": True},
        Native("anthropic", {"type": "thinking", "thinking": "hm", "signature": "EqQB"}), has_sources=False,
    ),
    "gemini": AnsweredRow(
        serve_generate.DIALECT, gemini.PROTOCOL, {"contents": [{"role": "user", "parts": [{"text": "x"}]}]},
        Native("gemini", {"text": "hm", "thought": True}),
    ),
}  # fmt: skip
REPLIES = [(row, name) for row in ROWS.values() for name in row.replies()]
each_dialect = pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
each_reply = pytest.mark.parametrize(("row", "name"), REPLIES, ids=[f"{row.wire.kind}-{name}" for row, name in REPLIES])


@each_reply
def test_an_answer_is_decoded_to_the_same_reply_whole_and_streamed(row: AnsweredRow, name: str) -> None:
    reply = row.replies()[name]
    body = row.whole(reply)
    assert b"\n" not in body
    assert row.read(body) == reply
    assert row.read(row.streamed(reply), stream=True) == reply


@each_reply
def test_a_text_that_was_sent_in_pieces_is_not_sent_again_at_the_end(row: AnsweredRow, name: str) -> None:
    reply = row.replies()[name]
    half = len(reply.text) // 2
    # The words of a refusal are not sent before its end.
    is_late = reply.refused and reply.finish_reason == "stop"
    pieces = () if is_late else (reply.text[:half], "", reply.text[half : half + 1])
    result = row.read(row.streamed(reply, *pieces), stream=True)
    assert isinstance(result, Reply)
    # A thought behind the text goes before it again, behind it, or is left out.
    assert structs.replace(result, parts=()) == structs.replace(reply, parts=())
    assert result.tool_calls == reply.tool_calls


@each_reply
def test_no_cut_of_a_stream_is_a_finished_answer(row: AnsweredRow, name: str) -> None:
    """But behind its finish reason, where all but the usage is known."""
    reply = row.replies()[name]
    body = row.streamed(reply, "" if reply.refused else reply.text[:1])
    finished = False
    for end in range(len(body) + 1):
        read = row.read(body[:end], stream=True)
        if isinstance(read, Reply):
            finished = True
            assert (read.text, read.finish_reason, read.tool_calls) == (
                reply.text,
                reply.finish_reason,
                reply.tool_calls,
            )
        else:
            assert not finished, end
    assert finished


@each_dialect
def test_an_answer_that_fails_on_its_way_is_never_finished(row: AnsweredRow) -> None:
    for problem in (
        Problem(504, "timeout", "too late"),
        Problem(429, "rate_limited", "too late"),
        Problem(400, "rejected", "too late"),
    ):
        stream = row.dialect.stream(row.asked())
        body = stream.begin() + stream.text("posi") + stream.ping() + stream.fail(problem)
        fault = row.read(body, stream=True)
        assert isinstance(fault, Fault)
        assert "too late" in fault.detail


@each_dialect
def test_an_answer_has_the_same_bytes_whenever_it_is_asked_for_again(row: AnsweredRow) -> None:
    reply = Reply("ab", USAGE, "stop")
    assert row.streamed(reply, "a") == row.streamed(reply, "a")
    assert row.whole(reply) == row.whole(reply)


@each_dialect
def test_finish_reasons_of_other_providers_are_written_as_an_ordinary_end(row: AnsweredRow) -> None:
    for word in ("recitation", "eos", None):
        for body, stream in ((row.whole(Reply("a", None, word)), False), (row.streamed(Reply("a", None, word)), True)):
            read = row.read(body, stream=stream)
            assert isinstance(read, Reply)
            assert (read.text, read.finish_reason) == ("a", "stop")
        called = row.read(row.whole(Reply("", None, word, parts=(LOOK,))))
        assert isinstance(called, Reply)
        assert called.finish_reason == "tool_calls"


@each_dialect
def test_thoughts_of_another_family_are_left_out(row: AnsweredRow) -> None:
    for other in ROWS.values():
        if other.thought.protocol != row.thought.protocol:
            reply = Reply("a", USAGE, "stop", parts=(other.thought, "a"))
            assert row.read(row.whole(reply)) == structs.replace(reply, parts=())
            assert row.read(row.streamed(reply), stream=True) == structs.replace(reply, parts=())


@each_dialect
def test_a_part_that_is_too_deep_to_be_written_is_left_out(row: AnsweredRow) -> None:
    deep: Any = 1
    for _ in range(500):
        deep = [deep]
    thought = Native(row.thought.protocol, {**row.thought.value, "more": deep})
    call = structs.replace(LOOK, native=Native("gemini", {"thoughtSignature": deep}))
    reply = Reply("a", USAGE, "tool_calls", parts=(thought, "a", call))
    for body, stream in ((row.whole(reply), False), (row.streamed(reply), True)):
        read = row.read(body, stream=stream)
        assert isinstance(read, Reply)
        assert (read.text, read.tool_calls) == ("a", (LOOK,))


_TEXT = st.text(st.characters(codec=None, categories=None), max_size=20)


@each_dialect
@settings(max_examples=50, deadline=None)
@given(_TEXT, _TEXT, _TEXT, st.integers(0, 20))
@example("A\ud800", "\ud800", "\ud800", 1)
@example("A", '{"a":"\ud800"}', "f", 1)
def test_no_text_breaks_an_answer(row: AnsweredRow, text: str, arguments: str, name: str, cut: int) -> None:
    parts = (row.thought, text, ToolCall(name, name, arguments))
    reply = Reply(text, None, "tool_calls", parts=parts, citations=(Citation(text, name),))
    mended = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    orjson.loads(row.whole(reply))
    orjson.loads(row.dialect.problem(Problem(400, "invalid", text, name)))
    for body, stream in ((row.whole(reply), False), (row.streamed(reply, text[:cut]), True)):
        read = row.read(body, stream=stream)
        assert isinstance(read, Reply)
        assert len(read.text) == len(mended)


@each_dialect
@settings(max_examples=50, deadline=None)
@given(st.lists(st.text(), min_size=1), st.integers(0, 99), st.booleans())
def test_texts_around_tool_calls_are_sent_in_full_whatever_was_sent_before(
    row: AnsweredRow, texts: list[str], cut: int, has_calls: bool
) -> None:
    parts = [each for text in texts for each in (text, *((LOOK,) if has_calls else ()))]
    reply = Reply("".join(texts), USAGE, "tool_calls" if has_calls else "stop", parts=tuple(parts))
    read = row.read(row.streamed(reply, *reply.text[:cut]), stream=True)
    assert isinstance(read, Reply)
    assert (read.text, read.tool_calls) == (reply.text, reply.tool_calls)
