"""Replies of every kind that a client may be told, and ways to tell them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import structs
from origins import without_origin

from millstream.engine.call import Call, Citation, Outcome, Reply, TokenLogprob, Usage
from millstream.engine.content import Native, ToolCall
from millstream.engine.endpoint import Fault
from millstream.providers.llm.serve_dialect import Dialect, ServedRequest

KEY = "0123456789abcdef" * 4
TEXT = "position <<A>> – ✓ 😀\n\n\u2028B"
USAGE = Usage(36, 87, 64, 12)

REPLIES = {
    "a text": Reply(TEXT, USAGE, "stop"),
    "a text that was cut": Reply(TEXT, Usage(3, 5), "length"),
    "a text of nothing": Reply("", Usage(3, 0), "stop"),
    "a refusal": Reply("I can't.", Usage(3, 5), "content_filter", refused=True),
}
LOGPROBS = (TokenLogprob("A", -0.25, (("A", -0.25), ("B", -1.5))), TokenLogprob("!", -0.5))
CITED = (Citation("https://one.example/a", "One"), Citation("https://two.example/"))
LOOK, FIND = ToolCall("c1", "look", '{"at":"x"}'), ToolCall("c2", "find", "{}")


def replies(thought: Native, *, has_sources: bool = True) -> dict[str, Reply]:
    """Replies of every kind that a dialect can tell. `has_sources`: whether an answer may hold log-probabilities and
    citations."""
    told = {
        "a text": Reply(TEXT, USAGE, "stop"),
        "cut": Reply(TEXT, Usage(3, 5), "length"),
        "cut at once": Reply("", Usage(3, 5), "length"),
        "nothing": Reply("", Usage(3, 0), "stop"),
        "filtered": Reply("I can", Usage(3, 5), "content_filter", refused=True),
        "filtered at once": Reply("", Usage(3, 0), "content_filter", refused=True),
        "a tool": Reply("", USAGE, "tool_calls", parts=(LOOK,)),
        "a text and two tools": Reply(TEXT, USAGE, "tool_calls", parts=(TEXT, LOOK, FIND)),
        "a thought": Reply(TEXT, USAGE, "stop", parts=(thought, TEXT)),
        "a thought and a tool": Reply("", USAGE, "tool_calls", parts=(thought, LOOK)),
    }
    if has_sources:
        told["log-probabilities"] = Reply("A!", USAGE, "stop", logprobs=LOGPROBS)
        told["citations"] = Reply("a [1]", USAGE, "stop", citations=CITED)
    return told


# OpenAI's dialects alone: others count tokens that are not known as none, and have no refusal beside the text.
OPENAI_REPLIES = {
    "no usage": Reply("a", None, "stop"),
    "refused": Reply("I won't.", USAGE, "stop", refused=True),
}


def outcomes(*replies: Reply) -> list[Outcome]:
    return [Outcome(Call("any/m", "x"), reply, key=KEY) for reply in replies]


def streamed(dialect: Dialect, asked: ServedRequest, replies: Sequence[Reply], pieces: Iterable[str] = ()) -> bytes:
    """The first reply's text in pieces, with a ping between any two, then the rest."""
    stream = dialect.stream(asked)
    said = [stream.begin(), stream.ping()]
    for piece in pieces:
        said += stream.text(piece), stream.ping()
    return b"".join([*said, stream.end(outcomes(*replies))])


def halved(text: str) -> tuple[str, ...]:
    return text[: len(text) // 2], text[len(text) // 2 :]


def meant(reply: Reply | Fault) -> Reply | Fault:
    """Without what tells only how it came."""
    return structs.replace(without_origin(reply), raw_hash="") if isinstance(reply, Reply) else reply
