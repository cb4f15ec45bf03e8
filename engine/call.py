"""What is asked, what came, and how: the nouns that every room shares.

A call is immutable and carries only what was set. A failure is never a text: an outcome holds
either a reply or a failure. Nothing here sends, stores or waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeVar

from msgspec import Struct
from msgspec.structs import force_setattr

from .addresses import host_of
from .content import Content, Native, Part, Tool, ToolCall, checked_content, unmarked, words_of, wrong_type

WEB = "web"
# What a cache and a journal can hold.
TRIAL_MAX = (1 << 63) - 1

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


def _is_writable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_whole(name: str, value: object, least: int | None = None, what: str = "") -> None:
    if not isinstance(value, int) or value.__class__ is bool:
        raise wrong_type(name, value, "a whole number")
    if least is not None and value < least:
        raise ValueError(f"{name} ({value}) must be >= {least}{what}")


def _check_number(name: str, value: object) -> None:
    if not isinstance(value, float | int) or value.__class__ is bool:
        raise wrong_type(name, value, "a number")


def _check_mapping(name: str, value: object) -> None:
    if value.__class__ is not dict and not isinstance(value, Mapping):
        raise wrong_type(name, value, "a mapping of names to values")


class Message(Struct, frozen=True):
    """One turn of a conversation: text, or parts of it in their order. Results of tools stand in a turn with the role
    `tool` or `user`."""

    role: str
    content: Content

    def __post_init__(self) -> None:
        if not isinstance(self.role, str):
            raise wrong_type("a message's role", self.role, "text")
        if self.content.__class__ is not str:
            force_setattr(self, "content", checked_content(self.content))

    @property
    def words(self) -> str:
        """What is said in it."""
        return words_of(self.content)


class Call(Struct, frozen=True):
    """One question to a model, a search engine or a web page.

    `input` is the prompt, the messages (a system prompt is one with the role `system`), the query or the URL.
    A parameter left at None is not sent and is not part of the key, so that new parameters never empty old
    caches. `reasoning_effort` is the provider's own word (none, minimal, low, medium, high); an answer under a
    `json_schema` is JSON of that shape; `logprobs` asks for the chosen tokens' log-probabilities with so many
    alternatives each. `extra` goes into the body as it is. `tools` are what the model may ask for, a `tool_choice` is
    `auto`, `none`, `required` or a tool's name. `trial` tells repeats of one question apart; `tag` is the caller's own
    and travels untouched.
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
    tools: tuple[Tool | Native, ...] | None = None
    tool_choice: str | None = None
    parallel_tools: bool | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.model, str):
            raise wrong_type("model", self.model, "text")
        if "/" not in self.model and self.model != WEB:
            raise ValueError(f"model {self.model!r} must be provider/model, as in openai/gpt-4o-mini")
        if not self.model.isascii() and not _is_writable(self.model):
            raise ValueError(f"model {self.model!r} must be text that UTF-8 can hold")
        if self.input.__class__ is not str:
            self._check_input()
        # What a whole grid sets is looked at closely only where it is odd: there are 100,000 of these.
        if self.trial.__class__ is not int or not 0 <= self.trial <= TRIAL_MAX:
            _check_whole("trial", self.trial, 0)
            if self.trial > TRIAL_MAX:
                raise ValueError(f"trial ({self.trial}) must be <= {TRIAL_MAX}")
        if self.max_tokens is not None and (self.max_tokens.__class__ is not int or self.max_tokens < 1):
            _check_whole("max_tokens", self.max_tokens, 1)
        if self.temperature is not None and (self.temperature.__class__ is not float or self.temperature < 0):
            _check_number("temperature", self.temperature)
            if self.temperature < 0:
                raise ValueError(f"temperature ({self.temperature}) must be >= 0")
        if self.top_p is not None:
            _check_number("top_p", self.top_p)
        if self.stop is not None:
            self._check_stop()
        if self.seed is not None:
            _check_whole("seed", self.seed)
        if self.extra is not None:
            _check_mapping("extra", self.extra)
        if self.json_schema is not None:
            _check_mapping("json_schema", self.json_schema)
        if self.logprobs is not None:
            _check_whole("logprobs", self.logprobs, 0, ", the number of alternatives for each token")
        if self.reasoning_effort is not None and not isinstance(self.reasoning_effort, str):
            raise wrong_type("reasoning_effort", self.reasoning_effort, "text")
        if self.tools is not None or self.tool_choice is not None or self.parallel_tools is not None:
            self._check_tools()
        if self.stream.__class__ is not bool:
            raise wrong_type("stream", self.stream, "True or False")

    def _check_input(self) -> None:
        """A list of messages is kept as a tuple, so that nobody changes the call."""
        given: Any = self.input
        if isinstance(given, list):
            given = tuple(given)
            force_setattr(self, "input", given)
        if isinstance(given, str):
            return
        if not isinstance(given, tuple):
            raise wrong_type("input", given, "text, or a tuple of messages")
        for each in given:
            if not isinstance(each, Message):
                raise wrong_type("input", each, "text, or a tuple of messages", " in it")

    def _check_stop(self) -> None:
        given: Any = self.stop
        if isinstance(given, list):
            given = tuple(given)
            force_setattr(self, "stop", given)
        if not isinstance(given, tuple) or not all(isinstance(each, str) for each in given):
            raise wrong_type("stop", given, "a tuple of texts")

    def _check_tools(self) -> None:
        given: Any = self.tools
        if isinstance(given, list):
            given = tuple(given)
            force_setattr(self, "tools", given)
        if given is not None and not (
            isinstance(given, tuple) and all(isinstance(unmarked(each), Tool | Native) for each in given)
        ):
            raise wrong_type("tools", given, "a tuple of tools")
        if self.tool_choice is not None and not isinstance(self.tool_choice, str):
            raise wrong_type("tool_choice", self.tool_choice, "auto, none, required or a tool's name")
        if self.parallel_tools is not None and not isinstance(self.parallel_tools, bool):
            raise wrong_type("parallel_tools", self.parallel_tools, "True or False")

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

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input + other.input,
            self.output + other.output,
            self.reasoning + other.reasoning,
            self.cached_input + other.cached_input,
        )


_Amount = TypeVar("_Amount", float, Usage)


def known_sum(known: _Amount | None, more: _Amount | None) -> _Amount | None:
    """Of what is known: None as long as nothing is."""
    if known is None or more is None:
        return more if known is None else known
    return known + more


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
    """A whole answer. `finish_reason` is `stop`, `length`, `tool_calls` or `content_filter` for every provider that
    means one of these, else its own word. `raw_hash` is the SHA-256 of the bytes it was read from; `raw` holds those
    bytes only where the text had to be repaired. `logprobs` None: the provider gave none. `hits` are a search's,
    `fetched` a page's. `parts` is all that was said, in its order, where that is more than the text."""

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
    parts: tuple[Part, ...] = ()

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        return tuple(part for part in self.parts if isinstance(part, ToolCall)) if self.parts else ()

    @property
    def truncated(self) -> bool:
        return self.finish_reason == "length"

    @property
    def is_cut_empty(self) -> bool:
        """Cut off before the first word: the model thought for longer, or there was no room for one."""
        return not self.text.strip() and self.truncated and not self.tool_calls and self.logprobs is None


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
