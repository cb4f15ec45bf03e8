"""Calls, replies, failures and outcomes: the values that all parts of the project share.

A call is immutable and carries only what was set. A failure is never a text: an outcome holds either a reply or a
failure. Nothing here sends, stores or waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, structs
from msgspec.structs import force_setattr

from .content import Content, Native, Part, Tool, ToolCall, checked_content, unmarked, words_of, wrong_type
from .message_dicts import role_and_content
from .page_urls import host_of
from .usage import NOT_REPORTED as NOT_REPORTED
from .usage import Usage as Usage
from .usage import known_sum as known_sum

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
    """One turn of a conversation. Results of tools stand in a turn with the role `tool` or `user`."""

    role: str
    """`system`, `user`, `assistant` or `tool`."""
    content: Content
    """Text, or texts, images, tool calls and tool results in their order."""

    def __post_init__(self) -> None:
        if not isinstance(self.role, str):
            raise wrong_type("a message's role", self.role, "text")
        if self.content.__class__ is not str:
            force_setattr(self, "content", checked_content(self.content))

    @property
    def words(self) -> str:
        """The text of the message, without tools, images and native parts."""
        return words_of(self.content)


def message_of(value: object) -> Message:
    """Returns a message, also of a dict with role and content. Raises TypeError or ValueError for anything else."""
    if isinstance(value, Message):
        return value
    if isinstance(value, Mapping):
        return Message(*role_and_content(value))
    raise wrong_type("input", value, "text, or a list of messages", " in it")


class Call(Struct, frozen=True):
    """One question to a model, a search engine or a web page.

    A parameter that is None is not sent and is not part of the cache key, so new parameters never empty old caches.
    """

    model: str
    """`provider/model`, `search/ENGINE` or `web`."""
    input: str | tuple[Message, ...]
    """The prompt, the messages (a system prompt is one with the role `system`), the query or the URL. Messages may be
    given as dicts with role and content, as OpenAI's chat completions take them; the call holds `ms.Message` objects.
    """
    temperature: float | None = None
    """The sampling temperature."""
    max_tokens: int | None = None
    """The most tokens that the answer may have."""
    top_p: float | None = None
    """The share of the probability, from 0 to 1, that is sampled from."""
    stop: tuple[str, ...] | None = None
    """Texts at which the answer ends."""
    seed: int | None = None
    """The seed of the sampling, for providers that take one."""
    extra: Mapping[str, Any] | None = None
    """Fields that go into the request's body unchanged."""
    trial: int = 0
    """Tells repeats of one question apart: each trial is sent and cached as a call of its own."""
    stream: bool = False
    """Whether the answer is streamed. Not part of the cache key."""
    tag: Any = None
    """Any value of the caller's; it comes back on the outcome and is neither sent nor stored."""
    reasoning_effort: str | None = None
    """How long the model thinks, in the provider's own word: none, minimal, low, medium, high."""
    json_schema: Mapping[str, Any] | None = None
    """The JSON schema that the answer must follow."""
    logprobs: int | None = None
    """How many alternatives to return for each token, with log-probabilities; 0: those of the chosen tokens alone."""
    tools: tuple[Tool | Native, ...] | None = None
    """The tools that the model may call."""
    tool_choice: str | None = None
    """`auto`, `none`, `required` or a tool's name."""
    parallel_tools: bool | None = None
    """Whether the model may call several tools in one turn."""

    if TYPE_CHECKING:
        # The constructor accepts more than the field holds: lists, and messages as dicts.
        def __init__(
            self,
            model: str,
            input: str | Sequence[Message | Mapping[str, Any]],
            temperature: float | None = None,
            max_tokens: int | None = None,
            top_p: float | None = None,
            stop: Sequence[str] | None = None,
            seed: int | None = None,
            extra: Mapping[str, Any] | None = None,
            trial: int = 0,
            stream: bool = False,
            tag: Any = None,
            reasoning_effort: str | None = None,
            json_schema: Mapping[str, Any] | None = None,
            logprobs: int | None = None,
            tools: Sequence[Tool | Native] | None = None,
            tool_choice: str | None = None,
            parallel_tools: bool | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        if not isinstance(self.model, str):
            raise wrong_type("model", self.model, "text")
        if "/" not in self.model and self.model != WEB:
            raise ValueError(f"model {self.model!r} must be provider/model, as in openai/gpt-6-luna")
        if not self.model.isascii() and not _is_writable(self.model):
            raise ValueError(f"model {self.model!r} must be text that UTF-8 can hold")
        if self.input.__class__ is not str:
            self._check_input()
        # Checked closely only where a value looks odd, since there may be 100,000 calls.
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
        """Keeps a list of messages as a tuple, so that nobody changes the call; a dict becomes a message."""
        messages: Any = self.input
        if isinstance(messages, str):
            return
        if not isinstance(messages, tuple | list):
            raise wrong_type("input", messages, "text, or a list of messages")
        force_setattr(self, "input", tuple(map(message_of, messages)))

    def _check_stop(self) -> None:
        texts: Any = self.stop
        if isinstance(texts, list):
            texts = tuple(texts)
            force_setattr(self, "stop", texts)
        if not isinstance(texts, tuple) or not all(isinstance(each, str) for each in texts):
            raise wrong_type("stop", texts, "a tuple of texts")

    def _check_tools(self) -> None:
        tools: Any = self.tools
        if isinstance(tools, list):
            tools = tuple(tools)
            force_setattr(self, "tools", tools)
        if tools is not None and not (
            isinstance(tools, tuple) and all(isinstance(unmarked(each), Tool | Native) for each in tools)
        ):
            raise wrong_type("tools", tools, "a tuple of tools")
        if self.tool_choice is not None and not isinstance(self.tool_choice, str):
            raise wrong_type("tool_choice", self.tool_choice, "auto, none, required or a tool's name")
        if self.parallel_tools is not None and not isinstance(self.parallel_tools, bool):
            raise wrong_type("parallel_tools", self.parallel_tools, "True or False")

    @property
    def lane(self) -> str:
        """The name of the lane that the call waits in: its model, or `web/` and the host of a page."""
        if self.model != WEB:
            return self.model
        return f"{WEB}/{host_of(self.input) if isinstance(self.input, str) else ''}"

    def messages(self) -> Iterable[Message]:
        """Returns the messages to send; a bare prompt is one user message."""
        return (Message("user", self.input),) if isinstance(self.input, str) else self.input


class TokenLogprob(Struct, frozen=True):
    """A token of the answer with its log-probability."""

    token: str
    """The token's text."""
    logprob: float
    """Its log-probability."""
    top: tuple[tuple[str, float], ...] = ()
    """The likeliest tokens in its place, each with its log-probability."""


class Citation(Struct, frozen=True):
    """A source that an answer refers to."""

    url: str
    """The source's address."""
    title: str | None = None
    """Its title; None: the provider gave none."""


class Hit(Struct, frozen=True):
    """One result of a search."""

    rank: int
    """Its place among the results, from 1."""
    url: str
    """The page's address."""
    title: str = ""
    """The page's title."""
    snippet: str = ""
    """The engine's extract of the page."""


class PageResponse(Struct, frozen=True):
    """One HTTP response on the way to a page, unchanged. `body` holds the bytes as received, still compressed by
    `encoding` (Content-Encoding, empty for none). `location` is where a redirect leads, else None."""

    status: int
    content_type: str
    encoding: str
    location: str | None
    body: bytes


class Reply(Struct, frozen=True, gc=False):
    """A whole answer."""

    text: str
    """The answer's text."""
    usage: Usage | None = None
    """Its tokens; None: the provider did not report them."""
    finish_reason: str | None = None
    """`stop`, `length`, `tool_calls` or `content_filter` where the provider means one of these, else its own word."""
    refused: bool = False
    """Whether the provider's content filter refused the prompt or the answer."""
    raw_hash: str = ""
    """SHA-256 of the response's bytes, in hex."""
    raw: bytes | None = None
    """Those bytes, where the text had to be repaired; else None."""
    logprobs: tuple[TokenLogprob, ...] | None = None
    """The tokens with their log-probabilities; None: the provider gave none."""
    citations: tuple[Citation, ...] = ()
    """The sources that the answer refers to."""
    hits: tuple[Hit, ...] = ()
    """The results, for a search."""
    fetched: PageResponse | None = None
    """The HTTP response, for a page; else None."""
    parts: tuple[Part, ...] = ()
    """Everything that the model wrote, in its order, where that is more than the text: tool calls, thoughts."""
    answer_id: str | None = None
    """The provider's id of the answer; None: it gave none."""
    served: str | None = None
    """The name of the model that answered, as the server states it; None: it stated none."""
    fingerprint: str | None = None
    """The provider's word for the configuration that answered (OpenAI's `system_fingerprint`); None: it gave none."""
    tier: str | None = None
    """The service tier that answered, in the provider's word, as `default`, `flex` or `fast`; None: it gave none."""
    router: str | None = None
    """The provider that a router chose (OpenRouter's `provider`); None: it gave none."""

    def __post_init__(self) -> None:
        """Takes no output tokens beside an answer for what they are: a count that the provider did not make."""
        usage = self.usage
        if usage is not None and usage.output == 0 and (self.text or self.parts):
            force_setattr(self, "usage", structs.replace(usage, output=None))

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The tool calls among the parts."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall)) if self.parts else ()

    @property
    def truncated(self) -> bool:
        """Whether the limit of tokens cut the answer off."""
        return self.finish_reason == "length"

    @property
    def is_cut_empty(self) -> bool:
        """Whether the limit of tokens cut the answer off before its first word, as when the model thinks too long."""
        return not self.text.strip() and self.truncated and not self.tool_calls and self.logprobs is None


class Failure(Struct, frozen=True):
    """Why a call has no reply."""

    kind: FailureKind
    """One of `FailureKind`, as `timeout` or `rate_limited`."""
    detail: str
    """One line: what happened, to what, and what to do."""
    status: int | None = None
    """The HTTP status; None: there was no response."""


class Outcome(Struct, frozen=True):
    """The end of one call: a reply or a failure, and how it was reached."""

    call: Call
    """The call."""
    reply: Reply | None = None
    """The reply; None for a failure."""
    failure: Failure | None = None
    """The failure; None for a reply."""
    key: str = ""
    """The cache key, in hex."""
    cached: bool = False
    """Whether the outcome was read from the cache, or shared with an identical call, so that nothing was sent for it.
    """
    attempts: int = 0
    """How many attempts were sent; 0 for an outcome from the cache and for one that was never sent."""
    maybe_billed: int = 0
    """How many attempts failed although the provider may have billed them."""
    cost: float | None = None
    """Dollars; 0.0 from the cache; None: not known, as for a failure or a model without a price. Tokens that the
    provider did not report (`usage.is_whole` is False) count at their worst."""
    latency_ms: float | None = None
    """Milliseconds from send to last byte of the last attempt; None for a reply from the cache, unless it is a page."""

    @property
    def status(self) -> str:
        """The end in one word: `ok`, `refused`, or the kind of failure."""
        if self.failure is not None:
            return self.failure.kind
        return "refused" if self.reply is not None and self.reply.refused else "ok"
