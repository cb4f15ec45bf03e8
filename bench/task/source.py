"""Fingerprints of a task's functions and classes, by which a run notices that one was changed.

A fingerprint covers the function's source and the functions and constants of its module that it uses, but no other part
of the file; that of a class covers its methods and values, and those of its base classes.
"""

from __future__ import annotations

import hashlib
import inspect
import re
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

# What Python itself writes into a class, other things in each version.
_MADE = frozenset(
    {
        *("__module__", "__qualname__", "__doc__", "__dict__", "__weakref__", "__annotations__", "__annotate__"),
        *("__annotate_func__", "__annotations_cache__", "__firstlineno__", "__static_attributes__", "__parameters__"),
    }
)
_CONSTANTS = (str, int, float, bytes, bool, type(None), tuple, list, dict, set, frozenset, re.Pattern)


def source_of(function: Callable[..., Any]) -> dict[str, str]:
    """Returns a function's name (`name`) and fingerprint (`sha256`)."""
    name = str(getattr(function, "__qualname__", type(function).__qualname__))
    return {"name": name, "sha256": _digest(_texts(function, set()))}


def source_of_class(kind: type, base: type, without: Collection[str]) -> str:
    """Returns the fingerprint of a class up to a base class, apart from the attributes of these names."""
    return _digest(_class_texts(kind, base, without))


def _digest(texts: Iterable[str]) -> str:
    found = hashlib.sha256()
    for text in texts:
        found.update(text.encode("utf-8", "surrogatepass") + b"\0")
    return found.hexdigest()


def _class_texts(kind: type, base: type, without: Collection[str]) -> Iterator[str]:
    seen: set[int] = set()
    for each in kind.__mro__[: kind.__mro__.index(base)]:
        for name, value in sorted(vars(each).items()):
            if name in without or name in _MADE:
                continue
            yield name
            inner = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
            yield from _texts(inner, seen) if callable(inner) else _value_texts(inner, each.__module__, seen)


def _texts(function: Any, seen: set[int]) -> Iterator[str]:
    if id(function) in seen:
        return
    seen.add(id(function))
    target = inspect.unwrap(function) if callable(function) else function
    target = target.__func__ if isinstance(target, MethodType) else target
    plain = target if isinstance(target, FunctionType) else vars(type(target)).get("__call__")
    try:
        yield textwrap.dedent(inspect.getsource(target if isinstance(target, FunctionType | type) else type(target)))
    except (OSError, TypeError):
        yield repr(_code_texts(plain.__code__)) if isinstance(plain, FunctionType) else repr(type(target))
    if not isinstance(plain, FunctionType):
        return
    for cell in plain.__closure__ or ():
        try:
            yield from _value_texts(cell.cell_contents, plain.__module__, seen)
        except ValueError:  # a name that is not bound yet
            continue
    for name in sorted(_names(plain.__code__)):
        if name in plain.__globals__:
            yield name
            yield from _value_texts(plain.__globals__[name], plain.__module__, seen)


def _value_texts(value: Any, module: str | None, seen: set[int]) -> Iterator[str]:
    if isinstance(value, ModuleType):
        return
    if isinstance(value, list | tuple):
        # Such as tools.
        for each in value:
            if callable(each):
                yield from _value_texts(each, module, seen)
    if isinstance(value, _CONSTANTS):
        text = repr(sorted(value, key=repr) if isinstance(value, set | frozenset) else value)
        yield re.sub(" at 0x[0-9a-f]+", "", text)  # where an object lies in memory differs each time
    elif isinstance(value, FunctionType | type) and value.__module__ == module:
        yield from _texts(value, seen)


def _names(code: CodeType) -> set[str]:
    """Returns the names that a function, and the functions inside it, look up."""
    inner = [each for each in code.co_consts if isinstance(each, CodeType)]
    return set(code.co_names).union(*map(_names, inner))


def _code_texts(code: CodeType) -> list[Any]:
    consts = [_code_texts(each) if isinstance(each, CodeType) else repr(each) for each in code.co_consts]
    return [code.co_code.hex(), code.co_names, consts]
