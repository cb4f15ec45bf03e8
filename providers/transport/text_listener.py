"""One answer as its caller hears it while it comes: text that its protocol's listener finds, but for anything that may
be a secret.

Says nothing rather than too much: what it holds back the whole answer tells. Knows no protocol and no socket.
"""

from __future__ import annotations

from ...engine.endpoint import Hear
from ..llm.protocol import AnswerListener
from .secrets import Secrets

# JSON within the text may write a secret with these; nobody hears what comes behind one.
_ESCAPES = ("\\u00", "\\/")
_BEGUN = {text[:size]: size for text in _ESCAPES for size in range(1, len(text))}


class TextListener:
    """Takes an answer's bytes and tells `hear` its text."""

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
        said = len(text) - self._doubtful(text)
        if self._secrets.are_in(text) or any(escape in text for escape in _ESCAPES) or not _is_sound(text):
            # From here on only the whole answer can tell what was meant.
            self._is_over = True
            return
        self._held = text[said:]
        if said:
            self._hear(text[:said])

    def _doubtful(self, text: str) -> int:
        """How much of a text's end may be the beginning of something else than text."""
        begun = max((size for escape, size in _BEGUN.items() if text.endswith(escape)), default=0)
        return begun + self._secrets.begun_in(text[: len(text) - begun])


def _is_sound(text: str) -> bool:
    """Half a character, whose other half is still to come, is none."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
