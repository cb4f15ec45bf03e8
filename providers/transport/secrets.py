"""Secrets, and every form in which a server that was sent them may give them back.

Strikes them out of bytes before anything is read from these, and tells a text that spells one out. Knows no protocol,
and not what a secret is for.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from urllib.parse import quote

# A shorter key is a word that a local server is given because it asks for one, and words stand in answers.
SECRET_MIN = 12
_STRUCK = b"[key]"
# What JSON may write in more than one way: a slash, and any sign of ASCII by its number. What is within a text that is
# JSON itself has more than one backslash.
_ESCAPE = re.compile(rb"\\\\*(?:u00([0-7][0-9a-fA-F])|/)")
_PLAIN = {b"%02x" % sign: json.dumps(chr(sign))[1:-1].encode() for sign in range(0x80)}
# A text of JSON and its name, wherever it stands: of a stream, one name has one text after the other.
_NAMED_TEXT = re.compile(rb'"(\w+)"\s*:\s*"((?:[^"\\]|\\.)*)"')
_URL_SAFE = str.maketrans("+/", "-_")


class Secrets:
    """Some secrets and their forms. Immutable; prints none."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        found = (form for secret in secrets if len(secret) >= SECRET_MIN for form in _forms_of(secret))
        self._forms = tuple(dict.fromkeys(found))
        self._in_bytes = tuple(form.encode() for form in self._forms)

    def __repr__(self) -> str:
        return f"<Secrets [{len(self._forms)} forms]>"

    def struck(self, body: bytes) -> bytes:
        """Returns the bytes without secrets, in any way that JSON may write them; the same object if there are none."""
        for form in self._in_bytes:
            body = body.replace(form, _STRUCK)
        if b"\\" in body and (b"\\u00" in body or b"\\/" in body):
            plain = _unescaped(body)
            for form in self._in_bytes:
                if form in plain:
                    return self.struck(plain)
        return body

    def are_spelled_in(self, body: bytes) -> bool:
        """Whether the texts of one name in a stream, put together, hold one that no text of it holds whole."""
        texts: dict[bytes, list[bytes]] = {}
        for name, text in _NAMED_TEXT.findall(body):
            texts.setdefault(name, []).append(text)
        joined = (b"".join(pieces) for pieces in texts.values())
        return any(self.struck(text) != text for text in joined)

    def struck_text(self, text: str) -> str:
        return self.struck(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def are_in(self, text: str) -> bool:
        for form in self._forms:  # no generator: this is asked of every answer
            if form in text:
                return True
        return "\\" in text and self.struck_text(text) != text

    def begun_in(self, text: str) -> int:
        """How many of a text's last characters may be the beginning of a secret."""
        most = 0
        for form in self._forms:
            at = text.find(form[0], max(0, len(text) - len(form) + 1))
            while at >= 0 and len(text) - at > most:
                if form.startswith(text[at:]):
                    most = len(text) - at
                    break
                at = text.find(form[0], at + 1)
        return most


def _unescaped(body: bytes) -> bytes:
    """JSON that says the same with no sign of ASCII written by its number, and no slash escaped."""
    while True:
        plain, changes = _ESCAPE.subn(_written_plainly, body)
        if plain == body or changes == 0:
            return body
        body = plain


def _written_plainly(escape: re.Match[bytes]) -> bytes:
    digits = escape[1]
    return b"/" if digits is None else _PLAIN.get(digits.lower(), escape[0])


def _forms_of(secret: str) -> Iterator[str]:
    """As it is, in JSON, in a URL's query and path, in hexadecimal digits, and in base64 wherever it begins there."""
    yield secret
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    for written in (quote(secret, safe=""), quote(secret)):
        yield written
        yield re.sub("%..", lambda sign: sign[0].lower(), written)
    yield secret.encode().hex()
    yield secret.encode().hex().upper()
    for lead in range(3):
        # Signs at the ends also hold bits of what stands beside it.
        size = lead + len(secret.encode())
        inner = b64encode(bytes(lead) + secret.encode()).decode()[(lead * 8 + 5) // 6 : size * 8 // 6]
        yield inner
        yield inner.translate(_URL_SAFE)
