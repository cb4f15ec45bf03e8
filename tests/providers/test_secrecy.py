"""Secrets are found in whatever form they come back, and nothing else is touched."""

from __future__ import annotations

import json
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from urllib.parse import quote

import orjson
import pytest
from endpoints import CANARY
from hypothesis import given
from hypothesis import strategies as st

from millstream.providers.transport.secrets import SECRET_MIN, Secrets

SECRETS = Secrets([CANARY, "a word"])
PEM = "-----BEGIN KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END KEY-----\n"


def by_number(text: str) -> str:
    return "".join(f"\\u{ord(sign):04x}" for sign in text)


def within_json(text: str) -> str:
    """As it stands in a text that is JSON itself."""
    return json.dumps(json.dumps({"key": text}))


FORMS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "in a query": lambda key: quote(key, safe=""),
    "in a path": quote,
    "in a query, small": lambda key: re.sub("%..", lambda sign: sign[0].lower(), quote(key, safe="")),
    "hexadecimal": lambda key: key.encode().hex(),
    "hexadecimal, large": lambda key: key.encode().hex().upper(),
    "base64": lambda key: b64encode(key.encode()).decode(),
    "base64 of a header": lambda key: b64encode(f"Bearer {key}".encode()).decode(),
    "base64 of a user": lambda key: b64encode(f"me:{key}\n".encode()).decode(),
    "base64 for URLs": lambda key: urlsafe_b64encode(f"?{key}".encode()).decode(),
    "escaped slashes": lambda key: key.replace("/", "\\/"),
    "escaped slashes within": lambda key: key.replace("/", "\\\\/"),
    "by number": by_number,
    "by number, large": lambda key: by_number(key).upper().replace("\\U", "\\u"),
    "by number within": lambda key: by_number(key).replace("\\", "\\\\"),
    "a number within a number": lambda key: by_number(by_number(key)),
    "one sign by number": lambda key: key.replace("7", "\\u0037"),
    "a slash by number": lambda key: key.replace("/", "\\u002F"),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_a_secret_is_struck_in_every_form(form: str) -> None:
    written = FORMS[form](CANARY)
    body = f'{{"a":"before {written} after","b":1}}'.encode()
    struck = SECRETS.struck(body)
    assert b"[key]" in struck
    # Base64 keeps a sign or two at each end, which hold bits of what stands beside it.
    assert not [core for start in range(5) if (core := written[4 + start : -6].encode()) in struck]
    assert orjson.loads(struck)["b"] == 1
    assert SECRETS.are_in(f"before {written} after") and "[key]" in SECRETS.struck_text(written)


@pytest.mark.parametrize("secret", ['with "quotes" and \\ in it', PEM], ids=["quotes", "lines"])
@pytest.mark.parametrize("write", [json.dumps, lambda text: f'"{by_number(text)}"'], ids=["by its names", "by number"])
def test_a_secret_that_json_has_to_escape_is_struck(secret: str, write: Callable[[str], str]) -> None:
    struck = Secrets([secret]).struck(write(f"a {secret} b").encode())
    assert orjson.loads(struck) == "a [key] b"


@given(st.text(max_size=80), st.integers(0, 80))
def test_what_holds_no_secret_stays_as_it_is_to_the_byte(text: str, at: int) -> None:
    for body in (json.dumps(text), text.replace("/", "\\/"), within_json(text), by_number(text[:9])):
        data = body.encode("utf-8", "surrogatepass")
        assert SECRETS.struck(data) is data
    cut = CANARY[: min(at, len(CANARY) - 1)]
    assert SECRETS.struck(cut.encode()) == cut.encode() and not SECRETS.are_in(cut)


@given(st.binary(max_size=200))
def test_any_bytes_can_be_searched(data: bytes) -> None:
    assert SECRETS.struck(data + CANARY.encode() + data) == data + b"[key]" + data


def test_a_short_secret_is_a_word_like_any_other() -> None:
    assert len("a word") < SECRET_MIN
    assert SECRETS.struck(b"a word") == b"a word" and not SECRETS.are_in("a word")


def test_secrets_are_not_shown() -> None:
    assert CANARY not in repr(SECRETS) and "forms" in repr(SECRETS)
