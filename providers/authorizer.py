"""What credentials put into the headers of an attempt: a key that is always the same, or what is made anew each time.

Holds keys; prints, stores and hashes none. Knows no protocol.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from ..engine.endpoint import Request


class CredentialsError(ValueError):
    """There are no credentials, or none that can be used: what is missing and where it is set."""


class Authorizer(Protocol):
    """`fixed`: headers that are the same for every attempt; they cost nothing. None: `headers` is asked before each
    attempt. `secrets` are struck out of whatever comes back; a new tuple where they have changed."""

    @property
    def fixed(self) -> Mapping[str, str] | None: ...

    @property
    def secrets(self) -> tuple[str, ...]: ...

    async def headers(self, request: Request) -> Mapping[str, str]:
        """Headers for these very bytes at this very moment. Raises SendError where there are none to be had."""
        ...

    def refused(self) -> None:
        """The provider answered 401: what can be made anew is, for the next attempt."""
        ...


class FixedHeaders:
    """Headers that never change: a key, in whichever header it is wanted, or none at all."""

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
    return NO_CREDENTIALS if key is None else FixedHeaders({"Authorization": f"Bearer {_checked(key)}"}, key)


def key_in(header: str, key: str | None) -> FixedHeaders:
    """The key alone, in a header of its own."""
    return NO_CREDENTIALS if key is None else FixedHeaders({header: _checked(key)}, key)


def _checked(key: str) -> str:
    """A line end in a key would be the end of its header, and the beginning of another one."""
    if not (key.isascii() and key.isprintable()):
        raise CredentialsError("its key or token has characters that no header can carry")
    return key


def expanded(variable: str, path: str) -> Path:
    """The path that a variable names, `~` and `~user` told as in a shell."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise CredentialsError(f"{variable} names a home that nobody has ({path})") from error
