"""Secrets, and every form in which a server that received them may return them.

Removes them from bytes before anything is read from these, and detects a text that holds one in pieces. Knows no
protocol, and not what a secret is for.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator
from urllib.parse import quote

from msgspec import structs

from ...engine.endpoint import Fault

# A shorter key is a plain word for a local server that merely requires one, and such words occur in answers.
SECRET_MIN = 12
SPELLED_OUT = Fault(
    "rejected",
    "the answer spells out the key that it was asked with, in pieces: none of it is kept; find out who answers there",
    "never",
    200,
    is_billed_maybe=True,
)
_STRUCK = b"[key]"
# Characters that JSON may write in two ways: a slash, and any ASCII character as `\u00..`. In a text that is JSON
# itself the backslash is doubled.
_ESCAPE = re.compile(rb"\\\\*(?:u00([0-7][0-9a-fA-F])|/)")
_PLAIN = {b"%02x" % sign: json.dumps(chr(sign))[1:-1].encode() for sign in range(0x80)}
# A text in JSON with its name, wherever it is: the events of a stream have one text after another under the same name.
_NAMED_TEXT = re.compile(rb'"(\w+)"\s*:\s*"((?:[^"\\]|\\.)*)"')
_URL_SAFE = str.maketrans("+/", "-_")


class Secrets:
    """Some secrets and their forms; those of fewer than SECRET_MIN characters are left out. Prints none."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: Iterable[str] | None = None
        self.learn(secrets)

    def __repr__(self) -> str:
        return f"<Secrets [{len(self._forms)} forms]>"

    def learn(self, secrets: Iterable[str]) -> None:
        """Replaces the secrets, unless these are the same object."""
        if secrets is not self._secrets:
            self._secrets = secrets
            forms = (form for secret in secrets if len(secret) >= SECRET_MIN for form in _forms_of(secret))
            self._forms = tuple(dict.fromkeys(forms))
            self._in_bytes = tuple(form.encode() for form in self._forms)

    def struck(self, body: bytes) -> bytes:
        """Returns the bytes with `[key]` for each secret, however JSON writes it; the same object if there is none."""
        for form in self._in_bytes:
            body = body.replace(form, _STRUCK)
        if b"\\" in body and (b"\\u00" in body or b"\\/" in body):
            plain = _unescaped(body)
            for form in self._in_bytes:
                if form in plain:
                    return self.struck(plain)
        return body

    def are_spelled_in(self, body: bytes) -> bool:
        """Returns whether a stream's texts of one name, joined, hold a secret that no single one of them holds."""
        texts: dict[bytes, list[bytes]] = {}
        for name, text in _NAMED_TEXT.findall(body):
            texts.setdefault(name, []).append(text)
        joined = (b"".join(pieces) for pieces in texts.values())
        return any(self.struck(text) != text for text in joined)

    def struck_text(self, text: str) -> str:
        return self.struck(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")

    def struck_fault(self, fault: Fault) -> Fault:
        detail = self.struck_text(fault.detail)
        return fault if detail == fault.detail else structs.replace(fault, detail=detail)

    def are_in(self, text: str) -> bool:
        for form in self._forms:  # no generator, for speed: this runs for every answer
            if form in text:
                return True
        return "\\" in text and self.struck_text(text) != text

    def begun_in(self, text: str) -> int:
        """Returns how many characters at the end of a text may be the beginning of a secret; 0 if none."""
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
    """Returns the same JSON without escaped slashes and without ASCII characters written as `\\u00..`."""
    while True:
        plain, changes = _ESCAPE.subn(_written_plainly, body)
        if plain == body or changes == 0:
            return body
        body = plain


def _written_plainly(escape: re.Match[bytes]) -> bytes:
    digits = escape[1]
    return b"/" if digits is None else _PLAIN.get(digits.lower(), escape[0])


def _forms_of(secret: str) -> Iterator[str]:
    """Yields a secret's forms: unchanged, in JSON, in a URL's query and path, in hexadecimal digits, and in base64 at
    each of the three possible offsets."""
    yield secret
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    for written in (quote(secret, safe=""), quote(secret)):
        yield written
        yield re.sub("%..", lambda sign: sign[0].lower(), written)
    yield secret.encode().hex()
    yield secret.encode().hex().upper()
    for lead in range(3):
        # Characters at the ends also depend on the bytes around it.
        size = lead + len(secret.encode())
        inner = b64encode(bytes(lead) + secret.encode()).decode()[(lead * 8 + 5) // 6 : size * 8 // 6]
        yield inner
        yield inner.translate(_URL_SAFE)
