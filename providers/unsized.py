"""Finds what makes a call's size unknown before it is sent: parts by reference, tools that the provider runs itself.

Owns the walk; unsized.toml names the fields that hold only what stands in the request. Pure; knows no price.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..engine.call import Call
from ..engine.content import Image, Native, Part, ToolCall, ToolResult
from ..engine.prices import Unsized

_NAMES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
_AS_IT_STANDS, _CALLERS_OWN = frozenset(_NAMES["as_it_stands"]), frozenset(_NAMES["callers_own"])
_RUN_BY_CALLER, _RUN_BY_PROVIDER, _MODEL_THAT_SEARCHES = (
    re.compile(_NAMES[name]) for name in ("tools_of_callers", "run_by_provider", "models_that_search")
)
_TOOLS = "tools"


def unsized_in(call: Call, *, opens_any_file: bool = False) -> Unsized | None:
    """Returns the first thing that makes the size of a call's prompt unknown; None: its bytes bound it.
    `opens_any_file`: the model reads what an image's address leads to even if that is no image."""
    if _MODEL_THAT_SEARCHES.search(call.model):
        return Unsized("the model's search", is_run=True)
    parts = [] if isinstance(call.input, str) else [m.content for m in call.input if not isinstance(m.content, str)]
    if not parts and call.tools is None and call.extra is None:
        return None
    unsized = _find(_TOOLS, call.tools, {}) or _find("extra", call.extra, {}) or _find("content", parts, {})
    if unsized is None and any(map(_has_address, parts)) and opens_any_file:
        return Unsized("a file given by its address")
    return unsized


def unsized_with_files(call: Call) -> Unsized | None:
    return unsized_in(call, opens_any_file=True)


def _has_address(parts: Sequence[Part]) -> bool:
    """Whether an image among the parts, results of tools included, is given by its address."""
    inner = (part.content for part in parts if isinstance(part, ToolResult) and not isinstance(part.content, str))
    images = (part for part in parts if isinstance(part, Image))
    return any(not image.url.startswith("data:") for image in images) or any(map(_has_address, inner))


def _find(name: str, value: Any, beside: Mapping[str, Any]) -> Unsized | None:
    """Returns the first thing of unknown size in the value of a field, which has the fields `beside` it."""
    match value:
        case None | False:
            return None
        case Native():
            return _find(name if value.on is None else "mark", value.value, {}) or _find(name, value.on, {})
        case Image():
            is_image = value.url.startswith("data:image/") or not value.url.startswith("data:")
            return None if is_image else Unsized("a file given as an image")
        case ToolCall():
            return _find("tool call", value.native, {})
        case ToolResult():
            return _find("content", value.content, {})
    if name in _CALLERS_OWN:
        return None
    if _RUN_BY_PROVIDER.search(name):
        return Unsized(name, is_run=True)
    match value:
        case Mapping() if name == _TOOLS:
            return None if _is_run_by_caller(value) else Unsized(f"the tool {value.get('type', '')}", is_run=True)
        case Mapping():
            inner = (_find(str(field), each, value) for field, each in value.items())
            return next((unsized for unsized in inner if unsized is not None), None)
        case list() | tuple():
            return next((unsized for each in value if (unsized := _find(name, each, beside)) is not None), None)
        case str() if name not in _AS_IT_STANDS and not _is_whole(name, beside):
            return Unsized(name)
    return None


def _is_run_by_caller(tool: Mapping[str, Any]) -> bool:
    kind = tool.get("type")
    if isinstance(kind, str):
        return _RUN_BY_CALLER.fullmatch(kind) is not None
    return not tool.keys().isdisjoint(_NAMES["fields_of_tools"])


def _is_whole(name: str, beside: Mapping[str, Any]) -> bool:
    """Whether a text refers to nothing, since what it names stands beside it."""
    if name == "id":
        return not beside.keys().isdisjoint(("arguments", "content", "encrypted_content", "input", "output"))
    kind = beside.get("media_type") or beside.get("mimeType")
    return name == "data" and (beside.get("type") == "redacted_thinking" or str(kind).startswith("text/"))
