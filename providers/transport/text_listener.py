"""Passes on the text of one answer while it is being received, without anything that may be a secret.

In doubt it passes on nothing: the whole answer holds the rest. Knows no protocol and no socket.
"""

from __future__ import annotations

from ...engine.endpoint import Hear
from ..llm.protocol import AnswerListener
from ..llm.repair import mended
from .secrets import Secrets

# JSON within the text may write a secret with these; text after one is not passed on.
_ESCAPES = ("\\u00", "\\/")
_BEGUN = {text[:size]: size for text in _ESCAPES for size in range(1, len(text))}


class TextListener:
    """The receiver of an answer's bytes, which passes the text that a protocol's listener finds in them to `hear`,
    until a secret may have begun."""

    def __init__(self, listener: AnswerListener, secrets: Secrets, hear: Hear) -> None:
        self._listener = listener
        self._secrets = secrets
        self._hear = hear
        self._held = ""
        self._is_over = False

    def take(self, chunk: bytes) -> None:
        if self._is_over:
            return
        text = self._held + self._listener.take(chunk)
        size = len(text) - self._doubtful(text)
        if self._secrets.are_in(text) or any(escape in text for escape in _ESCAPES) or mended(text) != text:
            # From here on only the whole answer shows what was meant. A half surrogate pair may still be completed.
            self._is_over = True
            return
        self._held = text[size:]
        if size:
            self._hear(text[:size])

    def _doubtful(self, text: str) -> int:
        """Returns how many characters at the end of a text may be the beginning of a secret or of an escape."""
        begun = max((size for escape, size in _BEGUN.items() if text.endswith(escape)), default=0)
        return begun + self._secrets.begun_in(text[: len(text) - begun])
