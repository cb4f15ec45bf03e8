"""Replies of every kind that a client may be told, and ways to tell them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import structs
from origins import without_origin

from millstream.engine.call import Call, Citation, Outcome, Reply, TokenLogprob, Usage
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
