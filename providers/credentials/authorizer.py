"""The headers that prove who sends a request: a fixed API key, or headers made anew for each attempt.

Holds keys; prints, stores and hashes none. Knows no protocol.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from ...engine.endpoint import Request


class CredentialsError(ValueError):
    """Raised if there are no usable credentials; the message says what is missing and where it is set."""


class Authorizer(Protocol):
    """Makes the headers that carry credentials."""

    @property
    def fixed(self) -> Mapping[str, str] | None:
        """Headers that are the same for every attempt. None: `headers` is called before each attempt."""
        ...

    @property
    def secrets(self) -> tuple[str, ...]:
        """Texts that are struck out of every answer and message; a new tuple where they have changed."""
        ...

    async def headers(self, request: Request) -> Mapping[str, str]:
        """Headers for these very bytes at this very moment. Raises SendError where there are none to be had."""
        ...

    def refused(self) -> None:
        """The provider answered 401: what can be made anew is, for the next attempt."""
        ...


class FixedHeaders:
    """Headers that never change: an API key in one of them, or none at all."""

    def __init__(self, headers: Mapping[str, str], *secrets: str) -> None:
        self._headers = headers
        self._secrets = secrets

    def __repr__(self) -> str:
        return f"<FixedHeaders [{', '.join(self._headers) or 'none'}]>"

    @property
    def fixed(self) -> Mapping[str, str]:
        return self._headers

    @property
    def secrets(self) -> tuple[str, ...]:
        return self._secrets

    async def headers(self, request: Request) -> Mapping[str, str]:
        return self._headers

    def refused(self) -> None:
        return None


NO_CREDENTIALS = FixedHeaders({})


def bearer(key: str | None) -> FixedHeaders:
    """Returns headers that carry the key as a bearer token; without a key, no headers."""
    return NO_CREDENTIALS if key is None else FixedHeaders({"Authorization": f"Bearer {_checked(key)}"}, key)


def key_in(header: str, key: str | None) -> FixedHeaders:
    """Returns headers that carry the key alone in this header; without a key, no headers."""
    return NO_CREDENTIALS if key is None else FixedHeaders({header: _checked(key)}, key)


def _checked(key: str) -> str:
    """Returns the key. Raises CredentialsError for characters that no header can carry: a line end in a key would start
    another header."""
    if not (key.isascii() and key.isprintable()):
        raise CredentialsError("its key or token has characters that no header can carry")
    return key


def expanded(variable: str, path: str) -> Path:
    """Returns the path that a variable holds, with `~` and `~user` expanded as in a shell."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise CredentialsError(f"{variable} names a home that nobody has ({path})") from error
