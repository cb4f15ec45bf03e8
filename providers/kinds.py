"""The kinds of providers: which wire protocol each speaks, and how one proves there who one is.

A new kind is one row here and one module in llm/. Reads no environment: it is given what stood in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from .authorizer import Authorizer, bearer
from .llm import openai_chat
from .llm.protocol import Target, WireProtocol


class Credentials(Struct, frozen=True):
    """What was found: the key, and the variables that the kind asks for by name. Values are secret."""

    key: str | None = None
    variables: Mapping[str, str] = {}

    def __repr__(self) -> str:
        return f"<Credentials [{'a' if self.key else 'no'} key; {', '.join(self.variables) or 'no variables'}]>"


class Kind(Struct, frozen=True):
    """`protocol` is chosen by the model's name. `authorizer` raises CredentialsError where something is missing;
    `variables` are those of the environment that it wants to see besides the key."""

    protocol: Callable[[str], WireProtocol]
    authorizer: Callable[[Credentials, Target], Authorizer]
    variables: tuple[str, ...] = ()


def always(protocol: WireProtocol) -> Callable[[str], WireProtocol]:
    return lambda model: protocol


def by_bearer(credentials: Credentials, target: Target) -> Authorizer:
    return bearer(credentials.key)


KINDS: dict[str, Kind] = {
    "openai": Kind(always(openai_chat.PROTOCOL), by_bearer),
}
