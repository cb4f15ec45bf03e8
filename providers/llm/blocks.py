"""Shared reading and writing of the protocols whose turns are lists of blocks: Anthropic's, Google's and Amazon's.

In these a tool's arguments are an object, and results of tools stand in a user's turn. Pure. Writing raises EncodeError
for what a protocol can't express; reading never raises.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any, ClassVar, Protocol

import orjson
from msgspec import Struct

from ...engine.call import Call, Citation, Message, Reply, TokenLogprob, Usage
from ...engine.content import Image, Native, Part, Tool, ToolCall, ToolResult, unmarked
from ...engine.endpoint import EncodeError, Fault, Response
from .answer_values import as_object, each_once
from .faults import broken_answer, empty_answer
from .protocol import as_it_stands, schema_in
from .repair import mended

_DATA = re.compile(r"data:([^;,]+)(?:;[^;,]*)*;base64,(.*)", re.DOTALL | re.IGNORECASE)
_EXCERPT_MAX = 60
# The families' names in messages.
_FAMILIES = {
    "openai": "chat completions",
    "openai-responses": "OpenAI Responses",
    "anthropic": "Anthropic's words",
    "gemini": "Gemini's words",
    "bedrock": "Bedrock's words",
}
SYSTEM = ("system", "developer")


# --- writing ---


class PromptTurn(Struct):
    """One turn as a protocol writes it. `content` is a text only where the call has a text; the first `results` entries
    of a list are results of tools."""

    role: str
    content: str | list[Any]
    results: int = 0

    @property
    def says_something(self) -> bool:
        return bool(self.content.strip() if isinstance(self.content, str) else self.content)

    def blocks(self, block_of: Callable[[str], Any]) -> list[Any]:
        """Returns the content as a list, in which `block_of` writes a text."""
        return [block_of(self.content)] if isinstance(self.content, str) else self.content


def turn_of(
    call: Call, message: Message, block: Callable[[Call, Part], Any], own_result: str, whose: str
) -> PromptTurn:
    """Returns the turn of a message, each of its parts written by `block`. Results of tools stand in a turn of the
    user, where they go first, and blank texts are left out, since providers refuse anything else. `own_result` is the
    field or the type that marks a native part as a result, `whose` the family in the message of EncodeError, which a
    system prompt of other parts than texts raises."""
    role = "system" if message.role in SYSTEM else message.role
    if isinstance(message.content, str):
        return PromptTurn(role, message.content)
    if role == "system":
        for part in map(unmarked, message.content):
            if not isinstance(part, str | Native):
                raise unsayable(call, part, f"a system prompt of {whose}")
    role = "user" if role == "tool" else role
    filled = [part for part in message.content if not isinstance(part, str) or part.strip()]
    if not filled:
        return PromptTurn(role, "")
    if role != "user":
        return PromptTurn(role, [block(call, part) for part in filled])
    results = [part for part in filled if _is_result(part, own_result)]
    others = [part for part in filled if not _is_result(part, own_result)]
    return PromptTurn(role, [block(call, part) for part in (*results, *others)], len(results))


def _is_result(part: Part, own_result: str) -> bool:
    under = unmarked(part)
    if isinstance(under, Native):
        return own_result in under.value or under.value.get("type") == own_result
    return isinstance(under, ToolResult)


def together(turns: Sequence[PromptTurn], block_of: Callable[[str], Any], *, are_all: bool = False) -> list[PromptTurn]:
    """Returns the turns, where neighbours of the user are joined if one holds results of tools; with `are_all`,
    neighbours of any one role, for providers that want roles to alternate. Empty turns are left out, unless all are."""
    merged: list[PromptTurn] = []
    for turn in [turn for turn in turns if turn.says_something] or turns:
        last = merged[-1] if merged else None
        if last is None or last.role != turn.role:
            merged.append(turn)
        elif are_all or (turn.role == "user" and (last.results or turn.results)):
            merged[-1] = _joined(last, turn, block_of)
        else:
            merged.append(turn)
    return merged


def _joined(one: PromptTurn, other: PromptTurn, block_of: Callable[[str], Any]) -> PromptTurn:
    first, second = (turn.blocks(block_of) for turn in (one, other))
    results = first[: one.results] + second[: other.results]
    return PromptTurn(one.role, results + first[one.results :] + second[other.results :], len(results))


def own_value(call: Call, part: Native, family: str) -> Mapping[str, Any]:
    """Returns the value of a native part of this family; raises EncodeError for another family's."""
    if part.protocol != family:
        words = _FAMILIES.get(family, family)
        raise EncodeError(
            f"the call to {call.model}: a part of {part.protocol}'s own can't be said in {words}: leave it out"
        )
    return part.value


def own_json(call: Call, part: Native, family: str, name: str = "a native part") -> orjson.Fragment:
    """Returns the same as JSON; `name` is the part's in an error."""
    return as_it_stands(call, name, own_value(call, part, family))


def beside(tool_call: ToolCall, family: str) -> Mapping[str, Any]:
    """Returns the fields beside a tool call if they are this family's own, else an empty mapping."""
    return tool_call.native.value if tool_call.native is not None and tool_call.native.protocol == family else {}


def arguments_in(call: Call, tool_call: ToolCall) -> orjson.Fragment:
    """Returns a tool call's arguments as JSON; raises EncodeError if they are no JSON object."""
    text = tool_call.arguments.strip() or "{}"
    if object_in(text) is None:
        excerpt = text if len(text) <= _EXCERPT_MAX else f"{text[: _EXCERPT_MAX - 1]}…"
        raise EncodeError(
            f"the call to {call.model}: the arguments of {tool_call.name} must be one JSON object; came "
            f"{excerpt!r}: correct them"
        )
    return orjson.Fragment(text)


def object_in(text: str | bytes) -> dict[str, Any] | None:
    """Returns the JSON object in a text; None if it is no JSON, or none of an object."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


def data_of(call: Call, image: Image) -> tuple[str, str] | None:
    """Returns the media type and the base64 of an image in a `data:` address; None for any other address. Raises
    EncodeError if the `data:` address is not base64."""
    if image.url[:5].lower() != "data:":
        return None
    match = _DATA.fullmatch(image.url)
    if match is None:
        raise EncodeError(f"the call to {call.model}: an image that is sent along must be data:image/…;base64,…")
    kind = match[1].lower()
    return ("image/jpeg" if kind == "image/jpg" else kind), match[2]


def unsayable(call: Call, part: Part | Tool, where: str) -> EncodeError:
    kind = {"Image": "an image", "ToolCall": "a tool call", "ToolResult": "a tool's result"}[type(part).__name__]
    return EncodeError(f"the call to {call.model}: {kind} can't stand in {where}")


def schema_of_tool(call: Call, tool: Tool) -> Any:
    """Returns the schema of a tool's arguments, for protocols that require one; a tool without arguments has an empty
    object."""
    return schema_in(call, tool, "of").get("of", {"properties": {}, "type": "object"})


def fields_of_tools(call: Call) -> tuple[str, ...]:
    """Returns the names of fields that `extra` may not set, because the call itself sets tools or their choice."""
    has_choice = call.tool_choice is not None or call.parallel_tools is not None
    return (("tools",) if call.tools else ()) + (("tool_choice",) if has_choice else ())


def check_parallel_tools(call: Call, words: str) -> None:
    """Raises EncodeError if the call wants one tool call at a time, which this family can't be asked for: without the
    option, a client that reads one call might get two."""
    if call.parallel_tools is False and call.tools and call.tool_choice != "none":
        raise EncodeError(
            f"{call.model}: {words} has no way to be asked for one tool call at a time, and may answer with several: "
            "leave parallel_tool_calls (disable_parallel_tool_use, parallel_tools) out and take all that come, or "
            "choose another model"
        )


# --- reading ---


class AnswerBlock(Protocol):
    """A block of an answer, as far as it was received."""

    def part(self) -> Part | None: ...


class GrowingBlock(AnswerBlock, Protocol):
    """A block of a streamed answer, whose pieces it collects."""

    @property
    def is_call(self) -> bool: ...

    def take(self, delta: dict[str, Any]) -> None: ...


class BlockReader:
    """The builder of a reply from an answer's blocks, whole or in events. `stop` is the provider's own stop reason;
    `is_said`: the answer holds anything but thoughts, even an empty text; `explanation`: why it was refused."""

    # The stop reasons with those of a reply, those of an answer that the model did not bring to an end, and those of an
    # answer that can't be empty.
    finishes: ClassVar[Mapping[str, str]]
    broken: ClassVar[tuple[str, ...]] = ()
    full: ClassVar[tuple[str, ...]]
    # The protocol's words for a stop reason.
    reason: ClassVar[str] = "stop reason"

    def __init__(self) -> None:
        self.stop: str | None = None
        self.is_said = False
        self.explanation = ""
        self.logprobs: tuple[TokenLogprob, ...] | None = None
        # The texts, each in its pieces, and other blocks, in the order in which they were received.
        self._contents: list[list[str] | AnswerBlock] = []
        self._open: dict[int | None, GrowingBlock] = {}
        self._citations: list[Citation | None] = []

    @property
    def usage(self) -> Usage | None:
        """The tokens, None if unknown. The input includes tokens that the provider's cache has read or written, which
        some protocols count apart."""
        raise NotImplementedError

    @property
    def origin(self) -> dict[str, Any]:
        """The fields of a reply that state who answered."""
        raise NotImplementedError

    def say(self, text: Any) -> None:
        self.is_said = True
        if not isinstance(text, str):
            return
        if self._contents and isinstance(self._contents[-1], list):
            self._contents[-1].append(text)
        else:
            self._contents.append([text])

    def begin(self, block: GrowingBlock, index: int | None = None) -> None:
        self._open[index] = block
        self._contents.append(block)
        self.is_said = self.is_said or block.is_call

    def result(self, response: Response, raw: bytes | None) -> Reply | Fault:
        """Returns the reply or the fault of the whole answer; `raw`: its bytes, if they were no sound JSON."""
        stop = self.stop
        if stop is None:
            return broken_answer(f"{self.reason} is missing")
        if stop in self.broken:
            return broken_answer(f"{self.reason} is `{stop}`")
        if stop in self.full and not self.is_said:
            return empty_answer("a message that says nothing", self.usage)
        contents = [mended("".join(one)) if isinstance(one, list) else one.part() for one in self._contents]
        texts = [one for one in contents if isinstance(one, str)]
        finish = self.finishes.get(stop, mended(stop))
        if finish == "stop" and any(isinstance(one, ToolCall) for one in contents):
            finish = "tool_calls"
        is_refused = finish == "content_filter"
        return Reply(
            "".join(texts) or (mended(self.explanation) if is_refused else ""),
            self.usage,
            finish,
            is_refused,
            sha256(response.body).hexdigest(),
            raw,
            self.logprobs,
            each_once(self._citations),
            # None for plain text alone.
            parts=tuple(filter(None, contents)) if len(texts) + contents.count(None) < len(contents) else (),
            **self.origin,
        )


def call_of(family: str, fields: Mapping[str, Any], id_name: str, input_json: str) -> ToolCall | None:
    """Returns the tool call in a block; `input_json` are its arguments if they were sent in pieces. None without an id
    or a name."""
    arguments = mended(input_json) or written(as_object(fields.get("input")))
    call_id, name = fields.get(id_name), fields.get("name")
    if arguments is None or not isinstance(call_id, str) or not isinstance(name, str):
        return None
    known = (id_name, "input", "name")
    rest = {name: value for name, value in fields.items() if name not in known and value is not None}
    return ToolCall(mended(call_id), mended(name), arguments, native_of(family, rest) if rest else None)


def written(value: Any) -> str | None:
    """Returns a value as a JSON text; None if it is nested too deeply to be written again."""
    try:
        return orjson.dumps(value).decode()
    except (orjson.JSONEncodeError, TypeError):
        try:
            return mended(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
        except (ValueError, RecursionError):
            return None


def native_of(family: str, value: Mapping[str, Any]) -> Native | None:
    """Returns a value as a native part, with texts mended that UTF-8 can't hold; None if it can't be written as
    JSON."""
    try:
        orjson.dumps(value)
    except (orjson.JSONEncodeError, TypeError):
        text = written(value)
        mended_value = None if text is None else object_in(text)
        return None if mended_value is None else Native(family, mended_value)
    return Native(family, value)
