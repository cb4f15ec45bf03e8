"""Fingerprints of a task's functions, by which a run notices that one was changed.

A fingerprint covers the function's source and the functions and constants of its module that it uses, but no other part
of the file.
"""

from __future__ import annotations

import hashlib
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

_CONSTANTS = (str, int, float, bytes, bool, type(None), tuple, list, dict, set, frozenset, re.Pattern)


def source_of(function: Callable[..., Any]) -> dict[str, str]:
    """Returns a function's name (`name`) and fingerprint (`sha256`)."""
    found = hashlib.sha256()
    for text in _texts(function, set()):
        found.update(text.encode("utf-8", "surrogatepass") + b"\0")
    return {"name": str(getattr(function, "__qualname__", type(function).__qualname__)), "sha256": found.hexdigest()}


def _texts(function: Any, seen: set[int]) -> Iterator[str]:
    if id(function) in seen:
        return
    seen.add(id(function))
    target = inspect.unwrap(function) if callable(function) else function
    plain = target if isinstance(target, FunctionType) else vars(type(target)).get("__call__")
    try:
        yield textwrap.dedent(inspect.getsource(target if isinstance(target, FunctionType | type) else type(target)))
    except (OSError, TypeError):
        yield repr(_code_texts(plain.__code__)) if isinstance(plain, FunctionType) else repr(type(target))
    if not isinstance(plain, FunctionType):
        return
    for cell in plain.__closure__ or ():
        try:
            yield from _value_texts(cell.cell_contents, plain, seen)
        except ValueError:  # a name that is not bound yet
            continue
    for name in sorted(_names(plain.__code__)):
        if name in plain.__globals__:
            yield name
            yield from _value_texts(plain.__globals__[name], plain, seen)


def _value_texts(value: Any, beside: FunctionType, seen: set[int]) -> Iterator[str]:
    if isinstance(value, ModuleType):
        return
    if isinstance(value, _CONSTANTS):
        text = repr(sorted(value, key=repr) if isinstance(value, set | frozenset) else value)
        yield re.sub(" at 0x[0-9a-f]+", "", text)  # where an object lies in memory differs each time
    elif isinstance(value, FunctionType | type) and value.__module__ == beside.__module__:
        yield from _texts(value, seen)


def _names(code: CodeType) -> set[str]:
    """Returns the names that a function, and the functions inside it, look up."""
    inner = [each for each in code.co_consts if isinstance(each, CodeType)]
    return set(code.co_names).union(*map(_names, inner))


def _code_texts(code: CodeType) -> list[Any]:
    consts = [_code_texts(each) if isinstance(each, CodeType) else repr(each) for each in code.co_consts]
    return [code.co_code.hex(), code.co_names, consts]
