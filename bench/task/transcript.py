"""The transcript of an item: its messages, its calls and what its tools gave, as the record holds them.

Each different message stands there once, since every call of a conversation repeats those before it. Knows no page.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct, structs

from ...engine.call import Call, Message, Outcome, Usage
from ...engine.content import Content, ToolCall, ToolResult
from ...format import decimal_text, dollars
from .messages import message_of_reply
from .questions import content_json
from .rows import canonical


class TranscriptMessage(Struct, frozen=True):
    """One message."""

    role: str
    """`system`, `user`, `assistant` or `tool`."""
    content: str | list[Any]
    """Its text, or its parts; an image is described by its digest."""


class TranscriptCall(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call of the item, in the order in which they were begun."""

    model: str
    """Who was asked."""
    input: tuple[tuple[int, int], ...]
    """The messages that were sent: ranges of places among the transcript's messages, each without its end."""
    role: str = "subject"
    """`subject`: the model under test; otherwise the name that the benchmark gives to the model."""
    reply: int | None = None
    """The place of the answer among the messages; None: there is none."""
    status: str = "ok"
    """`ok`, `refused`, the kind of the failure, or `unanswered`: the item ended before."""
    error: str | None = None
    """In a failure: what happened."""
    truncated: bool = False
    """Whether the answer was cut off at its limit of tokens."""
    parameters: dict[str, Any] = {}
    """The parameters that the author gave to this call."""
    tools: tuple[str, ...] = ()
    """The names of the tools that the model was offered."""
    sample: int | None = None
    """The number of the sample, where the author gave one."""
    key: str = ""
    """The key under which the cache has the answer."""
    usage: Usage | None = None
    """The tokens; None: not reported."""
    cost: float | None = None
    """The dollars that it cost; None: not known."""
    cached: bool = False
    """Whether the answer is from the cache."""
    served: str | None = None
    """The name of the model that answered, as the server states it."""

    def places(self) -> list[int]:
        """Returns the places of the messages that were sent."""
        return [place for begin, end in self.input for place in range(begin, end)]

    def facts(self) -> str:
        """Returns who was asked and what it took, in one line."""
        usage = self.usage
        facts = [
            self.model,
            *([] if self.role == "subject" else [f"as {self.role}"]),
            *([] if self.served is None else [f"served as {self.served}"]),
            *([] if usage is None else [f"{decimal_text(usage.input)} tokens in, {decimal_text(usage.output)} out"]),
            *([] if self.cost is None else [dollars(self.cost)]),
            *(["from the cache"] if self.cached else []),
            *(["cut off at max_tokens"] if self.truncated else []),
            *([] if self.status == "ok" else [self.status if self.error is None else f"{self.status}: {self.error}"]),
        ]
        return ", ".join(facts)


class TranscriptTool(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One tool that was carried out."""

    after: int
    """The number of calls that were begun before."""
    id: str
    """The id of the model's request."""
    name: str
    """The tool."""
    arguments: str
    """The arguments, JSON as the model wrote it."""
    result: int
    """The place of the result among the messages."""
    is_error: bool = False
    """Whether the tool failed."""
    replayed: bool = False
    """Whether the result is one that was kept, so that the tool was not carried out again."""
    seconds: float | None = None
    """How long it took; None: not measured."""

    def facts(self) -> str:
        """Returns what was carried out, in one line."""
        facts = [
            f"tool {self.name} with {self.arguments}",
            *([] if self.seconds is None else [f"{self.seconds:.2f} s"]),
            *(["failed"] if self.is_error else []),
            *(["its kept result"] if self.replayed else []),
        ]
        return ", ".join(facts)


class Transcript(Struct, frozen=True, kw_only=True):
    """Everything that was said and done in an item. As a text (`str`) it is what a reader reads."""

    messages: tuple[TranscriptMessage, ...] = ()
    """Every different message, in the order in which it first stood in a call."""
    calls: tuple[TranscriptCall, ...] = ()
    """The calls."""
    tools: tuple[TranscriptTool, ...] = ()
    """The tools that were carried out."""

    def __str__(self) -> str:
        return "\n\n".join(self._lines())

    def conversation(self) -> str:
        """Returns what the model under test read before its last answer, for people who judge that."""
        asked = [call for call in self.calls if call.role == "subject" and call.reply is not None]
        return "\n\n".join(map(self._said, asked[-1].places())) if asked else ""

    def talk(self) -> str:
        """Returns what the model under test read and said, without figures of its calls, for a judge."""
        return "\n\n".join(self._lines(for_judges=True))

    def last_answer(self) -> str:
        """Returns the text of the last answer of the model under test; empty: there is none."""
        said = [call.reply for call in self.calls if call.role == "subject" and call.reply is not None]
        return _text(self.messages[said[-1]].content) if said else ""

    def question(self) -> str:
        """Returns the first message that is no system prompt."""
        return next((_text(message.content) for message in self.messages if message.role != "system"), "")

    def wrong_in(self, keys: Sequence[str]) -> str | None:
        """Returns what contradicts itself in the transcript, or the cache keys of the item's record; None: nothing."""
        places = [
            *(place for call in self.calls for begin, end in call.input for place in (begin, end - 1)),
            *(call.reply for call in self.calls if call.reply is not None),
            *(tool.result for tool in self.tools),
        ]
        if not all(0 <= place < len(self.messages) for place in places):
            return "a call of its transcript has messages that are not in it"
        if not {call.key for call in self.calls if call.key} <= set(keys):
            return "the calls of its transcript are not those of its keys"
        return None

    def _lines(self, *, for_judges: bool = False) -> Iterator[str]:
        """Yields the conversations as texts. `for_judges`: only messages, of the model under test alone."""
        for entry in self.entries():
            match entry:
                case (TranscriptMessage() as message, role) if not for_judges or role == "subject":
                    yield f"{message.role}: {_text(message.content)}"
                case (str(note), _) if not for_judges:
                    yield f"[{note}]"
                case (TranscriptTool() as tool, _) if not for_judges:
                    yield f"[{tool.facts()}]"

    def entries(self) -> Iterator[tuple[TranscriptMessage | TranscriptTool | str, str]]:
        """Yields the conversations, each entry with the role of the model that is asked: before each call the messages
        that are new to its model, then a note on the call and its answer, then the tools that were carried out."""
        heard: dict[str, list[int]] = {}
        for number, call in enumerate(self.calls, 1):
            sent, before = call.places(), heard.get(call.role, [])
            same = next((at for at, (one, other) in enumerate(zip(before, sent, strict=False)) if one != other), None)
            same = min(len(before), len(sent)) if same is None else same
            if same < len(before):
                yield f"call {number} begins with {same:,} messages of the one before", call.role
            yield from ((self.messages[place], call.role) for place in sent[same:])
            yield f"call {number}: {call.facts()}", call.role
            if call.reply is not None:
                yield self.messages[call.reply], call.role
                sent.append(call.reply)
            heard[call.role] = sent
            yield from ((tool, call.role) for tool in self.tools if tool.after == number)

    def _said(self, place: int) -> str:
        message = self.messages[place]
        return f"{message.role}: {_text(message.content)}"


class TranscriptWriter:
    """Writes a transcript while the item runs."""

    def __init__(self) -> None:
        self._places: dict[bytes, int] = {}
        # By role and content; the content is held, so that no other object gets its id.
        self._seen: dict[tuple[str, int], tuple[Content, tuple[int, ...]]] = {}
        self._messages: list[TranscriptMessage] = []
        self._calls: list[TranscriptCall] = []
        self._tools: list[TranscriptTool] = []

    def begin(self, call: Call, role: str, parameters: dict[str, Any], sample: int | None) -> int:
        """Notes a call that is sent and returns its place among the calls."""
        self._calls.append(
            TranscriptCall(
                model=call.model,
                role=role,
                input=tuple(_ranges(place for message in call.messages() for place in self._places_of(message))),
                status="unanswered",
                parameters=parameters,
                tools=tuple(str(getattr(tool, "name", "native")) for tool in call.tools or ()),
                sample=sample,
            )
        )
        return len(self._calls) - 1

    def end(self, at: int, outcome: Outcome) -> None:
        """Notes how a call ended."""
        reply, failure = outcome.reply, outcome.failure
        self._calls[at] = structs.replace(
            self._calls[at],
            reply=None if reply is None else self._places_of(message_of_reply(reply))[0],
            status=outcome.status,
            error=None if failure is None else failure.detail,
            truncated=reply is not None and reply.truncated,
            key=outcome.key,
            usage=None if reply is None else reply.usage,
            cost=outcome.cost,
            cached=outcome.cached,
            served=None if reply is None else reply.served,
        )

    def add_tool(self, call: ToolCall, result: ToolResult, *, replayed: bool, seconds: float | None) -> None:
        """Notes a tool that was carried out."""
        self._tools.append(
            TranscriptTool(
                after=len(self._calls),
                id=call.id,
                name=call.name,
                arguments=call.arguments,
                result=self._place(_kept(Message("tool", (result,)))),
                is_error=result.is_error,
                replayed=replayed,
                seconds=seconds,
            )
        )

    @property
    def has_calls(self) -> bool:
        """Whether a call was sent."""
        return bool(self._calls)

    def written(self) -> Transcript:
        """Returns the transcript so far."""
        return Transcript(messages=tuple(self._messages), calls=tuple(self._calls), tools=tuple(self._tools))

    def _places_of(self, message: Message) -> tuple[int, ...]:
        """Returns the places of a message, which most calls of a conversation repeat: only a new one is written."""
        name = message.role, id(message.content)
        if name not in self._seen:
            self._seen[name] = message.content, tuple(map(self._place, _each_kept(message)))
        return self._seen[name][1]

    def _place(self, message: TranscriptMessage) -> int:
        # Equal messages stand there once.
        name = canonical([message.role, message.content])
        if name not in self._places:
            self._places[name] = len(self._messages)
            self._messages.append(message)
        return self._places[name]


def _kept(message: Message) -> TranscriptMessage:
    return TranscriptMessage(message.role, content_json(message))


def _each_kept(message: Message) -> Iterator[TranscriptMessage]:
    """Yields a message as it is kept: several results of tools as one message each."""
    parts = message.content
    if message.role == "tool" and isinstance(parts, tuple):
        yield from (_kept(Message("tool", (part,))) for part in parts)
    else:
        yield _kept(message)


def _ranges(places: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yields places as ranges, each without its end: those of a plain conversation are one."""
    begin = end = -1
    for place in places:
        if place != end:
            if end > begin:
                yield begin, end
            begin = place
        end = place + 1
    if end > begin:
        yield begin, end


def _text(content: str | list[Any]) -> str:
    return content if isinstance(content, str) else "\n".join(map(_part_text, content))


def _part_text(part: Any) -> str:
    match part:
        case str():
            return part
        case {"toolcall": {"name": name, "arguments": arguments}}:
            return f"(asks for the tool {name} with {arguments})"
        case {"toolresult": {"content": content}}:
            return _text(content)
    return json.dumps(part, ensure_ascii=False)
