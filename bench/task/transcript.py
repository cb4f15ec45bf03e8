"""The transcript of an item: its messages, its calls and what its tools gave, as the record holds them.

The messages are a tree: each names the one after which it stands, so that a call, which repeats the conversation before
it, needs to name its last message alone. Knows no page.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from operator import eq
from typing import Any

from msgspec import Struct

from ...engine.call import Call, Message, Outcome, Usage
from ...engine.content import ToolCall, ToolResult
from ...format import decimal_text, dollars
from .messages import message_of_reply
from .questions import content_json


class TranscriptMessage(Struct, frozen=True, omit_defaults=True):
    """One message."""

    role: str
    """`system`, `user`, `assistant` or `tool`."""
    content: str | list[Any]
    """Its text, or its parts; an image is described by its digest."""
    after: int | None = None
    """The place of the message before it in its conversation; None: it is the first."""

    def as_text(self) -> str:
        """Returns it with its role, as a reader reads it."""
        return f"{self.role}: {_text(self.content)}"


class TranscriptCall(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call of the item, to a model or a tool."""

    model: str
    """Who was asked: a model, or a tool by its name."""
    role: str = "subject"
    """`subject`: the model under test; `tool`; otherwise the name that the benchmark gives to the model."""
    input: int | None = None
    """The place of the last message that was sent; those before it are found by their `after`. None: to a tool."""
    arguments: str = ""
    """Of a tool: the arguments, JSON as the model wrote it."""
    reply: int | None = None
    """The place of the answer, or of a tool's result, among the messages; None: there is none."""
    status: str = "ok"
    """`ok`, `refused`, the kind of the failure, `failed` of a tool, or `unanswered`: the item ended before."""
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
    """Whether the answer is from the cache; of a tool: it was not carried out again."""
    seconds: float | None = None
    """How long a tool took; None: not measured."""
    served: str | None = None
    """The name of the model that answered, as the server states it."""

    def facts(self) -> str:
        """Returns who was asked and what it took, in one line."""
        usage = self.usage
        facts = (
            f"tool {self.model} with {self.arguments}" if self.role == "tool" else self.model,
            "" if self.role in ("subject", "tool") else f"as {self.role}",
            "" if self.served is None else f"served as {self.served}",
            "" if usage is None else f"{decimal_text(usage.input)} tokens in, {decimal_text(usage.output)} out",
            "" if self.cost is None else dollars(self.cost),
            "" if self.seconds is None else f"{self.seconds:.2f} s",
            "from the cache" if self.cached else "",
            "cut off at max_tokens" if self.truncated else "",
            "" if self.status == "ok" else self.status if self.error is None else f"{self.status}: {self.error}",
        )
        return ", ".join(filter(None, facts))


class Transcript(Struct, frozen=True, kw_only=True):
    """Everything that was said and done in an item. As a text (`str`) it is what a reader reads."""

    messages: tuple[TranscriptMessage, ...] = ()
    """Every different message, in the order in which it first stood in a call."""
    calls: tuple[TranscriptCall, ...] = ()
    """The calls, in the order in which they were begun; tools after the reply that asks for them."""

    def __str__(self) -> str:
        return "\n\n".join(self._lines())

    def conversation(self) -> str:
        """Returns what the model under test read before its last answer, for people who judge that."""
        path = self._path(self._answered[-1].input) if self._answered else ()
        return "\n\n".join(self.messages[place].as_text() for place in path)

    def talk(self) -> str:
        """Returns what the model under test read and said, without figures of its calls, for a judge."""
        return "\n\n".join(self._lines(for_judges=True))

    def last_answer(self) -> str:
        """Returns the text of the last answer of the model under test; empty: there is none."""
        return _text(self.messages[self._answered[-1].reply or 0].content) if self._answered else ""

    def question(self) -> str:
        """Returns the first message that is no system prompt."""
        return next((_text(message.content) for message in self.messages if message.role != "system"), "")

    def wrong_in(self, keys: Sequence[str]) -> str | None:
        """Returns what contradicts itself in the transcript, or the cache keys of the item's record; None: nothing."""
        count = len(self.messages)
        before = [(place, count) for call in self.calls for place in (call.input, call.reply)]
        before += [(message.after, place) for place, message in enumerate(self.messages)]
        if not all(0 <= place < end for place, end in before if place is not None):
            return "a call of its transcript has messages that are not in it"
        if not {call.key for call in self.calls if call.key} <= set(keys):
            return "the calls of its transcript are not those of its keys"
        return None

    def _lines(self, *, for_judges: bool = False) -> Iterator[str]:
        """Yields the conversations as texts. `for_judges`: only messages, of the model under test alone."""
        for entry, role in self.entries():
            if isinstance(entry, TranscriptMessage):
                if not for_judges or role == "subject":
                    yield entry.as_text()
            elif not for_judges:
                yield f"[{entry if isinstance(entry, str) else entry.facts()}]"

    def entries(self) -> Iterator[tuple[TranscriptMessage | TranscriptCall | str, str]]:
        """Yields the conversations, each entry with the role of the model that is asked: before each call the messages
        that are new to its model, then a note on the call and its answer. A call of a tool is an entry by itself."""
        heard: dict[str, list[int]] = {}
        for number, call in enumerate(self.calls, 1):
            if call.role == "tool":
                yield call, call.role
                continue
            sent, before = self._path(call.input), heard.get(call.role, [])
            # In a tree, these are the first ones.
            same = sum(map(eq, sent, before))
            if same < len(before):
                yield f"call {number} begins with {same:,} messages of the one before", call.role
            yield from ((self.messages[place], call.role) for place in sent[same:])
            yield f"call {number}: {call.facts()}", call.role
            if call.reply is not None:
                yield self.messages[call.reply], call.role
                sent.append(call.reply)
            heard[call.role] = sent

    @property
    def _answered(self) -> list[TranscriptCall]:
        return [call for call in self.calls if call.role == "subject" and call.reply is not None]

    def _path(self, place: int | None) -> list[int]:
        """Returns the places of the messages up to this one."""
        path: list[int] = []
        # A forged one may name a later message.
        while place is not None and (not path or place < path[-1]):
            path.append(place)
            place = self.messages[place].after
        return path[::-1]


# Stands for the outcome of a call that has none.
_UNANSWERED = Outcome(Call("any/model", "?"))


class AskedCall(Struct):
    """A call of an item that runs: to a model, or by a model to a tool, with its outcome, and a tool's result."""

    call: Call | ToolCall
    role: str = "tool"
    parameters: dict[str, Any] = {}
    sample: int | None = None
    outcome: Outcome | None = None
    result: Message | None = None

    @property
    def status(self) -> str:
        """As in a TranscriptCall."""
        if self.result is not None:
            is_error = any(isinstance(part, ToolResult) and part.is_error for part in self.result.content)
            return "failed" if is_error else "ok"
        return "unanswered" if self.outcome is None else self.outcome.status


def transcript_of(calls: Iterable[AskedCall]) -> Transcript:
    """Returns the transcript of an item's calls, in the order in which they were begun."""
    messages: list[TranscriptMessage] = []
    places: dict[tuple[int | None, str, str | int], int] = {}
    # Where the next result of a reply that asks for tools belongs, by the reply's place, and these by their requests.
    ends: dict[int | None, int | None] = {}
    asking: dict[int, int | None] = {}

    def put(message: Message | None, after: int | None) -> int | None:
        """Returns the place of a message, which most calls of a conversation repeat: only a new one is written."""
        if message is None:
            return None
        content = message.content
        # The calls hold the parts, so that no others get their id.
        name = after, message.role, content if isinstance(content, str) else id(content)
        if name not in places:
            places[name] = len(messages)
            messages.append(TranscriptMessage(message.role, content_json(message), after))
        return places[name]

    written = []
    # Of the call before, which most calls go on from: the messages, and the place of the last one.
    before: tuple[Message, ...] = ()
    sent: int | None = None
    for each in calls:
        call, outcome, kind = each.call, each.outcome or _UNANSWERED, dict[str, Any]()
        reply = outcome.reply
        if isinstance(call, ToolCall):
            request = asking.get(id(call))
            place = put(each.result, ends.get(request, request))
            ends[request] = request if place is None else place
            kind |= {"model": call.name, "arguments": call.arguments}
            if outcome.latency_ms is not None and not outcome.cached:
                kind["seconds"] = round(outcome.latency_ms / 1000, 3)
        else:
            turns = tuple(call.messages())
            if turns[: len(before)] != before:
                before, sent = (), None
            for message in turns[len(before) :]:
                sent = put(message, sent)
            before = turns
            place = put(None if reply is None else message_of_reply(reply), sent)
            asking |= dict.fromkeys(map(id, () if reply is None else reply.tool_calls), place)
            kind |= {"model": call.model, "input": sent}
            kind["tools"] = tuple(getattr(tool, "name", "native") for tool in call.tools or ())
        made = TranscriptCall(
            role=each.role,
            reply=place,
            status=each.status,
            error=None if outcome.failure is None else outcome.failure.detail,
            truncated=reply is not None and reply.truncated,
            parameters=each.parameters,
            sample=each.sample,
            key=outcome.key,
            usage=None if reply is None else reply.usage,
            cost=outcome.cost,
            cached=outcome.cached,
            served=None if reply is None else reply.served,
            **kind,
        )
        written.append(made)
    return Transcript(messages=tuple(messages), calls=tuple(written))


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
