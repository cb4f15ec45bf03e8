"""The address of a shared cache, `redis://HOST[:PORT][/DB]` or `rediss://` (TLS). Pure, and light to import.

A user and a password are never part of it, since addresses are printed and kept in manifests.
"""

from __future__ import annotations

import re

from msgspec import Struct

USER_VARIABLE = "MILLSTREAM_CACHE_USER"
PASSWORD_VARIABLE = "MILLSTREAM_CACHE_PASSWORD"
FORM = "redis://HOST[:PORT][/DB], or rediss:// with TLS"
_ADDRESS = re.compile(r"redis(s?)://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?(?:/([0-9]{1,4})?)?")
_PORT = 6379


class ServerAddress(Struct, frozen=True):
    """Where the server of a shared cache is."""

    host: str
    port: int = _PORT
    db: int = 0
    is_tls: bool = False

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"redis{'s' if self.is_tls else ''}://{host}:{self.port}/{self.db}"


def is_address(text: str) -> bool:
    """Whether a text names a shared cache, and no folder."""
    return text.startswith(("redis://", "rediss://"))


def address_of(text: str) -> ServerAddress:
    """Returns the address that a text names. Raises ValueError, whose message repeats no secret."""
    if "@" in text:
        raise ValueError(
            f"the address of a shared cache has no user and no password in it: set {USER_VARIABLE} and "
            f"{PASSWORD_VARIABLE} in the environment, and write {FORM}"
        )
    match = _ADDRESS.fullmatch(text)
    if match is None or not 0 < int(match[3] or _PORT) < 65_536:
        raise ValueError(f"the address of a shared cache is {FORM}, without anything else")  # it may hold a secret
    return ServerAddress(match[2].strip("[]"), int(match[3] or _PORT), int(match[4] or 0), bool(match[1]))
