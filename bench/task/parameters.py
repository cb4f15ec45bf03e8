"""The parameters of a task's file: values that the file reads by their names and that `--set` changes.

Owns how a text becomes a value and which names are allowed. Knows no task.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from ...engine.near_names import nearest
from .rows import TaskError, shown

_T = TypeVar("_T", bool, int, float, str)
_EXPECTED = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
_SWITCH = {"true": True, "false": False}


class Parameters:
    """The parameters that a file reads while it is loaded. `given`: the values that replace defaults, by name."""

    def __init__(self, given: Mapping[str, Any] | None = None) -> None:
        self.given = dict(given or {})
        self.values: dict[str, Any] = {}
        """The values of all parameters that were read."""
        self._declared: dict[str, tuple[Any, str]] = {}

    def read(self, name: str, default: _T, description: str) -> _T:
        """Returns a parameter's value, in the type of its default."""
        if type(default) not in _EXPECTED:
            raise TaskError(
                f"parameter {name}: expected a text, a number, True or False as default, got {shown(default)}"
            )
        if self._declared.setdefault(name, (default, description))[0] != default:
            raise TaskError(f"parameter {name}: it is read twice with different defaults: read it once")
        value: _T = _typed(name, self.given[name], default) if name in self.given else default
        self.values[name] = value
        return value

    def check_all_read(self, file: str) -> None:
        """Raises TaskError if a value was given for a name that the file doesn't read."""
        for name in self.given.keys() - self.values.keys():
            listed = "; ".join(
                f"{each}={default}{f' ({text})' if text else ''}" for each, (default, text) in self._declared.items()
            )
            has = f": it has {listed}" if listed else ': it has none (they are read by ms.parameter("name", default))'
            raise TaskError(f"--set {name}: {file} has no parameter of this name{nearest(name, self._declared)}{has}")


_BEING_READ: ContextVar[Parameters | None] = ContextVar("parameters of the file being loaded", default=None)


@contextmanager
def read_into(parameters: Parameters) -> Iterator[None]:
    """Lets the code of the block read these parameters."""
    token = _BEING_READ.set(parameters)
    try:
        yield
    finally:
        _BEING_READ.reset(token)


def parameter(name: str, default: _T, description: str = "") -> _T:
    """Returns the value that the command line gives a task's file, as `--set doubts=3`; `default` without one.

    name: the parameter's name.
    default: its value unless one is given; the value has the same type: a text, a number, True or False.
    description: what it is, for the message that lists a file's parameters.

    Call it at the top of the task's file. In a program that calls `evaluate` it returns the default.
    """
    parameters = _BEING_READ.get()
    return (parameters or Parameters()).read(name, default, description)


def assignments(words: Iterable[str]) -> dict[str, str]:
    """Returns the texts of `name=value` by name. Raises TaskError for any other text, and for a name given twice."""
    values: dict[str, str] = {}
    for word in words:
        name, sign, text = word.partition("=")
        if not sign or not name.isidentifier():
            raise TaskError(f"--set: expected name=value, as doubts=3, got {shown(word)}")
        if name in values:
            raise TaskError(f"--set {name}: expected one value, got {shown(values[name])} and {shown(text)}")
        values[name] = text
    return values


def _typed(name: str, content: Any, default: Any) -> Any:
    kind, text = type(default), str(content).strip()
    try:
        value = content if type(content) is kind else _SWITCH[text.lower()] if kind is bool else kind(text)
    except (KeyError, ValueError):
        value = math.nan
    if isinstance(value, float) and not math.isfinite(value):
        raise TaskError(f"--set {name}: expected {_EXPECTED[kind]}, as {str(default).lower()}, got {shown(content)}")
    return value
