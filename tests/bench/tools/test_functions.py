"""A function becomes a tool: its schema from types and docstring, a model's arguments by these types."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal, TypedDict

import pytest
from msgspec import Meta, Struct

from millstream.bench.evaluation.door.defect import BenchmarkDefect
from millstream.bench.tools.carrying_out import Workers
from millstream.bench.tools.function import OfferedTool, function_tool
from millstream.bench.tools.toolset import Offer
from millstream.engine.content import ToolCall, ToolResult


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Place:
    x: float
    y: float = 0.0


class Line(Struct):
    begin: Place
    colour: Colour = Colour.RED


class Filter(TypedDict, total=False):
    word: str


@dataclass
class Node:
    next: Node | None = None


def draw(
    lines: list[Line],
    label: str | None,
    /,
    size: Annotated[int, Meta(ge=1)] = 5,
    *,
    how: Literal["fast", "slow"] = "fast",
    pair: tuple[int, int] = (1, 2),
    by: Annotated[Filter, "what is left out"] | None = None,
    weights: dict[str, float] | None = None,
) -> str:
    """Draws lines,
    one after another.

    This paragraph is for programmers.

    Args:
        lines: all the lines,
            in their order
        size (int): how thick

    Returns:
        nothing: of use
    """
    return f"{lines} {label} {size} {how} {pair} {by} {weights}"


def tool_of(function: Callable[..., Any]) -> OfferedTool:
    return function_tool(function, Workers())


def test_types_and_docstring_of_a_function_are_what_a_model_reads_of_it() -> None:
    tool = tool_of(draw).declared
    assert (tool.name, tool.description) == ("draw", "Draws lines, one after another.")
    assert tool.parameters is not None
    fields = tool.parameters["properties"]
    assert tool.parameters["required"] == ["lines", "label"] and tool.parameters["additionalProperties"] is False
    assert fields["lines"]["description"] == "all the lines, in their order"
    line = fields["lines"]["items"]["properties"]
    assert line["begin"]["properties"] == {"x": {"type": "number"}, "y": {"type": "number", "default": 0.0}}
    assert sorted(line["colour"]["enum"]) == ["blue", "red"] and "$" not in str(tool.parameters)
    assert fields["label"] == {"anyOf": [{"type": "string"}, {"type": "null"}]}
    assert fields["size"] == {"description": "how thick", "type": "integer", "minimum": 1, "default": 5}
    assert fields["how"] == {"enum": ["fast", "slow"], "default": "fast"}
    assert fields["pair"]["type"] == "array" and fields["weights"]["anyOf"][0]["additionalProperties"] == {
        "type": "number"
    }


def test_a_docstring_may_describe_parameters_in_fields() -> None:
    def add(first: int, second: int) -> int:
        """Adds.

        :param int first: one number,
            whole
        :param second: another
        :returns: their sum
        """
        return first + second

    fields = (tool_of(add).declared.parameters or {})["properties"]
    assert [fields[name]["description"] for name in ("first", "second")] == ["one number, whole", "another"]
    assert (tool_of(partial(add, second=2)).declared.parameters or {})["required"] == ["first"]


def test_arguments_become_the_functions_types() -> None:
    text = '{"lines": [{"begin": {"x": 1}, "colour": "blue"}], "label": null, "pair": [3, 4], "by": {"word": "a"}}'
    bound = tool_of(draw).decode(text)
    assert bound.args == ([Line(Place(1.0), Colour.BLUE)], None)
    assert bound.kwargs == {"pair": (3, 4), "by": {"word": "a"}}
    assert draw(*bound.args, **bound.kwargs).endswith("None 5 fast (3, 4) {'word': 'a'} None")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "missing required field `key`"),
        ("[]", "Expected `object`, got `array`"),
        ("rubbish", "JSON is malformed"),
        ('{"key": "a"', "truncated"),
        ('{"key": 1}', "Expected `str`, got `int` - at `$.key`"),
        ('{"key": "a", "count": "3"}', "Expected `int`, got `str` - at `$.count`"),
        ('{"key": "a", "colour": "green"}', "Invalid enum value 'green'"),
        ('{"key": "a", "keys": "b"}', "unknown field `keys`"),
        ('{"key": "\ud800"}', "surrogates not allowed"),
        ('{"key": ' + "[" * 100_000, "wrong arguments"),
    ],
)
def test_arguments_that_a_tool_does_not_take_say_what_it_takes(text: str, says: str) -> None:
    def find(key: str, count: int = 1, colour: Colour | None = None) -> None: ...

    wrong = Offer({"find": tool_of(find)}, is_kept=True).begun(ToolCall("c", "find", text))
    assert isinstance(wrong, ToolResult) and wrong.is_error and says in wrong.content
    assert str(wrong.content).endswith("find takes a JSON object with key, count (optional), colour (optional).")


def untyped(key): ...  # type: ignore[no-untyped-def]


def any_number(*keys: str) -> None: ...


def no_json(key: str, number: complex) -> None: ...


def endless(key: Node) -> None: ...


def two_records(key: Place | Line) -> None: ...


def unknown(key: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (untyped, "tool untyped: parameter key has no type: write one, as key: str"),
        (any_number, "tool any_number: parameter keys: write each parameter out"),
        (no_json, "tool no_json: parameter number: no JSON is made of complex"),
        (endless, "tool endless: parameter key: Node holds itself"),
        (two_records, "tool two_records: parameter key: Type unions may not contain more than one dict-like type"),
        (unknown, "tool unknown: its types can't be read: name 'Nowhere' is not defined"),
        (lambda key: key, "tool <lambda>: a tool's name has up to 64 letters"),
    ],
)
def test_a_function_that_a_model_cannot_be_told_of_is_refused_with_its_parameter(
    function: Callable[..., Any], says: str
) -> None:
    with pytest.raises(BenchmarkDefect) as refused:
        tool_of(function)
    assert str(refused.value).startswith(says)
