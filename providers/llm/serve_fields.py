"""Reads the fields of a client's request by their types, and refuses them with the errors of the client's protocol.

Owns the one reader that all served dialects use. A dialect's subclass decides how paths are written, types are named
and errors are worded. A field that is null counts as missing. Pure; knows no vendor.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

import orjson

from ...engine.content import Native
from .serve_dialect import RequestRefusal

# The range of a 64-bit integer, which is what a request to a provider can hold.
INTEGER_MIN, INTEGER_MAX = -1 << 63, (1 << 63) - 1
_SHOWN_MAX = 60


def shown(value: Any) -> str:
    """Returns a value as an error shows it, in at most 60 characters; an object or a list is only named."""
    if isinstance(value, Mapping | list):
        return "an object" if isinstance(value, Mapping) else "a list"
    text = repr(value)
    return text if len(text) <= _SHOWN_MAX else f"{text[: _SHOWN_MAX - 1]}…"


class FieldReader:
    """One JSON object of a request, at its path. `raw` is the object as it was sent, `fields` are those read."""

    # The dialect's names of the types: text, boolean, integer, number, object, list.
    types: ClassVar[Mapping[str, str]]
    # Numbers of this size and beyond have the wrong type.
    number_bound: ClassVar[float] = math.inf
    # The path of an entry of a list, and the messages for a missing field, for a wrong type and for a value that can't
    # be written as JSON.
    item: ClassVar[str] = "{path}[{index}]"
    missing: ClassVar[str]
    wrong: ClassVar[str]
    unwritable: ClassVar[str]
    # The message for a number that reaches `number_bound`; empty: that for a wrong type.
    unbounded: ClassVar[str] = ""

    def __init__(self, value: Any, path: str = "") -> None:
        if value.__class__ is not dict and not isinstance(value, Mapping):
            raise self.wrong_type(path, "object", value)
        self.raw: Mapping[str, Any] = value
        self.fields = self.fields_of(value)
        self.path = path

    # --- what a dialect words in its own way ---

    @classmethod
    def fields_of(cls, value: Mapping[str, Any]) -> Mapping[str, Any]:
        return value

    @classmethod
    def parameter(cls, path: str) -> str:
        """Returns the name of the parameter at fault, for the error."""
        return path

    @classmethod
    def shown(cls, value: Any) -> str:
        """Returns a value of a wrong type as the message shows it."""
        return shown(value)

    @classmethod
    def type_text(cls, path: str, expected: str, value: Any) -> str:
        return cls.wrong.format(path=path, expected=expected, value=cls.shown(value))

    @classmethod
    def choice_text(cls, path: str, allowed: Sequence[str], value: Any) -> str:
        *first, last = (f"'{each}'" for each in allowed)
        return cls.type_text(path, f"{', '.join(first)} or {last}" if first else last, value)

    @classmethod
    def range_text(cls, path: str, sign: str, bound: float, value: float) -> str:
        """Returns the message for a number beyond a bound; `sign` is `>=` or `<=`."""
        raise NotImplementedError

    @classmethod
    def as_list(cls, value: Any) -> Sequence[Any] | None:
        return value if isinstance(value, list | tuple) else None

    @classmethod
    def as_integer(cls, value: Any) -> int | None:
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    @classmethod
    def as_number(cls, value: Any) -> float | None:
        """Returns a JSON number as a float; infinity for a whole number beyond all floats, None for any other value."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        try:
            return float(value)
        except OverflowError:
            return math.inf

    # --- errors ---

    @classmethod
    def refusal(cls, path: str, message: str) -> RequestRefusal:
        return RequestRefusal(message, cls.parameter(path))

    @classmethod
    def wrong_type(cls, path: str, expected: str, value: Any) -> RequestRefusal:
        """Returns the error for a value of a wrong type. `expected` is one of `types`, or the dialect's own words."""
        return cls.refusal(path, cls.type_text(path, cls.types.get(expected, expected), value))

    @classmethod
    def wrong_choice(cls, path: str, allowed: Sequence[str], value: Any) -> RequestRefusal:
        return cls.refusal(path, cls.choice_text(path, allowed, value))

    # --- fields ---

    def path_to(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def has(self, name: str) -> bool:
        return self.fields.get(name) is not None

    def others(self, known: Collection[str]) -> dict[str, Any]:
        """Returns the fields that are given but not among the known ones."""
        return {name: value for name, value in self.fields.items() if name not in known and value is not None}

    def holds_only(self, known: Collection[str]) -> bool:
        return not self.others(known)

    def under(self, name: str) -> Self:
        """Returns the same object at a longer path, for Anthropic's errors, whose paths include a block's type."""
        return type(self)(self.raw, self.path_to(name))

    def required(self, name: str) -> Any:
        value = self.fields.get(name)
        if value is None:
            path = self.path_to(name)
            raise self.refusal(path, self.missing.format(path=path))
        return value

    def text(self, name: str, default: str | None = None) -> str:
        """Returns a text, or the default if it is missing; without a default raises RequestRefusal."""
        value = self.fields.get(name)
        if value is None and default is not None:
            return default
        if not isinstance(value, str):
            raise self.wrong_type(self.path_to(name), "text", self.required(name))
        return value

    def optional_text(self, name: str) -> str | None:
        return self.text(name) if self.has(name) else None

    def choice(self, name: str, allowed: Sequence[str]) -> str:
        value = self.text(name)
        if value not in allowed:
            raise self.wrong_choice(self.path_to(name), allowed, value)
        return value

    def boolean(self, name: str) -> bool | None:
        value = self.fields.get(name)
        if value is not None and not isinstance(value, bool):
            raise self.wrong_type(self.path_to(name), "boolean", value)
        return value

    def integer(self, name: str, least: int = INTEGER_MIN, most: int = INTEGER_MAX) -> int | None:
        value = self.fields.get(name)
        if value is None:
            return None
        number = self.as_integer(value)
        if number is None or not abs(number) < self.number_bound:
            raise self.wrong_type(self.path_to(name), "integer", value)
        self._check_range(name, number, least, most)
        return number

    def number(self, name: str, least: float = -math.inf) -> float | None:
        value = self.fields.get(name)
        if value is None:
            return None
        number = self.as_number(value)
        if number is None:
            raise self.wrong_type(self.path_to(name), "number", value)
        if not abs(number) < self.number_bound:
            path = self.path_to(name)
            raise self.refusal(
                path, self.unbounded.format(path=path) or self.type_text(path, self.types["number"], value)
            )
        self._check_range(name, number, least, math.inf)
        return number

    def _check_range(self, name: str, number: float, least: float, most: float) -> None:
        if least <= number <= most:
            return
        path = self.path_to(name)
        sign, bound = (">=", least) if number < least else ("<=", most)
        raise self.refusal(path, self.range_text(path, sign, bound, number))

    def object(self, name: str, default: Mapping[str, Any] | None = None) -> Self:
        """Returns a reader of an object, of the default if it is missing; without one raises RequestRefusal."""
        value = self.fields.get(name)
        if value is None:
            value = self.required(name) if default is None else default
        return type(self)(value, self.path_to(name))

    def optional_object(self, name: str) -> Self | None:
        return self.object(name) if self.has(name) else None

    def list(self, name: str, expected: str = "list") -> Sequence[Any]:
        """Returns a list, empty if the field is missing. `expected` is the type in the error, if not the usual one."""
        value = self.fields.get(name)
        if value is None:
            return ()
        items = self.as_list(value)
        if items is None:
            raise self.wrong_type(self.path_to(name), expected, value)
        return items

    def objects(self, name: str, expected: str = "list") -> Iterator[Self]:
        """Yields a reader for each object of a list."""
        path = self.path_to(name)
        for index, value in enumerate(self.list(name, expected)):
            yield type(self)(value, self.item.format(path=path, index=index))

    def texts(self, name: str, expected: str = "list", *, may_be_one: bool = False) -> tuple[str, ...] | None:
        """Returns the texts of a list; None if it is missing or empty. With `may_be_one` a single text stands for a
        list of one."""
        value, path = self.fields.get(name), self.path_to(name)
        if may_be_one and isinstance(value, str):
            return (value,)
        items = self.list(name, expected)
        for index, each in enumerate(items):
            if not isinstance(each, str):
                raise self.wrong_type(self.item.format(path=path, index=index), "text", each)
        return tuple(items) or None

    # --- what goes on to a provider as it stands ---

    def written(self, value: Any, name: str = "") -> str:
        """Returns a value as JSON. Raises RequestRefusal if it can't be written, as when it is nested too deeply."""
        path = self.path_to(name) if name else self.path
        try:
            return orjson.dumps(value).decode()
        except (orjson.JSONEncodeError, TypeError, RecursionError) as error:
            raise self.refusal(path, self.unwritable.format(path=path, error=error)) from error

    def kept(self, name: str) -> Any:
        """Returns a field unchanged; raises RequestRefusal if it can't be written as JSON again."""
        value = self.fields[name]
        self.written(value, name)
        return value

    def native(self, family: str, value: Mapping[str, Any] | None = None) -> Native:
        """Returns an object as a part that only this family of protocols knows: `value`, or the whole object that is
        read here if it is None."""
        content = self.raw if value is None else value
        self.written(content)
        return Native(family, content)
