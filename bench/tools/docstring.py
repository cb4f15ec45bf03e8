"""What a function's docstring says of it and of its parameters. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from inspect import getdoc
from typing import Any

_HEADING = re.compile(r"(?:Args|Arguments|Parameters):\s*")
_OTHER_HEADING = re.compile(r"[A-Z]\w*:\s*")
_ITEM = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)")
_FIELD = re.compile(r":(?:param|parameter|arg)\s+(?:[^:]*\s)?\*{0,2}(\w+)\s*:\s*(.*)")


def described(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """Returns the first paragraph of a function's docstring, and the descriptions of its parameters, which stand in a
    section `Args:` or in lines `:param NAME: …`."""
    lines = (getdoc(function) or "").splitlines()
    first: list[str] = []
    for line in lines:
        if not line.strip() or _FIELD.match(line) or _HEADING.fullmatch(line):
            break
        first.append(line.strip())
    return " ".join(first), _parameters(lines)


def _parameters(lines: list[str]) -> dict[str, str]:
    texts: dict[str, list[str]] = {}
    name, indent, is_listing = "", 0, False
    for line in lines:
        here = len(line) - len(line.lstrip())
        if _HEADING.fullmatch(line):
            name, indent, is_listing = "", 0, True
        elif match := _FIELD.match(line):
            name, indent, is_listing = match[1], 0, False
            texts[name] = [match[2]]
        elif not line.strip() or line.startswith(":") or _OTHER_HEADING.fullmatch(line):
            name, is_listing = "", is_listing and not line.strip()
        elif is_listing and here and here <= (indent or here) and (match := _ITEM.match(line.strip())):
            name, indent = match[1], here
            texts[name] = [match[2]]
        elif name and here > indent:
            texts[name].append(line.strip())
    return {name: " ".join(filter(None, parts)) for name, parts in texts.items()}
