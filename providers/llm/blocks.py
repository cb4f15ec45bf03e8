"""What turns and answers of Anthropic, Google and Amazon have in common: they are lists of blocks in which a tool's
arguments are an object, and the results of tools stand in a user's turn.

Pure. What can't be said is an EncodeError; reading is never an exception.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import orjson
from msgspec import Struct

from ...engine.call import Call
from ...engine.content import Image, Native, Part, Tool, ToolCall, ToolResult, unmarked
from ...engine.endpoint import EncodeError
from .protocol import as_it_stands
from .repair import mended

_DATA = re.compile(r"data:([^;,]+)(?:;[^;,]*)*;base64,(.*)", re.DOTALL | re.IGNORECASE)
_SAID_MAX = 60


# --- what is sent ---


class Turn(Struct):
    """`content` is a text only where it was one in the call. So many `results` of tools stand first in it."""

    role: str
    content: str | list[Any]
    results: int = 0

    @property
    def says_something(self) -> bool:
        return bool(self.content.strip() if isinstance(self.content, str) else self.content)


def turn_of(role: str, parts: Sequence[Part], block: Callable[[Part], Any], own_result: str) -> Turn:
    """Results of the user's tools go before what else is said: they are refused elsewhere. `own_result`: the name, or
    the type, that one has which is the family's own. A blank text is refused too, and says nothing."""
    said = [part for part in parts if not isinstance(part, str) or part.strip()]
    if not said:
        return Turn(role, "")
    if role != "user":
        return Turn(role, [block(part) for part in said])
    results = [part for part in said if _is_result(part, own_result)]
    others = [part for part in said if not _is_result(part, own_result)]
    return Turn(role, [block(part) for part in (*results, *others)], len(results))


def _is_result(part: Part, own_result: str) -> bool:
    under = unmarked(part)
    if isinstance(under, Native):
        return own_result in under.value or under.value.get("type") == own_result
    return isinstance(under, ToolResult)


def together(turns: Sequence[Turn], block_of: Callable[[str], Any], *, are_all: bool = False) -> list[Turn]:
    """The results of one turn's tools, and what the user says to them, are one turn; so are all turns of one role after
    each other for who wants them to alternate. Turns that say nothing are left out, if any says something."""
    said: list[Turn] = []
    for turn in [turn for turn in turns if turn.says_something] or turns:
        last = said[-1] if said else None
        is_one = (
            last is not None and last.role == turn.role and (are_all or (turn.role == "user" and _answer(last, turn)))
        )
        if last is not None and is_one:
            said[-1] = _joined(last, turn, block_of)
        else:
            said.append(turn)
    return said


def _answer(one: Turn, other: Turn) -> bool:
    return bool(one.results or other.results)


def _joined(one: Turn, other: Turn, block_of: Callable[[str], Any]) -> Turn:
    first, second = (_blocks(turn, block_of) for turn in (one, other))
    results = first[: one.results] + second[: other.results]
    return Turn(one.role, results + first[one.results :] + second[other.results :], len(results))


def _blocks(turn: Turn, block_of: Callable[[str], Any]) -> list[Any]:
    return [block_of(turn.content)] if isinstance(turn.content, str) else turn.content


def own(call: Call, part: Native, family: str, words: str) -> orjson.Fragment:
    """What stands in a native part of the family; another's can't be said."""
    if part.protocol != family:
        raise EncodeError(
            f"the call to {call.model}: a part of {part.protocol}'s own can't be said in {words}: leave it out"
        )
    return as_it_stands(call, "a native part", part.value)


def beside(asked: ToolCall, family: str) -> Mapping[str, Any]:
    """What the family says beside a tool call; what another does means nothing here."""
    return asked.native.value if asked.native is not None and asked.native.protocol == family else {}


def arguments_in(call: Call, asked: ToolCall) -> orjson.Fragment:
    """The object that a tool call's arguments are, to the letter."""
    text = asked.arguments.strip() or "{}"
    if object_in(text) is None:
        said = text if len(text) <= _SAID_MAX else f"{text[: _SAID_MAX - 1]}…"
        raise EncodeError(
            f"the call to {call.model}: the arguments of {asked.name} must be one JSON object; came {said!r}: mend them"
        )
    return orjson.Fragment(text)


def object_in(text: str) -> dict[str, Any] | None:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


def data_of(call: Call, image: Image) -> tuple[str, str] | None:
    """The media type and the base64 of an image that is sent along; None for an address."""
    if image.url[:5].lower() != "data:":
        return None
    found = _DATA.fullmatch(image.url)
    if found is None:
        raise EncodeError(f"the call to {call.model}: an image that is sent along must be data:image/…;base64,…")
    kind = found[1].lower()
    return ("image/jpeg" if kind == "image/jpg" else kind), found[2]


def unsayable(call: Call, part: Part, where: str) -> EncodeError:
    kind = {"Image": "an image", "ToolCall": "a tool call", "ToolResult": "a tool's result"}[type(part).__name__]
    return EncodeError(f"the call to {call.model}: {kind} can't stand in {where}")


def schema_of_tool(call: Call, tool: Tool) -> Any:
    """Where it must be said: that of a tool without arguments takes none."""
    if tool.parameters is None:
        return {"properties": {}, "type": "object"}
    return as_it_stands(call, f"the parameters of tool {tool.name}", tool.parameters)


def said_twice(call: Call) -> tuple[str, ...]:
    """What extra can't set, since the call says it itself: under the names that all three families have for it."""
    has_choice = call.tool_choice is not None or call.parallel_tools is not None
    return (("tools",) if call.tools else ()) + (("tool_choice",) if has_choice else ())


def refuse_one_at_a_time(call: Call, words: str) -> None:
    """That tools may be asked for together is how it is anyway, and where none may be asked for nothing is to be said.
    To leave it out would bring two calls to a client that looks at one."""
    if call.parallel_tools is False and call.tools and call.tool_choice != "none":
        raise EncodeError(
            f"{call.model}: {words} has no way to be asked for one tool call at a time, and may answer with several: "
            "leave parallel_tool_calls (disable_parallel_tool_use, parallel_tools) out and take all that come, or "
            "choose another model"
        )


# --- what is read ---


class Block(Protocol):
    """A block of an answer, however far it has come."""

    def part(self) -> Part | None: ...


class Spoken:
    """What an answer says, in the order in which it came."""

    def __init__(self) -> None:
        self._said: list[list[str] | Block] = []

    def say(self, text: str) -> None:
        if self._said and isinstance(self._said[-1], list):
            self._said[-1].append(text)
        else:
            self._said.append([text])

    def add(self, block: Block) -> None:
        self._said.append(block)

    @property
    def text(self) -> str:
        return mended("".join("".join(one) for one in self._said if isinstance(one, list)))

    def parts(self) -> tuple[Part, ...]:
        """Nothing where it is plain text alone."""
        said = [mended("".join(one)) if isinstance(one, list) else one.part() for one in self._said]
        if all(one is None or isinstance(one, str) for one in said):
            return ()
        return tuple(one for one in said if one is not None and one != "")


def finish_with(parts: tuple[Part, ...], finish: str) -> str:
    """Not everyone says that an answer stopped for its tools."""
    return "tool_calls" if finish == "stop" and any(isinstance(part, ToolCall) for part in parts) else finish


def written(value: Any) -> str | None:
    """An object as JSON; None where it is nested too deeply to be written again."""
    try:
        return orjson.dumps(value).decode()
    except (orjson.JSONEncodeError, TypeError):
        try:
            return mended(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
        except (ValueError, RecursionError):
            return None


def native_of(family: str, value: Mapping[str, Any]) -> Native | None:
    """As it stands, or mended where JSON had no way to say it; None where nothing has."""
    try:
        orjson.dumps(value)
    except (orjson.JSONEncodeError, TypeError):
        text = written(value)
        mended_value = None if text is None else object_in(text)
        return None if mended_value is None else Native(family, mended_value)
    return Native(family, value)
