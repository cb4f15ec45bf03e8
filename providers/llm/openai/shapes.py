"""Reads the JSON of a chat completion, as OpenAI writes it and as other servers do.

The usual shape is decoded straight into structs; any other is read field by field, where a field of a wrong type counts
as missing. Pure: values in, values out, never an exception.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct

from ....engine.call import Citation, TokenLogprob, Usage
from ..answer_values import Count, Name, as_object, count_in, id_of, is_number
from ..answer_values import usage_of as checked_usage
from ..repair import mended


class CompletionMessage(Struct, frozen=True):
    content: str | None = None
    refusal: str | None = None
    annotations: list[Any] | None = None
    tool_calls: Any = None
    function_call: Any = None
    reasoning_content: Any = None
    reasoning: Any = None
    reasoning_details: Any = None

    @property
    def says_more(self) -> bool:
        """Whether the message may hold more than text."""
        return bool(
            self.tool_calls or self.function_call or self.reasoning_content or self.reasoning or self.reasoning_details
        )

    @property
    def is_empty(self) -> bool:
        """Whether the message has no content besides thoughts, not even an empty text."""
        return self.content is None and not (self.refusal or self.tool_calls or self.function_call)


class CompletionMessageOfParts(CompletionMessage, frozen=True):
    """A message of an answer whose content is a list; `spoken` holds its texts, and its other parts as objects, in
    their order."""

    spoken: tuple[str | dict[str, Any], ...] = ()

    @property
    def says_more(self) -> bool:
        return True


class ChatChoice(Struct, frozen=True):
    """One choice of an answer: with a `message`, with a `delta` in a chunk of a stream, or with the `text` of an older
    completion."""

    index: int = 0
    message: CompletionMessage | None = None
    delta: CompletionMessage | None = None
    finish_reason: str | None = None
    logprobs: Any = None
    error: Any = None
    text: Any = None


_MORE = ("tool_calls", "function_call", "reasoning_content", "reasoning", "reasoning_details")


class OutputDetails(Struct, frozen=True):
    reasoning_tokens: Count | None = None


class InputDetails(Struct, frozen=True):
    cached_tokens: Count | None = None
    cache_write_tokens: Count | None = None


class RawUsage(Struct, frozen=True):
    """Counts of tokens. Two fields are DeepSeek's and Mistral's names for cached tokens, the last three OpenRouter's
    dollars."""

    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None
    total_tokens: Count | None = None
    completion_tokens_details: OutputDetails | None = None
    prompt_tokens_details: InputDetails | None = None
    prompt_cache_hit_tokens: Count | None = None
    num_cached_tokens: Count | None = None
    cost: Any = None
    is_byok: Any = None
    cost_details: Any = None


class ChatAnswer(Struct, frozen=True):
    """A whole body or one chunk of a stream: the fields that are used."""

    choices: list[ChatChoice] | None = None
    usage: RawUsage | None = None
    error: Any = None
    citations: list[Any] | None = None
    search_results: list[Any] | None = None
    id: Name | None = None
    model: Name | None = None
    system_fingerprint: Name | None = None
    service_tier: Name | None = None
    provider: Name | None = None


# The fields of an answer, or of the chunks of a stream, that state who answered.
ORIGIN = ("id", "model", "system_fingerprint", "service_tier", "provider")


def joined_origin(before: ChatAnswer, chunk: ChatAnswer) -> ChatAnswer:
    """Returns who answered by the chunks of a stream so far, each field from the first chunk that has it."""
    return ChatAnswer(**{name: getattr(before, name) or getattr(chunk, name) for name in ORIGIN})


def usage_of(usage: RawUsage | None) -> Usage | None:
    if usage is None:
        return None
    details, input_details = usage.completion_tokens_details, usage.prompt_tokens_details
    reasoning = details.reasoning_tokens if details is not None else None
    cached = input_details.cached_tokens if input_details is not None else None
    cached = cached or usage.prompt_cache_hit_tokens or usage.num_cached_tokens
    written = input_details.cache_write_tokens if input_details is not None else None
    return checked_usage(
        usage.prompt_tokens,
        usage.completion_tokens,
        reasoning,
        cached,
        usage.total_tokens,
        writes=(written, None),
        billed=None if usage.cost is None else billed_of(usage.cost, usage.is_byok, usage.cost_details),
    )


def billed_of(cost: Any, is_byok: Any, details: Any) -> float | None:
    """Returns the dollars that a router reports. With a provider's key of one's own (`is_byok`) they are its fee alone,
    beside the provider's bill."""
    parts: list[Any] = [cost]
    if is_byok is True:
        parts.append(as_object(details).get("upstream_inference_cost"))
    return float(sum(parts)) if all(is_number(part) and 0 <= part < 1e6 for part in parts) else None


def logprobs_of(logprobs: Any, text: str | None) -> list[TokenLogprob] | None:
    """Returns log-probabilities from OpenAI's list of tokens, the parallel lists of others, or one number (in a chunk
    whose only token is `text`); None if there are none."""
    if is_number(logprobs):
        return None if text is None else [TokenLogprob(text, float(logprobs))]
    if not isinstance(logprobs, dict):
        return None
    content = logprobs.get("content")
    if isinstance(content, list):
        return [_token_of(one) for one in content if isinstance(one, dict) and is_number(one.get("logprob"))]
    return parallel_logprobs(logprobs, is_aligned=False)


def parallel_logprobs(lists: dict[str, Any], *, is_aligned: bool) -> list[TokenLogprob] | None:
    """Returns the rows of parallel lists; None if there are no such lists. A token without a number is left out, but
    has NaN where tokens shall be counted (`is_aligned`), for which both lists must be of one length."""
    tokens, values, tops = (lists.get(name) for name in ("tokens", "token_logprobs", "top_logprobs"))
    if not isinstance(tokens, list) or not isinstance(values, list) or (is_aligned and len(tokens) != len(values)):
        return None
    rows = tops if isinstance(tops, list) and len(tops) == len(tokens) else [None] * len(tokens)
    return [
        TokenLogprob(mended(str(token)), float(value) if is_number(value) else math.nan, _alternatives_of(row))
        for token, value, row in zip(tokens, values, rows, strict=False)
        if is_aligned or is_number(value)
    ]


def _token_of(one: dict[str, Any]) -> TokenLogprob:
    return TokenLogprob(
        mended(str(one.get("token", ""))), float(one["logprob"]), _alternatives_of(one.get("top_logprobs"))
    )


def _alternatives_of(alternatives: Any) -> tuple[tuple[str, float], ...]:
    pairs: Iterable[tuple[Any, Any]] = ()
    if isinstance(alternatives, dict):
        pairs = alternatives.items()
    elif isinstance(alternatives, list):
        pairs = ((one.get("token", ""), one.get("logprob")) for one in alternatives if isinstance(one, dict))
    return tuple((mended(str(token)), float(value)) for token, value in pairs if is_number(value))


def citations_of(notes: Any, with_parts: Any, results: Any) -> tuple[Citation, ...]:
    """Returns each address once, in order: from a message's annotations, then from a list beside the choices. Search
    results add titles, and are the citations themselves if there are no others."""
    titles: dict[str, str | None] = {}
    for one in notes or ():
        if isinstance(one, dict):
            _note(titles, one.get("url_citation") if isinstance(one.get("url_citation"), dict) else one)
    for one in with_parts or ():
        _note(titles, {"url": one} if isinstance(one, str) else one)
    # If nothing states which results are cited, all of them are: the numbers in the answer refer to them.
    wanted = frozenset(titles)
    for one in results or ():
        _note(titles, one, wanted)
    return tuple(Citation(url, title) for url, title in titles.items())


def _note(titles: dict[str, str | None], one: Any, wanted: frozenset[str] = frozenset()) -> None:
    url = one.get("url") if isinstance(one, dict) else None
    if not isinstance(url, str) or not url:
        return
    url, title = mended(url), one.get("title")
    if not wanted or url in wanted:
        titles[url] = titles.get(url) or (mended(title) if isinstance(title, str) and title else None)


def answer_of(parsed: dict[str, Any]) -> ChatAnswer:
    """Returns the answer from JSON of a less usual shape, read field by field."""
    choices, usage = parsed.get("choices"), parsed.get("usage")
    return ChatAnswer(
        [_choice_of(one) for one in choices if isinstance(one, dict)] if isinstance(choices, list) else None,
        _usage_of(usage) if isinstance(usage, dict) else None,
        parsed.get("error"),
        _list_of(parsed.get("citations")),
        _list_of(parsed.get("search_results")),
        *(id_of(parsed.get(name)) for name in ORIGIN),
    )


def _choice_of(choice: dict[str, Any]) -> ChatChoice:
    index, finish = choice.get("index"), choice.get("finish_reason")
    return ChatChoice(
        index if isinstance(index, int) else 0,
        _message_of(choice.get("message")),
        _message_of(choice.get("delta")),
        mended(finish) if isinstance(finish, str) else None,
        choice.get("logprobs"),
        choice.get("error"),
        choice.get("text"),
    )


def _message_of(message: Any) -> CompletionMessage | None:
    if not isinstance(message, dict):
        return None
    content = message.get("content")
    plain = CompletionMessage(
        _text_of(content),
        _text_of(message.get("refusal")),
        _list_of(message.get("annotations")),
        *(message.get(name) for name in _MORE),
    )
    return with_parts(plain, _spoken_in(content)) if isinstance(content, list) else plain


def with_parts(message: CompletionMessage, spoken: Iterable[str | dict[str, Any]]) -> CompletionMessageOfParts:
    return CompletionMessageOfParts(
        **{name: getattr(message, name) for name in message.__struct_fields__}, spoken=tuple(spoken)
    )


def _spoken_in(content: list[Any]) -> Iterator[str | dict[str, Any]]:
    for part in content:
        if isinstance(part, dict):
            text = part.get("text")
            yield text if isinstance(text, str) else part


def _list_of(value: Any) -> list[Any] | None:
    return value if isinstance(value, list) else None


def _text_of(value: Any) -> str | None:
    """Returns a text, or the joined texts of a list of parts, without thoughts; None if there is none."""
    if isinstance(value, list):
        parts = [part.get("text") for part in value if isinstance(part, dict)]
        texts = [part for part in parts if isinstance(part, str)]
        return "".join(texts) if texts else None
    return value if isinstance(value, str) else None


def _usage_of(usage: dict[str, Any]) -> RawUsage:
    details, input_details = usage.get("completion_tokens_details"), usage.get("prompt_tokens_details")
    return RawUsage(
        count_in(usage, "prompt_tokens"),
        count_in(usage, "completion_tokens"),
        count_in(usage, "total_tokens"),
        OutputDetails(count_in(details, "reasoning_tokens")),
        InputDetails(count_in(input_details, "cached_tokens"), count_in(input_details, "cache_write_tokens")),
        count_in(usage, "prompt_cache_hit_tokens"),
        count_in(usage, "num_cached_tokens"),
        *(usage.get(name) for name in ("cost", "is_byok", "cost_details")),
    )
