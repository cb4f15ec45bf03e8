"""The messages of a conversation as its author writes them, and a reply as the message that sends it back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import iscoroutine
from typing import Any, TypeAlias

from ...engine.call import Message, Reply, message_of
from ...engine.content import Content
from .rows import shown

Said: TypeAlias = str | Sequence[Message | Reply | Mapping[str, Any]]
"""What is sent: a text, or messages and replies in their order."""

_NOTHING = "(nothing)"


def user(content: Content) -> Message:
    """Returns a message of the user: a text, or a list of texts and images."""
    return Message("user", content)


def assistant(content: Content) -> Message:
    """Returns a message of the model with a text that you write. A reply needs none: it is a message itself."""
    return Message("assistant", content)


def system(content: Content) -> Message:
    """Returns the system prompt."""
    return Message("system", content)


def message_of_reply(reply: Reply) -> Message:
    """Returns a reply as the message that sends it back whole: with its tool calls, its thoughts and their
    signatures. Not every provider takes a turn without a word."""
    return Message("assistant", reply.parts or reply.text or _NOTHING)


def messages_in(said: Said) -> tuple[Message, ...]:
    """Returns the messages to send. Raises TypeError or ValueError for anything else."""
    if isinstance(said, str):
        return (user(said),)
    if not isinstance(said, Sequence) or not said:
        raise TypeError(f"ask: expected a text, or messages such as ms.user(…), got {shown(said)}")
    return tuple(map(_message, said))


def _message(said: Any) -> Message:
    if isinstance(said, Reply):
        return message_of_reply(said)
    if iscoroutine(said):
        said.close()
        raise TypeError("ask: a reply among the messages was not awaited: write `await ask(…)`")
    return message_of(said)
