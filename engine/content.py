"""What a turn or an answer may hold beside plain text: images, calls of tools and their results, and parts that only
one wire protocol has.

Values alone, checked when made. How each protocol writes and reads them: providers. Most calls and answers are plain
text and need none of this.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import orjson
from msgspec import Struct
from msgspec.structs import force_setattr

# An image counts as this many characters, whatever its size in bytes: about 1,500 tokens.
IMAGE_CHARS = 6_000
_SAID_MAX = 60


def wrong_type(name: str, value: object, wanted: str, where: str = "") -> TypeError:
    text = repr(value)
    text = text if len(text) <= _SAID_MAX else f"{text[: _SAID_MAX - 1]}…"
    return TypeError(f"{name} must be {wanted}; came {text}{where}, a {type(value).__name__}")


def _check_texts(what: str, texts: Iterable[tuple[str, object]]) -> None:
    for name, value in texts:
        if not isinstance(value, str):
            raise wrong_type(f"{what}'s {name}", value, "text")


def _check_json(what: str, value: object) -> None:
    if not isinstance(value, Mapping):
        raise wrong_type(what, value, "a mapping of names to values")


class Image(Struct, frozen=True):
    """An image in a message."""

    url: str
    """Its address, or its bytes as `data:image/png;base64,…`."""
    detail: str | None = None
    """How closely the model looks, in OpenAI's words: `low`, `high` or `auto`."""

    def __post_init__(self) -> None:
        _check_texts("an image", (("url", self.url), ("detail", self.detail or "")))


class ToolCall(Struct, frozen=True):
    """A model's call of a tool."""

    id: str
    """The call's id; its result names it."""
    name: str
    """The tool's name."""
    arguments: str = "{}"
    """The arguments as JSON, unchanged."""
    native: Native | None = None
    """Fields that the wire protocol needs back, such as Gemini's signature of a thought."""

    def __post_init__(self) -> None:
        _check_texts("a tool call", (("id", self.id), ("name", self.name), ("arguments", self.arguments)))


class ToolResult(Struct, frozen=True):
    """The result of a tool call."""

    id: str
    """The id of the tool call."""
    content: str | tuple[str | Image, ...]
    """The result: text, or texts and images."""
    name: str = ""
    """The tool's name, which Gemini requires."""
    is_error: bool = False
    """Whether the tool failed."""

    def __post_init__(self) -> None:
        _check_texts("a tool result", (("id", self.id), ("name", self.name)))
        content: Any = self.content
        if isinstance(content, list):
            content = tuple(content)
            force_setattr(self, "content", content)
        if isinstance(content, str):
            return
        if not isinstance(content, tuple) or not all(isinstance(each, str | Image) for each in content):
            raise wrong_type("a tool result's content", content, "text, or a tuple of texts and images")


class Native(Struct, frozen=True):
    """A part or tool that only one wire protocol has: a thought with its signature, a document, a provider's own tool.
    A call that holds one can't be sent over any other protocol.

    With `on` it is a mark on that part or tool instead, such as where a prompt's cache may end. Anthropic receives its
    own marks, other providers receive the part without them, and no mark is in the cache key.
    """

    protocol: str
    """`openai`, `openai-responses`, `anthropic`, `gemini` or `bedrock`."""
    value: Mapping[str, Any]
    """The JSON object, in that protocol's form."""
    on: Part | Tool | None = None
    """The part or tool that is marked; None: this is a part itself."""

    def __post_init__(self) -> None:
        _check_texts("a native part", (("protocol", self.protocol),))
        _check_json("a native part's value", self.value)
        if self.on is not None and not isinstance(self.on, (*_PARTS, Tool)):
            raise wrong_type("what a native part marks", self.on, "a part of a message, or a tool")


class Tool(Struct, frozen=True):
    """A function that the model may call."""

    name: str
    """Its name."""
    description: str = ""
    """What it does, for the model."""
    parameters: Mapping[str, Any] | None = None
    """The JSON schema of its arguments."""
    strict: bool | None = None
    """Whether the arguments must follow the schema; None: not sent."""

    def __post_init__(self) -> None:
        _check_texts("a tool", (("name", self.name), ("description", self.description)))
        if self.parameters is not None:
            _check_json("a tool's parameters", self.parameters)


Part: TypeAlias = str | Image | ToolCall | ToolResult | Native
Content: TypeAlias = str | tuple[Part, ...]
_PARTS = (str, Image, ToolCall, ToolResult, Native)


def checked_content(content: Any) -> Content:
    """Returns a message's content; a list becomes an immutable tuple. Raises TypeError for a wrong part."""
    if isinstance(content, str):
        return content
    wanted = "text, or a tuple of texts, images, tool calls, tool results and native parts"
    if not isinstance(content, tuple | list):
        raise wrong_type("a message's content", content, wanted)
    for each in content:
        if not isinstance(each, _PARTS) or isinstance(unmarked(each), Tool):
            raise wrong_type("a message's content", each, wanted, " in it")
    return tuple(content)


def unmarked(part: Part | Tool) -> Part | Tool:
    """Returns the part or tool itself, without the marks (`Native.on`) around it."""
    while isinstance(part, Native) and part.on is not None:
        part = part.on
    return part


def texts_in(content: Content) -> Iterable[str]:
    """Yields every text in the content that a model reads, arguments and results of tools included."""
    if isinstance(content, str):
        yield content
        return
    for part in map(unmarked, content):
        match part:
            case str():
                yield part
            case ToolCall():
                yield part.name
                yield part.arguments
            case ToolResult():
                yield from texts_in(part.content)
            case Native():
                yield orjson.dumps(part.value, default=str).decode()
            case Image():
                pass


def images_in(content: Content) -> int:
    if isinstance(content, str):
        return 0
    parts = tuple(map(unmarked, content))
    inner = (part.content for part in parts if isinstance(part, ToolResult))
    return sum(isinstance(part, Image) for part in parts) + sum(map(images_in, inner))


def words_of(content: Content) -> str:
    """Returns the plain text of the content, without tools, images and native parts."""
    if isinstance(content, str):
        return content
    return "".join(part for part in map(unmarked, content) if isinstance(part, str))


def texts_of_tools(tools: Iterable[Tool | Native]) -> Iterable[str]:
    """Yields every text that a model reads of its tools: names, descriptions and JSON schemas; of a native tool, all of
    its JSON."""
    for tool in map(unmarked, tools):
        if isinstance(tool, Native):
            yield orjson.dumps(tool.value, default=str).decode()
        if not isinstance(tool, Tool):
            continue
        yield tool.name
        yield tool.description
        if tool.parameters is not None:
            yield orjson.dumps(tool.parameters, default=str).decode()
