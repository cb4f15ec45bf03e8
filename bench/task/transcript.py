"""The transcript of an item: its messages, its calls and what its tools gave, as the record holds them.

Each different message stands there once, since every call of a conversation repeats those before it. Knows no page.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct, structs

from ...engine.call import Call, Message, Outcome, Usage
from ...engine.content import ToolCall, ToolResult
from ...format import decimal_text, dollars
from .messages import message_of_reply
from .questions import content_json
from .rows import canonical


class Turn(Struct, frozen=True):
    """One message."""

    role: str
    """`system`, `user`, `assistant` or `tool`."""
    content: str | list[Any]
    """Its text, or its parts; an image is described by its digest."""


class Step(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call of the item, in the order in which they were begun."""

    model: str
    """Who was asked."""
    input: tuple[tuple[int, int], ...]
    """The messages that were sent: ranges of places among the transcript's turns, each without its end."""
    role: str = "subject"
    """`subject`: the model under test; otherwise the name that the benchmark gives to the model."""
    reply: int | None = None
    """The place of the answer among the turns; None: there is none."""
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


class ToolUse(Struct, frozen=True, kw_only=True, omit_defaults=True):
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
    """The place of the result among the turns."""
    is_error: bool = False
    """Whether the tool failed."""
    replayed: bool = False
    """Whether the result is one that was kept, so that the tool was not carried out again."""
    seconds: float | None = None
    """How long it took; None: not measured."""


class Transcript(Struct, frozen=True, kw_only=True):
    """Everything that was said and done in an item. As a text (`str`) it is what a reader reads."""

    turns: tuple[Turn, ...] = ()
    """Every different message, in the order in which it first stood in a call."""
    steps: tuple[Step, ...] = ()
    """The calls."""
    tools: tuple[ToolUse, ...] = ()
    """The tools that were carried out."""

    def __str__(self) -> str:
        return "\n\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        """Yields the conversation: before each call the messages that are new in it, then the call and its answer."""
        before: list[int] = []
        for number, step in enumerate(self.steps, 1):
            sent = _places(step)
            same = _common(before, sent)
            if before and same < len(before):
                yield f"[call {number} goes on after {same:,} messages of the one before]"
            yield from (self._said(place) for place in sent[same:])
            yield f"[{_facts(number, step)}]"
            if step.reply is not None:
                yield self._said(step.reply)
                sent.append(step.reply)
            before = sent
            yield from (_use(use) for use in self.tools if use.after == number)

    def conversation(self) -> str:
        """Returns what the model under test read before its last answer, for people who judge that."""
        asked = [step for step in self.steps if step.role == "subject" and step.reply is not None]
        return "\n\n".join(map(self._said, _places(asked[-1]))) if asked else ""

    def question(self) -> str:
        """Returns the first message that is no system prompt."""
        turns = (turn for turn in self.turns if turn.role != "system")
        return next((_text(turn.content) for turn in turns), "")

    def wrong_in(self, keys: Sequence[str]) -> str | None:
        """Returns what contradicts itself in the transcript, or the cache keys of the item's record; None: nothing."""
        places = [
            *(each for step in self.steps for begin, end in step.input for each in (begin, end - 1)),
            *(step.reply for step in self.steps if step.reply is not None),
            *(use.result for use in self.tools),
        ]
        if not all(0 <= place < len(self.turns) for place in places):
            return "a call of its transcript has messages that are not in it"
        if not {step.key for step in self.steps if step.key} <= set(keys):
            return "the calls of its transcript are not those of its keys"
        return None

    def _said(self, place: int) -> str:
        turn = self.turns[place]
        return f"{turn.role}: {_text(turn.content)}"


class TranscriptWriter:
    """Writes a transcript while the item runs."""

    def __init__(self) -> None:
        self._places: dict[bytes, int] = {}
        self._turns: list[Turn] = []
        self._steps: list[Step] = []
        self._tools: list[ToolUse] = []

    def begin(self, call: Call, role: str, parameters: dict[str, Any], sample: int | None) -> int:
        """Notes a call that is sent and returns its place among the steps."""
        self._steps.append(
            Step(
                model=call.model,
                role=role,
                input=tuple(_ranges(self._place(turn) for each in call.messages() for turn in _turns(each))),
                status="unanswered",
                parameters=parameters,
                tools=tuple(str(getattr(tool, "name", "native")) for tool in call.tools or ()),
                sample=sample,
            )
        )
        return len(self._steps) - 1

    def end(self, at: int, outcome: Outcome) -> None:
        """Notes how a call ended."""
        reply, failure = outcome.reply, outcome.failure
        self._steps[at] = structs.replace(
            self._steps[at],
            reply=None if reply is None else self._place(_turn(message_of_reply(reply))),
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
            ToolUse(
                after=len(self._steps),
                id=call.id,
                name=call.name,
                arguments=call.arguments,
                result=self._place(_turn(Message("tool", (result,)))),
                is_error=result.is_error,
                replayed=replayed,
                seconds=seconds,
            )
        )

    def written(self) -> Transcript:
        """Returns the transcript so far."""
        return Transcript(turns=tuple(self._turns), steps=tuple(self._steps), tools=tuple(self._tools))

    def _place(self, turn: Turn) -> int:
        # Equal messages are one turn.
        name = canonical([turn.role, turn.content])
        if name not in self._places:
            self._places[name] = len(self._turns)
            self._turns.append(turn)
        return self._places[name]


def _turn(message: Message) -> Turn:
    return Turn(message.role, content_json(message))


def _turns(message: Message) -> Iterator[Turn]:
    """Yields a message as turns: several results of tools in one message are each a turn."""
    parts = message.content
    if message.role == "tool" and isinstance(parts, tuple):
        yield from (_turn(Message("tool", (part,))) for part in parts)
    else:
        yield _turn(message)


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


def _places(step: Step) -> list[int]:
    return [place for begin, end in step.input for place in range(begin, end)]


def _common(before: Sequence[int], sent: Sequence[int]) -> int:
    """Returns how many messages two calls have in common from the beginning."""
    same = 0
    for one, other in zip(before, sent, strict=False):
        if one != other:
            break
        same += 1
    return same


def _facts(number: int, step: Step) -> str:
    usage = step.usage
    facts = [
        f"call {number}: {step.model}",
        *([] if step.role == "subject" else [f"as {step.role}"]),
        *([] if step.served in (None, step.model) else [f"served as {step.served}"]),
        *([] if usage is None else [f"{decimal_text(usage.input)} tokens in, {decimal_text(usage.output)} out"]),
        *([] if step.cost is None else [dollars(step.cost)]),
        *(["from the cache"] if step.cached else []),
        *(["cut off at max_tokens"] if step.truncated else []),
        *([] if step.status == "ok" else [step.status if step.error is None else f"{step.status}: {step.error}"]),
    ]
    return ", ".join(facts)


def _use(use: ToolUse) -> str:
    facts = [
        f"tool {use.name} with {use.arguments}",
        *([] if use.seconds is None else [f"{use.seconds:.2f} s"]),
        *(["failed"] if use.is_error else []),
        *(["its kept result"] if use.replayed else []),
    ]
    return f"[{', '.join(facts)}]"


def _text(content: str | list[Any]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part if isinstance(part, str) else json.dumps(part, ensure_ascii=False) for part in content)
