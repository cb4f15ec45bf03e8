"""The user's own prompts: a file of texts, JSON strings, objects with a `prompt`, or conversations with `messages`.

Owns the accepted formats and the errors, which name the line. Knows no model and no call.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...configuration.errors import UsageError
from ...engine.call import Message
from ...engine.runs.data_file import DatasetError, read_text
from ...report.text import cut
from ..made_prompts.prompts import Prompt

_ROLES = ("system", "developer", "user", "assistant")


def read_prompts(path: Path) -> list[Prompt]:
    """Returns one prompt for each line that is not empty or, from a JSON list, for each element."""
    if path.suffix.lower() in (".csv", ".tsv"):
        raise UsageError(
            f"--prompts: {path}: expected a prompt a line, as text or JSON, got a table: write out its column"
        )
    try:
        text = read_text(path)
    except DatasetError as error:
        raise UsageError(f"--prompts: {error}") from error
    if "\0" in text:
        raise UsageError(f"--prompts: {path}: expected text, a prompt a line, got a binary file")
    listed = _list_in(text)
    if listed is None:
        prompts = list(_of_lines(text, path))
    else:
        prompts = [_prompt_of(each, f"--prompts: {path}: element {number}") for number, each in enumerate(listed, 1)]
    if not prompts:
        raise UsageError(f"--prompts: {path}: expected at least 1 prompt, got none: write one a line")
    return prompts


def _list_in(text: str) -> list[Any] | None:
    """Returns the text as a JSON list; None if it is no such list, since a plain prompt may begin with a bracket
    too."""
    if not text.lstrip().startswith("["):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, list) else None


def _of_lines(text: str, path: Path) -> Iterator[Prompt]:
    # Not splitlines: a JSON string may hold the other characters that it splits at.
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip()
        if not stripped:
            continue
        where = f"--prompts: {path}: line {number}"
        if stripped[0] not in '{"':
            yield stripped
            continue
        try:
            value = json.loads(stripped)
        except (ValueError, RecursionError) as error:
            raise UsageError(
                f"{where}: begins like JSON and is none ({error}): mend it, or put the text into a JSON string"
            ) from error
        yield _prompt_of(value, where)


def _prompt_of(value: Any, where: str) -> Prompt:
    if isinstance(value, dict) and "messages" in value:
        return _conversation_of(value["messages"], where)
    text = value.get("prompt") if isinstance(value, dict) else value
    if not isinstance(text, str) or not text.strip():
        raise UsageError(
            f"{where}: expected a text, or an object with `prompt` (a text) or `messages` (a list), got {_kind(value)}"
        )
    return _require_writable(text, where)


def _conversation_of(value: Any, where: str) -> Prompt:
    if not isinstance(value, list) or not value:
        raise UsageError(f"{where}: messages: expected a list of at least 1 message, got {_kind(value)}")
    return tuple(_message_of(each, f"{where}: message {number}") for number, each in enumerate(value, 1))


def _message_of(value: Any, where: str) -> Message:
    role, content = (value.get("role"), value.get("content")) if isinstance(value, dict) else (None, None)
    if role not in _ROLES or not isinstance(content, str):
        raise UsageError(
            f"{where}: expected an object with role ({', '.join(_ROLES)}) and content (text), got {_kind(value)}"
        )
    return Message(role, _require_writable(content, where))


def _require_writable(text: str, where: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"{where}: expected text that UTF-8 can hold, got half of a surrogate pair") from error
    return text


def _kind(value: Any) -> str:
    if isinstance(value, dict):
        shown = ", ".join(map(repr, list(value)[:5]))
        return f"an object with {shown}" if shown else "an empty object"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return cut(json.dumps(value), 40)
