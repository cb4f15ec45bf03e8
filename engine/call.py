"""What is asked, what came, and how: the nouns that every room shares.

A call is immutable and carries only what was set. A failure is never a text: an outcome holds
either a reply or a failure. Nothing here sends, stores or waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from msgspec import Struct

from .addresses import host_of

WEB = "web"

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

    `input` is the prompt, the messages (a system prompt is one with the role `system`), the query or the URL.
    A parameter left at None is not sent and is not part of the key, so that new parameters never empty old
    caches. `reasoning_effort` is the provider's own word (none, minimal, low, medium, high); an answer under a
    `json_schema` is JSON of that shape; `logprobs` asks for the chosen tokens' log-probabilities with so many
    alternatives each. `extra` goes into the body as it is. `trial` tells repeats of one question apart; `tag`
    is the caller's own and travels untouched.
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
    reasoning_effort: str | None = None
    json_schema: Mapping[str, Any] | None = None
    logprobs: int | None = None

    def __post_init__(self) -> None:
        if "/" not in self.model and self.model != WEB:
            raise ValueError(f"model {self.model!r} must be provider/model, as in openai/gpt-4o-mini")
        if self.trial < 0:
            raise ValueError(f"trial ({self.trial}) must be >= 0")
        if self.max_tokens is not None and self.max_tokens < 1:
            raise ValueError(f"max_tokens ({self.max_tokens}) must be >= 1")
        if self.temperature is not None and self.temperature < 0:
            raise ValueError(f"temperature ({self.temperature}) must be >= 0")
        if self.logprobs is not None and self.logprobs < 0:
            raise ValueError(f"logprobs ({self.logprobs}) must be >= 0, the number of alternatives for each token")

    @property
    def lane(self) -> str:
        """The queue that the call waits in: its model's, or for a page, its host's."""
        if self.model != WEB:
            return self.model
        return f"{WEB}/{host_of(self.input) if isinstance(self.input, str) else ''}"

    def messages(self) -> Iterable[Message]:
        """The conversation to send: a bare prompt is one user message."""
        return (Message("user", self.input),) if isinstance(self.input, str) else self.input


class Usage(Struct, frozen=True, omit_defaults=True):
    """Tokens as the provider counted them: `cached_input` are part of the input, `reasoning` of the output. Written
    down, these two stand only where there are any."""

    input: int
    output: int
    reasoning: int = 0
    cached_input: int = 0


class TokenLogprob(Struct, frozen=True):
    """A token of the answer, its log-probability, and the likeliest tokens in its place with theirs."""

    token: str
    logprob: float
    top: tuple[tuple[str, float], ...] = ()


class Citation(Struct, frozen=True):
    """What an answer refers to."""

    url: str
    title: str | None = None


class Hit(Struct, frozen=True):
    """One result of a search; the first has rank 1."""

    rank: int
    url: str
    title: str = ""
    snippet: str = ""


class Fetched(Struct, frozen=True):
    """One hop to a page, as it came: `body` holds the wire's bytes, still under `encoding` (Content-Encoding, empty for
    none). `location` is where a redirect leads."""

    status: int
    content_type: str
    encoding: str
    location: str | None
    body: bytes


class Reply(Struct, frozen=True):
    """A whole answer. `finish_reason` is `stop`, `length` or `content_filter` for every provider that means one of
    these, else its own word. `raw_hash` is the SHA-256 of the bytes it was read from; `raw` holds those bytes only
    where the text had to be repaired. `logprobs` None: the provider gave none. `hits` are a search's, `fetched` a
    page's."""

    text: str
    usage: Usage | None = None
    finish_reason: str | None = None
    refused: bool = False
    raw_hash: str = ""
    raw: bytes | None = None
    logprobs: tuple[TokenLogprob, ...] | None = None
    citations: tuple[Citation, ...] = ()
    hits: tuple[Hit, ...] = ()
    fetched: Fetched | None = None

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
