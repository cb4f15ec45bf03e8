"""What is asked, what came, and how: the nouns that every room shares.

A call is immutable and carries only what was set. A failure is never a text: an outcome holds
either a reply or a failure. Nothing here sends, stores or waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from msgspec import Struct

FailureKind = Literal[
    "connect",
    "dns",
    "disconnected",
    "incomplete",
    "timeout",
    "bad_json",
    "rate_limited",
    "server_error",
    "rejected",
    "empty",
    "too_large",
    "redirect",
    "not_cached",
    "search_failed",
]


class Message(Struct, frozen=True):
    """One turn of a conversation."""

    role: str
    content: str


class Call(Struct, frozen=True):
    """One question to a model, a search engine or a web page.

    `input` is the prompt, the messages, the query or the URL. A parameter left at None is not sent and
    is not part of the key, so that new parameters never empty old caches. `trial` tells repeats of one
    question apart; `tag` is the caller's own and travels untouched.
    """

    model: str
    input: str | tuple[Message, ...]
    temperature: float | None = None
    max_tokens: int | None = None
    top_p: float | None = None
    stop: tuple[str, ...] | None = None
    seed: int | None = None
    extra: Mapping[str, Any] | None = None
    trial: int = 0
    stream: bool = False
    tag: Any = None

    def __post_init__(self) -> None:
        if "/" not in self.model and self.model != "web":
            raise ValueError(f"model {self.model!r} must be provider/model, as in openai/gpt-4o-mini")
        if self.trial < 0:
            raise ValueError(f"trial ({self.trial}) must be >= 0")
        if self.max_tokens is not None and self.max_tokens < 1:
            raise ValueError(f"max_tokens ({self.max_tokens}) must be >= 1")
        if self.temperature is not None and self.temperature < 0:
            raise ValueError(f"temperature ({self.temperature}) must be >= 0")

    def messages(self) -> Iterable[Message]:
        """The conversation to send: a bare prompt is one user message."""
        return (Message("user", self.input),) if isinstance(self.input, str) else self.input


class Usage(Struct, frozen=True):
    """Tokens as the provider counted them."""

    input: int = 0
    output: int = 0


class Reply(Struct, frozen=True):
    """A whole answer. `raw_hash` is the SHA-256 of the bytes it was read from; `raw` holds those bytes
    only where the text had to be repaired."""

    text: str
    usage: Usage | None = None
    finish_reason: str | None = None
    refused: bool = False
    raw_hash: str = ""
    raw: bytes | None = None

    @property
    def truncated(self) -> bool:
        return self.finish_reason == "length"


class Failure(Struct, frozen=True):
    """Why there is no reply. `detail` says what happened, to what, and what to do."""

    kind: FailureKind
    detail: str
    status: int | None = None


class Outcome(Struct, frozen=True):
    """The end of one call: a reply or a failure, and how it came."""

    call: Call
    reply: Reply | None = None
    failure: Failure | None = None
    key: str = ""
    cached: bool = False
    attempts: int = 0
    maybe_billed: int = 0
    cost: float | None = None
    latency_ms: float | None = None

    @property
    def status(self) -> str:
        """`ok`, `refused`, or the kind of failure."""
        if self.failure is not None:
            return self.failure.kind
        return "refused" if self.reply is not None and self.reply.refused else "ok"
