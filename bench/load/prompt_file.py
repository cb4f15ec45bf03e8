"""The user's own prompts: a file of texts, JSON strings, objects with a `prompt`, or conversations with `messages`.

Owns the accepted formats and the errors, which name the line. Knows no model and no call.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Raw, Struct

from ...configuration.errors import UsageError
from ...engine.call import Message
from ...engine.runs.data_file import DatasetError, read_text
from ..made_prompts.prompts import Prompt

_Text = Annotated[str, Meta(pattern=r"\S")]


class _Turn(Struct):
    role: Literal["system", "developer", "user", "assistant"]
    content: str


class _Object(Struct):
    prompt: _Text | None = None
    messages: Annotated[list[_Turn], Meta(min_length=1)] | None = None

    def __post_init__(self) -> None:
        if self.prompt is None and self.messages is None:
            raise ValueError("Object has neither `prompt` nor `messages`")


_prompt_in = msgspec.json.Decoder(_Text | _Object).decode


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
    try:
        # A plain prompt may begin with a bracket too.
        listed = msgspec.json.decode(text, type=list[Raw])
    except (msgspec.DecodeError, RecursionError):
        prompts = list(_of_lines(text, path))
    else:
        prompts = [_prompt_of(each, f"--prompts: {path}: element {number}") for number, each in enumerate(listed, 1)]
    if not prompts:
        raise UsageError(f"--prompts: {path}: expected at least 1 prompt, got none: write one a line")
    return prompts


def _of_lines(text: str, path: Path) -> Iterator[Prompt]:
    # Not splitlines: a JSON string may hold the other characters that it splits at.
    for number, line in enumerate(text.split("\n"), 1):
        if stripped := line.strip():
            is_json = stripped[0] in '{"'
            yield _prompt_of(stripped, f"--prompts: {path}: line {number}") if is_json else stripped


def _prompt_of(text: str | Raw, where: str) -> Prompt:
    try:
        value = _prompt_in(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise UsageError(
            f"{where}: expected a JSON string, or an object with `prompt` (a text) or `messages` (a list of objects "
            f"with role and content), got something else ({error}): correct it, or put the text into a JSON string"
        ) from error
    if isinstance(value, str):
        return value
    return (
        value.prompt or ""
        if value.messages is None
        else tuple(Message(each.role, each.content) for each in value.messages)
    )
