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
    """The source of the headers that carry credentials."""

    @property
    def fixed(self) -> Mapping[str, str] | None:
        """The headers, if they are the same for every attempt; None if `headers` must be called before each attempt."""
        ...

    @property
    def secrets(self) -> tuple[str, ...]:
        """The texts that are removed from every answer and message; a new tuple whenever they change."""
        ...

    async def headers(self, request: Request) -> Mapping[str, str]:
        """Returns the headers for this request if it is sent now, since a signature covers its bytes and the time.
        Raises SendError if there are no credentials."""
        ...

    def refused(self) -> None:
        """Notes that the provider answered 401: credentials that can be renewed are renewed before the next attempt."""
        ...


class FixedHeaders:
    """Headers that never change: an API key in one of them, or none at all."""

    def __init__(self, headers: Mapping[str, str], *secrets: str) -> None:
        self.fixed = headers
        self.secrets = secrets

    def __repr__(self) -> str:
        return f"<FixedHeaders [{', '.join(self.fixed) or 'none'}]>"

    async def headers(self, request: Request) -> Mapping[str, str]:
        return self.fixed

    def refused(self) -> None:
        return None


NO_CREDENTIALS = FixedHeaders({})


def bearer(key: str | None) -> FixedHeaders:
    """Returns headers that carry the API key as a bearer token; without an API key, no headers."""
    return NO_CREDENTIALS if key is None else FixedHeaders({"Authorization": f"Bearer {_require_plain(key)}"}, key)


def key_in(header: str, key: str | None) -> FixedHeaders:
    """Returns headers that carry the API key in the header of this name; without an API key, no headers."""
    return NO_CREDENTIALS if key is None else FixedHeaders({header: _require_plain(key)}, key)


def _require_plain(key: str) -> str:
    """Returns the API key. Raises CredentialsError for characters that no header can carry: a line break in it would
    start another header."""
    if not (key.isascii() and key.isprintable()):
        raise CredentialsError("its key or token has characters that no header can carry")
    return key


def expanded(variable: str, path: str) -> Path:
    """Returns a path with `~` and `~user` expanded as in a shell. Raises CredentialsError, which names the variable
    that holds the path, if there is no such user."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise CredentialsError(f"{variable} names a home that nobody has ({path})") from error
